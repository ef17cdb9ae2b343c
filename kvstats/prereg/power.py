"""The power of registered claims at the planned sample size, before any data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from kvstats.errors import InputError
from kvstats.planning import DifferencePower, auc_power, difference_power, rate_power
from kvstats.planning.planned import Planned
from kvstats.prereg.comparison import comparison_of, two_sided_limit
from kvstats.prereg.plan import ClaimPlan, Plan
from kvstats.prereg.schema import PlannedSample

__all__ = ["ClaimPower", "claim_power", "planned_sample"]

POWER = 0.8
"""With which power the smallest effect is to be found."""

ROUNDS, CLOSE = 50, 1e-9
"""How often, and until when, a difference is solved for again with the variance that it implies."""

ELSEWHERE = {
    "auc_difference": "kvstats.planning.auc_difference_power plans it, given the correlation of the signals",
}
"""Estimators for which a plan needs more than a registration says."""

RATES = (
    *("harm_rate", "recovery_rate", "induced_failure_rate", "sensitivity", "prevalence"),
    *("gate_open_rate", "certificate_coverage"),
)


@dataclass(frozen=True)
class ClaimPower:
    """What is known beforehand of the power of a claim, for each row of its result.

    Attributes
    ----------
    told : bool
        Whether anything is.
    text : str
        It in words; why not, where it is not.
    smallest_effect : float or None
        The true value nearest to the limit at which the rule holds with 80% power.
    effect, power : float or None
        The planned true value, and the power there.
    level : float or None
        Confidence level that the power is for. In a family it is that of Bonferroni's correction, the most
        that an adjustment may ask for.
    """

    told: bool
    text: str
    smallest_effect: float | None = None
    effect: float | None = None
    power: float | None = None
    level: float | None = None


@dataclass(frozen=True)
class Bound:
    """The limit that an interval must exclude, and on which sides: whether upwards, None for both."""

    limit: float
    upwards: bool | None


def planned_sample(plan: Plan, claim: ClaimPlan) -> PlannedSample:
    """Return what is planned for a claim: its own figures, and the registration's where it has none."""
    merged = {key: value for key, value in fields_of(plan.registration.planned).items() if value is not None}
    merged |= {key: value for key, value in fields_of(claim.claim.planned).items() if value is not None}
    return PlannedSample(**merged)


def fields_of(planned: PlannedSample) -> dict[str, Any]:
    return {name: getattr(planned, name) for name in planned.__struct_fields__}


def claim_power(plan: Plan, claim: ClaimPlan) -> ClaimPower:
    """Tell the power of a claim at the planned sample size, where that can be told.

    Parameters
    ----------
    plan : Plan
        The registration.
    claim : ClaimPlan
        One of its claims.

    Returns
    -------
    ClaimPower
        For one row of its result. A claim about several rows has less power under ``all``.
    """
    planned = planned_sample(plan, claim)
    refusal, solve = solver(claim, planned)
    if solve is None:
        return ClaimPower(False, f"cannot be told: {refusal}")
    bound = bound_of(claim.claim.supported)
    if bound is None:
        return ClaimPower(
            False,
            "cannot be told: the rule is not one comparison of an end of the interval with a number, such "
            "as 'low > 0'",
        )
    if planned.inputs is None:
        return ClaimPower(False, "cannot be told: planned.inputs is not given")
    level = level_of(plan, claim)
    return answered(solve, bound, planned, level)


def level_of(plan: Plan, claim: ClaimPlan) -> float:
    """Return the level of the interval, or that of Bonferroni's correction where a family asks for more."""
    family = plan.registration.family
    if not claim.in_family or family is None or family.method == "none":
        return plan.design.level
    members = sum(member.in_family for member in plan.claims)
    return max(plan.design.level, 1 - family.level / members)


def bound_of(rule: str) -> Bound | None:
    """Return the test that a rule on an interval is, or None where it is none."""
    both = two_sided_limit(rule)
    if both is not None:
        return Bound(both, None)
    compared = comparison_of(rule)
    if compared is None or compared.upwards is None:
        return None
    if compared.column != ("low" if compared.upwards else "high"):
        return None
    return Bound(compared.value, compared.upwards)


Solve = Callable[[Bound, float, float | None], tuple[float, Planned]]
"""From a test, a level and a true value (None: solve for it) to the true value and the plan."""


