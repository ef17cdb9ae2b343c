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

from kvstats.audit_commands import AUDIT_HELP, audit
from kvstats.command_line import ending, finish_output
from kvstats.errors import InputError
from kvstats.log import log_schema
from kvstats.plot_commands import PLOT_HELP, plot
from kvstats.prereg import ClaimOutcome, Report
from kvstats.prereg import verify as verify_registration
from kvstats.prereg.json_schema import registration_schema
from kvstats.reading_options import Format, Labels, Logs, read_logs
from kvstats.registration_commands import Registration, lint, new, prml
from kvstats.report.progress import progress_bar
from kvstats.report.tables import print_log, print_report, summary_content
from kvstats.sealing_commands import amend, seal

__all__ = ["app", "main"]

EXIT_NOT_SUPPORTED = 1
EXIT_INPUT = 2

VERIFY_HELP = ending(
    [
        "kvstats verify plan.yaml",
        "kvstats verify plan.yaml --only harm --only coverage --json",
        "kvstats verify plan.yaml --expect-sha256 HASH --strict --html report.html",
    ],
    {
        0: "verified, and everything is intact",
        1: "with --require: some claim is not supported\n"
        "with --strict: the same, or the registration is unanchored, or anchored after the first record, or "
        "a claim rests on records that may be older than it",
        2: "wrong usage, input that cannot be used, or a claim that the logs refuse",
        3: "not intact: a hash, the seal or an amendment differs, a line cannot be read, or a guard fails",
    },
)

app = typer.Typer(
    name="kvstats",
    epilog=ending(
        [
            "kvstats summary logs/",
            "kvstats audit logs/*.jsonl.gz",
            "kvstats plot drop_by_task logs/ --out drop.pdf",
            "kvstats verify plan.yaml",
            "kvstats verify --help",
        ],
        {
            0: "done, and nothing is wrong",
            1: "a claim is not supported (verify, where asked for), or warnings (audit)",
            2: "wrong usage, or input that cannot be used",
            3: "something is not intact (verify, prml), or errors (audit)",
        },
    ),
    no_args_is_help=True,
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
    """Say whom KV-cache eviction hurt, how often, and whether it could have been known, from logged runs.

    A log is a file of runs, of this library or of another; a registration is a file that says before the runs
    what they should show, and what would refute it.
    """


@app.command(
    epilog=ending(["kvstats summary logs/", "kvstats summary a.jsonl b.jsonl --json"]),
    short_help="Say what logs hold.",
)
def summary(
    logs: Logs,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
    format: Format = "auto",
    label: Labels = None,
) -> None:
    """Say what logs hold: runs, inputs and mean scores by model, task, condition and arm."""
    log = read_logs("summary", logs, format, label)
    if as_json:
        typer.echo(json.dumps(summary_content(log), indent=2, ensure_ascii=False))
    else:
        print_log(log, sys.stdout)


app.command(epilog=AUDIT_HELP, short_help="Look for what would bias an analysis of logs.")(audit)
app.command(epilog=PLOT_HELP, short_help="Draw a figure of logs.")(plot)
app.command(
    epilog=ending(["kvstats new plan.yaml", "kvstats new plan.yaml --example gating_32k"]),
    short_help="Write a registration to start from.",
)(new)
app.command(epilog=ending(["kvstats lint plan.yaml"]), short_help="Check a registration without data.")(lint)
app.command(
    epilog=ending(["kvstats seal plan.yaml"]), short_help="Write the hashes and time of a registration."
)(seal)
app.command(
    epilog=ending(
        [
            "kvstats amend plan.yaml --text 'Log b was lost.'",
            "kvstats amend plan.yaml --text 'Tenfold.' --change harm.null=-0.1",
        ]
    ),
    short_help="Append an amendment to a registration.",
)(amend)


@app.command(epilog=VERIFY_HELP, short_help="Hold a registration against its logs.")
def verify(
    file: Registration,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the report as a page too; the name must end in .html."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the data, instead of the registration's own."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Judge this claim only. May be repeated."),
    ] = None,
    sensitivity: Annotated[
        bool,
        typer.Option("--sensitivity", help="Judge under other intervals, clusters and selections too."),
    ] = False,
    require: Annotated[
        bool, typer.Option("--require", help="Exit with 1 unless every claim is supported.")
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="The same, and unless the registration is anchored and older than all records."
        ),
    ] = False,
    expect_sha256: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="Anchor: the SHA-256 that the registration was published with."),
    ] = None,
    git: Annotated[
        str | None,
        typer.Option(
            metavar="REF", help="Anchor: a commit or tag that must hold the registration or its seal."
        ),
    ] = None,
    no_git: Annotated[bool, typer.Option("--no-git", help="Do not look for commits that hold it.")] = False,
    timestamp: Annotated[
        Path | None,
        typer.Option(metavar="TSR", help="Anchor: its RFC 3161 time-stamp; needs --timestamp-roots."),
    ] = None,
    timestamp_roots: Annotated[
        Path | None,
        typer.Option(metavar="PEM", help="Certificates of the time-stamp authorities that you trust."),
    ] = None,
) -> None:
    """Hold a registration against its logs: every claim with its estimate, its interval and its verdict.

    An anchor is something outside of the file that shows that it was not changed afterwards.
    """
    if html is not None:
        check_page(html)
    with progress_bar(sys.stderr) as progress:
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


app.add_typer(prml, name="prml", short_help="Exchange single claims with other tools.")


@app.command(
    epilog=ending(["kvstats schema > log.schema.json", "kvstats schema --registration"]),
    short_help="Print the JSON Schema of a log or registration.",
)
def schema(
    registration: Annotated[
        bool, typer.Option("--registration", help="Print that of a registration instead.")
    ] = False,
) -> None:
    """Print the JSON Schema of one line of a log."""
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
    finally:
        finish_output()
