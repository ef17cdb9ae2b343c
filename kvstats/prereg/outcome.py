"""What became of the guards and the claims of a registration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvstats.prereg.claim_evidence import ClaimEvidence
from kvstats.prereg.variant import Variant
from kvstats.prereg.verdict import Verdict

__all__ = ["ClaimOutcome", "GuardOutcome", "RuleOutcome"]

Row = dict[str, Any]


@dataclass(frozen=True)
class GuardOutcome:
    """A guard: whether it holds (None: not evaluated), why, and the rows it was held against."""

    id: str
    statement: str
    estimator: str | None
    arguments: dict[str, Any]
    where: str | None
    by: tuple[str, ...]
    rule: str
    holds: bool | None
    reason: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class RuleOutcome:
    """A rule of a claim: what it said of each row, and the values that it saw.

    Attributes
    ----------
    field : str
        ``supported`` or ``killed``.
    text : str
        The rule.
    holds : tuple of bool or None
        Its value in each row of the claim.
    saw : tuple of dict
        For each row the columns that the rule reads.
    """

    field: str
    text: str
    holds: tuple[bool | None, ...]
    saw: tuple[Row, ...]


@dataclass(frozen=True)
class ClaimOutcome:
    """A claim with its verdict.

    Attributes
    ----------
    id, statement, estimator, arguments, where, by, contrast, quantifier, null, alternative
        As registered.
    supported, killed : str
        The rules; `killed` may be None.
    verdict : str
        One of ``supported``, ``killed``, ``inconclusive``, ``not met``, ``undefined``, ``invalid``,
        ``exploratory``; see `kvstats.prereg.verdict.Verdict`.
    reason : str
        Why.
    fired : str or None
        The rule that decided it, ``supported`` or ``killed``.
    in_family : bool
        Whether its p-value was adjusted.
    rows : tuple of dict
        The rows of the result: by-columns, estimate, low, high, se, df, n, clusters, status, p_value,
        p_adjusted (of the claim as a whole), verdict (of this row by itself). Undefined is None.
    rules : tuple of RuleOutcome
        What each rule said, and the values that it saw; empty where nothing was computed.
    evidence : ClaimEvidence or None
        The time of the records that it rests on; None where no record's time is in question, or nothing was
        computed.
    error : str or None
        Why the logs refuse its question.
    sensitivity : tuple of Variant
        How it would be decided under other choices, where that was asked for.
    """

    id: str
    statement: str
    estimator: str
    arguments: dict[str, Any]
    where: str | None
    by: tuple[str, ...]
    contrast: dict[str, tuple[Any, Any]]
    quantifier: str
    null: float | None
    alternative: str
    supported: str
    killed: str | None
    verdict: Verdict
    reason: str
    fired: str | None
    in_family: bool
    rows: tuple[Row, ...]
    rules: tuple[RuleOutcome, ...] = ()
    evidence: ClaimEvidence | None = None
    error: str | None = None
    sensitivity: tuple[Variant, ...] = ()
