"""Samples: a statistic on the rows of one cell of a result, with their weights and clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.inference.design import Design
from kvstats.statistics.difference import parts
from kvstats.statistics.statistic import FloatArray, IntArray, Statistic

BoolArray = npt.NDArray[np.bool_]

__all__ = ["Kind", "Label", "Resampling", "Sample", "samples_by"]

Kind = Literal[
    "rate",
    "discordant",
    "share",
    "mean",
    "paired",
    "auc",
    "correlation",
    "ratio",
    "quantile",
    "difference",
]
"""What is estimated: a share, a share of discordant pairs, a share of rows that the sample chooses, a mean, a
mean paired difference, an area, a correlation, a ratio of sums that are not below 0, a quantile (or a place
along an axis), a contrast."""

Label = tuple[str | None, ...]
"""Name of a cluster: the text of its cluster columns."""


class Resampling(Protocol):
    """Resamples that several samples of the same rows share."""

    def replicates(self, statistic: Statistic, n_resamples: int, seed: int) -> FloatArray:
        """Return the bootstrap replicates of one of the samples' statistics, shape [B]."""


@dataclass(frozen=True, eq=False)
class Sample:
    """A statistic on n rows, with what is needed to judge it.

    Attributes
    ----------
    key : tuple
        Values of the by-columns.
    statistic : Statistic
        The statistic, prepared on the rows.
    weights : array of float, shape [n]
        Row weights, above 0.
    codes : array of int, shape [n]
        Cluster of each row, as an index into `clusters`.
    clusters : tuple of tuples of str
        Names of the clusters, sorted. Within strata some may be without rows; see `drawn`.
    kind : str
        What is estimated; see `Kind`.
    strata : tuple of tuples of str, optional
        Name of the stratum of each cluster, in the order of `clusters`; None without strata.
    drawn : array of bool, shape [number of parts, number of clusters], optional
        From which clusters the rows of each part of the statistic were selected. Default: those with rows.
    resampling : Resampling, optional
        Where its bootstrap replicates come from; see `kvstats.inference.joint.JointResampling`. Default:
        resamples of its own.
    """

    key: tuple[Any, ...]
    statistic: Statistic
    weights: FloatArray
    codes: IntArray
    clusters: tuple[Label, ...]
    kind: Kind
    strata: tuple[Label, ...] | None = None
    drawn: BoolArray | None = None
    resampling: Resampling | None = None

    @cached_property
    def n_clusters(self) -> int:
        """Number of clusters that have rows."""
        return int(np.unique(self.codes).size)

    @cached_property
    def drawn_from(self) -> BoolArray:
        """From which clusters each part's rows were selected, shape [number of parts, number of clusters]."""
        if self.drawn is not None:
            return self.drawn
        ends = np.cumsum([part.n for part in parts(self.statistic)])
        return np.array(
            [
                np.bincount(codes, minlength=len(self.clusters)) > 0
                for codes in np.split(self.codes, ends)[:-1]
            ]
        )

    @cached_property
    def stratum_codes(self) -> IntArray:
        """Stratum of each cluster, numbered from 0, shape [number of clusters]."""
        if self.strata is None:
            return np.zeros(len(self.clusters), dtype=np.int64)
        position: dict[Label, int] = {}
        codes = [position.setdefault(label, len(position)) for label in self.strata]
        return np.array(codes, dtype=np.int64)


def samples_by(
    function: str,
    frame: pl.DataFrame,
    by: Sequence[str],
    design: Design,
    build: Callable[[pl.DataFrame], tuple[Statistic, Kind]],
    drawn: pl.DataFrame | None = None,
) -> list[Sample]:
    """Split a frame by columns and prepare a statistic on each part.

    Parameters
    ----------
    function : str
        Name of the estimator, for messages.
    frame : polars.DataFrame
        The population, one row an observation.
    by : sequence of str
        Columns to split by. Without any there is one sample, be it empty.
    design : Design
        Names the cluster columns and the weights.
    build : callable
        Makes of a part the statistic and its kind.
    drawn : polars.DataFrame, optional
        The rows that the population was selected from. With strata their clusters are what was drawn from
        each stratum, and those without a row in a part count there with a total of 0. Default: `frame`.

    Returns
    -------
    list of Sample
        In the order of the by-columns' values.

    Raises
    ------
    InputError
        When a column is missing, a weight is null, not finite or negative, or a cluster has rows in two
        strata.

    Examples
    --------
    >>> from kvstats.statistics import Mean
    >>> frame = pl.DataFrame({"task": ["b", "a", "a"], "id": ["1", "2", "1"], "y": [0.0, 1.0, 0.5]})
    >>> samples = samples_by(
    ...     "f", frame, ["task"], Design(cluster="id"), lambda part: (Mean(part["y"].to_numpy()), "mean")
    ... )
    >>> [(sample.key, sample.clusters, sample.codes.tolist()) for sample in samples]
    [(('a',), (('1',), ('2',)), [1, 0]), (('b',), (('1',),), [0])]
    """
    if drawn is None or not design.stratum:
        drawn = frame
    for argument, names in (
        ("by", by),
        ("design.cluster", design.cluster),
        ("design.strata", design.stratum),
    ):
        for name in names:
            if name not in frame.columns:
                raise InputError.argument(
                    function, argument, name, "is not a column", nearest_name(name, frame.columns)
                )
            if frame.schema[name].is_nested():
                raise InputError.argument(
                    function, argument, name, "is a column of lists", "name a column of plain values"
                )
    for argument, names in (("design.cluster", design.cluster), ("design.strata", design.stratum)):
        for name in names:
            if name not in drawn.columns:
                raise InputError.argument(
                    function,
                    argument,
                    name,
                    "is not a column of the runs or inputs, so that the clusters drawn from a stratum cannot "
                    "be counted",
                    nearest_name(name, drawn.columns),
                )
    listed = cluster_strata(drawn, design) if design.stratum else None
    weighted = frame.with_columns(weight_column(function, frame, design.weight).alias(WEIGHT))
    weighted = weighted.filter(pl.col(WEIGHT) > 0)
    if not by:
        return [one_sample(function, (), weighted, design, build, listed)]
    groups = weighted.sort(*by, maintain_order=True).partition_by(*by, as_dict=True, maintain_order=True)
    return [one_sample(function, key, part, design, build, listed) for key, part in groups.items()]


