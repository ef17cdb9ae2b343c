"""Audit of a log: what its records show that would bias an analysis, or make one impossible."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

import polars as pl

from kvstats.log.audits.cache import full_not_whole, kept_above_prompt, kept_unlike_budget
from kvstats.log.audits.cells import absent_cells, check_grid, partial_cells
from kvstats.log.audits.finding import SEVERITIES, Finding, evicted, named, several
from kvstats.log.audits.folders import kvpress_findings, result_folders, scores_of_no_samples
from kvstats.log.audits.gates import calls_of_no_threshold, mixed_tau, tau_against_calls
from kvstats.log.audits.identity import (
    duplicates,
    lengths_by_arm,
    lone_runs,
    missing_twins,
    one_cluster,
    reused_ids,
)
from kvstats.log.audits.names import bad_names, numbered_twins, stubs
from kvstats.log.audits.outcomes import identical_arms, unlike_full, without_effect, without_score
from kvstats.log.audits.reference import check_time, drift, older_records
from kvstats.log.audits.signals import idle_signals
from kvstats.log.frames import Log
from kvstats.table_layout import aligned_text, html_cells

__all__ = ["Audit", "Finding", "audit_log", "evidence_findings"]

AUDIT_SCHEMA: dict[str, pl.DataType] = {
    "check": pl.String(),
    "severity": pl.String(),
    "count": pl.Int64(),
    "message": pl.String(),
    "bias": pl.String(),
    "examples": pl.List(pl.String),
}


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What an audit found, and what was there to be audited.

    Attributes
    ----------
    findings : tuple of Finding
        The worst first, and in the order of the checks among those that are equally bad.
    n_total, n_scored, n_error : int
        Runs, runs with a score, and runs without one that have an error. The rest, ``n_total - n_scored -
        n_error``, was not scored. No run leaves a denominator silently: estimators refuse a population with
        runs without a score until ``where="score IS NOT NULL"`` leaves them out.
    """

    findings: tuple[Finding, ...]
    n_total: int
    n_scored: int
    n_error: int

    @property
    def frame(self) -> pl.DataFrame:
        """The findings as a table: check, severity, count, message, bias (what it would bias), examples."""
        rows = [(f.check, f.severity, f.count, f.message, f.bias, list(f.examples)) for f in self.findings]
        return pl.DataFrame(rows, schema=AUDIT_SCHEMA, orient="row")

    @property
    def worst(self) -> str | None:
        """The worst severity; None where nothing was found."""
        return self.findings[0].severity if self.findings else None

    @property
    def title(self) -> str:
        """How many findings of each severity, and how many runs were scored."""
        counts = [(name, sum(f.severity == name for f in self.findings)) for name in SEVERITIES]
        found = ", ".join(several(count, name) for name, count in counts if count) or "nothing found"
        unscored = self.n_total - self.n_scored - self.n_error
        runs = f"{several(self.n_total, 'run')}: {self.n_scored:,} scored, {self.n_error:,} with an error"
        return f"audit, {found}; {runs}, {unscored:,} not scored"

    def __repr__(self) -> str:
        if not self.findings:
            return self.title
        rows = [[f.severity, f.check, f"{f.count:,}", f.message] for f in self.findings]
        return aligned_text(
            self.title, ["severity", "check", "count", "message"], rows, [False, False, True, False]
        )

    def _repr_html_(self) -> str:
        header = ["severity", "check", "count", "message", "would bias", "such as"]
        rows = [
            [f.severity, f.check, f"{f.count:,}", f.message, f.bias, "; ".join(f.examples)]
            for f in self.findings
        ]
        return html_cells(self.title, header, rows, [name == "count" for name in header])

    def to_json(self) -> bytes:
        """Return counts and findings as JSON."""
        content = {
            "n_total": self.n_total,
            "n_scored": self.n_scored,
            "n_error": self.n_error,
            "findings": self.frame.to_dicts(),
        }
        return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def audit_log(
    log: Log,
    *,
    grid: pl.DataFrame | None = None,
    reference: Log | None = None,
    registered: datetime | None = None,
    folders: Sequence[str | os.PathLike[str]] = (),
) -> Audit:
    """Look for what would bias an analysis of a log.

    Parameters
    ----------
    log : Log
        The log as recorded, without virtual arms.
    grid : polars.DataFrame, optional
        Cells that are expected of every input: a row each, with some of the columns suite, model, task,
        condition, arm, budget, budget_tokens and seed. Default: each input of a suite, model and task is
        expected under each condition, arm, budget and seed that another input of these has.
    reference : Log, optional
        A log whose prompts, D and gate decisions this one should reproduce, see `compare_logs`.
    registered : datetime, optional
        When the claims on this log were registered, with its time zone.
    folders : sequence of path-like, optional
        Folders whose results are looked at too, with all folders in them, besides those of the files read.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        When the grid has other columns or no row, or the time has no zone.

    Notes
    -----
    Checks of severity ``error``: lines that could not be read, duplicates, one key for several contents, a
    full cache of which only a part was kept, and, where asked for, other prompts than the reference's and
    records older than the registration.

    ``warning``: runs without score, twin or cell; runs at budget 1 or behind a closed gate unlike the full
    cache (nothing is evicted there); prompts of other lengths in other arms; an id for other references on
    another model; more kept than there was; a cell that keeps on average more than 0.02 and one token above
    or below its budget (rounding, protected positions and random sizes make less); arms that are identical on
    all rows that they share below budget 1 (in score and, where recorded, prediction; at least 10 rows, and
    more than one outcome); arms whose predictions are the full cache's on all of them; gates with several
    thresholds, with calls that their own does not make, or that none makes; D and gate decisions other than
    the reference's; what files and folders are called and lack.

    ``note``: signals of input records, or of an arm's runs below budget 1, that are constant or saturated (of
    at least 10 values 95% are the smallest or the largest one); tasks with a single input, inputs with a
    single run, tasks without a cell that others have, runs without a study record, records without a time.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> key = dict(suite="s", model="m", task="qa", budget=1.0, score=1.0)
    >>> log = log_from_records([RunRecord(**key, input_id=i, arm="full") for i in "122"])
    >>> audit_log(log)
    audit, 1 error, 1 note; 3 runs: 3 scored, 0 with an error, 0 not scored
    severity  check            count  message
    error     duplicates           2  2 runs share their key with another
    note      no study record      3  3 runs of which no study record says how they were made
    """
    files = log.files["file"].to_list()
    records = dict(log.files.select("file", "records").rows())
    places = result_folders(files, folders)
    findings = chain(
        unreadable_lines(log.rejects),
        record_findings(log, grid=None if grid is None else check_grid(grid)),
        () if reference is None else drift(log, reference),
        () if registered is None else older_records(log, check_time(registered)),
        file_findings(records, [str(place) for place in folders_in(places, folders)]),
        kvpress_findings(places),
        scores_of_no_samples(places),
    )
    scored = log.runs["score"].is_not_null()
    failed = log.runs["error"].is_not_null() & ~scored
    return Audit(sorted_findings(findings), log.runs.height, int(scored.sum()), int(failed.sum()))


