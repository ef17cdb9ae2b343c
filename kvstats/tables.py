"""Tables that estimators work on: the one place where rows of a log are joined."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.log.frames import Log, require_log
from kvstats.log.records import INPUT_KEY, REPLAY_KEY, RUN_KEY
from kvstats.selection import truth

__all__ = [
    "arm_rows",
    "paired",
    "pairs_of",
    "permuted_replays",
    "require_values",
    "runs_with_inputs",
    "unique_inputs",
    "unique_replays",
]

FULL = "full"
"""Name of the arm that keeps the whole cache."""

EVICTED = "budget < 1 OR budget IS NULL"
"""Runs from whose cache something was evicted; budgets in tokens count as such."""

TIE = 1e-9
"""Scores that differ by no more are equal: the same score computed in two orders differs by rounding."""

PAIRED_COLUMNS = ("score", "success", "n_kept", "kept_fraction", "budget", "prediction")
"""What `paired` takes from the twin, besides the signals of the run."""

DERIVED_COLUMNS = ("failure", "induced_failure", "difference", "harm", "help")
"""What `paired` computes."""

TWIN = "__twin__"


def runs_with_inputs(log: Log, function: str = "runs_with_inputs") -> pl.DataFrame:
    """Return the runs of a log, each with the columns of its input record.

    Parameters
    ----------
    log : Log
        The log.
    function : str
        Name of the calling function, for messages.

    Returns
    -------
    polars.DataFrame
        One row a run, in the order of `log.runs`. Columns of the input record that a run has too get the
        prefix ``input_``; all are null where a run has no input record.

    Raises
    ------
    InputError
        When two runs, or two input records, have the same key.

    Examples
    --------
    >>> from kvstats.log import InputRecord, RunRecord, log_from_records
    >>> key = dict(suite="s", model="m", task="qa", input_id="1")
    >>> log = log_from_records([InputRecord(**key, drop=0.05), RunRecord(**key, arm="full", score=1.0)])
    >>> runs_with_inputs(log).select("arm", "score", "drop").rows()
    [('full', 1.0, 0.05)]
    """
    require_log(function, log)
    refuse_duplicates(function, log.runs, RUN_KEY, "runs")
    refuse_duplicates(function, log.inputs, INPUT_KEY, "input records")
    names = [name for name in log.inputs.columns if name not in INPUT_KEY]
    renamed = {name: f"input_{name}" for name in names if name in log.runs.columns}
    return log.runs.join(
        log.inputs.rename(renamed), on=list(INPUT_KEY), how="left", nulls_equal=True, maintain_order="left"
    )


def unique_inputs(log: Log, function: str) -> pl.DataFrame:
    """Return the input records of a log, or raise `InputError` where two have the same key."""
    require_log(function, log)
    refuse_duplicates(function, log.inputs, INPUT_KEY, "input records")
    return log.inputs


def unique_replays(log: Log, function: str) -> pl.DataFrame:
    """Return the attention cells of a log in their true order, or raise `InputError` where two share a key.

    Cells whose evicted values were permuted are what-ifs: only `permuted_replays` returns them.
    """
    return permuted_replays(log, function).filter(pl.col("permutation").fill_null(0) == 0)


def permuted_replays(log: Log, function: str) -> pl.DataFrame:
    """Return the attention cells of a log under all permutations of their evicted values."""
    require_log(function, log)
    refuse_duplicates(function, log.replays, REPLAY_KEY, "replay cells")
    return log.replays


def arm_rows(rows: pl.DataFrame, arm: str, function: str, argument: str = "arm") -> pl.DataFrame:
    """Return the rows of one arm.

    Parameters
    ----------
    rows : polars.DataFrame
        Runs of any arms.
    arm : str
        Name of the arm. Where no arm is named ``full``, the rows of arm ``plain`` at budget 1 stand for it:
        a cache of which everything is kept is the full cache.
    function, argument : str
        For messages.

    Returns
    -------
    polars.DataFrame
        The rows, named by `arm`.

    Raises
    ------
    InputError
        When there is no such arm.
    """
    known = rows["arm"].unique().to_list()
    if arm in known:
        return rows.filter(pl.col("arm") == arm)
    if arm == FULL:
        stand_in = rows.filter((pl.col("arm") == "plain") & (pl.col("budget") == 1.0))
        if stand_in.height:
            return stand_in.with_columns(pl.lit(FULL).alias("arm"))
        raise InputError.argument(
            function,
            argument,
            arm,
            "is not an arm of the log, nor has it an arm 'plain' with rows at budget 1 to stand for it",
            "record the full cache too, or " + nearest_name(arm, known),
        )
    raise InputError.argument(function, argument, arm, "is not an arm of the log", nearest_name(arm, known))


def paired(log: Log, *, arm: str, baseline: str = FULL, where: str | None = None) -> pl.DataFrame:
    """Return the runs of an arm, each with its twin of the baseline arm.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        Name of the arm.
    baseline : str, default "full"
        Name of the arm of the twins. ``full`` (for which the rows of arm ``plain`` at budget 1 stand where
        no arm is named so) is joined on the input alone; any other arm on the input and both budgets, and
        on the seed too where it has several seeds for one input and budget.
    where : str, optional
        SQL expression over the columns of the result, applied after pairing; ``budget`` is the arm's.

    Returns
    -------
    polars.DataFrame
        The arm's rows with the columns of their input records, and

        - ``baseline_score``, ``baseline_success``, ``baseline_n_kept``, ``baseline_kept_fraction``,
          ``baseline_budget``, ``baseline_prediction`` and ``baseline_`` with each signal of runs: the twin's;
        - ``difference``: score minus baseline score, 0 where they differ by no more than 1e-9;
        - ``harm``, ``help``: whether it is below and above 0;
        - ``failure``: whether the run was no success, null where that is not known;
        - ``induced_failure``: the same where the twin was a success, and null elsewhere.

        Baseline rows without a row of the arm are not part of it.

    Raises
    ------
    InputError
        When an arm is not known, rows are duplicated or have no twin, or a score is null: what is to be
        left out is left out through `where`, such as ``score IS NOT NULL``.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> key = dict(suite="s", model="m", task="qa", input_id="1")
    >>> log = log_from_records([
    ...     RunRecord(**key, arm="full", budget=1.0, score=1.0, success=True),
    ...     RunRecord(**key, arm="snapkv", budget=0.25, score=0.5, success=False),
    ... ])
    >>> paired(log, arm="snapkv").select("budget", "score", "baseline_score", "harm").rows()
    [(0.25, 0.5, 1.0, True)]
    """
    return pairs_of("paired", log, arm, baseline, where)


def pairs_of(function: str, log: Log, arm: str, baseline: str, where: str | None) -> pl.DataFrame:
    """Do what `paired` does, with messages in the name of another function."""
    everything = runs_with_inputs(log, function)
    rows = arm_rows(everything, arm, function)
    twins = arm_rows(log.runs, baseline, function, "baseline")
    on = list(INPUT_KEY)
    if baseline != FULL:
        on += ["budget", "budget_tokens"]
        if twins.select(on).is_duplicated().any():
            on.append("seed")
    refuse_duplicates(function, twins, on, f"rows of baseline {baseline!r}")
    taken = [name for name in (*PAIRED_COLUMNS, *log.run_signals) if name in twins.columns]
    clash = sorted({*DERIVED_COLUMNS, *(f"baseline_{name}" for name in taken)} & set(rows.columns))
    if clash:
        raise InputError.argument(
            function,
            "log",
            clash[0],
            "is a signal with the name of a column to be computed",
            "rename the signal",
        )
    twins = twins.select(
        *on, *(pl.col(name).alias(f"baseline_{name}") for name in taken), pl.lit(True).alias(TWIN)
    )
    joined = rows.join(twins, on=on, how="left", nulls_equal=True, maintain_order="left")
    pairs = compared(joined)
    chosen = truth(pairs, "TRUE" if where is None else where, function)
    # A condition on the twin is null where the twin is missing: such rows are not left out on purpose.
    claimed = pairs.filter(chosen.fill_null(value=True))
    unpaired = claimed.filter(pl.col(TWIN).is_null())
    if unpaired.height:
        raise InputError(
            f"{function}: {unpaired.height} of {claimed.height} rows of arm {arm!r} have no twin of baseline "
            f"{baseline!r}, such as {examples(unpaired, RUN_KEY)}; record the twins, or leave these rows "
            "out through `where`"
        )
    for column in ("score", "baseline_score"):
        require_values(function, claimed, column)
    return pairs.filter(chosen).drop(TWIN)


def compared(joined: pl.DataFrame) -> pl.DataFrame:
    """Add the columns that compare a run with its twin."""
    difference = pl.col("score") - pl.col("baseline_score")
    return joined.with_columns(
        difference=pl.when(difference.abs() <= TIE).then(0.0).otherwise(difference),
        failure=~pl.col("success"),
        induced_failure=pl.when("baseline_success").then(~pl.col("success")),
    ).with_columns(harm=pl.col("difference") < 0, help=pl.col("difference") > 0)


def require_values(function: str, frame: pl.DataFrame, column: str) -> None:
    """Raise `InputError` where a column of the population is unknown or has nulls."""
    if column not in frame.columns:
        raise InputError.argument(
            function, "column", column, "is not known", nearest_name(column, frame.columns)
        )
    missing = frame[column].null_count()
    if missing:
        raise InputError(
            f"{function}: {column} is null in {missing} of {frame.height} rows, such as "
            f"{examples(frame.filter(pl.col(column).is_null()), RUN_KEY)}; nothing leaves a denominator "
            f'silently: exclude them with where="{column} IS NOT NULL" if that is meant'
        )


def refuse_duplicates(function: str, frame: pl.DataFrame, key: Sequence[str], what: str) -> None:
    """Raise `InputError` where rows agree in all columns of a key."""
    repeated = frame.filter(frame.select(key).is_duplicated())
    if repeated.height:
        raise InputError(
            f"{function}: {repeated.height} {what} share their key with another, such as "
            f"{examples(repeated, key)}; remove the duplicates from the log"
        )


def examples(rows: pl.DataFrame, key: Sequence[str]) -> str:
    """Return the keys of up to three rows as text, without the fields that are null."""
    keys = rows.select(name for name in key if name in rows.columns).unique(maintain_order=True).head(3)
    return ", ".join(
        "(" + ", ".join(f"{name}={value}" for name, value in row.items() if value is not None) + ")"
        for row in keys.iter_rows(named=True)
    )
