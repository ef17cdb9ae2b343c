"""Columns of statistics of discrimination: scores, classes and strata, checked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.statistic import FloatArray, IntArray, as_column

__all__ = ["as_classes", "as_rate", "as_strata", "level_codes"]


def as_classes(function: str, score: npt.ArrayLike, label: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return a score and its classes (1.0 and 0.0), or raise `InputError` where they are none.

    Examples
    --------
    >>> as_classes("f", [3, 1], [True, False])
    (array([3., 1.]), array([1., 0.]))
    """
    column = as_column(function, "score", score)
    labels = as_column(function, "label", label)
    if labels.size != column.size:
        raise InputError.argument(
            function,
            "label",
            f"array of shape {labels.shape}",
            f"does not fit a score of {column.size} rows",
            "pass columns of the same length",
        )
    other = labels[(labels != 0) & (labels != 1)]
    if other.size:
        raise InputError.argument(function, "label", float(other[0]), "is no class", "pass True or False")
    return column, labels


def as_strata(function: str, argument: str, stratum: npt.ArrayLike, n: int) -> tuple[IntArray, int]:
    """Return the number of each row's stratum (or cluster), and how many there are.

    Examples
    --------
    >>> as_strata("f", "stratum", ["b", "a", "b"], 3)
    (array([1, 0, 1]), 2)
    """
    names = np.asarray(stratum)
    if names.shape != (n,):
        raise InputError.argument(
            function,
            argument,
            f"array of shape {names.shape}",
            f"does not fit {n} rows",
            "pass one name a row",
        )
    if names.dtype == object and all(isinstance(name, str) for name in names):
        names = names.astype(np.str_)
    if names.dtype.kind not in "biufUST" or (names.dtype.kind == "f" and not np.isfinite(names).all()):
        raise InputError.argument(
            function,
            argument,
            f"array of {names.dtype}",
            "holds what is no name",
            "pass text or numbers, without null",
        )
    found, codes = np.unique(names, return_inverse=True)
    return codes.astype(np.int64, copy=False), found.size


def level_codes(column: FloatArray, stratum: IntArray | None = None) -> tuple[IntArray, IntArray]:
    """Return numbers of the distinct pairs of stratum and score, in sorted order.

    Returns
    -------
    order : array of int, shape [n]
        Rows sorted by stratum, then score.
    codes : array of int, shape [n]
        Number of each row's level.

    Examples
    --------
    >>> level_codes(np.array([2.0, 1.0, 2.0]))[1].tolist()
    [1, 0, 1]
    """
    order = np.argsort(column) if stratum is None else np.lexsort((column, stratum))
    ranked = column[order]
    rises = ranked[1:] != ranked[:-1]
    if stratum is not None:
        rises |= stratum[order][1:] != stratum[order][:-1]
    codes = np.empty(column.size, dtype=np.int64)
    codes[order] = np.concatenate([np.zeros(min(1, column.size), dtype=np.int64), np.cumsum(rises)])
    return order, codes


def as_rate(function: str, argument: str, rate: float, *, least_included: bool = False) -> float:
    """Return a rate within (0, 1], or [0, 1] where the least is included.

    Examples
    --------
    >>> as_rate("f", "coverage", 0.8)
    0.8
    """
    number = float(rate)
    if not (0 < number <= 1 or (least_included and number == 0)):
        interval = "[0, 1]" if least_included else "(0, 1]"
        raise InputError.argument(
            function, argument, rate, f"is not in {interval}", "pass a share such as 0.1"
        )
    return number
