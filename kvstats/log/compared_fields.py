"""Fields of two logs, row by row: how far apart they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from kvstats.log.frames import Log

__all__ = ["REFERENCE", "Field", "distances", "gate_call", "input_fields", "run_fields", "told"]

REFERENCE = "__reference"
"""What the reference's columns end with where rows of both logs stand side by side."""

SMALL = 0.1
"""Numbers nearer to zero are compared as if they were so large."""

GATE = "__gate"


@dataclass(frozen=True)
class Field:
    """A field that is compared.

    Attributes
    ----------
    name : str
        What it is called.
    column : str
        Where it is.
    kind : {"exact", "number", "list"}
        Whether it is the same or not, or how far numbers are apart; of lists the pair furthest apart counts.
    both : bool
        Whether only rows are compared in which both logs have it. Otherwise a value against none is
        different.
    """

    name: str
    column: str
    kind: Literal["exact", "number", "list"]
    both: bool = False


INPUT_FIELDS = (
    Field("prompt length", "context_tokens", "exact"),
    Field("prompt", "prompt_hash", "exact"),
    Field("drop", "drop", "number"),
    Field("drop_interior", "drop_interior", "number"),
    Field("gate", GATE, "exact"),
    Field("head agreement", "head_agreement_per_layer", "list"),
)
RUN_FIELDS = (
    Field("prompt length of the run", "n_prompt", "exact"),
    Field("gate of the run", "gate_open", "exact"),
    Field("prediction", "prediction", "exact", both=True),
    Field("kept tokens", "n_kept", "exact"),
    Field("kept fraction", "kept_fraction", "number"),
    Field("score", "score", "number"),
    Field("outcome", "success", "exact"),
)
CERTIFICATES = Field("certificate_per_head", "certificate_per_head", "list")


def input_fields(reference: Log) -> Iterator[Field]:
    """Yield the fields of input records that a reference has."""
    signals = (Field(name, name, "number") for name in reference.input_signals)
    for field in INPUT_FIELDS:
        column = "drop" if field.column == GATE else field.column
        if reference.inputs[column].null_count() < reference.inputs.height:
            yield field
    yield from signals


def run_fields(reference: Log) -> Iterator[Field]:
    """Yield the fields of runs that a reference has."""
    runs = reference.runs
    for field in RUN_FIELDS:
        if runs[field.column].null_count() < runs.height:
            yield field
    yield from (Field(name, name, "number") for name in reference.run_signals)
    if runs[CERTIFICATES.column].null_count() < runs.height:
        yield CERTIFICATES


def gate_call(tau: float) -> pl.Expr:
    """Return what a gate at a threshold does with an input: undefined, closed (all is kept) or open."""
    drop = pl.col("drop")
    call = pl.when(drop.is_null()).then(pl.lit("undefined")).when(drop < tau).then(pl.lit("closed"))
    return call.otherwise(pl.lit("open")).alias(GATE)


def distances(pairs: pl.DataFrame, field: Field) -> pl.DataFrame:
    """Return how far the two sides of each row are apart.

    Parameters
    ----------
    pairs : polars.DataFrame
        Rows with a column ``row`` of their numbers, the field's column, and the reference's beside it.
    field : Field
        The field.

    Returns
    -------
    polars.DataFrame
        Of the rows that are compared: ``row``; ``distance``, 0 where both are the same, for numbers how far
        they are apart relative to the reference's or to 0.1, whichever is larger, and 1 for anything else
        that differs; and ``difference``, the absolute difference of numbers, null for anything else.
    """
    ours, theirs = pl.col(field.column), pl.col(field.column + REFERENCE)
    alone = ours.is_null() | theirs.is_null()
    sides = pairs.select("row", ours.alias("new"), theirs.alias("reference"), alone.alias("alone"))
    sides = sides.filter(~(pl.col("new").is_null() & pl.col("reference").is_null()))
    if field.both:
        sides = sides.filter(~pl.col("alone"))
    one_sided = sides.filter("alone").select("row", distance=pl.lit(1.0), difference=pl.lit(None, pl.Float64))
    rows = sides.filter(~pl.col("alone"))
    if field.kind == "exact":
        same = pl.col("new") == pl.col("reference")
        judged = rows.select(
            "row",
            distance=pl.when(same).then(0.0).otherwise(1.0),
            difference=pl.lit(None, pl.Float64),
        )
    elif field.kind == "number":
        judged = rows.select("row", *apart())
    else:
        judged = furthest(rows)
    return pl.concat([judged, one_sided]).sort("row")


