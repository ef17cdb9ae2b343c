"""Linting: what a registration says and leaves open, told without data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any

from kvstats.expressions import check_expression
from kvstats.log.frames import INPUT_SCHEMA, REPLAY_SCHEMA, RUN_SCHEMA
from kvstats.prereg.comparison import comparison_of
from kvstats.prereg.plan import ClaimPlan, Plan, load_plan
from kvstats.prereg.power import ClaimPower, claim_power
from kvstats.tables import DERIVED_COLUMNS

__all__ = ["ClaimLint", "Lint", "lint"]

INTERVAL = frozenset({"low", "high", "p_value", "p_adjusted", "certain"})
"""Columns that say how certain an estimate is."""

OUTCOMES = frozenset({"score", "success", "prediction", *DERIVED_COLUMNS}) | {
    f"baseline_{name}" for name in ("score", "success", "prediction")
}
"""Columns of a run that are known only afterwards."""

FIELDS = OUTCOMES | RUN_SCHEMA.keys() | INPUT_SCHEMA.keys() | REPLAY_SCHEMA.keys()
"""Columns that every log has; the others are signals, whose names are free."""

MANY = frozenset({"input_id", "layer", "head", "step", "seed", "permutation"})
"""Columns that have many values in most logs."""


@dataclass(frozen=True)
class ClaimLint:
    """What is to be said of one claim.

    Attributes
    ----------
    id : str
        Its id.
    line : int
        Its line in the file.
    power : ClaimPower
        Its power at the planned sample size.
    warnings : tuple of str
        What weakens it.
    """

    id: str
    line: int
    power: ClaimPower
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Lint:
    """What is to be said of a registration that has no error.

    Attributes
    ----------
    file, sha256, study : str
        The file's name, the SHA-256 of its bytes, and the name of the study.
    warnings : tuple of str
        What weakens it as a whole.
    claims : tuple of ClaimLint
        In the order of the registration.
    """

    file: str
    sha256: str
    study: str
    warnings: tuple[str, ...]
    claims: tuple[ClaimLint, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        return asdict(self)


def lint(path: str | os.PathLike[str]) -> Lint:
    """Check a registration without data, and tell the power of its claims and what weakens them.

    Parameters
    ----------
    path : str or path-like
        The registration, a YAML file. Its ``planned`` block says what is expected of each row of a result:
        ``inputs`` (clusters), ``rows_per_input`` (1), ``intraclass_correlation`` (0), ``discordance`` (the
        share of pairs that differ), ``prevalence`` (the share of rows with the outcome) and ``effect`` (the
        true value of the estimate). A claim's own ``planned`` block stands before it.

    Returns
    -------
    Lint

    Raises
    ------
    InputError
        As `kvstats.verify` for the registration.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> plan = '''
    ... study: toy
    ... registered_at: 2026-01-01T12:00:00Z
    ... stopping_rule: When all inputs are run.
    ... planned: {inputs: 120, discordance: 0.25, effect: 0.1}
    ... data: {runs: [a.jsonl]}
    ... claims:
    ...   - id: gain
    ...     statement: The gate gains.
    ...     estimator: delta
    ...     arguments: {arm: gate, baseline: snapkv}
    ...     supported: low > 0
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "plan.yaml").write_text(plan)
    ...     found = lint(f"{folder}/plan.yaml")
    >>> found.claims[0].warnings
    ("no rule kills it: nothing that is found can count against it; add 'killed'",)
    >>> found.claims[0].power.text
    '60% at the planned effect 0.1; a true value of at least 0.125 is found with 80% power, level 0.95'
    """
    plan = load_plan(path)
    return Lint(
        file=plan.document.path.name,
        sha256=plan.document.sha256,
        study=plan.registration.study,
        warnings=tuple(general_warnings(plan)),
        claims=tuple(
            ClaimLint(
                id=claim.claim.id,
                line=plan.document.line(("claims", index)),
                power=claim_power(plan, claim),
                warnings=tuple(claim_warnings(plan, claim)),
            )
            for index, claim in enumerate(plan.claims)
        ),
    )


def general_warnings(plan: Plan) -> Iterator[str]:
    """Yield what weakens the registration as a whole."""
    registration = plan.registration
    if registration.family is None and len(registration.claims) > 1:
        yield (
            f"{len(registration.claims)} claims and no family: the more there are, the likelier is it that "
            "one is supported by chance; add 'family'"
        )
    if registration.stopping_rule is None:
        yield "no stopping rule: when the collection ends is open; add 'stopping_rule'"


def claim_warnings(plan: Plan, claim: ClaimPlan) -> Iterator[str]:
    """Yield what weakens a claim."""
    registered = claim.claim
    if claim.killed is None:
        yield "no rule kills it: nothing that is found can count against it; add 'killed'"
    for field, rule in (("supported", claim.supported), ("killed", claim.killed)):
        if rule is not None and "estimate" in rule.columns and not rule.columns & INTERVAL:
            yield (
                f"{field}={rule.text!r} reads no end of the interval: near its limit chance decides; use "
                "'low' or 'high'"
            )
    compared = comparison_of(registered.supported)
    if claim.needs_p_value and compared is not None and compared.column in ("estimate", "low", "high"):
        if compared.upwards is not None and registered.alternative == "two-sided":
            side = "greater" if compared.upwards else "less"
            yield (
                f"supported={registered.supported!r} is one-sided and its p-value two-sided; add "
                f"'alternative: {side}' if that is meant"
            )
        if registered.null is not None and registered.null != compared.value:
            yield (
                f"supported={registered.supported!r} is about {compared.value:g} and its p-value about "
                f"{registered.null:g}; make 'null' the same"
            )
    rows = claim.query.row_columns
    if registered.quantifier == "all" and (len(rows) > 1 or MANY & set(rows)):
        yield (
            f"every row by {', '.join(rows)} must satisfy its rule, and one of many may fail by chance; use "
            "fewer columns or 'quantifier: {at_least: K}'"
        )
    if registered.where is not None:
        read = check_expression("lint", "where", registered.where).meta.root_names()
        if chosen := sorted(OUTCOMES & set(read)):
            yield (
                f"where={registered.where!r} selects by the outcome ({', '.join(chosen)}): what is found "
                "holds only for what came out so"
            )
        for name in sorted(set(read) - FIELDS):
            # A signal such as 'certificate' is like a field too, but less than a slip is.
            for field in get_close_matches(name, sorted(FIELDS), n=1, cutoff=0.8):
                yield (
                    f"where={registered.where!r} reads {name!r}, which can only be a signal; "
                    f"did you mean {field!r}?"
                )
