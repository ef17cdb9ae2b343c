"""Estimates from a survey sample, with their design-based variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace
from scipy import special

from kvstats.errors import InputError
from kvstats.statistics.effective_size import degrees_of_freedom
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
        """
        if not 0 < level < 1:
            raise InputError.argument(
                "SurveyEstimate.interval", "level", level, "is not in (0, 1)", "pass 0.95"
            )
        if self.se is None or not self.df:
            return None
        if not isinstance(self.estimate, float):
            raise InputError(
                "SurveyEstimate.interval: the estimate is a vector; use its se, or one component of y"
            )
        half = -float(special.stdtrit(self.df, (1 - level) / 2)) * self.se
        return self.estimate - half, self.estimate + half


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
