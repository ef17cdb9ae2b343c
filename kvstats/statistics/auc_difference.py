"""The difference of two areas under the receiver operating characteristic on the same rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.statistics.auc import AUC
from kvstats.statistics.statistic import FloatArray, IntArray, Statistic
from kvstats.statistics.stratified_auc import StratifiedAUC

__all__ = ["AUCDifference"]


class AUCDifference(Statistic):
    """Area of a first score minus that of a second one, for the same classes of the same rows.

    Both share one vector of weights, so that the squares of the influence hold their covariance [1]_. For
    scores on different rows see `kvstats.statistics.Difference`. In [-1, 1]; undefined (NaN) where either
    class has no weight.

    Parameters
    ----------
    first, second : array-like of float, shape [n]
        The two scores, each on any scale.
    label : array-like of bool, shape [n]
        True for the positive class; 0 and 1 are accepted.
    stratum : array-like of str or number, shape [n], optional
        Compare rows of the same stratum only; see `StratifiedAUC`.

    Raises
    ------
    InputError
        When a score is not finite, a label is neither 0 nor 1, a stratum is null, or the lengths differ.

    References
    ----------
    .. [1] DeLong, DeLong and Clarke-Pearson, Biometrics 44, 1988.

    Examples
    --------
    >>> difference = AUCDifference([0.1, 0.2, 0.3, 0.4], [0.3, 0.1, 0.2, 0.4], [0, 0, 1, 1])
    >>> difference.value([1, 1, 1, 1])
    0.25
    """

    def __init__(
        self,
        first: npt.ArrayLike,
        second: npt.ArrayLike,
        label: npt.ArrayLike,
        stratum: npt.ArrayLike | None = None,
    ) -> None:
        if stratum is None:
            self.first: StratifiedAUC = AUC(first, label)
            self.second: StratifiedAUC = AUC(second, label)
        else:
            self.first = StratifiedAUC(first, label, stratum)
            self.second = StratifiedAUC(second, label, stratum)
        self.n = self.first.n
        self.classes = self.first.classes

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the difference for row weights of shape [n]."""
        return self.first.value(weights) - self.second.value(weights)

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the difference with respect to each weight, shape [n]."""
        return np.asarray(self.first.influence(weights) - self.second.influence(weights))

    def cluster_values(self, counts: FloatArray, codes: IntArray, weights: npt.ArrayLike) -> FloatArray:
        """Return the differences for resampled clusters, both scores under the same weights."""
        first = self.first.cluster_values(counts, codes, weights)
        return np.asarray(first - self.second.cluster_values(counts, codes, weights))
