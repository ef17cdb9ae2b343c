"""The command that draws a figure of logs."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from kvstats.command_line import ending
from kvstats.errors import InputError, nearest_name
from kvstats.reading_options import Format, Labels, Logs, named_values, read_logs
from kvstats.report.progress import progress_bar

__all__ = ["PLOT_HELP", "plot"]

FIGURES = {
    "accuracy_against_budget": ("accuracy of two arms over budgets", ("arm", "baseline")),
    "accuracy_against_kept": ("accuracy over the cache really kept, with the crossover", ("arm", "baseline")),
    "agreement_profiles": ("head agreement over layers, by task", ()),
    "budget_sweep": ("what a red flag does over budgets, three panels", ("arm",)),
    "delta_matrix": ("paired difference by task and budget", ("arm",)),
    "drop_by_task": ("D of every input, and its mean by task", ()),
    "gated_recomputation": ("accuracy when suspicious runs are run again", ("arm",)),
    "layer_head_map": ("which layers and heads foretell a failure", ("arm",)),
    "mixture_curve": ("gain over the share of given tasks", ("arm", "tasks")),
    "operating_curve": ("hits over false alarms, with the red flag", ("arm",)),
    "recovery_against_headroom": ("recovery over headroom, with a fit", ("arm",)),
    "recovery_histogram": ("shares made worse, left alike, made better", ("arm",)),
    "signal_panel": ("areas of all signals, by kind of failure", ("arm",)),
    "tau_sensitivity": ("gain of a gate over its threshold, and the open share", ("base",)),
    "three_questions": ("areas of two signals for three questions", ("arm",)),
}
"""What each figure shows, and the arguments that it needs: kept here, so that help needs no matplotlib."""

SETTINGS = {"base": "base=ARM", "tasks": "'tasks=[\"TASK\"]'"}
"""How those are given that have no option of their own."""

FORMATS = (".pdf", ".png", ".svg")

COMMON = ("log", "design", "ax")
"""Arguments of figures that the command has no options for."""


def figures_help() -> str:
    """Return the list of figures for the help of the command."""
    lines = ["Figures, and the arguments that they need:"]
    for name, (text, needed) in FIGURES.items():
        lines += [f"  {name}", f"      {text}" + (f" ({', '.join(needed)})" if needed else "")]
    return "\n".join(lines)


PLOT_HELP = ending(
    [
        "kvstats plot delta_matrix logs/*.jsonl --arm snapkv --out delta.pdf",
        "kvstats plot drop_by_task logs/ --set tau=0.05 --out drop.png",
        "kvstats plot mixture_curve logs --arm a --set 'tasks=[\"qa\"]' --out mix.png",
    ],
    listing=figures_help(),
)


def figures(incomplete: str) -> list[tuple[str, str]]:
    """Return the figures whose names begin so, each with what it shows, for completion."""
    return [(name, text) for name, (text, _) in FIGURES.items() if name.startswith(incomplete)]


def plot(
    figure: Annotated[
        str,
        typer.Argument(
            metavar="FIGURE", help="Name of the figure; they are listed below.", autocompletion=figures
        ),
    ],
    logs: Logs,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to: a .pdf, .png or .svg file.")],
    arm: Annotated[str | None, typer.Option(metavar="ARM", help="The arm to draw.")] = None,
    baseline: Annotated[str | None, typer.Option(metavar="ARM", help="The arm to compare it with.")] = None,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help='Condition on the rows, such as "budget < 1".')
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Another argument of the figure, its value text or JSON. May be repeated.",
        ),
    ] = None,
    format: Format = "auto",
    label: Labels = None,
) -> None:
    """Draw a figure of logs into a file, and print its caption."""
    chosen = arguments(figure, {"arm": arm, "baseline": baseline, "where": where}, setting or [])
    check_file(out)
    draw = figure_function(figure)
    check_arguments(figure, draw, chosen)
    log = read_logs("plot", logs, format, label)
    with progress_bar(sys.stderr) as progress:
        progress(f"drawing {figure}", 0, 1)
        captioned = draw(log, **chosen)
    try:
        captioned.save(out)
    except OSError as error:
        raise InputError.argument(
            "plot", "out", str(out), f"cannot be written ({error.strerror})", "check the path"
        ) from error
    typer.echo(captioned.caption)


def arguments(figure: str, options: Mapping[str, str | None], settings: Sequence[str]) -> dict[str, Any]:
    r"""Return the arguments of a figure.

    Examples
    --------
    >>> arguments("mixture_curve", {"arm": "gate", "where": None}, ["tasks=[\"qa\"]", "outcome=success"])
    {'arm': 'gate', 'tasks': ['qa'], 'outcome': 'success'}
    """
    if figure not in FIGURES:
        raise InputError.argument("plot", "figure", figure, "is not known", nearest_name(figure, FIGURES))
    chosen: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    return chosen | named_values("plot", "set", settings, example="tau=0.05", taken=chosen)


def check_file(path: Path) -> None:
    """Refuse a file that cannot be written, before the work is done."""
    if path.suffix.lower() not in FORMATS:
        raise InputError.argument(
            "plot", "out", str(path), "does not say which format", "end it in .pdf, .png or .svg"
        )
    if not path.parent.is_dir():
        raise InputError.argument("plot", "out", str(path), "lies in no folder", "make the folder first")


def figure_function(figure: str) -> Callable[..., Any]:
    """Return the function of a figure, or raise `InputError` where matplotlib is missing."""
    try:
        module = importlib.import_module("kvstats.report.figures")
    except ImportError as error:
        raise InputError(f"plot: {error}") from error
    function: Callable[..., Any] = getattr(module, figure)
    return function


def check_arguments(figure: str, draw: Callable[..., Any], chosen: Mapping[str, Any]) -> None:
    """Raise `InputError` where a figure lacks an argument, or does not have one that is given."""
    known = [name for name in inspect.signature(draw).parameters if name not in COMMON]
    for name, value in chosen.items():
        if name not in known:
            raise InputError.argument(
                "plot", name, value, f"is no argument of {figure}", nearest_name(name, known)
            )
    for name in FIGURES[figure][1]:
        if name not in chosen:
            given = f"--{name} {name.upper()}" if name in ("arm", "baseline") else f"--set {SETTINGS[name]}"
            raise InputError(f"plot: {figure} needs the argument {name!r}; add {given}")
