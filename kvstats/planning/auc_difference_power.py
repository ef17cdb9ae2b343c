"""Power of the difference between the areas of two signals of the same rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from kvstats.errors import InputError
from kvstats.planning.auc_power import check_side, least_effect
from kvstats.planning.auc_variance import auc_covariance, auc_variance
from kvstats.planning.planned import (
    Alternative,
    Planned,
    check_alternative,
    check_clusters,
    check_inputs,
    check_share,
    design_effect,
    fewest_inputs,
    student_power,
    unknown_of,
)

__all__ = ["AUCDifferencePower", "auc_difference_power"]

FUNCTION = "auc_difference_power"


@dataclass(frozen=True, kw_only=True, repr=False)
class AUCDifferencePower(Planned):
    """Power to tell the areas of two signals apart, and what it rests on.

    Attributes
    ----------
    inputs, auc, power, other_auc, score_correlation, prevalence, rows_per_input, intraclass_correlation
        As passed to `auc_difference_power`, or solved for.
    level, alternative
        As passed.
    design_effect, se, df : float
        What likeness within inputs multiplies the variance by; standard error of the difference and its
        degrees of freedom.
    """

    assumptions: ClassVar[tuple[str, ...]] = (
        "both signals are known for all rows, and near normal within the classes after some transformation",
        "inputs are independent draws; each has about as many rows as the next, of either class alike",
        "prevalence and correlations are guesses, from a pilot or from like studies",
    )
    inputs: int
    auc: float
    power: float
    other_auc: float
    score_correlation: float
    prevalence: float
    rows_per_input: float
    intraclass_correlation: float
    design_effect: float
    se: float
    df: int
    level: float
    alternative: Alternative


def auc_difference_power(
    *,
    inputs: int | None = None,
    auc: float | None = None,
    power: float | None = None,
    other_auc: float,
    score_correlation: float,
    prevalence: float,
    rows_per_input: float = 1,
    intraclass_correlation: float = 0.0,
    level: float = 0.95,
    alternative: Alternative = "two-sided",
) -> AUCDifferencePower:
    r"""Plan a comparison of two signals by their areas, on the same rows.

    Pass two of `inputs`, `auc` and `power`; the third is solved for. The test is a t test with inputs - 1
    degrees of freedom of the difference, whose variance is that of both areas less twice their covariance
    (see `auc_variance` and `auc_covariance`), times the design effect :math:`1 + (m - 1)\rho`.

    Parameters
    ----------
    inputs : int, optional
        Number of inputs, at least 2.
    auc : float, optional
        True area of the signal, between 0 and 1 and not `other_auc`. Solved for, it is the least detectable
        one above it (below, with ``alternative="less"``).
    power : float, optional
        Between 0 and 1.
    other_auc : float
        True area of the signal to beat.
    score_correlation : float
        Correlation of the two signals within a class, in (-1, 1). The higher, the fewer inputs are needed.
    prevalence : float
        Share of rows with the outcome, between 0 and 1.
    rows_per_input : float, default 1
        Rows of each input m, a mean where it varies.
    intraclass_correlation : float, default 0
        Correlation :math:`\rho` of the differences of influence values of two rows of one input, in [0, 1].
    level : float, default 0.95
        Confidence level.
    alternative : {"two-sided", "greater", "less"}
        Which areas count against no difference.

    Returns
    -------
    AUCDifferencePower
        All figures, whichever was solved for.

    Raises
    ------
    InputError
        When not exactly one figure is missing, a number is out of range, or no number of inputs will do.

    References
    ----------
    .. [1] Hanley and McNeil, Radiology 148, 1983, for the comparison on the same rows.
    .. [2] Obuchowski, Biometrics 53, 1997, for clusters.

    Examples
    --------
    >>> plan = auc_difference_power(auc=0.8, other_auc=0.7, score_correlation=0.5, prevalence=0.2, power=0.8)
    >>> plan.inputs, round(plan.se, 4)
    (311, 0.0355)
    """
    unknown = unknown_of(FUNCTION, {"inputs": inputs, "auc": auc, "power": power})
    wanted = 0.0 if power is None else check_share(FUNCTION, "power", power)
    size = 0 if inputs is None else check_inputs(FUNCTION, inputs)
    other_auc = check_share(FUNCTION, "other_auc", other_auc)
    area = other_auc if auc is None else check_share(FUNCTION, "auc", auc)
    if not -1 < score_correlation < 1:
        raise InputError.argument(
            FUNCTION,
            "score_correlation",
            score_correlation,
            "is not between -1 and 1",
            "pass that of a pilot, or 0 to be cautious",
        )
    prevalence = check_share(FUNCTION, "prevalence", prevalence)
    check_clusters(FUNCTION, rows_per_input, intraclass_correlation)
    check_share(FUNCTION, "level", level)
    check_alternative(FUNCTION, alternative, ("two-sided", "greater", "less"))
    check_side(FUNCTION, "auc", auc, other_auc, alternative)
    deff = design_effect(rows_per_input, intraclass_correlation)

    def se(size: int, area: float) -> float:
        rows = size * rows_per_input
        classes = rows * prevalence, rows * (1 - prevalence)
        variance = auc_variance(area, *classes) + auc_variance(other_auc, *classes)
        variance -= 2 * auc_covariance(area, other_auc, *classes, score_correlation)
        return math.sqrt(max(variance, 0.0) * deff)

    def power_of(size: int, area: float) -> float:
        if size * rows_per_input * min(prevalence, 1 - prevalence) < 1:
            return 0.0  # not one row of each class is expected
        return student_power(area - other_auc, se(size, area), size - 1, level, alternative)

    if unknown == "inputs":
        size = fewest_inputs(FUNCTION, "power", wanted, lambda size: power_of(size, area) >= wanted)
    elif unknown == "auc":
        area = least_effect(FUNCTION, size, other_auc, wanted, alternative, lambda area: power_of(size, area))
    return AUCDifferencePower(
        solved_for=unknown,
        inputs=size,
        auc=area,
        power=power_of(size, area),
        other_auc=other_auc,
        score_correlation=score_correlation,
        prevalence=prevalence,
        rows_per_input=rows_per_input,
        intraclass_correlation=intraclass_correlation,
        design_effect=deff,
        se=se(size, area),
        df=size - 1,
        level=level,
        alternative=alternative,
    )
