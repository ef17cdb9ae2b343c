"""Contrasts: samples of the difference between two values of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kvstats.errors import InputError, nearest_name
from kvstats.inference.sample import Label, Sample
from kvstats.statistics.difference import Difference
from kvstats.statistics.ratios import Mean

__all__ = ["contrast_samples", "difference_sample"]

NO_ROWS = Sample(
    key=(),
    statistic=Mean([]),
    weights=np.empty(0),
    codes=np.empty(0, dtype=np.int64),
    clusters=(),
    kind="mean",
)
"""A side of a contrast that is missing."""


def contrast_samples(
    samples: Sequence[Sample], by: Sequence[str], columns: Mapping[str, tuple[Any, Any]]
) -> list[Sample]:
    """Return the samples of first minus second side, one for each combination of the other by-columns.

    Parameters
    ----------
    samples : sequence of Sample
        Samples with values of the by-columns as keys.
    by : sequence of str
        Names of the by-columns.
    columns : mapping of str to (first, second)
        The values that make the sides.

    Returns
    -------
    list of Sample

    Raises
    ------
    InputError
        When a column is not among the by-columns, a value not among its values, or a cluster lies in
        different strata on the two sides.
    """
    check_sides(samples, by, columns)
    contrasted = [by.index(name) for name in columns]
    others = [position for position, name in enumerate(by) if name not in columns]
    sides = list(zip(*columns.values(), strict=True))
    matched: dict[tuple[Any, ...], list[Sample]] = {}
    for sample in samples:
        values = tuple(sample.key[position] for position in contrasted)
        if values in sides:
            key = tuple(sample.key[position] for position in others)
            matched.setdefault(key, [NO_ROWS, NO_ROWS])[sides.index(values)] = sample
    return [difference_sample(key, first, second) for key, (first, second) in matched.items()]


def check_sides(samples: Sequence[Sample], by: Sequence[str], columns: Mapping[str, tuple[Any, Any]]) -> None:
    """Raise `InputError` where a contrast names what is not there."""
    function = "Result.contrast"
    if not columns:
        raise InputError(f"{function}: no column is named; pass one such as arm=('gate', 'plain')")
    for name, values in columns.items():
        if name not in by:
            raise InputError.argument(
                function,
                name,
                values,
                "is no by-column of this result",
                nearest_name(name, by) if by else "pass `by` to the estimator",
            )
        if not isinstance(values, tuple | list) or len(values) != 2 or values[0] == values[1]:
            raise InputError.argument(
                function, name, values, "is not a pair of different values", "pass (first, second)"
            )
        known = [sample.key[by.index(name)] for sample in samples]
        for value in values:
            if value not in known:
                raise InputError.argument(
                    function,
                    name,
                    value,
                    "is not among the values of this result",
                    nearest_name(str(value), {str(other) for other in known}),
                )


def difference_sample(key: tuple[Any, ...], first: Sample, second: Sample) -> Sample:
    """Return the sample of first minus second on the union of their clusters, aligned by name."""
    union = sorted(
        {*first.clusters, *second.clusters},
        key=lambda label: [(text is not None, text or "") for text in label],
    )
    position = {label: index for index, label in enumerate(union)}
    places = [
        np.array([position[label] for label in side.clusters], dtype=np.int64) for side in (first, second)
    ]
    drawn = []
    for side, place in zip((first, second), places, strict=True):
        listed = np.zeros((len(side.drawn_from), len(union)), dtype=np.bool_)
        listed[:, place] = side.drawn_from
        drawn.append(listed)
    strata = joint_strata(first, second)
    return Sample(
        key=key,
        statistic=Difference(first.statistic, second.statistic),
        weights=np.concatenate([first.weights, second.weights]),
        codes=np.concatenate([places[0][first.codes], places[1][second.codes]]),
        clusters=tuple(union),
        kind="difference",
        strata=None if strata is None else tuple(strata[label] for label in union),
        drawn=np.concatenate(drawn),
    )


def joint_strata(first: Sample, second: Sample) -> dict[Label, Label] | None:
    """Return the stratum of each cluster of two samples, None without strata."""
    sides = [
        dict(zip(side.clusters, side.strata, strict=True))
        for side in (first, second)
        if side.strata is not None
    ]
    if not sides:
        return None
    for label, stratum in sides[0].items():
        if sides[-1].get(label, stratum) != stratum:
            raise InputError(
                f"Result.contrast: design.strata puts the cluster {label} into the stratum {stratum} on the "
                f"first side and {sides[-1][label]} on the second; name columns that do not differ between "
                "the sides"
            )
    return sides[0] | sides[-1]
