"""The report of a verification: what was registered, what was found, and what follows."""

from __future__ import annotations

import importlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.inference.result import RESULT_SCHEMA
from kvstats.log.audit import Finding
from kvstats.prereg.data import DataCounts, DataFile
from kvstats.prereg.display import claim_table, row_label, verdict_counts
from kvstats.prereg.html_report import html_report
from kvstats.prereg.latex_report import latex_report
from kvstats.prereg.markdown_report import markdown_report
from kvstats.prereg.order import Order
from kvstats.prereg.outcome import ClaimOutcome, GuardOutcome
from kvstats.prereg.standing import RegistrationFacts
from kvstats.titled_table import TitledTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kvstats.report.plots import CaptionedFigure

__all__ = ["Report"]

FORMAT = 1
"""Version of the report's JSON."""


@dataclass(frozen=True)
class Report:
    """What a verification found.

    Attributes
    ----------
    study : str
        Name of the study.
    description, exclusions, stopping_rule : str or None
        As registered.
    deviations : tuple of dict
        What was added to the registration after its time, each with ``at`` and ``text``.
    amendments : tuple of dict
        Changes that were chained to it, each with ``at``, ``text``, ``changes`` and ``sha256``.
    registration : RegistrationFacts
        Which registration it was.
    design : dict
        How estimates were judged.
    policies : tuple of dict
        Virtual arms that were added.
    family : dict or None
        Claims that share an error rate, with method and level.
    data : DataCounts or None
        What was read; None when the registration was not the expected one, so that no data was opened.
    integrity : tuple of str
        What is wrong with the registration or the files of data.
    guards : tuple of GuardOutcome
        Guards, expected counts first.
    claims : tuple of ClaimOutcome
        Claims, as registered.
    files : tuple of DataFile
        Each file of data, with its hash, its records and their times.
    order : Order or None
        When the records were made, against the registration and what was added to it.
    audit : tuple of Finding
        What looks wrong in the records. It changes no verdict, but for a key of several contents.
    not_judged : tuple of str
        Ids of the registered claims that were not asked for.

    Examples
    --------
    >>> import tempfile
    >>> import kvstats as kv
    >>> plan = '''
    ... study: toy
    ... registered_at: 1999-12-01T12:00:00Z
    ... data: {runs: [a.jsonl]}
    ... claims:
    ...   - {id: harm, statement: Harm, estimator: harm_rate, arguments: {arm: plain}, supported: low > 0}
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "plan.yaml").write_text(plan)
    ...     kv.simulate_log(seed=1, inputs=20, harm=0.5).log.write(f"{folder}/a.jsonl")
    ...     report = kv.verify(f"{folder}/plan.yaml")
    >>> report
    Report: toy; 1 claim: 1 supported; intact, unanchored
    >>> report.claim("harm").verdict, report.exit_code
    ('supported', 0)
    """

    study: str
    description: str | None
    exclusions: str | None
    stopping_rule: str | None
    deviations: tuple[dict[str, str], ...]
    amendments: tuple[dict[str, Any], ...]
    registration: RegistrationFacts
    design: dict[str, Any]
    policies: tuple[dict[str, Any], ...]
    family: dict[str, Any] | None
    data: DataCounts | None
    integrity: tuple[str, ...]
    guards: tuple[GuardOutcome, ...]
    claims: tuple[ClaimOutcome, ...]
    files: tuple[DataFile, ...] = ()
    order: Order | None = None
    audit: tuple[Finding, ...] = ()
    not_judged: tuple[str, ...] = ()

    @property
    def intact(self) -> bool:
        """Whether registration and data are as registered, and every guard holds."""
        return not self.integrity and all(guard.holds for guard in self.guards)

    @property
    def exit_code(self) -> int:
        """3 when not intact, 2 when the logs refuse the question of some claim, else 0."""
        if not self.intact:
            return 3
        return 2 if any(claim.error is not None for claim in self.claims) else 0

    @property
    def registered_first(self) -> bool | None:
        """Whether the registration's time lies before the first record's; None where that is not known."""
        return self.precedes_records(self.registration.registered_at)

    @property
    def anchored_first(self) -> bool | None:
        """Whether an anchor that the caller named has all rules, and a time before the first record's.

        None where no anchor with all rules has a time, or the records have none.
        """
        times = [
            anchor.time
            for anchor in self.registration.anchors
            if anchor.given
            and anchor.time is not None
            # One that is older than an amended rule says nothing of when that was written.
            and (
                anchor.amendments is None
                or not any(a["changes"] for a in self.amendments[anchor.amendments :])
            )
        ]
        known = [self.precedes_records(time) for time in times]
        return None if not known or None in known else any(known)

    def precedes_records(self, time: str) -> bool | None:
        """Return whether a time lies before the first record's; None where that is not known."""
        if self.data is None or self.data.first_record is None:
            return None
        return datetime.fromisoformat(time) < datetime.fromisoformat(self.data.first_record)

    def to_json(self) -> bytes:
        """Return the report as JSON: the same bytes for the same registration and the same records.

        Neither the order of rows or files, nor the number of threads, nor the time or the place of the
        call is in it, nor a commit that was merely found around the file. Undefined is null.
        """
        given = tuple(anchor for anchor in self.registration.anchors if anchor.given)
        content = {
            "format": FORMAT,
            "exit_code": self.exit_code,
            "registered_first": self.registered_first,
            "anchored_first": self.anchored_first,
            **asdict(replace(self, registration=replace(self.registration, anchors=given))),
        }
        text = json.dumps(plain(content), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
        return f"{text}\n".encode()

    def save_json(self, path: str | os.PathLike[str]) -> None:
        """Write `to_json` to a file."""
        Path(path).write_bytes(self.to_json())

    def claim(self, id: str) -> ClaimOutcome:
        """Return the claim of an id.

        Raises
        ------
        InputError
            When the report has no such claim.
        """
        for claim in self.claims:
            if claim.id == id:
                return claim
        raise InputError.argument(
            "Report.claim",
            "id",
            id,
            "is no claim of the report",
            nearest_name(str(id), [claim.id for claim in self.claims]),
        )

    def to_html(self) -> str:
        """Return the report as a page that loads and runs nothing: the same text for the same report.

        It has every claim with its rules, a table of its rows, and a plot of each estimate with its interval
        and the values that the rules name.
        """
        return html_report(self)

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write `to_html` to a file."""
        Path(path).write_bytes(self.to_html().encode())

    def to_markdown(self) -> str:
        """Return the claims as a Markdown table, with what is wrong above it."""
        return markdown_report(self)

    def to_latex(self) -> str:
        """Return the claims as a LaTeX ``tabular`` with the rules of the package booktabs."""
        return latex_report(self)

    def to_pandas(self) -> Any:
        """Return `to_frame` as a `pandas.DataFrame`; see `kvstats.inference.Result.to_pandas`."""
        return TitledTable("claims", self.to_frame()).to_pandas()

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> CaptionedFigure:
        """Plot each claim: its estimates with their intervals, and what its rules compare these with.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or sequence of them, optional
            Where to draw, one for each claim. Default: a new figure of one column of a paper.

        Returns
        -------
        kvstats.report.plots.CaptionedFigure

        Raises
        ------
        InputError
            When the report has no claims.
        ImportError
            When matplotlib is not installed.
        """
        # Looked up when asked for: figures lie above reports, and importing matplotlib takes its time.
        plots = importlib.import_module("kvstats.report.plots.report_plot")
        figure: CaptionedFigure = plots.report_plot(self, ax)
        return figure

    def to_frame(self) -> pl.DataFrame:
        """Return one row for each row of each claim's result, and one for a claim without rows.

        Returns
        -------
        polars.DataFrame
            Columns claim, verdict, reason, row (the values of the by-columns as text), estimate, low, high,
            se, df, n, clusters, status, p_value, p_adjusted.
        """
        schema: dict[str, pl.DataType] = {
            **dict.fromkeys(("claim", "verdict", "reason", "row"), pl.String()),
            **RESULT_SCHEMA,
            "p_value": pl.Float64(),
            "p_adjusted": pl.Float64(),
        }
        rows = [
            {
                "claim": claim.id,
                "verdict": claim.verdict,
                "reason": claim.reason,
                "row": row_label(row) or None,
                **{name: row.get(name) for name in (*RESULT_SCHEMA, "p_value", "p_adjusted")},
            }
            for claim in self.claims
            for row in claim.rows or ({},)
        ]
        return pl.DataFrame(rows, schema=schema, orient="row")

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in verdict_counts(self.claims))
        state = "intact" if self.intact else "NOT INTACT"
        late = "; REGISTERED AFTER ITS FIRST RECORD" if self.registered_first is False else ""
        late += "; ANCHORED AFTER ITS FIRST RECORD" if self.anchored_first is False else ""
        judged, all_claims = len(self.claims), len(self.claims) + len(self.not_judged)
        number = f"{judged} of {all_claims}" if self.not_judged else f"{judged}"
        noun = "claim" if all_claims == 1 else "claims"
        standing = self.registration.standing
        return f"Report: {self.study}; {number} {noun}: {verdicts}; {state}, {standing}{late}"

    def _repr_html_(self) -> str:
        return claim_table(self)


def plain(value: Any) -> Any:
    """Turn values into what JSON can hold; by-columns may have times, and infinite signals."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if (
        value is None
        or isinstance(value, str | bool | int)
        or (isinstance(value, float) and math.isfinite(value))
    ):
        return value
    return str(value)
