"""Area under the receiver operating characteristic, as a functional of a weighted sample."""

from __future__ import annotations

import numpy.typing as npt

from kvstats.statistics.auc_columns import as_classes
from kvstats.statistics.stratified_auc import StratifiedAUC

__all__ = ["AUC"]


class AUC(StratifiedAUC):
    r"""Weighted Mann-Whitney probability that a positive row scores above a negative one.

    .. math::

        A = \frac{\sum_{i \in +} \sum_{j \in -} w_i w_j h(s_j, s_i)}{\sum_{i \in +} w_i \sum_{j \in -} w_j},
        \qquad h(a, b) = 1[a < b] + \tfrac12\, 1[a = b]

    in [0, 1], 0.5 without any discrimination. Undefined (NaN) where either class has no weight. The
    influence of a positive row is ``(F_i - A) / W+``, with F_i the weighted share of negatives below it
    (ties one half), and likewise for a negative row: the structural components of [1]_. O(n log n).

    The squares of the influence, summed over clusters, are the variance of [2]_ but for the factors for
    small samples; see `kvstats.statistics.obuchowski`.

    Parameters
    ----------
    score : array-like of float, shape [n]
        The signal.
    label : array-like of bool, shape [n]
        True for the positive class; 0 and 1 are accepted.

    Raises
    ------
    InputError
        When a score is not finite, a label is neither 0 nor 1, or the lengths differ.

    References
    ----------
    .. [1] DeLong, DeLong and Clarke-Pearson, Biometrics 44, 1988, equations 4 and 5.
    .. [2] Obuchowski, Biometrics 53, 1997.

    Examples
    --------
    >>> auc = AUC([0.1, 0.4, 0.4, 0.8], [False, False, True, True])
    >>> auc.value([1, 1, 1, 1])
    0.875
    >>> auc.value([1, 1, 0, 0])
    nan
    """

    def __init__(self, score: npt.ArrayLike, label: npt.ArrayLike) -> None:
        column, labels = as_classes(type(self).__name__, score, label)
        self._prepare(column, labels, None, 1)
