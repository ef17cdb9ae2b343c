"""One wide row of a gating study: its columns as fields, each arm's figures together."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from kvstats.log.cells import NEAR
from kvstats.log.records import Budget, Count, Name, Share

__all__ = ["CORRECT", "FULL", "ArmFigures", "ReleaseRow", "input_id", "is_gated", "release_row"]

CORRECT = "correct_"
FULL = "full"
GATED = "gated"
PLAIN = "plain"


class ArmFigures(msgspec.Struct, kw_only=True):
    """What a row says about one arm: ``correct_<arm>`` and the columns that go with it."""

    score: Annotated[float, Meta(ge=0.0, le=1.0)] | None
    n_kept: Count | None = None
    kept_fraction: Share | None = None
    prediction: str | None = None


PERCENT = 100
"""A budget above 1 and up to this may be a percentage."""

COLUMNS = {"n_kept": "n_kept_", "kept_fraction": "kept_", "prediction": "pred_"}
"""Prefix of the column of each figure of an arm."""


class ReleaseRow(msgspec.Struct, kw_only=True):
    """A wide row.

    Attributes
    ----------
    task, input_id
        The input; `input_id` is text.
    budget, budget_tokens
        The fraction to keep, or the number of tokens; one of them is None.
    context_tokens, drop, references
        Of the input.
    gate_open, tau
        Of the gated arm.
    arms : dict of str to ArmFigures
        By name of the arm.
    extra : dict
        Other columns.
    """

    task: Name
    input_id: Name
    budget: Budget | None = None
    budget_tokens: Count | None = None
    context_tokens: Count | None = None
    drop: Annotated[float, Meta(ge=-1.0, le=1.0)] | None = None
    gate_open: bool | None = None
    tau: float | None = None
    references: list[str] | None = None
    arms: dict[str, ArmFigures]
    extra: dict[str, Any]


def is_gated(arm: str) -> bool:
    """Say whether an arm is a gated one: ``gated``, or ``gated_`` and the name of what it gates."""
    return arm == GATED or arm.startswith(GATED + "_")


def release_row(fields: dict[str, Any]) -> ReleaseRow | str:
    """Read the columns of a row, or say what is wrong with it."""
    columns = dict(fields)
    for name, why in (
        ("id", ": which rows are of one input is never told by their order"),
        ("task", ""),
        ("budget", ""),
    ):
        if columns.get(name) is None:
            return f"has no {name}{why}"
    arms = [name.removeprefix(CORRECT) for name in columns if name.startswith(CORRECT) and name != CORRECT]
    if not arms:
        return f"has no column {CORRECT}<arm>"
    row: dict[str, Any] = {"task": columns.pop("task")}
    identity = columns.pop("id")
    row["input_id"] = input_id(identity)
    if row["input_id"] is None:
        return f"has id={identity!r}, which is neither text nor a whole number"
    budget = columns.pop("budget")
    if isinstance(budget, bool) or not isinstance(budget, int | float):
        return f"has budget={budget!r}, which is no number"
    budget = meant(budget)
    if budget <= 1:
        row["budget"] = budget
    elif budget == int(budget):
        row["budget_tokens"] = int(budget)
    else:
        return f"has budget={budget!r}, neither a fraction kept nor a whole number of tokens"
    row["arms"] = {arm: figures(columns, arm) for arm in arms}
    for name, column in (("context_tokens", "T"), ("drop", "drop"), ("gate_open",) * 2, ("tau",) * 2):
        row[name] = columns.pop(column, None)
    row["context_tokens"] = count(row["context_tokens"])
    references = columns.pop("gold" if columns.get("gold") is not None else "answers", None)
    row["references"] = [references] if isinstance(references, str) else references
    row["extra"] = columns
    try:
        read = msgspec.convert(row, ReleaseRow)
    except msgspec.ValidationError as error:
        return f"breaks the form of its rows ({error})"
    follow_the_gate(read)
    whole = read.arms.get(FULL)
    if whole is not None and whole.kept_fraction not in (None, 1.0):
        return f"has kept_{FULL}={whole.kept_fraction!r}, and the full cache keeps all"
    return impossible_count(read) or read


def input_id(value: Any) -> str | None:
    """Return an id as text, with every digit; None for what is no id."""
    return None if isinstance(value, bool) or not isinstance(value, int | str) else str(value)


def figures(columns: dict[str, Any], arm: str) -> dict[str, Any]:
    """Take the columns of one arm out of a row."""
    taken = {"score": meant(columns.pop(CORRECT + arm))}
    for name, prefix in COLUMNS.items():
        taken[name] = columns.pop(prefix + arm, None)
    taken["n_kept"] = count(taken["n_kept"])
    taken["kept_fraction"] = meant(taken["kept_fraction"])
    return taken


def count(value: Any) -> Any:
    """Return a whole number that was written with a decimal point as one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def meant(value: Any) -> Any:
    """Return a truth value as 0 or 1, and a fraction that is nearly 0 or 1 as what it means."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, float):
        return next((whole for whole in (0.0, 1.0) if abs(value - whole) <= NEAR), value)
    return value


def follow_the_gate(row: ReleaseRow) -> None:
    """Fill in what gated arms kept, where it follows from the gate and the row says nothing else."""
    for arm, gated in row.arms.items():
        base = row.arms.get(PLAIN + arm.removeprefix(GATED))
        if (
            is_gated(arm)
            and base is not None
            and row.gate_open is not None
            and gated.n_kept is None
            and gated.kept_fraction is None
        ):
            if row.gate_open:
                gated.n_kept, gated.kept_fraction = base.n_kept, base.kept_fraction
            elif row.budget is not None:
                gated.n_kept, gated.kept_fraction = row.context_tokens, 1.0


def impossible_count(row: ReleaseRow) -> str | None:
    """Say which count does not go with the budget, where the row alone tells, or that none tells its unit."""
    total = row.context_tokens
    if (
        row.budget_tokens is not None
        and row.budget_tokens <= PERCENT
        and not any(found.n_kept is not None for arm, found in row.arms.items() if not is_gated(arm))
    ):
        return (
            f"has budget={row.budget_tokens}, and no count of kept tokens tells whether it is tokens or per "
            "cent; kv.Columns(budget_unit=...) can say which"
        )
    for arm, found in row.arms.items():
        if total is None or found.n_kept is None:
            continue
        if row.budget is not None and found.n_kept > total:
            return (
                f"has n_kept_{arm}={found.n_kept} of T={total} tokens; counts over several layers and heads "
                "have no fraction here"
            )
        percent = row.budget_tokens
        if (
            percent is not None
            and percent <= PERCENT
            and percent != found.n_kept
            and abs(found.n_kept - total * percent / 100) <= 1
            and not is_gated(arm)
        ):
            return f"has budget={percent}, which is a percentage by n_kept_{arm}={found.n_kept}, T={total}"
    return None
