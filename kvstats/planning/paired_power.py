"""Power of a comparison of two arms on the same inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

from kvstats.errors import InputError
from kvstats.planning.planned import (
    Alternative,
    Planned,
    check_alternative,
    check_clusters,
    check_inputs,
    check_share,
    design_effect,
    fewest_inputs,
    root,
    student_power,
    unknown_of,
)

__all__ = ["DifferencePower", "difference_power"]

FUNCTION = "difference_power"


@dataclass(frozen=True, kw_only=True, repr=False)
class DifferencePower(Planned):
    """Power of a paired comparison, and what it rests on.

    Attributes
    ----------
    inputs : int
        Number of inputs, the clusters.
    difference : float
        True mean difference of the outcome, arm minus baseline.
    power : float
        Probability that the interval excludes 0 on the side of the difference.
    discordance : float
        Share of pairs that differ.
    rows_per_input : float
        Pairs of each input.
    intraclass_correlation : float
        Correlation of the differences of two pairs of one input.
    design_effect : float
        What the correlation multiplies the variance by.
    se : float
        Standard error of the estimate.
    df : int
        Degrees of freedom of the t test.
    level : float
        Confidence level.
    alternative : str
        Which values count against no difference.
    """

    assumptions: ClassVar[tuple[str, ...]] = (
        "inputs are independent draws; each has about as many pairs as the next",
        "the discordance and the correlation are guesses, from a pilot or from like studies",
        "the estimate is near normal: at least ten pairs are to differ",
    )
    inputs: int
    difference: float
    power: float
    discordance: float
    rows_per_input: float
    intraclass_correlation: float
    design_effect: float
    se: float
    df: int
    level: float
    alternative: Alternative


def difference_power(
    *,
    inputs: int | None = None,
    difference: float | None = None,
    power: float | None = None,
    discordance: float,
    rows_per_input: float = 1,
    intraclass_correlation: float = 0.0,
    level: float = 0.95,
    alternative: Alternative = "two-sided",
) -> DifferencePower:
    r"""Plan a paired comparison: how many inputs, how small a difference, or how much power.

    Pass two of `inputs`, `difference` and `power`; the third is solved for. The test is that of
    `kvstats.delta`: a t test with inputs - 1 degrees of freedom on cluster totals. With K inputs of m pairs
    each, discordance d and difference :math:`\delta`,

    .. math:: \mathrm{se}^2 = \frac{(d - \delta^2)\,(1 + (m - 1) \rho)}{K m}, \qquad
        \mathrm{power} = P(|T'_{K-1}(\delta / \mathrm{se})| > t_{K-1})

    with T' noncentral t.

    Parameters
    ----------
    inputs : int, optional
        Number of inputs K, at least 2.
    difference : float, optional
        True mean difference, not 0 and at most the discordance; below 0 where the arm loses. Solved for, it
        is the minimum detectable one, above 0 (below, with ``alternative="less"``).
    power : float, optional
        Between 0 and 1.
    discordance : float
        Share of pairs that differ, in (0, 1]: harm plus help, for outcomes of 0 and 1. For fractional scores
        the mean absolute difference, which errs on the safe side.
    rows_per_input : float, default 1
        Pairs of each input m, such as budgets times models; a mean where it varies.
    intraclass_correlation : float, default 0
        Correlation :math:`\rho` of the differences of two pairs of one input, in [0, 1].
    level : float, default 0.95
        Confidence level.
    alternative : {"two-sided", "greater", "less"}
        Which differences count against none.

    Returns
    -------
    DifferencePower
        All figures, whichever was solved for.

    Raises
    ------
    InputError
        When not exactly one figure is missing, a number is out of range, or no number of inputs will do.

    References
    ----------
    .. [1] Kish (1965), Survey Sampling, section 5.4, for the design effect; Connor, Biometrics 43, 1987, for
       paired proportions.

    Examples
    --------
    A gate that spares 5 of the 10 points that eviction costs, seen at four budgets of each input:

    >>> difference_power(difference=0.05, power=0.8, discordance=0.1, rows_per_input=4,
    ...     intraclass_correlation=0.5)
    DifferencePower
      inputs                  194  <- solved for
      difference              0.05
      power                   0.8015
      discordance             0.1
      rows_per_input          4
      intraclass_correlation  0.5
      design_effect           2.5
      se                      0.01772
      df                      193
      level                   0.95
      alternative             two-sided
      assumes: inputs are independent draws; each has about as many pairs as the next
      assumes: the discordance and the correlation are guesses, from a pilot or from like studies
      assumes: the estimate is near normal: at least ten pairs are to differ
    """
    unknown = unknown_of(FUNCTION, {"inputs": inputs, "difference": difference, "power": power})
    discordance = check_share(FUNCTION, "discordance", discordance, closed=True)
    if discordance == 0:
        raise InputError.argument(
            FUNCTION, "discordance", discordance, "leaves nothing to detect", "pass a share above 0"
        )
    check_clusters(FUNCTION, rows_per_input, intraclass_correlation)
    check_share(FUNCTION, "level", level)
    check_alternative(FUNCTION, alternative, ("two-sided", "greater", "less"))
    wanted = 0.0 if power is None else check_share(FUNCTION, "power", power)
    size = 0 if inputs is None else check_inputs(FUNCTION, inputs)
    effect = 0.0 if difference is None else check_difference(difference, discordance, alternative)
    deff = design_effect(rows_per_input, intraclass_correlation)

    def se(size: int, effect: float) -> float:
        return math.sqrt((discordance - effect**2) * deff / (size * rows_per_input))

    def power_of(size: int, effect: float) -> float:
        return student_power(effect, se(size, effect), size - 1, level, alternative)

    if unknown == "inputs":
        size = fewest_inputs(FUNCTION, "power", wanted, lambda size: power_of(size, effect) >= wanted)
    elif unknown == "difference":
        sign = -1.0 if alternative == "less" else 1.0
        if power_of(size, sign * discordance) < wanted:
            raise InputError.argument(
                FUNCTION,
                "inputs",
                inputs,
                f"is too few: even where all {discordance:.4g} that differ fall on one side, power is less",
                "add inputs",
            )
        effect = sign * root(lambda effect: power_of(size, sign * effect), wanted, 0.0, discordance)
    return DifferencePower(
        solved_for=unknown,
        inputs=size,
        difference=effect,
        power=power_of(size, effect),
        discordance=discordance,
        rows_per_input=rows_per_input,
        intraclass_correlation=intraclass_correlation,
        design_effect=deff,
        se=se(size, effect),
        df=size - 1,
        level=level,
        alternative=alternative,
    )


def check_difference(difference: float, discordance: float, alternative: Alternative) -> float:
    """Return a true difference, checked against the discordance and the alternative."""
    if (
        isinstance(difference, bool)
        or not isinstance(difference, Real)
        or not 0 < abs(difference) <= discordance
    ):
        raise InputError.argument(
            FUNCTION,
            "difference",
            difference,
            f"is 0 or beyond the discordance of {discordance}",
            "pass the difference that matters; only pairs that differ can add to it",
        )
    if alternative != "two-sided" and (difference > 0) != (alternative == "greater"):
        raise InputError.argument(
            FUNCTION,
            "difference",
            difference,
            f"is not on the side of alternative {alternative!r}",
            "change its sign or the alternative",
        )
    return float(difference)
