"""The command ``kvstats``."""

from __future__ import annotations

import importlib.metadata
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from kvstats.errors import InputError
from kvstats.log import log_schema, read_log
from kvstats.prereg import verify as verify_registration
from kvstats.report.tables import print_log, print_report

__all__ = ["app", "main"]

EXIT_NOT_SUPPORTED = 1
EXIT_INPUT = 2

EXIT_CODES = """\b
Exit codes:
  0  verified, and everything is intact
  1  with --require: some claim is not supported
  2  wrong usage, or input that cannot be used
  3  not intact: a hash differs, a line cannot be read, or a guard fails
"""

app = typer.Typer(
    name="kvstats",
    help="Statistics for what KV-cache eviction did to a language model's answers.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kvstats {importlib.metadata.version('kvstats')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Statistics for what KV-cache eviction did to a language model's answers."""


@app.command(epilog=EXIT_CODES, short_help="Hold a registration against its logs.")
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The registration, a YAML file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    expect_sha256: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="SHA-256 that the registration was published with."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the data, instead of the registration's own."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Judge this claim only; may be given several times."),
    ] = None,
    require: Annotated[bool, typer.Option("--require", help="Exit with 1 unless all are supported.")] = False,
) -> None:
    """Hold a registration against its logs: every claim with its estimate, its interval and its verdict."""
    report = verify_registration(file, expect_sha256=expect_sha256, data=data, only=only or None)
    if as_json:
        typer.echo(report.to_json(), nl=False)
    else:
        print_report(report, sys.stdout)
    if report.exit_code:
        raise typer.Exit(report.exit_code)
    if require and any(claim.verdict != "supported" for claim in report.claims):
        raise typer.Exit(EXIT_NOT_SUPPORTED)


@app.command(short_help="Say what logs hold.")
def summary(
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", help="Logs, or patterns that match them.")],
) -> None:
    """Say what logs hold: runs, inputs and mean scores by model, task, condition and arm."""
    print_log(read_log(logs), sys.stdout)


@app.command()
def schema() -> None:
    """Print the JSON Schema of one line of a log."""
    typer.echo(json.dumps(log_schema(), indent=2))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command, and end the process with its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.

    Raises
    ------
    SystemExit
        Always.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A statement may have letters that the terminal's encoding lacks.
        sys.stdout.reconfigure(errors="replace")
    try:
        app(args=arguments, prog_name="kvstats")
    except InputError as error:
        typer.echo(f"kvstats: {' '.join(str(error).split())}", err=True)
        sys.exit(EXIT_INPUT)
