"""Width of the interval of a rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kvstats.planning.planned import (
    Planned,
    check_clusters,
    check_inputs,
    check_share,
    design_effect,
    fewest_inputs,
    unknown_of,
)
from kvstats.statistics.rate_interval import clopper_pearson_interval
from kvstats.statistics.student import student_ratio

__all__ = ["RatePrecision", "rate_precision"]


@dataclass(frozen=True, kw_only=True, repr=False)
class RatePrecision(Planned):
    """Expected interval of a rate, and what it rests on.

    Attributes
    ----------
    inputs, rate, half_width, rows_per_input, intraclass_correlation, level
        As passed to `rate_precision`, or solved for.
    design_effect, effective_size : float
        What likeness within inputs multiplies the variance by, and the independent rows that it leaves.
    low, high : float
        The interval where the estimate is the rate.
    """

    assumptions: ClassVar[tuple[str, ...]] = (
        "inputs are independent draws from the traffic that the rate is about",
        "the correlation is a guess, from a pilot or from like studies",
    )
    inputs: int
    rate: float
    half_width: float
    rows_per_input: float
    intraclass_correlation: float
    design_effect: float
    effective_size: float
    low: float
    high: float
    level: float


def rate_precision(
    *,
    inputs: int | None = None,
    half_width: float | None = None,
    rate: float,
    rows_per_input: float = 1,
    intraclass_correlation: float = 0.0,
    level: float = 0.95,
) -> RatePrecision:
    r"""Plan how closely a rate is to be known: the inputs for an interval's width, or the width they give.

    Pass one of `inputs` and `half_width`; the other is solved for. The interval is Korn and Graubard's where
    the estimate is the rate. Without an event it counts inputs, not rows, as `kvstats.harm_rate` does.

    Parameters
    ----------
    inputs : int, optional
        Number of inputs, at least 2.
    half_width : float, optional
        Half the width of the interval, between 0 and 1.
    rate : float
        The rate that is expected, in [0, 1].
    rows_per_input : float, default 1
        Rows of each input m, a mean where it varies.
    intraclass_correlation : float, default 0
        Correlation of the events of two rows of one input, in [0, 1].
    level : float, default 0.95
        Confidence level.

    Returns
    -------
    RatePrecision
        All figures, whichever was solved for.

    Raises
    ------
    InputError
        When not exactly one figure is missing, or a number is out of range.

    References
    ----------
    .. [1] Korn and Graubard, Survey Methodology 24, 1998.

    Examples
    --------
    >>> plan = rate_precision(half_width=0.02, rate=0.05)
    >>> plan.inputs, round(plan.low, 4), round(plan.high, 4)
    (508, 0.0327, 0.0727)
    """
    function = "rate_precision"
    unknown = unknown_of(function, {"inputs": inputs, "half_width": half_width})
    wanted = 0.0 if half_width is None else check_share(function, "half_width", half_width)
    size = 0 if inputs is None else check_inputs(function, inputs)
    rate = check_share(function, "rate", rate, closed=True)
    check_clusters(function, rows_per_input, intraclass_correlation)
    check_share(function, "level", level)
    deff = design_effect(rows_per_input, intraclass_correlation)

    def effective(size: int) -> float:
        if rate in (0.0, 1.0):
            return size
        return (
            size
            * rows_per_input
            / deff
            * float(student_ratio(size * rows_per_input, size - 1, (1 - level) / 2))
        )

    def interval(size: int) -> tuple[float, float]:
        low, high = clopper_pearson_interval(rate, effective(size), level)
        return float(low), float(high)

    def half(size: int) -> float:
        low, high = interval(size)
        return (high - low) / 2

    if unknown == "inputs":
        size = fewest_inputs(function, "half_width", wanted, lambda size: half(size) <= wanted)
    low, high = interval(size)
    return RatePrecision(
        solved_for=unknown,
        inputs=size,
        rate=rate,
        half_width=half(size),
        rows_per_input=rows_per_input,
        intraclass_correlation=intraclass_correlation,
        design_effect=deff,
        effective_size=effective(size),
        low=low,
        high=high,
        level=level,
    )