def record_findings(log: Log, *, grid: pl.DataFrame | None = None) -> Iterator[Finding]:
    """Yield what the records of a log show, wherever their files are."""
    yield from duplicates(log)
    yield from reused_ids(log)
    yield from without_score(log.runs)
    yield from missing_twins(log.runs)
    yield from partial_cells(log.runs, grid)
    yield from lengths_by_arm(log.runs)
    yield from unlike_full(log.runs)
    yield from full_not_whole(log.runs)
    yield from kept_above_prompt(log.runs)
    yield from kept_unlike_budget(log.runs)
    yield from identical_arms(log.runs)
    yield from without_effect(log.runs)
    yield from mixed_tau(log)
    yield from tau_against_calls(log)
    yield from calls_of_no_threshold(log)
    yield from idle_signals("runs below budget 1", evicted(log.runs), log.run_signals, ["arm"])
    yield from idle_signals("input records", log.inputs, (*log.input_signals, "drop"), [])
    yield from one_cluster(log.runs)
    yield from lone_runs(log.runs)
    yield from absent_cells(log.runs)
    yield from without_study(log)


def file_findings(records: Mapping[str, int], folders: Sequence[str] = ()) -> Iterator[Finding]:
    """Yield what the names of files, with how many records each has, and of folders show."""
    paths = sorted({*records, *folders})
    yield from bad_names(paths)
    yield from numbered_twins(paths)
    yield from stubs(records)


def folders_in(
    places: Sequence[os.PathLike[str]], folders: Sequence[str | os.PathLike[str]]
) -> Iterator[str]:
    """Yield those of some places that lie in the given folders."""
    tops = [os.path.join(os.fspath(folder), "") for folder in folders]
    for place in map(os.fspath, places):
        if any(place.startswith(top) for top in tops):
            yield place


def evidence_findings(log: Log, records: Mapping[str, int]) -> tuple[Finding, ...]:
    """Return what the records of a log show, and the names of its files with how many records each has.

    Nothing else is looked at, so that the same records give the same findings wherever they lie.
    """
    return sorted_findings(chain(record_findings(log), file_findings(records)))


def sorted_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings with the worst first."""
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def unreadable_lines(rejects: pl.DataFrame) -> Iterator[Finding]:
    """Find lines that could not be read."""
    if rejects.height:
        message = f"{several(rejects.height, 'line')} could not be read"
        yield Finding(
            "unreadable lines", "error", rejects.height, message, named(rejects, ["file", "line", "error"])
        )


def without_study(log: Log) -> Iterator[Finding]:
    """Find runs of a suite and model that no study record describes."""
    key = ["suite", "model"]
    runs = log.runs.join(log.studies, on=key, how="anti")
    if runs.height:
        message = f"{several(runs.height, 'run')} of which no study record says how they were made"
        yield Finding("no study record", "note", runs.height, message, named(runs, key))