WEIGHT = "__weight__"
STRATUM = "__stratum__"


def weight_column(function: str, frame: pl.DataFrame, name: str | None) -> pl.Series:
    """Return the row weights of a frame, checked."""
    if name is None:
        return pl.Series(np.ones(frame.height))
    if name not in frame.columns:
        raise InputError.argument(
            function, "design.weight", name, "is not a column", nearest_name(name, frame.columns)
        )
    if not frame.schema[name].is_numeric():
        raise InputError.argument(
            function, "design.weight", name, "is not a column of numbers", "name a numeric column"
        )
    weights = frame[name].cast(pl.Float64)
    faulty = int((weights.is_null() | ~weights.is_finite() | (weights < 0)).fill_null(True).sum())
    if faulty:
        raise InputError.argument(
            function,
            "design.weight",
            name,
            f"has {faulty} of {frame.height} rows that are null, not finite or negative",
            "leave these rows out through `where`, or mend the weights",
        )
    return weights


def one_sample(
    function: str,
    key: tuple[Any, ...],
    part: pl.DataFrame,
    design: Design,
    build: Callable[[pl.DataFrame], tuple[Statistic, Kind]],
    listed: pl.DataFrame | None,
) -> Sample:
    """Prepare the statistic on one part, and number its clusters in sorted order."""
    clusters = part.select(design.cluster).unique()
    if listed is not None:
        clusters = with_absent_clusters(function, cluster_strata(part, design), listed, design)
    clusters = clusters.sort(design.cluster)
    codes = part.select(design.cluster).join(
        clusters.select(design.cluster).with_row_index("__code__"),
        on=list(design.cluster),
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )["__code__"]
    statistic, kind = build(part)
    stratified = listed is not None
    return Sample(
        key=key,
        statistic=statistic,
        weights=part[WEIGHT].to_numpy().astype(np.float64),
        codes=codes.to_numpy().astype(np.int64),
        clusters=tuple(clusters.select(pl.col(design.cluster).cast(pl.String)).rows()),
        kind=kind,
        strata=tuple(clusters.select(stratum_names(design)).rows()) if stratified else None,
        drawn=np.ones((len(parts(statistic)), clusters.height), dtype=np.bool_) if stratified else None,
    )


def stratum_names(design: Design) -> list[str]:
    """Return the names under which strata stand beside the cluster columns, which they may be among."""
    return [STRATUM + name for name in design.stratum]


def cluster_strata(frame: pl.DataFrame, design: Design) -> pl.DataFrame:
    """Return the clusters of a frame with their strata, each combination once."""
    strata = (pl.col(name).cast(pl.String).alias(STRATUM + name) for name in design.stratum)
    return frame.select(*design.cluster, *strata).unique()


def with_absent_clusters(
    function: str, present: pl.DataFrame, listed: pl.DataFrame, design: Design
) -> pl.DataFrame:
    """Add to the clusters of a part the others of its strata, or raise `InputError` where strata overlap.

    Where a part lies in one stratum none is added: the total over the stratum is 0 whatever clusters belong,
    and one stratum is judged like none.
    """
    own = present.select(stratum_names(design)).unique()
    if own.height < 2:
        listed = listed.clear()
    absent = listed.join(own, on=stratum_names(design), how="semi", nulls_equal=True).join(
        present, on=list(design.cluster), how="anti", nulls_equal=True
    )
    both = pl.concat([present, absent])
    torn = both.filter(both.select(design.cluster).is_duplicated()).sort(pl.all())
    if torn.height:
        named = torn.row(0, named=True)
        cluster = ", ".join(f"{name}={named[name]}" for name in design.cluster)
        seen = torn.filter(
            pl.all_horizontal(pl.col(name).eq_missing(pl.lit(named[name])) for name in design.cluster)
        )
        values = ", ".join("/".join(map(str, row[len(design.cluster) :])) for row in seen.rows())
        raise InputError.argument(
            function,
            "design.strata",
            design.strata,
            f"puts the cluster ({cluster}) into several strata ({values})",
            "name columns that have one value in each cluster",
        )
    return both
