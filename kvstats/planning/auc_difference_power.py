"""Power of the difference between the areas of two signals of the same rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from kvstats.errors import InputError
from kvstats.planning.auc_power import check_side, least_effect
from kvstats.planning.auc_variance import (
    anticipated_counts,
    class_covariances,
    class_variances,
    satterthwaite_df,
)
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
        What likeness within inputs divides the worth of rows by; anticipated standard error of the
        difference, and its degrees of freedom, 0 where a class is worth one row or less.
    """

    assumptions: ClassVar[tuple[str, ...]] = (
        "both signals are known for all rows, and near normal within the classes after some transformation",
        "inputs are independent draws; each has about as many rows as the next, of either class alike",
        "all that matters of either class's rows is how many independent ones they are worth",
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
    df: float
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

    Pass two of `inputs`, `auc` and `power`; the third is solved for. The test is a t test of the
    difference itself. What either class contributes to its variance is what it contributes to that of both
    areas (`class_variances`) less twice that to their covariance (`class_covariances`), at the counts of
    `anticipated_counts` with the design effect :math:`1 + (m - 1)\rho`; the degrees of freedom are those of
    `satterthwaite_df`: with few positives, about as many.

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
    (320, 0.0353)
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

    def error(size: int, area: float) -> tuple[float, float]:
        counts = anticipated_counts(size * rows_per_input, prevalence, deff)
        ones, others = class_variances(area, *counts), class_variances(other_auc, *counts)
        shared = class_covariances(area, other_auc, *counts, score_correlation)
        of_positives, of_negatives = (
            max(one + other - 2 * both, 0.0) for one, other, both in zip(ones, others, shared, strict=True)
        )
        parts = of_positives, of_negatives
        return math.sqrt(sum(parts)), satterthwaite_df(parts, counts, size)

    def power_of(size: int, area: float) -> float:
        se, df = error(size, area)
        return student_power(area - other_auc, se, df, level, alternative) if df > 0 else 0.0

    if unknown == "inputs":
        size = fewest_inputs(FUNCTION, "power", wanted, lambda size: power_of(size, area) >= wanted)
    elif unknown == "auc":
        area = least_effect(FUNCTION, size, other_auc, wanted, alternative, lambda area: power_of(size, area))
    se, df = error(size, area)
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
        se=se,
        df=df,
        level=level,
        alternative=alternative,
    )
