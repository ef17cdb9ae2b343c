"""The best of several candidates, with the choice as part of the statistic."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.statistic import FloatArray, IntArray, as_column, as_numbers
from kvstats.statistics.totals import TotalsFunction, in_groups, quotient

__all__ = ["BestMean"]


class BestMean(TotalsFunction):
    r"""Mean of the candidate with the greatest mean.

    In one fold it is :math:`\max_c \bar y_c`, which is larger than the mean of the candidate that is best in
    the population: the winner's curse. In K folds each fold's candidate is the one with the greatest mean in
    the other folds, and the value is the mean of the chosen candidates' rows in their own folds: no row
    takes part in a choice that it is counted for. In both cases the choice is made anew for every vector of
    weights, so that each bootstrap replicate chooses for itself. Of candidates with equal means the first is
    chosen. The influence is that of the chosen means: the choice does not move with a small change of
    weights, except where two candidates tie.

    Undefined (NaN) where no candidate has weight, or none outside of a fold that has some.

    Parameters
    ----------
    y : array-like of float, shape [n]
        The values.
    candidate : array-like of int, shape [n]
        Number of each row's candidate, from 0.
    fold : array-like of int, shape [n], optional
        Number of each row's fold, from 0; rows of one cluster must be in one. Default: all in one.

    Raises
    ------
    InputError
        When a value is not finite, or a number is no whole number of at least 0.

    References
    ----------
    .. [1] Varma and Simon, BMC Bioinformatics 7:91, 2006, on the bias of a choice judged on its own data.

    Examples
    --------
    >>> best = BestMean([1.0, 0.0, 1.0, 1.0], [0, 0, 1, 1])
    >>> best.value([1, 1, 1, 1]), best.chosen([1, 1, 1, 1]).tolist()
    (1.0, [1])
    >>> crossed = BestMean([1.0, 0.0, 0.0, 1.0], [0, 0, 1, 1], fold=[0, 1, 0, 1])
    >>> crossed.value([1, 1, 1, 1]), crossed.chosen([1, 1, 1, 1]).tolist()
    (0.0, [1, 0])
    """

    def __init__(self, y: npt.ArrayLike, candidate: npt.ArrayLike, fold: npt.ArrayLike | None = None) -> None:
        column = as_column("BestMean", "y", y)
        candidates = as_codes("candidate", candidate, column.size)
        folds = as_codes("fold", np.zeros(column.size) if fold is None else fold, column.size)
        self.n_candidates = int(candidates.max(initial=-1)) + 1
        self.n_folds = int(folds.max(initial=-1)) + 1
        codes = folds * self.n_candidates + candidates
        super().__init__(in_groups(codes, self.n_folds * self.n_candidates, np.ones(column.size), column))

    def chosen(self, weights: npt.ArrayLike) -> IntArray:
        """Return the number of the candidate that is chosen for each fold, shape [K]."""
        return self._choose(
            self._sums(np.einsum("n,nk->k", np.asarray(weights, dtype=np.float64), self.columns))
        )[0]

    def of_totals(self, totals: FloatArray) -> FloatArray:
        """Return the mean of what is chosen for totals of shape [..., 2 K C]."""
        if self.n == 0:
            return np.full(totals.shape[:-1], np.nan)
        sums = self._sums(totals)
        choice, possible = self._choose(sums)
        picked = np.take_along_axis(sums, choice[..., None, None], axis=-2)[..., 0, :]
        whole = picked.sum(axis=-2)
        used = sums[..., 0].sum(axis=-1) > 0
        defined = (possible | ~used).all(axis=-1)
        return np.where(defined, quotient(whole[..., 1], whole[..., 0]), np.nan)

    def gradient(self, totals: FloatArray) -> FloatArray:
        """Return its derivatives with respect to the totals, the choice being fixed."""
        sums = self._sums(totals)
        choice, _ = self._choose(sums)
        own = np.arange(self.n_folds), choice
        size, total = sums[own].sum(axis=0)
        gradient = np.zeros_like(sums)
        gradient[(*own, 0)] = -total / size**2
        gradient[(*own, 1)] = 1 / size
        return gradient.ravel()

    def _sums(self, totals: FloatArray) -> FloatArray:
        """Return size and total of each fold and candidate, shape [..., K, C, 2]."""
        return totals.reshape(*totals.shape[:-1], self.n_folds, self.n_candidates, 2)

    def _choose(self, sums: FloatArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Return the candidate of each fold, and whether there is one, both of shape [..., K]."""
        judged = sums if self.n_folds == 1 else sums.sum(axis=-3, keepdims=True) - sums
        # What is left of a sum after its only term is subtracted is rounding.
        some = judged[..., 0] > 1e-9 * np.maximum(sums.sum(axis=-3, keepdims=True)[..., 0], 1e-300)
        means = np.where(some, quotient(judged[..., 1], judged[..., 0]), -np.inf)
        # The same mean from sums in another order may differ by rounding, and is a tie.
        top = means.max(axis=-1, keepdims=True)
        tied = means >= top - 1e-12 * np.maximum(np.abs(top), 1e-300)
        tied |= means == top
        return np.argmax(tied, axis=-1), some.any(axis=-1)


def as_codes(argument: str, numbers: npt.ArrayLike, n: int) -> IntArray:
    """Return whole numbers of at least 0, one a row, or raise `InputError`."""
    column = as_numbers("BestMean", argument, numbers)
    if column.shape != (n,) or not ((column >= 0) & (column == np.floor(column))).all():
        raise InputError.argument(
            "BestMean",
            argument,
            f"array of shape {column.shape}",
            f"is not a whole number of at least 0 for each of {n} rows",
            "number them from 0",
        )
    return column.astype(np.int64)
