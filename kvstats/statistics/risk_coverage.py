"""Risk and coverage: what answering only the surest runs does to the failure rate."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.auc_columns import as_rate, level_codes
from kvstats.statistics.auc_curve import smoothing_width
from kvstats.statistics.statistic import (
    FloatArray,
    Statistic,
    as_column,
    as_weights,
    group_sums,
    weighted_sum,
)

__all__ = ["RiskAtCoverage", "RiskCoverageArea", "risk_coverage_curve"]


class SelectedRisk(Statistic):
    """Losses of rows in the order of a signal, the surest (lowest) first."""

    def __init__(self, signal: npt.ArrayLike, loss: npt.ArrayLike) -> None:
        name = type(self).__name__
        column = as_column(name, "signal", signal)
        self._loss = as_column(name, "loss", loss)
        if self._loss.size != column.size:
            raise InputError.argument(
                name,
                "loss",
                f"array of shape {self._loss.shape}",
                f"does not fit a signal of {column.size} rows",
                "pass columns of the same length",
            )
        self.n = column.size
        self._codes = level_codes(column)[1]
        self._n_levels = int(self._codes.max(initial=-1)) + 1

    def _masses(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weight and the weighted loss of each level."""
        return (
            group_sums(self._codes, weights, self._n_levels),
            group_sums(self._codes, weights * self._loss, self._n_levels),
        )


class RiskCoverageArea(SelectedRisk):
    r"""Area under the risk-coverage curve: the mean failure rate over all shares of runs that are answered.

    .. math:: A = \int_0^1 R(c)\, dc, \qquad R(c) = \frac{1}{c} \int_0^c y(u)\, du

    with y(u) the loss of the row at share u of the weight, in ascending order of the signal; rows of equal
    signal come in random order, and so have their mean loss. In the unit of the loss, and between its
    extremes; lower is better, and a signal without any use gives the mean loss. Undefined (NaN) without any
    weight.

    The integral is taken in closed form over each level. The mean of R over shares k/n [1]_ approaches it as
    log(n)/n; only the integral stays the same when every row is doubled. Equally
    :math:`A = \int_0^1 -\log(u)\, y(u)\, du` [2]_. O(n log n) to prepare, O(n) for each vector of weights.

    Parameters
    ----------
    signal : array-like of float, shape [n]
        The signal, higher for the runs that are left out first.
    loss : array-like of float, shape [n]
        The loss of each run, such as 1 for a failure and 0 for a success.

    Raises
    ------
    InputError
        When a value is not finite, or the lengths differ.

    References
    ----------
    .. [1] Geifman, Uziel and El-Yaniv, International Conference on Learning Representations, 2019.
    .. [2] Zhou, Van Landeghem, Popordanoska and Blaschko, arXiv:2410.15361, for the weights of the losses.

    Examples
    --------
    >>> area = RiskCoverageArea([0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 1.0, 1.0])
    >>> round(area.value([1, 1, 1, 1]), 6)
    0.153426
    >>> RiskCoverageArea([5.0, 5.0, 5.0, 5.0], [0.0, 0.0, 1.0, 1.0]).value([1, 1, 1, 1])
    0.5
    """

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the area for row weights of shape [n]."""
        masses, losses = self._masses(as_weights("RiskCoverageArea", weights, self.n))
        held = masses > 0
        masses, losses = masses[held], losses[held]
        if masses.size == 0:
            return float("nan")
        ends = np.cumsum(masses)
        within, above = spans(masses, ends)
        return weighted_sum(losses, within / masses + above) / float(ends[-1])

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the area with respect to each weight, shape [n].

        Rows without weight get 0: ahead of all others the derivative has no bound.
        """
        w = as_weights("RiskCoverageArea", weights, self.n)
        masses, losses = self._masses(w)
        held = masses > 0
        if not held.any():
            return np.full(self.n, np.nan)
        position = np.cumsum(held) - 1
        masses, losses = masses[held], losses[held]
        mean = losses / masses
        ends = np.cumsum(masses)
        within, above = spans(masses, ends)
        area = weighted_sum(losses, within / masses + above) / ends[-1]
        # What a row adds itself, and what it takes from the levels behind it, which it moves back.
        steps = mean[1:] * np.log(ends[1:] / ends[:-1])
        behind = np.append(np.cumsum(steps[::-1])[::-1], 0.0)
        level = position[self._codes]
        own = (self._loss - mean[level]) * (within / masses)[level] + self._loss * above[level]
        changes = (own - behind[level] + losses.sum() / ends[-1] - area) / ends[-1]
        return np.where(w > 0, changes, 0.0)


