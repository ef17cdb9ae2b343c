"""The command `collect`: run a plan, and append what it records to a log."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from collectors.config import read_plan
from collectors.run import run_plan
from kvstats.errors import InputError

__all__ = ["main"]

EXIT_INPUT = 2
EXIT_INTERRUPTED = 130

EXIT_CODES = """\b
Exit codes:
  0    the log is complete
  2    wrong usage, or a plan or log that cannot be used
  130  interrupted; the same command continues
"""

app = typer.Typer(
    name="collect",
    help="Record what a language model does with its full and with compressed key-value caches.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def collect() -> None:
    """Record what a language model does with its full and with compressed key-value caches."""


@app.command(epilog=EXIT_CODES)
def run(
    study: Annotated[Path, typer.Argument(help="The plan, a YAML file.")],
    out: Annotated[
        Path | None, typer.Option(help="The log. [default: beside the plan, with the ending .jsonl]")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes, of one thread each.")] = 1,
) -> None:
    """Run a plan and append its records to a log.

    A log that is there already is continued: finished inputs are not run again, and what a kill left
    unfinished at its end is removed first.
    """
    path = out or study.with_suffix(".jsonl")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("inputs,"),
        TimeElapsedColumn(),
        TextColumn("elapsed,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    console = Console(stderr=True)
    plan = read_plan(study)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(plan.suite, total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            if not console.is_terminal:
                typer.echo(f"{plan.suite}: {done} of {total} inputs", err=True)

        try:
            added = run_plan(plan, path, workers=workers, progress=show)
        except KeyboardInterrupt:
            typer.echo("interrupted; run the same command again to continue", err=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None
    typer.echo(f"{path}: {added} inputs added")


def main() -> None:
    """Run the command; input errors become one line on standard error and exit code 2."""
    try:
        app()
    except InputError as error:
        typer.echo(f"collect: {error}", err=True)
        sys.exit(EXIT_INPUT)
