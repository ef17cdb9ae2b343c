"""The command that audits logs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from kvstats.command_line import ending
from kvstats.log.audit import audit_log
from kvstats.prereg.plan import load_plan
from kvstats.reading_options import Format, Labels, Logs, read_logs
from kvstats.report.audit_table import print_audit
from kvstats.report.progress import progress_bar

__all__ = ["AUDIT_HELP", "audit"]

EXIT_CODES = {"error": 3, "warning": 1, "note": 0, None: 0}
"""Exit code by the worst severity."""

AUDIT_HELP = ending(
    ["kvstats audit results/", "kvstats audit new.jsonl --reference published.jsonl --json"],
    {
        0: "nothing found, or notes only",
        1: "warnings: estimates may be wrong",
        2: "wrong usage, or input that cannot be read",
        3: "errors: estimators refuse such rows, or what is made of them is wrong",
    },
)


def audit(
    logs: Logs,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LOG",
            help="A log whose prompts, D and gate decisions should come out again. May be repeated.",
        ),
    ] = None,
    registration: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A registration that no record may be older than."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print counts and findings as JSON.")] = False,
    format: Format = "auto",
    label: Labels = None,
) -> None:
    """Look for what would bias an analysis of logs, and say what each finding would bias.

    Lines that cannot be read are findings too. Folders are looked through for configurations that are
    missing, names of bad files, and printed scores that contradict their counts.
    """
    registered = None if registration is None else load_plan(registration).registration.registered_at
    against = None if reference is None else read_logs("audit", reference, "auto", None)
    log = read_logs("audit", logs, format, label, on_error="skip")
    folders = [path for path in logs if Path(path).is_dir()]
    with progress_bar(sys.stderr) as progress:
        progress("checking", 0, 1)
        found = audit_log(log, reference=against, registered=registered, folders=folders)
    if as_json:
        typer.echo(found.to_json(), nl=False)
    else:
        print_audit(found, sys.stdout)
    if code := EXIT_CODES[found.worst]:
        raise typer.Exit(code)
