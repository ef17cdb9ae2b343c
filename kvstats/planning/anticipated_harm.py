"""A guess of each run's probability of harm, from any signal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from kvstats.errors import InputError
from kvstats.planning.planned import check_share
from kvstats.planning.truth import separation
from kvstats.statistics.statistic import FloatArray, as_column

__all__ = ["anticipated_harm"]

HALVINGS = 60
"""Bisections that find a quantile to double precision."""


def anticipated_harm(signal: npt.ArrayLike, *, rate: float, auc: float) -> FloatArray:
    r"""Turn a signal into anticipated probabilities of harm, for `plan_audit`.

    .. math:: p = \rho\, \frac{\Phi(x_{k+1} - d) - \Phi(x_k - d)}{r_{k+1} - r_k}, \qquad
        (1 - \rho)\, \Phi(x_k) + \rho\, \Phi(x_k - d) = r_k, \qquad d = \sqrt 2\, \Phi^{-1}(\mathrm{AUC})

    for the k-th distinct value of the signal, below which a share r_k of the runs lies: the share of harmed
    runs between two quantiles, where the signal, after some monotone transformation, is normal with equal
    variance in harmed and unharmed runs. Only the signal's order matters. A wrong guess of rate or AUC makes
    an audit less precise, never biased.

    Parameters
    ----------
    signal : array-like of float, shape [n]
        Finite, higher where harm is more likely.
    rate : float
        Anticipated harm rate, between 0 and 1.
    auc : float
        Anticipated AUC of the signal for harm, between 0 and 1: from a pilot or from a study of this signal.
        A cautious guess is nearer to 0.5; below it, low values are taken for harmful.

    Returns
    -------
    array of float, shape [n]
        In [0, 1], of mean `rate`; equal signals get equal values.

    Raises
    ------
    InputError
        When the signal is empty or not finite, or a share is out of range.

    References
    ----------
    .. [1] Efron, Journal of the American Statistical Association 70, 1975, for the logistic posterior of two
       normal classes.

    Examples
    --------
    >>> anticipated_harm([0.1, 3.0, 0.4, 0.4], rate=0.05, auc=0.8).round(4)
    array([0.0067, 0.1343, 0.0295, 0.0295])
    """
    values = as_column("anticipated_harm", "signal", signal)
    rate = check_share("anticipated_harm", "rate", rate)
    spread = separation(check_share("anticipated_harm", "auc", auc))
    if values.size == 0:
        raise InputError.argument(
            "anticipated_harm", "signal", "an empty array", "has no runs", "pass at least one run"
        )
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    edges = np.cumsum(counts)[:-1] / values.size
    low, high = np.full(edges.size, -40.0 - abs(spread)), np.full(edges.size, 40.0 + abs(spread))
    for _ in range(HALVINGS):
        x = (low + high) / 2
        below = (1 - rate) * special.ndtr(x) + rate * special.ndtr(x - spread) < edges
        low, high = np.where(below, x, low), np.where(below, high, x)
    harmed = np.concatenate([[0.0], special.ndtr(high - spread), [1.0]])
    probability: FloatArray = (rate * np.diff(harmed) * values.size / counts)[codes]
    return np.clip(probability, 0.0, 1.0)
