"""A permutation test of paired differences: flipping the signs of whole clusters."""

from __future__ import annotations

from numbers import Integral

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError, nearest_name
from kvstats.inference.p_values import Alternative
from kvstats.statistics.auc_columns import as_strata
from kvstats.statistics.statistic import FloatArray, as_column, group_sums

__all__ = ["sign_flip_test"]

TIE = 1e-12
"""Sums that differ by no more than this share of the sum of absolute cluster sums are equal."""

CELLS = 1_000_000
"""Signs that are held at once."""


def sign_flip_test(
    difference: npt.ArrayLike,
    cluster: npt.ArrayLike | None = None,
    *,
    n_permutations: int = 9999,
    seed: int = 0,
    alternative: Alternative = "two-sided",
) -> float | None:
    r"""Test whether paired differences are symmetric about 0, by flipping the signs of clusters.

    The statistic is the sum over clusters of their sums :math:`s_c`. Were the two arms alike, exchanging
    them in any cluster would be as likely as not, so that :math:`\sum_c \pm s_c` has the same distribution
    under all signs. The p-value is (b + 1) / (m + 1), b of m random sign vectors giving a sum at least as
    extreme as the observed one; where there are no more than m + 1 sign vectors all of them are taken, and
    it is exact.

    Parameters
    ----------
    difference : array-like of float, shape [n]
        Paired differences, such as the column ``difference`` of `kvstats.paired`.
    cluster : array-like, shape [n], optional
        Labels of clusters, whose rows change their sign together. Default: each row by itself.
    n_permutations : int, default 9999
        Number m of random sign vectors, at least 100.
    seed : int, default 0
        Seed of the signs, at least 0.
    alternative : {"two-sided", "greater", "less"}
        ``greater``: the sum is above 0.

    Returns
    -------
    float or None
        In (0, 1]: never 0. 1 where all cluster sums are 0. None without rows.

    Raises
    ------
    InputError
        When a difference is not finite, a label is null or neither text nor number, the lengths differ, or an
        option is out of range.

    Notes
    -----
    Sums that are equal up to rounding count as ties, at least as extreme as the observed one: without that
    tolerance the order of summation would decide the p-value of scores such as 0.1 and 0.3.

    References
    ----------
    .. [1] Phipson and Smyth, Statistical Applications in Genetics and Molecular Biology 9:39, 2010, for the
       ones added to b and m.

    Examples
    --------
    >>> sign_flip_test([1.0, 1.0, 1.0, 1.0, 1.0])  # 2 of 32 sign vectors are as extreme
    0.0625
    >>> sign_flip_test([0.1, 0.2, -0.3, 0.0], ["a", "a", "a", "b"])
    1.0
    """
    function = "sign_flip_test"
    column = as_column(function, "difference", difference)
    labels = np.arange(column.size) if cluster is None else np.asarray(cluster)
    if labels.shape != column.shape:
        raise InputError.argument(
            function,
            "cluster",
            f"array of shape {labels.shape}",
            f"does not fit {column.size} differences",
            "pass one label a row",
        )
    codes, n_clusters = as_strata(function, "cluster", labels, column.size)
    for name, number, least in (("n_permutations", n_permutations, 100), ("seed", seed, 0)):
        if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
            raise InputError.argument(
                function, name, number, f"is not a whole number of at least {least}", "pass such a number"
            )
    known = ("two-sided", "greater", "less")
    if alternative not in known:
        raise InputError.argument(
            function, "alternative", alternative, "is not known", nearest_name(str(alternative), known)
        )
    if column.size == 0:
        return None
    sums = group_sums(codes, column, n_clusters)
    sums = sums[np.abs(sums) > TIE * np.abs(column).sum()]
    if sums.size == 0:
        return 1.0
    if sums.size <= 60 and 2**sums.size <= n_permutations + 1:
        return share_as_extreme(all_sums(sums), sums, alternative)
    drawn = random_sums(sums, n_permutations, np.random.default_rng(seed))
    return share_as_extreme(np.append(drawn, sums.sum()), sums, alternative)


def all_sums(sums: FloatArray) -> FloatArray:
    """Return the sums under all sign vectors, the observed ones among them."""
    totals = np.zeros(1)
    for value in sums:
        totals = np.concatenate([totals + value, totals - value])
    return totals


def random_sums(sums: FloatArray, n_permutations: int, generator: np.random.Generator) -> FloatArray:
    """Return the sums under random sign vectors, shape [n_permutations]."""
    n_bytes = -(-sums.size // 8)
    step = max(1, CELLS // sums.size)
    totals = []
    for begin in range(0, n_permutations, step):
        rows = min(step, n_permutations - begin)
        drawn = generator.integers(0, 256, size=(rows, n_bytes), dtype=np.uint8)
        kept = np.unpackbits(drawn, axis=1, count=sums.size).astype(np.float64)
        totals.append(2 * (kept @ sums) - sums.sum())
    return np.concatenate(totals)


def share_as_extreme(totals: FloatArray, sums: FloatArray, alternative: Alternative) -> float:
    """Return the share of sums that are at least as extreme as the observed one, up to rounding."""
    observed, tolerance = sums.sum(), TIE * np.abs(sums).sum()
    if alternative == "two-sided":
        extreme = np.abs(totals) >= abs(observed) - tolerance
    elif alternative == "greater":
        extreme = totals >= observed - tolerance
    else:
        extreme = totals <= observed + tolerance
    return float(np.mean(extreme))
