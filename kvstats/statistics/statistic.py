"""What a statistic is: a functional of a weighted sample."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError

__all__ = [
    "FloatArray",
    "IntArray",
    "Statistic",
    "as_column",
    "as_numbers",
    "as_weight_matrix",
    "as_weights",
    "group_sums",
    "resampled_sums",
    "weighted_sum",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Statistic(Protocol):
    """A functional of a weighted sample, prepared once from its columns.

    Sampling weights, the counts of a cluster bootstrap and plain ones are all weights, so that one function
    gives the estimate, the linearised standard error and the bootstrap replicates.

    Attributes
    ----------
    n : int
        Number of rows.
    classes : array of int, shape [n], or None
        Classes of rows that the statistic compares with each other, such as positives and negatives. The
        spread of each is estimated from the clusters that have rows of it. None where there is one only.
    """

    n: int
    classes: IntArray | None = None

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the value for row weights of shape [n]; NaN where it is undefined."""

    def values(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the value for each row of a matrix of weights of shape [B, n], shape [B].

        The same as `value` row by row, to 1e-12 of the largest column value; NaN where it is undefined.
        """
        matrix = as_weight_matrix(type(self).__name__, weights, self.n)
        return np.array([self.value(row) for row in matrix], dtype=np.float64)

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the value with respect to each weight, shape [n].

        ``value(w + d)`` is ``value(w) + influence(w) @ d`` up to terms of second order in d. It is not
        scaled by n. All NaN where the value is undefined.
        """

    def cluster_values(self, counts: FloatArray, codes: IntArray, weights: npt.ArrayLike) -> FloatArray:
        """Return the values for resampled clusters.

        Parameters
        ----------
        counts : array of float, shape [B, C]
            How often each of C clusters was drawn in each of B resamples.
        codes : array of int, shape [n]
            Cluster of each row.
        weights : array-like of float, shape [n]
            Row weights, which the counts multiply.

        Returns
        -------
        array of float, shape [B]
        """
        base = as_weights(type(self).__name__, weights, self.n)
        return np.array([self.value(base * row[codes]) for row in counts], dtype=np.float64)


def as_numbers(function: str, argument: str, values: npt.ArrayLike) -> FloatArray:
    """Return values as an array of float, or raise `InputError` where they are no numbers.

    Examples
    --------
    >>> as_numbers("f", "y", [1, True])
    array([1., 1.])
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError.argument(
            function, argument, type(values).__name__, f"is no array of numbers: {error}", "pass numbers"
        ) from error


def as_column(function: str, argument: str, values: npt.ArrayLike) -> FloatArray:
    """Return values as a vector of float, or raise `InputError` where they are not finite numbers."""
    column = as_numbers(function, argument, values)
    if column.ndim != 1:
        raise InputError.argument(
            function, argument, f"array of shape {column.shape}", "is not a vector", "pass one value a row"
        )
    faulty = np.flatnonzero(~np.isfinite(column))
    if faulty.size:
        raise InputError.argument(
            function,
            argument,
            float(column[faulty[0]]),
            f"is not finite, at row {faulty[0]} and {faulty.size - 1} more",
            "leave out rows without a value on purpose, before the call",
        )
    return column


def as_weights(function: str, weights: npt.ArrayLike, n: int) -> FloatArray:
    """Return row weights as a vector of float, or raise `InputError` where they are no weights."""
    vector = as_numbers(function, "weights", weights)
    if vector.shape != (n,):
        raise InputError.argument(
            function, "weights", f"array of shape {vector.shape}", f"does not fit {n} rows", "pass one a row"
        )
    if n and not (np.isfinite(vector).all() and vector.min() >= 0):
        faulty = int(np.flatnonzero(~(vector >= 0) | ~np.isfinite(vector))[0])
        raise InputError.argument(
            function,
            "weights",
            float(vector[faulty]),
            f"is not a weight, at row {faulty}",
            "pass finite numbers of at least 0",
        )
    return vector


def as_weight_matrix(function: str, weights: npt.ArrayLike, n: int) -> FloatArray:
    """Return weights of shape [B, n] as floats, or raise `InputError` where they are no weights."""
    matrix = as_numbers(function, "weights", weights)
    if matrix.ndim != 2 or matrix.shape[1] != n:
        raise InputError.argument(
            function,
            "weights",
            f"array of shape {matrix.shape}",
            f"does not fit {n} rows",
            "pass a matrix with one column a row of the sample",
        )
    faulty = np.argwhere(~((matrix >= 0) & np.isfinite(matrix)))
    if faulty.size:
        row, column = map(int, faulty[0])
        raise InputError.argument(
            function,
            "weights",
            float(matrix[row, column]),
            f"is not a weight, at row {column} of vector {row}",
            "pass finite numbers of at least 0",
        )
    return matrix


def weighted_sum(weights: FloatArray, values: FloatArray) -> float:
    """Return the sum of products of two vectors.

    Long inner products are split among threads, as many as the machine has, and their rounding differs.

    Examples
    --------
    >>> weighted_sum(np.array([2.0, 1.0]), np.array([0.5, 3.0]))
    4.0
    """
    return float(np.sum(weights * values))


def resampled_sums(counts: FloatArray, totals: FloatArray) -> FloatArray:
    """Return the sum of the totals of clusters in each resample, shape [B]; rounded as `weighted_sum` is.

    Examples
    --------
    >>> resampled_sums(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([0.5, 3.0])).tolist()
    [1.0, 3.5]
    """
    return np.asarray(np.einsum("bc,c->b", counts, totals))


def group_sums(codes: IntArray, mass: FloatArray, n_groups: int) -> FloatArray:
    """Return the sum of the mass of each group of rows, shape [n_groups].

    Examples
    --------
    >>> group_sums(np.array([0, 2, 0]), np.array([1.0, 2.0, 3.0]), 3).tolist()
    [4.0, 0.0, 2.0]
    """
    return np.bincount(codes, mass, n_groups).astype(np.float64, copy=False)