def solver(claim: ClaimPlan, planned: PlannedSample) -> tuple[str, Solve | None]:
    """Return the way to plan a claim, or why there is none."""
    estimator, arguments = claim.query.estimator, claim.query.arguments
    if claim.query.contrast:
        return "a contrast of two rows is not planned for", None
    if estimator == "delta":
        if planned.discordance is None:
            return "planned.discordance, the share of pairs that differ, is not given", None
        return "", lambda bound, level, effect: difference(bound, level, effect, planned)
    if estimator == "auc":
        if planned.prevalence is None:
            return "planned.prevalence, the share of rows with the outcome, is not given", None
        return "", lambda bound, level, effect: area(bound, level, effect, planned)
    if estimator in RATES or (estimator == "accuracy" and arguments.get("outcome") == "success"):
        return "", lambda bound, level, effect: rate(bound, level, effect, planned)
    return ELSEWHERE.get(estimator, f"there is no plan for {estimator}"), None


def clusters(planned: PlannedSample) -> dict[str, Any]:
    return {
        "inputs": planned.inputs,
        "rows_per_input": planned.rows_per_input or 1,
        "intraclass_correlation": planned.intraclass_correlation or 0.0,
    }


def one_sided(bound: Bound, level: float) -> dict[str, Any]:
    """Return level and alternative: the end of a two-sided interval tests at half of its error."""
    if bound.upwards is None:
        return {"level": level, "alternative": "two-sided"}
    return {"level": (1 + level) / 2, "alternative": "greater" if bound.upwards else "less"}


def difference(
    bound: Bound, level: float, effect: float | None, planned: PlannedSample
) -> tuple[float, Planned]:
    """Plan a paired difference: what is planned for is its distance from the limit.

    The variance of a difference is the discordance less its own square, not that of the distance. So the
    discordance is moved by what these squares differ by; where the difference is solved for, until it stays.
    """
    discordance = planned.discordance
    assert discordance is not None
    if effect is not None and abs(effect) > discordance:
        raise InputError.argument(
            "planned", "effect", effect, f"is beyond the discordance of {discordance:g}", "correct either"
        )

    def plan(distance: float | None, assumed: float) -> DifferencePower:
        return difference_power(
            **clusters(planned),
            **one_sided(bound, level),
            difference=distance,
            power=POWER if distance is None else None,
            discordance=discordance - assumed**2 + (assumed - bound.limit) ** 2,
        )

    if effect is not None:
        return effect, plan(effect - bound.limit, effect)
    assumed = bound.limit
    for _ in range(ROUNDS):
        found = plan(None, assumed)
        if abs(bound.limit + found.difference - assumed) < CLOSE:
            break
        assumed = bound.limit + found.difference
    return bound.limit + found.difference, found


def area(bound: Bound, level: float, effect: float | None, planned: PlannedSample) -> tuple[float, Planned]:
    """Plan an area under the curve."""
    assert planned.prevalence is not None
    found = auc_power(
        **clusters(planned),
        auc=effect,
        power=None if effect is not None else POWER,
        prevalence=planned.prevalence,
        null=bound.limit,
        **one_sided(bound, level),
    )
    return found.auc, found


def rate(bound: Bound, level: float, effect: float | None, planned: PlannedSample) -> tuple[float, Planned]:
    """Plan a rate. The level is that of the two-sided interval, whichever end is meant."""
    falls = bound.upwards is False or (bound.upwards is None and effect is not None and effect < bound.limit)
    found = rate_power(
        **clusters(planned),
        rate=effect,
        power=None if effect is not None else POWER,
        limit=bound.limit,
        level=level,
        alternative="less" if falls else "greater",
    )
    return found.rate, found


def answered(solve: Solve, bound: Bound, planned: PlannedSample, level: float) -> ClaimPower:
    """Solve for the smallest effect, and for the power at the planned one."""
    smallest: float | None
    try:
        smallest = solve(bound, level, None)[0]
        text = f"{reach(bound, smallest)} is found with {POWER:.0%} power, level {level:.4g}"
    except InputError as error:
        smallest, text = None, f"no effect is found with {POWER:.0%} power, level {level:.4g} ({error})"
    effect, power = planned.effect, None
    if effect is not None and not beyond(bound, effect):
        text += f"; the planned effect {effect:g} is not beyond the limit {bound.limit:g}"
    elif effect is not None:
        try:
            power = float(asdict(solve(bound, level, effect)[1])["power"])
            text = f"{power:.0%} at the planned effect {effect:g}; {text}"
        except InputError as error:
            text += f"; the planned effect {effect:g} cannot be ({error})"
    return ClaimPower(smallest is not None or power is not None, text, smallest, effect, power, level)


def reach(bound: Bound, smallest: float) -> str:
    if bound.upwards is None:
        return f"a true value {abs(smallest - bound.limit):.3g} above {bound.limit:g}"
    return f"a true value of {'at least' if bound.upwards else 'at most'} {smallest:.3g}"


def beyond(bound: Bound, effect: float) -> bool:
    if bound.upwards is None:
        return effect != bound.limit
    return effect > bound.limit if bound.upwards else effect < bound.limit
