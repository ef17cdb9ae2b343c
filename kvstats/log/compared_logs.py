"""What came out now against what a reference log says: verdicts, and how they are shown."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from kvstats.log.records import RUN_KEY
from kvstats.table_layout import aligned_text, html_cells

__all__ = [
    "FIELD_SCHEMA",
    "OFFENDERS",
    "OFFENDER_SCHEMA",
    "REPRODUCED_WITHIN",
    "VERDICTS",
    "LogComparison",
    "Verdict",
    "verdict_of",
    "where_texts",
    "worst",
]

Verdict = Literal["reproduced", "drifted", "different"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "drifted", "different")

REPRODUCED_WITHIN = 1e-4
"""Numbers at no larger distance are the same: rounding and other kernels do as much."""

DRIFTED_WITHIN = 0.05
"""Numbers at no larger distance have drifted; above they are different."""

OFFENDERS = 8
"""So many offenders of each field are kept, and so many of all are shown."""

FIELD_SCHEMA: dict[str, pl.DataType] = {
    "field": pl.String(),
    "compared": pl.Int64(),
    "reproduced": pl.Int64(),
    "drifted": pl.Int64(),
    "different": pl.Int64(),
    "share": pl.Float64(),
    "max": pl.Float64(),
    "mean": pl.Float64(),
    "distance": pl.Float64(),
    "verdict": pl.String(),
}
OFFENDER_SCHEMA: dict[str, pl.DataType] = {
    "field": pl.String(),
    "where": pl.String(),
    "reference": pl.String(),
    "new": pl.String(),
    "distance": pl.Float64(),
    "verdict": pl.String(),
}


@dataclass(frozen=True, eq=False, repr=False)
class LogComparison:
    """What came out now against what a reference log says.

    Attributes
    ----------
    verdict : {"reproduced", "drifted", "different"}
        The worst of all fields, see `compare_logs`.
    frame : polars.DataFrame
        One row a field: how many rows were ``compared``, how many of them are ``reproduced``, ``drifted`` and
        ``different``; the ``share`` that is not reproduced; ``max`` and ``mean`` of the absolute differences
        of its numbers, in its own unit and null for other fields; the largest ``distance``; and its verdict.
    offenders : polars.DataFrame
        Up to 8 rows of each field that are not reproduced, the worst first: field, where, both values as
        text, distance and verdict.
    inputs, runs : int
        How many input records and runs both logs have.
    only_new, only_reference : polars.DataFrame
        Keys of the runs, and of the inputs without a run, that only one of them has. They are no part of the
        verdict.
    """

    verdict: Verdict
    frame: pl.DataFrame
    offenders: pl.DataFrame
    inputs: int
    runs: int
    only_new: pl.DataFrame
    only_reference: pl.DataFrame

    @property
    def title(self) -> str:
        """The verdict, and what it rests on."""
        rows = f"{counted(self.inputs, 'input record')} and {counted(self.runs, 'run')}"
        text = f"{self.verdict}: {rows} in both logs"
        for what, alone in (("new", self.only_new), ("reference", self.only_reference)):
            if alone.height:
                example = where_texts(alone.head(1), alone)[0]
                text += f"; {alone.height:,} in the {what} one only, such as {example}"
        return text

    def __repr__(self) -> str:
        header, rows, right = field_cells(self.frame)
        lines = [aligned_text(self.title, header, rows, right)]
        for row in self.offenders.head(OFFENDERS).iter_rows(named=True):
            lines.append(
                f"{row['verdict']}: {row['where']}: {row['field']} was {row['reference']}, is {row['new']}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        table = html_cells(self.title, *field_cells(self.frame))
        if self.offenders.is_empty():
            return table
        shown = self.offenders.head(OFFENDERS).drop("distance")
        rows = [[str(value) for value in row] for row in shown.rows()]
        return table + "\n" + html_cells("largest offenders", shown.columns, rows, [False] * shown.width)

    def to_json(self) -> bytes:
        """Return verdict, counts, fields and offenders as JSON; undefined is null."""
        content = {
            "verdict": self.verdict,
            "inputs": self.inputs,
            "runs": self.runs,
            "only_new": self.only_new.height,
            "only_reference": self.only_reference.height,
            "fields": self.frame.to_dicts(),
            "offenders": self.offenders.to_dicts(),
        }
        return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of some verdicts.

    Examples
    --------
    >>> worst(["reproduced", "drifted", "reproduced"])
    'drifted'
    """
    return max(verdicts, key=VERDICTS.index)


def verdict_of(distance: float) -> Verdict:
    """Return the verdict on a row at some distance from the reference."""
    if distance <= REPRODUCED_WITHIN:
        return "reproduced"
    return "drifted" if distance <= DRIFTED_WITHIN else "different"


def where_texts(rows: pl.DataFrame, among: pl.DataFrame) -> list[str]:
    """Return the keys of rows as text, without what is null, or the same in all rows they are among."""
    common = [name for name in ("suite", "model", "task") if among[name].n_unique() == 1]
    names = [name for name in RUN_KEY if name in rows.columns and name not in common]
    return [
        ", ".join(f"{name}={row[name]}" for name in names if row[name] is not None)
        for row in rows.iter_rows(named=True)
    ]


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def field_cells(frame: pl.DataFrame) -> tuple[list[str], list[list[str]], list[bool]]:
    """Return header, cells and alignment of the table of fields."""

    def text(value: Any) -> str:
        if value is None:
            return "–"
        return (
            f"{value:.2g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value
        )

    right = [kind.is_numeric() for kind in frame.dtypes]
    return frame.columns, [[text(value) for value in row] for row in frame.rows()], right
