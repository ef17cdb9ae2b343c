"""Two draws: what other random draws of the same input and budget say about a run."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from kvstats.errors import InputError
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY
from kvstats.policies.registry import policy
from kvstats.policies.switch import add_arm, check_new_arm
from kvstats.policies.token_overlap import token_f1
from kvstats.tables import arm_rows, runs_with_inputs

__all__ = ["DRAW_SIGNALS", "two_draws"]

DRAW_SIGNALS = ("partner_success", "draw_score_gap", "draw_disagreement", "draw_f1_gap")
"""Signals that this policy adds."""

TWINS = [*INPUT_KEY, "budget", "budget_tokens"]


@policy
def two_draws(log: Log, *, base: str, name: str = "two_draws") -> Log:
    """Add the arm that knows, of each run of a random arm, what its other draws answered.

    A random arm that is run twice on an input, with two seeds, is a witness against itself: where its draws
    differ, eviction decided the answer. Outcome and all else are the row's own; what is new are four signals,
    each the mean over the other seeds of the same input and budget:

    - ``partner_success``: share of them that succeeded; low is suspicious. It needs scores, as a deployed
      system has none, and is an upper mark for the others.
    - ``draw_score_gap``: absolute difference of the scores; likewise.
    - ``draw_disagreement``: share of them whose prediction is another text, but for case, punctuation and
      white space.
    - ``draw_f1_gap``: 1 minus the F1 of the words of both predictions.

    The kept tokens are those of one draw, although two were run.

    Parameters
    ----------
    log : Log
        The log.
    base : str
        Name of the random arm, with two seeds or more.
    name : str, default "two_draws"
        Name of the new arm.

    Returns
    -------
    Log
        The log with one row more for each row of `base`. A signal is null where the run has no other draw,
        or what it compares is null on a side; all four are null for other arms. Pass the new arm to any
        estimator, or as `base` to `recompute` or `retrieve`, to gate on a signal.

    Raises
    ------
    InputError
        When the arm is not known, no run has another draw, the name is taken, rows are duplicated, or a
        signal of the log has the name of one of these.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", two-draw disagreement.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> key = dict(suite="s", model="m", task="qa", input_id="1", arm="poisson", budget=0.5)
    >>> log = log_from_records([
    ...     RunRecord(**key, seed=0, score=1.0, success=True, prediction="code 4711"),
    ...     RunRecord(**key, seed=1, score=0.0, success=False, prediction="code 4712"),
    ... ])
    >>> drawn = two_draws(log, base="poisson").runs.filter(arm="two_draws")
    >>> drawn.select("seed", "partner_success", "draw_disagreement", "draw_f1_gap").rows()
    [(0, 0.0, 1.0, 0.5), (1, 1.0, 1.0, 0.5)]
    """
    function = "two_draws"
    check_new_arm(function, log, name)
    taken = [signal for signal in DRAW_SIGNALS if signal in {*log.runs.columns, *log.inputs.columns}]
    foreign = [signal for signal in taken if log.runs.filter(pl.col("arm") == base)[signal].count()]
    rows = arm_rows(runs_with_inputs(log, function), base, function, "base").select(log.runs.columns)
    if foreign:
        raise InputError.argument(
            function, "log", foreign[0], f"is a signal of arm {base!r} already", "rename the signal"
        )
    rows = rows.drop(taken).with_row_index("__row__")
    compared = ["score", "success", "prediction"]
    others = rows.select(*TWINS, "seed", *compared)
    pairs = (
        rows.select("__row__", *TWINS, "seed", *compared)
        .join(others, on=TWINS, how="inner", nulls_equal=True, suffix="_other", maintain_order="left_right")
        .filter(pl.col("seed") != pl.col("seed_other"))
    )
    if not pairs.height:
        raise InputError.argument(
            function,
            "base",
            base,
            "has one seed for each input and budget",
            "record two draws, or more, of a random arm",
        )
    texts = pairs.select("prediction", "prediction_other")
    pairs = pairs.with_columns(
        pl.col("success_other").cast(pl.Float64).alias("partner_success"),
        (pl.col("score") - pl.col("score_other")).abs().alias("draw_score_gap"),
        (plain("prediction") != plain("prediction_other")).cast(pl.Float64).alias("draw_disagreement"),
        pl.Series(
            "draw_f1_gap",
            [None if a is None or b is None else 1 - token_f1(a, b) for a, b in texts.iter_rows()],
            dtype=pl.Float64,
        ),
    )
    # A mean over what happens to be known would differ between runs in what it is a mean of.
    found = pairs.group_by("__row__", maintain_order=True).agg(
        pl.when(pl.col(signal).null_count() == 0).then(pl.col(signal).mean()).alias(signal)
        for signal in DRAW_SIGNALS
    )
    drawn = rows.join(found, on="__row__", how="left", maintain_order="left").drop("__row__")
    fresh = [signal for signal in DRAW_SIGNALS if signal not in log.runs.columns]
    wide = replace(
        log,
        runs=log.runs.with_columns(pl.lit(None, dtype=pl.Float64).alias(signal) for signal in fresh),
        run_signals=tuple(sorted({*log.run_signals, *DRAW_SIGNALS})),
    )
    return add_arm(wide, drawn, name)


def plain(column: str) -> pl.Expr:
    """Return a text without case, punctuation and white space."""
    return pl.col(column).str.to_lowercase().str.replace_all(r"[\W]+", "")
