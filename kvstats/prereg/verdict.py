"""The logic of verdicts: what rules, statuses and p-values of a result's rows say about a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from kvstats.prereg.schema import AtLeast

__all__ = ["Decision", "Verdict", "combined_p_value", "decide", "explored", "quantified", "row_verdicts"]

Verdict = Literal["supported", "killed", "inconclusive", "not met", "undefined", "invalid", "exploratory"]
"""
- ``supported``: the rule for it holds, and, in a family, the adjusted p-value is at most the family's level.
- ``killed``: it is not supported, and the rule against it holds.
- ``inconclusive``: neither rule holds.
- ``not met``: the rule for it does not hold, and there is none against it.
- ``undefined``: a row that the verdict needs has no interval, a rule is null there, or the logs refuse the
  question, as where they lack its arm.
- ``invalid``: registration, data or guards are not as they must be; nothing was computed.
- ``exploratory``: the rules decide it, but on records from before it was registered.
"""

Quantifier = Literal["all", "any"] | AtLeast

DECIDABLE = ("ok", "no discordant pairs")
"""Statuses of rows that rules are applied to."""

SHOWN = 3
"""How many rows a reason names."""


@dataclass(frozen=True)
class Decision:
    """A verdict, why, and the rule that fired."""

    verdict: Verdict
    reason: str
    rule: str | None


def needed(quantifier: Quantifier, rows: int) -> int:
    """Return how many rows must satisfy a rule."""
    if isinstance(quantifier, AtLeast):
        return quantifier.at_least
    return rows if quantifier == "all" else 1


def quantified(values: Sequence[bool | None], quantifier: Quantifier) -> bool | None:
    """Say whether a rule holds for as many rows as it must; None when that is undefined.

    Parameters
    ----------
    values : sequence of bool or None
        The rule's value in each row, None where it is undefined.
    quantifier : {"all", "any"} or AtLeast
        With "all" every row must be defined. Otherwise undefined rows matter only where they could turn
        the answer.

    Returns
    -------
    bool or None
        None also when there are no rows.

    Examples
    --------
    >>> quantified([True, None], "all"), quantified([True, None], "any"), quantified([False, None], "any")
    (None, True, None)
    >>> quantified([True, True, False], AtLeast(2)), quantified([True, False, None], AtLeast(3))
    (True, False)
    """
    if not values:
        return None
    count, unknown = sum(v is True for v in values), sum(v is None for v in values)
    if quantifier == "all":
        return None if unknown else count == len(values)
    least = needed(quantifier, len(values))
    if count >= least:
        return True
    return False if count + unknown < least else None


def combined_p_value(p_values: Sequence[float | None], quantifier: Quantifier) -> float | None:
    r"""Return one p-value for a claim about several rows.

    .. math:: p = \min(1, (m - k + 1) \, p_{(k)})

    for m rows of which k must satisfy the rule: the p-value of the hypothesis that fewer than k do,
    valid under any dependence. It is the largest of all p-values under "all", and m times the smallest under
    "any".

    Parameters
    ----------
    p_values : sequence of float or None
        The rows' p-values; an undefined one counts as 1.
    quantifier : {"all", "any"} or AtLeast
        Which k.

    Returns
    -------
    float or None
        None when no row has a p-value, or k exceeds m.

    References
    ----------
    .. [1] Benjamini and Heller, Biometrics 64, 2008, equation 2.

    Examples
    --------
    >>> combined_p_value([0.01, 0.04, 0.03], "all"), combined_p_value([0.01, 0.04, 0.03], "any")
    (0.04, 0.03)
    >>> combined_p_value([0.01, 0.04, 0.03], AtLeast(2))
    0.06
    """
    rows, least = len(p_values), needed(quantifier, len(p_values))
    if least > rows or all(p is None for p in p_values):
        return None
    ordered = sorted(1.0 if p is None else p for p in p_values)
    return min(1.0, (rows - least + 1) * ordered[least - 1])


def decide(
    *,
    labels: Sequence[str],
    statuses: Sequence[str],
    supported: tuple[str, Sequence[bool | None]],
    killed: tuple[str, Sequence[bool | None]] | None,
    quantifier: Quantifier,
    family: tuple[float, float] | None,
) -> Decision:
    """Decide a claim.

    Parameters
    ----------
    labels, statuses : sequence of str, length m
        Name and status of each row of the result.
    supported, killed : tuple of str and sequence of bool or None
        Each rule's text and its value in each row.
    quantifier : {"all", "any"} or AtLeast
        How many rows must satisfy a rule.
    family : tuple of two floats, optional
        Adjusted p-value of the claim, and the level of its family.

    Returns
    -------
    Decision

    Examples
    --------
    >>> decide(labels=["a", "b"], statuses=["ok", "ok"], supported=("low > 0", [True, False]),
    ...        killed=None, quantifier="all", family=None)
    Decision(verdict='not met', reason='low > 0 holds in 1 of 2 rows, all needed', rule=None)
    """
    if not labels:
        return Decision("undefined", "the result has no rows", None)
    told_for = defined(statuses, supported[1])
    holds = quantified(told_for, quantifier)
    significant = family is None or family[0] <= family[1]
    if holds and significant:
        return Decision("supported", counted(supported[0], told_for, quantifier), "supported")
    told_against = None if killed is None else defined(statuses, killed[1])
    against = False if told_against is None else quantified(told_against, quantifier)
    if killed is not None and told_against is not None and against:
        return Decision("killed", counted(killed[0], told_against, quantifier), "killed")
    if holds is None or against is None:
        values = told_for if holds is None else told_against or []
        text = supported[0] if holds is None or killed is None else killed[0]
        return Decision("undefined", undefined_rows(labels, statuses, values, text), None)
    reason = counted(supported[0], told_for, quantifier)
    if holds and family is not None:
        reason += f", but the adjusted p-value {family[0]:.3g} is above the family's level {family[1]:g}"
    return Decision("not met" if killed is None else "inconclusive", reason, None)


def row_verdicts(
    labels: Sequence[str],
    statuses: Sequence[str],
    supported: tuple[str, Sequence[bool | None]],
    killed: tuple[str, Sequence[bool | None]] | None,
    family: tuple[float, float] | None,
) -> list[Verdict]:
    """Decide each row of a result as if the claim were about it alone.

    The adjusted p-value of a family is that of the whole claim: without it no row is supported either.

    Examples
    --------
    >>> row_verdicts(["a", "b"], ["ok", "ok"], ("low > 0", [True, False]), None, None)
    ['supported', 'not met']
    """
    return [
        decide(
            labels=[label],
            statuses=[status],
            supported=(supported[0], [supported[1][row]]),
            killed=None if killed is None else (killed[0], [killed[1][row]]),
            quantifier="all",
            family=family,
        ).verdict
        for row, (label, status) in enumerate(zip(labels, statuses, strict=True))
    ]


def explored(decision: Decision, rows: list[Verdict], fault: str) -> tuple[Decision, list[Verdict]]:
    """Take the name of a confirmation from verdicts, whatever they are; what is undefined stays so.

    Examples
    --------
    >>> found = Decision("killed", "low > 0 holds", "killed")
    >>> decision, rows = explored(found, ["killed"], "a record is early")
    >>> decision.verdict, decision.reason
    ('exploratory', 'a record is early; by its rules it would be killed: low > 0 holds')
    """
    told: list[Verdict] = ["undefined" if row == "undefined" else "exploratory" for row in rows]
    if decision.verdict == "undefined":
        return replace(decision, reason=f"{decision.reason}; {fault}"), told
    reason = f"{fault}; by its rules it would be {decision.verdict}: {decision.reason}"
    return Decision("exploratory", reason, decision.rule), told


def defined(statuses: Sequence[str], values: Sequence[bool | None]) -> list[bool | None]:
    """Return a rule's values with None where the row's status allows no decision.

    Where no pair differs there is no interval, so that no rule on its ends holds.
    """
    return [
        None if status not in DECIDABLE else False if value is None and status != "ok" else value
        for status, value in zip(statuses, values, strict=True)
    ]


def counted(rule: str, values: Sequence[bool | None], quantifier: Quantifier) -> str:
    """Say in how many rows a rule holds, and how many it must."""
    if len(values) == needed(quantifier, len(values)) == 1:
        return f"{rule} {'holds' if values[0] else 'does not hold'}"
    words: Any = f"at least {quantifier.at_least}" if isinstance(quantifier, AtLeast) else quantifier
    return f"{rule} holds in {sum(v is True for v in values)} of {len(values)} rows, {words} needed"


def undefined_rows(
    labels: Sequence[str], statuses: Sequence[str], values: Sequence[bool | None], rule: str
) -> str:
    """Name the rows that leave a claim undefined."""
    causes = [
        (f"status {status!r}" if status not in DECIDABLE else f"{rule} is null")
        + (f" in {label}" if label else "")
        for label, status, value in zip(labels, statuses, values, strict=True)
        if value is None
    ]
    more = f", and {len(causes) - SHOWN} rows more" if len(causes) > SHOWN else ""
    return "; ".join(causes[:SHOWN]) + more
