"""The command `collect`: what a plan asks for, running it into a log, and checking a log."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

try:
    import torch  # noqa: F401
    import transformers  # noqa: F401  Neither is used here: to say what is missing, once for all commands.
except ModuleNotFoundError as error:
    missing = f"collect: recording needs torch and transformers ({error}); install them with "
    print(f"{missing}pip install 'kvstats[collect]'", file=sys.stderr)
    raise SystemExit(2) from error

import msgspec
import typer
from rich.console import Console

from collectors.check import PUBLISHED_TAU, check_log, shown_check
from collectors.config import read_plan
from collectors.forecast import forecast, run_pilot, shown_forecast
from collectors.progress import shown_progress
from collectors.run import run_plan
from kvstats.command_line import ending, finish_output
from kvstats.errors import InputError

__all__ = ["main"]

EXIT_DRIFTED = 1
EXIT_INPUT = 2
EXIT_DIFFERENT = 3
EXIT_INTERRUPTED = 130

CANNOT_BE_USED = "wrong usage, or a plan that cannot be used"

PLAN_HELP = ending(
    ["collect plan study.yaml", "collect plan study.yaml --no-pilot"],
    {0: "shown", EXIT_INPUT: CANNOT_BE_USED},
)

RUN_HELP = ending(
    ["collect run study.yaml --workers 2", "collect run study.yaml --out logs/a.jsonl --retry-errors"],
    {
        0: "the log is complete",
        EXIT_INPUT: f"{CANNOT_BE_USED}, or the first three inputs all failed",
        EXIT_INTERRUPTED: "interrupted; the same command continues",
    },
)

CHECK_HELP = ending(
    ["collect check study.jsonl", "collect check study.jsonl.gz --inputs 20 --model models/smollm2"],
    {
        0: "reproduced",
        EXIT_DRIFTED: "the same tokens and decisions, but some numbers drifted",
        EXIT_INPUT: "wrong usage, or a log that cannot be used",
        EXIT_DIFFERENT: "a prompt, token or decision is another one, or a number is more than 5% off",
    },
)

app = typer.Typer(
    name="collect",
    epilog=ending(
        ["collect plan study.yaml", "collect run study.yaml --workers 2", "collect check study.jsonl"],
        {
            0: "done; check: reproduced",
            EXIT_DRIFTED: "check: some numbers drifted",
            EXIT_INPUT: "wrong usage, or a plan or log that cannot be used",
            EXIT_DIFFERENT: "check: something is different",
            EXIT_INTERRUPTED: "run: interrupted; the same command continues",
        },
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Study = Annotated[Path, typer.Argument(metavar="PLAN", help="The plan, a YAML file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@app.callback()
def collect() -> None:
    """Record what a language model does with its full and with compressed key-value caches.

    A plan says which model, tasks, evictors and budgets; its log is read by kvstats.
    """


@app.command(epilog=PLAN_HELP, short_help="Show what a plan holds, and what it will cost.")
def plan(
    study: Study,
    pilot: Annotated[bool, typer.Option(help="Run three inputs of another seed for time and memory.")] = True,
    pilot_seed: Annotated[
        int | None,
        typer.Option(min=0, metavar="SEED", help="Their seed.", show_default="that of the plan plus 1000000"),
    ] = None,
    json: Json = False,
) -> None:
    """Show the cells of a plan, and the time and memory to expect."""
    asked = read_plan(study)
    found = forecast(asked, pilot=run_pilot(asked, seed=pilot_seed) if pilot else None)
    show(found, shown_forecast(found), json)


@app.command(epilog=RUN_HELP, short_help="Run a plan, and append to its log.")
def run(
    study: Study,
    out: Annotated[
        Path | None,
        typer.Option(metavar="LOG", help="The log.", show_default="beside the plan, with the ending .jsonl"),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(min=1, metavar="COUNT", help="Processes, of one thread each; on GPUs one for each GPU."),
    ] = 1,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Run inputs again that the log holds with an error.")
    ] = False,
) -> None:
    """Run a plan and append its records to a log.

    A log that is there already is continued: finished inputs are not run again, and what a kill left
    unfinished at its end is removed first. An input that fails is recorded with its error, and the run
    goes on.
    """
    path = out or study.with_suffix(".jsonl")
    asked = read_plan(study)
    try:
        with shown_progress(asked.suite, Console(stderr=True)) as progress:
            added = run_plan(asked, path, workers=workers, retry_errors=retry_errors, progress=progress)
    except KeyboardInterrupt:
        typer.echo("interrupted; run the same command again to continue", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    failed = f", {added.failed} of them with errors" if added.failed else ""
    typer.echo(f"{path}: {added.units} inputs added{failed}")


@app.command(epilog=CHECK_HELP, short_help="Run some inputs of a log again, and compare.")
def check(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A log of one collection, plain or gzipped.")],
    inputs: Annotated[int, typer.Option(min=1, metavar="COUNT", help="How many inputs to run again.")] = 5,
    tau: Annotated[
        float, typer.Option(metavar="TAU", help="Threshold of the gate decision, D < tau.")
    ] = PUBLISHED_TAU,
    seed: Annotated[int, typer.Option(min=0, metavar="SEED", help="Seed of the draw of inputs.")] = 0,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Where the model is now.", show_default="where the log says"),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What to run on, cpu or cuda.", show_default="what the log says"),
    ] = None,
    json: Json = False,
) -> None:
    """Run some inputs of a log again, and say whether they come out the same."""
    found = check_log(log, inputs=inputs, tau=tau, seed=seed, model=model, device=device)
    show(found, shown_check(found), json)
    codes = {"reproduced": 0, "drifted": EXIT_DRIFTED, "different": EXIT_DIFFERENT}
    raise typer.Exit(codes[found.verdict])


def show(found: msgspec.Struct, lines: Iterable[str], json: bool) -> None:
    """Write a result as JSON or as lines."""
    text = msgspec.json.format(msgspec.json.encode(found), indent=2).decode() if json else "\n".join(lines)
    typer.echo(text)


def main() -> None:
    """Run the command; input errors become one line on standard error and exit code 2."""
    try:
        app(prog_name="collect")
    except InputError as error:
        typer.echo(f"collect: {error}", err=True)
        sys.exit(EXIT_INPUT)
    finally:
        finish_output()