def apart() -> tuple[pl.Expr, pl.Expr]:
    """Return distance and absolute difference of the columns ``new`` and ``reference``."""
    new, reference = pl.col("new"), pl.col("reference")
    difference = (new - reference).abs()
    distance = difference / pl.max_horizontal(reference.abs(), pl.lit(SMALL))
    # An infinite log-probability is as far from any other number as can be.
    known = pl.when(new == reference).then(0.0).when(distance.is_finite()).then(distance).otherwise(1.0)
    return known.alias("distance"), pl.when(difference.is_finite()).then(difference).alias("difference")


def furthest(rows: pl.DataFrame) -> pl.DataFrame:
    """Compare lists by the pair that is furthest apart; lists of other lengths differ."""
    alike = shape(rows, "new").eq_missing(shape(rows, "reference")).alias("alike")
    flat = rows.select("row", alike, *(flattened(rows, name) for name in ("new", "reference")))
    pairs = flat.filter("alike", pl.col("new").list.len() > 0)
    numbers = pairs.explode("new", "reference").select("row", *apart())
    judged = numbers.group_by("row").agg(
        pl.col("distance").max(), pl.col("difference").sort_by("distance").last()
    )
    rest = flat.join(pairs, on="row", how="anti").select(
        "row", distance=pl.when("alike").then(0.0).otherwise(1.0), difference=pl.lit(None, pl.Float64)
    )
    return pl.concat([judged, rest])


def shape(rows: pl.DataFrame, name: str) -> pl.Expr:
    """Return the length of each list, or those of its inner lists."""
    column = pl.col(name)
    return column.list.eval(pl.element().list.len()) if is_nested(rows, name) else column.list.len()


def flattened(rows: pl.DataFrame, name: str) -> pl.Expr:
    """Return a column of lists without inner lists."""
    column = pl.col(name)
    return column.list.eval(pl.element().explode()) if is_nested(rows, name) else column


def is_nested(rows: pl.DataFrame, name: str) -> bool:
    kind = rows.schema[name]
    return isinstance(kind, pl.List) and isinstance(kind.inner, pl.List)


def told(reference: Any, new: Any) -> tuple[str, str]:
    """Return two values as text: of lists the pair that is furthest apart, or how long they are.

    Examples
    --------
    >>> told(0.123456789, 0.2), told("a", None), told([1.0, 2.0], [1.0, 2.5]), told([1.0], [])
    (('0.123457', '0.2'), ("'a'", 'None'), ('2', '2.5'), ('1 number', '0 numbers'))
    """
    if isinstance(reference, list) and isinstance(new, list):
        ours, theirs = flat(new), flat(reference)
        if lengths(new) != lengths(reference):
            return count(reference), count(new)
        return told(*max(zip(theirs, ours, strict=True), key=lambda pair: gap(*pair)))
    if isinstance(reference, float) and isinstance(new, float):
        return f"{reference:.6g}", f"{new:.6g}"
    return repr(reference), repr(new)


def gap(reference: float, new: float) -> float:
    return abs(new - reference) / max(abs(reference), SMALL)


def flat(values: Sequence[Any]) -> list[float]:
    return [number for value in values for number in (value if isinstance(value, list) else [value])]


def lengths(values: Sequence[Any]) -> list[int]:
    return [len(value) if isinstance(value, list) else 1 for value in values]


def count(values: Sequence[Any]) -> str:
    numbers = len(flat(values))
    lists = sum(isinstance(value, list) for value in values)
    inner = f" in {lists} list" + ("" if lists == 1 else "s") if lists else ""
    return f"{numbers} number" + ("" if numbers == 1 else "s") + inner