class RiskAtCoverage(SelectedRisk):
    r"""Mean loss among the surest share of the runs.

    .. math:: R(c) = \frac{1}{c} \int_0^c y(u)\, du

    with y(u) the loss of the row at share u of the weight, in ascending order of the signal, rows of equal
    signal in random order. In the unit of the loss, and between its extremes. Undefined (NaN) without any
    weight.

    The influence needs the loss at the margin of the selection, which is estimated over the shares
    :math:`c \pm h` with h of `smoothing_width`: no single row estimates it. It is therefore the derivative of
    a smoothed curve; the bootstrap needs none.

    Parameters
    ----------
    signal : array-like of float, shape [n]
        The signal, higher for the runs that are left out first.
    loss : array-like of float, shape [n]
        The loss of each run, such as 1 for a failure and 0 for a success.
    coverage : float
        The share c of runs that are answered, in (0, 1].

    Raises
    ------
    InputError
        When a value is not finite, the coverage is not in (0, 1], or the lengths differ.

    References
    ----------
    .. [1] El-Yaniv and Wiener, Journal of Machine Learning Research 11, 2010.

    Examples
    --------
    >>> risk = RiskAtCoverage([0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 1.0, 1.0], 0.75)
    >>> round(risk.value([1, 1, 1, 1]), 6)
    0.333333
    """

    def __init__(self, signal: npt.ArrayLike, loss: npt.ArrayLike, coverage: float) -> None:
        super().__init__(signal, loss)
        self.coverage = as_rate("RiskAtCoverage", "coverage", coverage)

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the risk for row weights of shape [n]."""
        masses, losses = self._masses(as_weights("RiskAtCoverage", weights, self.n))
        if not masses.any():
            return float("nan")
        return selected_loss(masses, losses, self.coverage) / (self.coverage * float(masses.sum()))

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the smoothed risk with respect to each weight, shape [n]."""
        w = as_weights("RiskAtCoverage", weights, self.n)
        masses, losses = self._masses(w)
        if not masses.any():
            return np.full(self.n, np.nan)
        c, total = self.coverage, masses.sum()
        risk = selected_loss(masses, losses, c) / (c * total)
        marginal = 0.0
        if c < 1:
            width = smoothing_width(c, w)
            low, high = max(c - width, 0.0), min(c + width, 1.0)
            between = selected_loss(masses, losses, high) - selected_loss(masses, losses, low)
            marginal = between / ((high - low) * total)
        selected = selected_share(masses, c)[self._codes]
        return np.asarray((selected * (self._loss - marginal) - c * (risk - marginal)) / (c * total))


def risk_coverage_curve(
    signal: npt.ArrayLike, loss: npt.ArrayLike, weights: npt.ArrayLike | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the risk-coverage curve at the end of each level of the signal.

    Parameters
    ----------
    signal : array-like of float, shape [n]
        The signal, higher for the runs that are left out first.
    loss : array-like of float, shape [n]
        The loss of each run.
    weights : array-like of float, shape [n], optional
        Row weights; default all 1.

    Returns
    -------
    coverage, risk : array of float, shape [L]
        Ascending shares of the weight, the last one 1, and the mean loss among the rows up to there. Levels
        without weight are left out; both are empty without any.

    Raises
    ------
    InputError
        When a value is not finite, a weight is negative, or the lengths differ.

    Examples
    --------
    >>> coverage, risk = risk_coverage_curve([0.1, 0.2, 0.2, 0.4], [0.0, 0.0, 1.0, 1.0])
    >>> coverage.tolist(), risk.round(3).tolist()
    ([0.25, 0.75, 1.0], [0.0, 0.333, 0.5])
    """
    ranked = RiskCoverageArea(signal, loss)
    w = as_weights("risk_coverage_curve", np.ones(ranked.n) if weights is None else weights, ranked.n)
    masses, losses = ranked._masses(w)
    held = masses > 0
    ends = np.cumsum(masses[held])
    return ends / masses.sum(), np.cumsum(losses[held]) / ends


def spans(masses: FloatArray, ends: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the integrals of du/u that weigh the losses of each level: within it, and above it.

    Within a level that begins at u0 and ends at u1, the part (u - u0) / m of its loss has been met.
    """
    starts = ends - masses
    later = np.log(ends[-1] / ends)
    log_ratio = np.log(ends[1:] / ends[:-1])
    within = masses.copy()
    within[1:] -= starts[1:] * log_ratio
    return within, later


def selected_share(masses: FloatArray, coverage: float) -> FloatArray:
    """Return the part of each level that is selected at a coverage."""
    ends = np.cumsum(masses)
    room = coverage * ends[-1] - (ends - masses)
    return np.asarray(np.clip(room / np.where(masses > 0, masses, 1.0), 0.0, 1.0))


def selected_loss(masses: FloatArray, losses: FloatArray, coverage: float) -> float:
    """Return the weighted loss of the selected rows."""
    return weighted_sum(losses, selected_share(masses, coverage))
