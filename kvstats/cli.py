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
from kvstats.prereg import ClaimOutcome, Report
from kvstats.prereg import verify as verify_registration
from kvstats.prereg.json_schema import registration_schema
from kvstats.registration_commands import lint, new, prml
from kvstats.report.progress import progress_line
from kvstats.report.tables import print_log, print_report
from kvstats.sealing_commands import amend, seal

__all__ = ["app", "main"]

EXIT_NOT_SUPPORTED = 1
EXIT_INPUT = 2

EXIT_CODES = """\b
Exit codes:
  0  verified, and everything is intact
  1  with --require: some claim is not supported
     with --strict: the same, or the registration is unanchored, or anchored
     after the first record, or a claim rests on records that may be older
     than it
  2  wrong usage, input that cannot be used, or a claim that the logs refuse
  3  not intact: a hash, the seal or an amendment differs, a line cannot be
     read, or a guard fails
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
    html: Annotated[
        Path | None,
        typer.Option(metavar="OUT", help="Write the report as a page too, a file whose name ends in .html."),
    ] = None,
    require: Annotated[bool, typer.Option("--require", help="Exit with 1 unless all are supported.")] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="The same, and unless it is anchored and no record may be older."),
    ] = False,
    git: Annotated[
        str | None,
        typer.Option(metavar="REF", help="Commit or tag that must hold the registration or its seal."),
    ] = None,
    no_git: Annotated[bool, typer.Option("--no-git", help="Do not look for commits that hold it.")] = False,
    timestamp: Annotated[
        Path | None,
        typer.Option(metavar="TSR", help="RFC 3161 time-stamp of the registration; needs --timestamp-roots."),
    ] = None,
    timestamp_roots: Annotated[
        Path | None, typer.Option(metavar="PEM", help="Certificates of the authorities that are trusted.")
    ] = None,
    sensitivity: Annotated[
        bool,
        typer.Option("--sensitivity", help="Judge under other intervals, clusters and selections too."),
    ] = False,
) -> None:
    """Hold a registration against its logs: every claim with its estimate, its interval and its verdict."""
    if html is not None:
        check_page(html)
    with progress_line(sys.stderr) as progress:
        report = verify_registration(
            file,
            expect_sha256=expect_sha256,
            data=data,
            only=only or None,
            git=git if git is not None else not no_git,
            timestamp=timestamp,
            timestamp_roots=timestamp_roots,
            sensitivity=sensitivity,
            progress=progress,
        )
    if html is not None:
        save_page(report, html)
    if as_json:
        typer.echo(report.to_json(), nl=False)
    else:
        print_report(report, sys.stdout)
    if report.exit_code:
        raise typer.Exit(report.exit_code)
    if (require or strict) and any(claim.verdict != "supported" for claim in report.claims):
        raise typer.Exit(EXIT_NOT_SUPPORTED)
    anchored = report.registration.anchored and report.anchored_first is not False
    if strict and not (anchored and all(map(surely_later, report.claims))):
        raise typer.Exit(EXIT_NOT_SUPPORTED)


def surely_later(claim: ClaimOutcome) -> bool:
    """Say whether all records that a claim rests on were made after its registration."""
    return claim.evidence is None or claim.evidence.before == claim.evidence.unknown == 0


def check_page(path: Path) -> None:
    """Refuse a page that cannot be written, before the work is done."""
    if path.suffix.lower() not in (".html", ".htm"):
        # A slip such as the name of the registration itself would cost the evidence.
        raise InputError.argument("verify", "html", str(path), "does not end in .html", "name the page so")
    if not path.parent.is_dir():
        raise InputError.argument("verify", "html", str(path), "lies in no folder", "make the folder first")


def save_page(report: Report, path: Path) -> None:
    """Write a report as a page."""
    try:
        report.save_html(path)
    except OSError as error:
        raise InputError.argument(
            "verify", "html", str(path), f"cannot be written ({error.strerror})", "check the path"
        ) from error


@app.command(short_help="Say what logs hold.")
def summary(
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", help="Logs, or patterns that match them.")],
) -> None:
    """Say what logs hold: runs, inputs and mean scores by model, task, condition and arm."""
    print_log(read_log(logs), sys.stdout)


app.command(short_help="Write a registration to start from.")(new)
app.command(short_help="Check a registration without data.")(lint)
app.command(short_help="Seal a registration.")(seal)
app.command(short_help="Append an amendment to a registration.")(amend)
app.add_typer(prml, name="prml")


@app.command()
def schema(
    registration: Annotated[bool, typer.Option("--registration", help="That of a registration.")] = False,
) -> None:
    """Print the JSON Schema of one line of a log, or of a registration."""
    typer.echo(json.dumps(registration_schema() if registration else log_schema(), indent=2))


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
