"""Estimates from a survey sample, with their design-based variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace
from scipy import special

from kvstats.errors import InputError
from kvstats.statistics.effective_size import degrees_of_freedom, effective_sample_size
from kvstats.statistics.rate_interval import clopper_pearson_interval, effective_trials
from kvstats.statistics.survey_sample import SurveySample

__all__ = ["SurveyEstimate", "from_linearised", "magnitude"]

ROUNDING = 64
"""Standard errors below this many roundings of the estimate are 0 up to rounding."""


@dataclass(frozen=True, eq=False)
class SurveyEstimate:
    """An estimate from a survey sample; None where undefined.

    Attributes
    ----------
    estimate : float or array of shape [d] or None
        The estimate, a vector for vector-valued y.
    variance : float or None
        Estimated variance; for vectors the expected squared norm of the error.
    se : float or None
        Its root.
    df : float or None
        Degrees of freedom of the variance, see `degrees_of_freedom`.
    n : int
        Sampled units in the domain.
    status : str
        ``ok``; ``no units`` or ``zero denominator`` (a quotient without estimate; a total is the sum over
        nothing, 0, without variance); ``only certain units``, ``one unit``, ``zero variance`` or ``negative
        variance: use syg`` (an estimate without variance). Where a sample holds certain units only, it does
        not tell a census from a draw that caught none of the others.
    sample : SurveySample or None
        The sample; None for a difference between independent samples.
    domain : array of bool, shape [k], or None
        The sampled units that the estimate rests on.
    linearised : array of float, shape [k] or [k, d], or None
        The values whose weighted sum has the variance of the estimate.

    Examples
    --------
    >>> from kvstats.statistics.survey import SurveySample, horvitz_thompson_total
    >>> sample = SurveySample([0.5, 0.25], variance_form="poisson")
    >>> horvitz_thompson_total([1.0, 2.0], sample).estimate
    10.0
    """

    estimate: Any
    variance: float | None
    se: float | None
    df: float | None
    n: int
    status: str
    sample: SurveySample | None = None
    domain: Any = None
    linearised: Any = None

    def __repr__(self) -> str:
        se = "None" if self.se is None else f"{self.se:.6g}"
        estimate = f"{self.estimate:.6g}" if isinstance(self.estimate, float) else repr(self.estimate)
        return (
            f"SurveyEstimate(estimate={estimate}, se={se}, df={self.df}, n={self.n}, status={self.status!r})"
        )

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Return the t interval with `df` degrees of freedom; None where there is no variance or no df.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level in (0, 1).

        Raises
        ------
        InputError
            When the level is out of range or the estimate is a vector.

        Notes
        -----
        The interval is good for means of spread-out variables and rates near one half, and undercovers rates
        with few expected events: with few of them the estimate and its standard error are both low, and
        without any there is no interval. Simulated coverage at level 0.95, the range over Poisson, simple
        random, stratified, conditional Poisson and Sampford samples from 400 units (no interval counts as a
        miss):

        =====  =====================  ============  ============  ============
        units  mean of a size         rate of 0.02  rate of 0.2   rate of 0.5
        =====  =====================  ============  ============  ============
        10     0.90 to 0.93           0.16 to 0.23  0.81 to 0.89  0.88 to 0.93
        40     0.93                   0.54 to 0.65  0.90 to 0.93  0.93 to 0.95
        200    0.94 to 0.95           0.82 to 0.85  0.92 to 0.96  0.94 to 0.95
        =====  =====================  ============  ============  ============

        For rates use `rate_interval`.
        """
        check_level("interval", level)
        if self.se is None or not self.df:
            return None
        if not isinstance(self.estimate, float):
            raise InputError(
                "SurveyEstimate.interval: the estimate is a vector; use its se, or one component of y"
            )
        half = -float(special.stdtrit(self.df, (1 - level) / 2)) * self.se
        return self.estimate - half, self.estimate + half

    def rate_interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Return the Korn-Graubard interval of a rate: the Hájek mean of zeros and ones.

        It is Clopper-Pearson's on the effective number of trials that has the standard error of the rate, at
        most the number of units; where there is no standard error, as with no event, on Kish's effective
        sample size. Within [0, 1], and never of width 0.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level in (0, 1).

        Returns
        -------
        low, high : float, or None
            None without a unit in the domain, or where all are certain.

        Raises
        ------
        InputError
            When the level is out of range, or the estimate is no mean of zeros and ones.

        Notes
        -----
        Simulated coverage at level 0.95, for rates of 0.02, 0.2 and 0.5 and the samples of `interval`: 0.95
        to 1.00 in each of the 45 cases. It errs on the side of width: a rate of 0.02 is covered in 0.99 to
        1.00 of the samples, and where half of a population is drawn no use is made of that.

        References
        ----------
        Korn and Graubard, Survey Methodology 24, 1998, section 2.

        Examples
        --------
        >>> from kvstats.statistics.hajek import hajek_mean
        >>> sample = SurveySample([0.9, 0.5, 0.3, 0.8, 0.2, 0.6, 0.4, 0.7])
        >>> low, high = hajek_mean([0, 0, 0, 0, 0, 0, 0, 0], sample).rate_interval()
        >>> round(low, 4), round(high, 4)
        (0.0, 0.4486)
        >>> low, high = hajek_mean([1, 0, 0, 0, 0, 0, 0, 0], sample).rate_interval()
        >>> round(low, 4), round(high, 4)
        (0.0, 0.4515)
        """
        check_level("rate_interval", level)
        if self.estimate is None or self.status == "only certain units":
            return None
        if self.sample is None or not self._is_rate(self.sample):
            raise InputError(
                "SurveyEstimate.rate_interval: the estimate is no mean of zeros and ones; use interval"
            )
        p = min(max(self.estimate, 0.0), 1.0)
        if self.se is None or not self.df:
            trials = effective_sample_size(self.sample, self.domain)
        else:
            trials = effective_trials(p, self.se, self.n, self.df, level)
        if trials is None:
            return None
        low, high = clopper_pearson_interval(p, trials, level)
        return float(low), float(high)

    def _is_rate(self, sample: SurveySample) -> bool:
        """Return whether the estimate is the mean of zeros and ones, told from its linearised values."""
        if self.linearised is None or not isinstance(self.estimate, float):
            return False
        xp = array_namespace(self.linearised)
        weights = xp.where(self.domain, sample.weights, xp.zeros_like(sample.weights))
        y = self.linearised * xp.sum(weights) + self.estimate
        binary = xp.minimum(xp.abs(y), xp.abs(y - 1)) <= float(xp.finfo(y.dtype).eps) ** 0.5
        return bool(xp.all(binary | ~self.domain))


def check_level(method: str, level: float) -> None:
    """Raise unless a confidence level is inside (0, 1)."""
    if not 0 < level < 1:
        raise InputError.argument(f"SurveyEstimate.{method}", "level", level, "is not in (0, 1)", "pass 0.95")


def magnitude(estimate: Any) -> float:
    """Return the absolute value of an estimate, or the norm of a vector."""
    if isinstance(estimate, float):
        return abs(estimate)
    return float(array_namespace(estimate).linalg.vector_norm(estimate))


def from_linearised(
    estimate: Any, linearised: Any, domain: Any, sample: SurveySample, *, size: float | None = None
) -> SurveyEstimate:
    """Return an estimate with the variance of its linearised values.

    Parameters
    ----------
    estimate : float or array of shape [d]
        The estimate.
    linearised : array of float, shape [k] or [k, d]
        Values whose weighted sum has its variance.
    domain : array of bool, shape [k]
        The units that it rests on.
    sample : SurveySample
        The sample.
    size : float, optional
        Magnitude against which a variance is 0 up to rounding; default: of the estimate.
    """
    xp = array_namespace(linearised)
    uncertain = sample.inclusion_probability < 1
    n = int(xp.count_nonzero(domain))
    n_uncertain = int(xp.count_nonzero(domain & uncertain))

    def result(status: str, variance: float | None = None) -> SurveyEstimate:
        se = None if variance is None else math.sqrt(variance)
        df = None if variance is None else degrees_of_freedom(sample, domain)
        return SurveyEstimate(estimate, variance, se, df, n, status, sample, domain, linearised)

    if n == 0:
        return result("no units")
    variance = sample.variance(linearised)
    share = ROUNDING * float(xp.finfo(linearised.dtype).eps)
    # The sum of squares of rounded zeros is small to second order; that of cancelling products to first.
    noise = (magnitude(estimate) if size is None else size) ** 2 * (
        share if sample.variance_form == "ht" else share**2
    )
    if abs(variance) <= noise:
        return result({0: "only certain units", 1: "one unit"}.get(n_uncertain, "zero variance"))
    if variance < 0:
        return result("negative variance: use syg" if sample.variance_form == "ht" else "negative variance")
    return result("ok", variance)
