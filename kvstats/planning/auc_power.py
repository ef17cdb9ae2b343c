"""Power of an area under the curve against a value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from scipy import special

from kvstats.errors import InputError, nearest_name
from kvstats.planning.auc_variance import AUCShape, anticipated_counts, class_variances, satterthwaite_df
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

__all__ = ["AUCPower", "auc_power", "check_side", "least_effect"]

MARGIN = 1e-9
"""How near to an area of 0 or 1 the search for one comes."""

STEPS = 400
"""Areas at which the search for one looks first, since power may fall again near an area of 0 or 1."""

LEAST_SPREAD = 0.75
"""Least spread counted on: its first-order form falls on, to 0, for areas far out from the null value."""


@dataclass(frozen=True, kw_only=True, repr=False)
class AUCPower(Planned):
    """Power to tell an area from a value, and what it rests on.

    Attributes
    ----------
    inputs, auc, power, null, prevalence, rows_per_input, intraclass_correlation, level, alternative, shape
        As passed to `auc_power`, or solved for.
    design_effect, se, df : float
        What likeness within inputs divides the worth of rows by; anticipated standard error of the area, and
        its degrees of freedom, 0 where a class is worth one row or less.
    spread : float
        Anticipated standard deviation of the test statistic.
    """

    assumptions: ClassVar[tuple[str, ...]] = (
        "inputs are independent draws; each has about as many rows as the next, of either class alike",
        "the prevalence and the correlation are guesses, from a pilot or from like studies",
        "all that matters of either class's rows is how many independent ones they are worth",
        "the area's estimate is near normal on the logit scale: at least ten rows of each class, "
        "more where the area is above 0.9",
    )
    inputs: int
    auc: float
    power: float
    null: float
    prevalence: float
    rows_per_input: float
    intraclass_correlation: float
    design_effect: float
    se: float
    df: float
    spread: float
    level: float
    alternative: Alternative
    shape: AUCShape


def auc_power(
    *,
    inputs: int | None = None,
    auc: float | None = None,
    power: float | None = None,
    prevalence: float,
    null: float = 0.5,
    rows_per_input: float = 1,
    intraclass_correlation: float = 0.0,
    level: float = 0.95,
    alternative: Alternative = "two-sided",
    shape: AUCShape = "binormal",
) -> AUCPower:
    r"""Plan a study of whether a signal tells failures from successes.

    Pass two of `inputs`, `auc` and `power`; the third is solved for. The test is that of `kvstats.auc`: a t
    test on the scale of log odds, with a variance from each class,

    .. math:: T = \frac{L(\hat A) - L(A_0)}{s}, \qquad L(A) = \log \frac{A}{1 - A}, \qquad
        s = \frac{\sqrt{v_+ + v_-}}{\hat A (1 - \hat A)},

    the variances being those of `class_variances` at the counts of `anticipated_counts`, with the design
    effect :math:`1 + (m - 1)\rho`, and its degrees of freedom those of `satterthwaite_df`. As s varies with
    the estimate, T has, to first order, not the standard deviation 1 but

    .. math:: \kappa = 1 - (L(A) - L(A_0)) \frac{d \log s}{d L},

    above 1 for an area between 1/2 and a `null` that is farther out, and in most plans below it otherwise.
    With :math:`\delta = (L(A) - L(A_0)) / s`, the power is that of a noncentral t variable of parameter
    :math:`\delta / \kappa` to exceed the critical value over :math:`\kappa`.

    Parameters
    ----------
    inputs : int, optional
        Number of inputs, at least 2.
    auc : float, optional
        True area, between 0 and 1 and not `null`. Solved for, it is the least detectable one above `null`
        (below, with ``alternative="less"``).
    power : float, optional
        Between 0 and 1.
    prevalence : float
        Share of rows with the outcome, between 0 and 1; for ``induced_failure``, among those whose twin
        succeeded.
    null : float, default 0.5
        The area to tell it from.
    rows_per_input : float, default 1
        Rows of each input m, a mean where it varies.
    intraclass_correlation : float, default 0
        Correlation :math:`\rho` of the influence values of two rows of one input, in [0, 1]: near the product
        of the correlation of the scores and that of the outcomes where the scores matter most, and higher
        where all rows of an input have one outcome. With a pilot, take it from the ratio of the clustered and
        the plain standard error.
    level : float, default 0.95
        Confidence level.
    alternative : {"two-sided", "greater", "less"}
        Which areas count against `null`.
    shape : {"binormal", "exponential"}
        How scores are distributed in the classes: normal, or exponential as Hanley and McNeil have it, which
        is the more cautious.

    Returns
    -------
    AUCPower
        All figures, whichever was solved for.

    Raises
    ------
    InputError
        When not exactly one figure is missing, a number is out of range, or no number of inputs will do.

    Notes
    -----
    In simulations (normal scores, one row an input, 5000 studies each) plans of power 0.80 had a power of
    0.797 for an area of 0.65 against 0.5 at prevalence 0.1 (34 positives), 0.791 for 0.8 against 0.5 at 0.3
    (12), 0.806 for 0.9 against 0.8 at 0.3 (44), 0.799 for 0.8 against 0.9 at 0.2 (33), and 0.783 for 0.7
    against 0.5 at 0.05 (19). Where few positives tell a high area from the value, the estimate is not normal
    and the power is off, mostly on the safe side: 0.850 for 0.95 against 0.8 at 0.1 (16 positives), 0.845 for
    0.9 against 0.5 at 0.3 (8 positives; in 3% of studies the area was 1, without a standard error). The
    spread is taken to be at least 0.75.

    References
    ----------
    .. [1] Hanley and McNeil, Radiology 143, 1982.
    .. [2] Obuchowski, Biometrics 53, 1997, for clusters; Statistical Methods in Medical Research 7, 1998, for
       sample sizes.

    Examples
    --------
    >>> plan = auc_power(auc=0.65, power=0.8, prevalence=0.1, rows_per_input=4, intraclass_correlation=0.3)
    >>> plan.inputs, round(plan.se, 4)
    (161, 0.05)
    """
    function = "auc_power"
    unknown = unknown_of(function, {"inputs": inputs, "auc": auc, "power": power})
    wanted = 0.0 if power is None else check_share(function, "power", power)
    size = 0 if inputs is None else check_inputs(function, inputs)
    null = check_share(function, "null", null)
    area = null if auc is None else check_share(function, "auc", auc)
    prevalence = check_share(function, "prevalence", prevalence)
    check_clusters(function, rows_per_input, intraclass_correlation)
    check_share(function, "level", level)
    check_alternative(function, alternative, ("two-sided", "greater", "less"))
    if shape not in ("binormal", "exponential"):
        raise InputError.argument(
            function, "shape", shape, "is not known", nearest_name(str(shape), ("binormal", "exponential"))
        )
    check_side(function, "auc", auc, null, alternative)
    deff = design_effect(rows_per_input, intraclass_correlation)

    def error(size: int, area: float) -> tuple[float, float]:
        counts = anticipated_counts(size * rows_per_input, prevalence, deff)
        parts = class_variances(area, *counts, shape)
        return math.sqrt(sum(parts)), satterthwaite_df(parts, counts, size)

    def spread_of(size: int, area: float) -> float:
        step = 1e-4
        logit = float(special.logit(area))
        logs = []
        for shifted in (logit - step, logit + step):
            near = float(special.expit(shifted))
            logs.append(math.log(error(size, near)[0] / (near * (1 - near))))
        change = (logs[1] - logs[0]) / (2 * step)
        return max(1 - (logit - float(special.logit(null))) * change, LEAST_SPREAD)

    def power_of(size: int, area: float) -> float:
        se, df = error(size, area)
        if df == 0:
            return 0.0
        effect = float(special.logit(area) - special.logit(null)) * area * (1 - area)
        return student_power(effect, se, df, level, alternative, spread_of(size, area))

    if unknown == "inputs":
        size = fewest_inputs(function, "power", wanted, lambda size: power_of(size, area) >= wanted)
    elif unknown == "auc":
        area = least_effect(function, size, null, wanted, alternative, lambda area: power_of(size, area))
    se, df = error(size, area)
    return AUCPower(
        solved_for=unknown,
        inputs=size,
        auc=area,
        power=power_of(size, area),
        null=null,
        prevalence=prevalence,
        rows_per_input=rows_per_input,
        intraclass_correlation=intraclass_correlation,
        design_effect=deff,
        se=se,
        df=df,
        spread=spread_of(size, area),
        level=level,
        alternative=alternative,
        shape=shape,
    )


def check_side(function: str, argument: str, area: float | None, null: float, alternative: str) -> None:
    """Check that a given area differs from the null value, on the side of the alternative."""
    if area is None:
        return
    if area == null:
        raise InputError.argument(
            function, argument, area, "is the area to tell it from", "pass the area that matters"
        )
    if alternative != "two-sided" and (area > null) != (alternative == "greater"):
        raise InputError.argument(
            function,
            argument,
            area,
            f"is not on the side of alternative {alternative!r} of {null}",
            "change the area or the alternative",
        )


def least_effect(
    function: str,
    size: int,
    null: float,
    wanted: float,
    alternative: Alternative,
    power_of: Callable[[float], float],
) -> float:
    """Return the area nearest to the null value, on the side of the alternative, that has the power."""
    farthest = MARGIN if alternative == "less" else 1 - MARGIN

    def reached(share: float) -> float:
        return power_of(null + share * (farthest - null))

    enough = next((step for step in range(1, STEPS + 1) if reached(step / STEPS) >= wanted), None)
    if enough is None:
        raise InputError.argument(
            function, "inputs", size, "is too few: no area is told from it with such power", "add inputs"
        )
    share = root(reached, wanted, (enough - 1) / STEPS, enough / STEPS)
    return null + share * (farthest - null)
