"""Power of an area under the curve against a value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from kvstats.errors import InputError, nearest_name
from kvstats.planning.auc_variance import AUCShape, auc_variance
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


@dataclass(frozen=True, kw_only=True, repr=False)
class AUCPower(Planned):
    """Power to tell an area from a value, and what it rests on.

    Attributes
    ----------
    inputs, auc, power, null, prevalence, rows_per_input, intraclass_correlation, level, alternative, shape
        As passed to `auc_power`, or solved for.
    design_effect, se, df : float
        What likeness within inputs multiplies the variance by; standard error and degrees of freedom.
    """

    assumptions: ClassVar[tuple[str, ...]] = (
        "inputs are independent draws; each has about as many rows as the next, of either class alike",
        "the prevalence and the correlation are guesses, from a pilot or from like studies",
        "the area's estimate is near normal: at least ten rows of each class",
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
    df: int
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
    test with inputs - 1 degrees of freedom of the area against `null`. Its variance is that of `auc_variance`
    with prevalence x rows positives, times the design effect :math:`1 + (m - 1)\rho`.

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

    References
    ----------
    .. [1] Hanley and McNeil, Radiology 143, 1982.
    .. [2] Obuchowski, Biometrics 53, 1997, for clusters; Statistical Methods in Medical Research 7, 1998, for
       sample sizes.

    Examples
    --------
    >>> plan = auc_power(auc=0.65, power=0.8, prevalence=0.1, rows_per_input=4, intraclass_correlation=0.3)
    >>> plan.inputs, round(plan.se, 4)
    (139, 0.053)
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

    def se(size: int, area: float) -> float:
        rows = size * rows_per_input
        return math.sqrt(auc_variance(area, rows * prevalence, rows * (1 - prevalence), shape) * deff)

    def power_of(size: int, area: float) -> float:
        if size * rows_per_input * min(prevalence, 1 - prevalence) < 1:
            return 0.0  # not one row of each class is expected
        return student_power(area - null, se(size, area), size - 1, level, alternative)

    if unknown == "inputs":
        size = fewest_inputs(function, "power", wanted, lambda size: power_of(size, area) >= wanted)
    elif unknown == "auc":
        area = least_effect(function, size, null, wanted, alternative, lambda area: power_of(size, area))
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
        se=se(size, area),
        df=size - 1,
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
    if power_of(farthest) < wanted:
        raise InputError.argument(
            function, "inputs", size, "is too few: even a perfect signal has less power", "add inputs"
        )
    share = root(lambda share: power_of(null + share * (farthest - null)), wanted, 0.0, 1.0)
    return null + share * (farthest - null)
