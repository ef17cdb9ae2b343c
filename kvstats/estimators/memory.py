"""Memory: how far an arm compresses the cache, alone and in batches that are provisioned together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.estimators.per_input import Builder, estimate_each, others_than, per_input
from kvstats.estimators.population import By, estimate, numbers, runs_of, with_kept_fraction
from kvstats.estimators.registry import estimator, table_estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.inference.sample import Kind
from kvstats.log.frames import Log
from kvstats.statistics.batch import BatchKept
from kvstats.statistics.ratios import Ratio
from kvstats.statistics.statistic import Statistic

__all__ = ["batch_inputs", "batch_kept_fraction", "compression"]

DRAWS = ("independent", "without_replacement")


@estimator
def compression(
    log: Log,
    *,
    arm: str | None = None,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """How many times smaller the cache of an arm is: 1 over the mean kept fraction.

    Formula: ``sum(w) / sum(w * kept)`` over runs, where kept is ``kept_fraction`` as measured or, where that
    is null, ``n_kept / n_prompt``. This is how many caches fit where one whole cache did, when memory is
    shared out as it is used; see `batch_kept_fraction` for when it is not.

    Parameters
    ----------
    log : Log
        The log.
    arm : str, optional
        The arm. Needed where several arms are left and `by` does not keep them apart.
    where : str, optional
        SQL expression over the runs with the columns of their input records.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a linearised interval on the log scale.

    Returns
    -------
    Result
        At least 1 where no run kept more than everything. Null with status ``undefined`` where nothing was
        kept, ``no rows`` where no run is left; without interval where there is one cluster or all runs kept
        the same fraction (``zero variance``).

    Raises
    ------
    InputError
        When arms would be pooled, a run tells neither figure, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 22.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm="gate", budget=0.25, score=1.0,
    ...               n_prompt=100, n_kept=100 if i < 5 else 25)
    ...     for i in range(20)
    ... ])
    >>> compression(log)
    compression, 95% interval
    estimate  low  high    se  df   n  clusters  status
         2.3  1.6   3.3  0.39  19  20        20  ok
    """
    rows = with_kept_fraction("compression", runs_of("compression", log, arm, where, by))

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        kept = numbers(part, "kept_fraction")
        return Ratio(kept**0, kept), "ratio"

    return estimate("compression", log, rows, by, design, build)


@table_estimator(batch=pl.Int64())
def batch_kept_fraction(
    log: Log,
    *,
    arm: str,
    batch: int | Sequence[int] = (1, 4, 8, 16, 32),
    draws: str = "independent",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Mean kept fraction of a batch that is compressed only when the gates of all its inputs are open.

    Formula: ``1 - P_B * (1 - k)``, k the mean over inputs with an open gate of the fraction that they keep,
    and P_B the probability that B gates are open: ``p ** B`` with p the share of open gates; or without
    replacement ``C(m, B) / C(n, B)`` for m open gates of n inputs. One divided by it is the compression of a
    static batch, whose memory is set aside for the worst of its inputs.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The gated arm, which has ``gate_open``.
    batch : int or sequence of int
        Sizes B of the batch, at least 1.
    draws : {"independent", "without_replacement"}
        ``independent`` batches come from the population that the inputs stand for: exact when the inputs of
        a batch are exchangeable. ``without_replacement`` is for batches of the very inputs of the log, and
        the unbiased estimate of the former. Where the inputs of a batch are alike, such as of one task each,
        see `kvstats.resampled_batches`.
    where : str, optional
        SQL expression over the runs with the columns of their input records.
    by : str or sequence of str, optional
        Columns to estimate within. Budgets that `by` does not keep apart are averaged within inputs.
    design : Design
        How to judge it; ``auto`` takes a percentile bootstrap, which follows ``p ** B`` where it is far from
        straight, and does not exceed 1.

    Returns
    -------
    Result
        One row a size, in the by-column ``batch``; ``n`` counts inputs. 1 with status ``zero variance``
        where a batch is never compressed. Null with status ``undefined`` where fewer inputs are left than
        are drawn without replacement, ``no rows`` where none is left.

    Raises
    ------
    InputError
        When a size is out of its range or named twice, an arm has no gate, the gate or a column of the
        design differs between runs of one input, inputs weigh differently and are drawn without replacement,
        a run does not tell what it kept, or a name is not known.

    Notes
    -----
    Simulated coverage of 95% percentile intervals is within simulation error of 0.95 (400 samples of 100
    independent inputs, of which 75% are open) for independent batches of 1, 8 and 32 and for 4 without
    replacement. Without replacement the estimate is unbiased and its interval holds where B squared is well
    below the number of inputs; for 32 of 100 it holds the truth in 0.84 of samples.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 23.

    Examples
    --------
    >>> import kvstats as kv
    >>> from kvstats.log import InputRecord, RunRecord, log_from_records
    >>> records = []
    >>> for i in range(20):
    ...     key = dict(suite="s", model="m", task="qa", input_id=str(i))
    ...     records.append(InputRecord(**key, drop=0.05 if i < 5 else 0.1))
    ...     for arm, kept in (("full", 1.0), ("snapkv", 0.25)):
    ...         records.append(RunRecord(**key, arm=arm, budget=kept, score=1.0, kept_fraction=kept))
    >>> log = kv.gate(log_from_records(records), tau=0.07, base="snapkv")
    >>> batch_kept_fraction(log, arm="gate", batch=[1, 2]).frame.select("batch", "estimate").rows()
    [(1, 0.4375), (2, 0.578125)]
    """
    function = "batch_kept_fraction"
    sizes = batch_sizes(function, batch)
    if draws not in DRAWS:
        raise InputError.argument(function, "draws", draws, "is not known", nearest_name(str(draws), DRAWS))
    replacement = draws == "independent"
    if design.weight is not None and not replacement:
        raise InputError.argument(
            function,
            "design.weight",
            design.weight,
            "makes inputs count unequally, and a batch without replacement has each at most once",
            "use draws='independent', or no weight",
        )
    if design.interval == "auto":
        design = replace(design, interval="percentile")
    names = others_than(function, log, by, "batch")
    inputs = batch_inputs(function, log, arm, where, names, design)

    def of_size(size: int) -> Builder:
        return lambda part: (
            BatchKept(numbers(part, "kept"), numbers(part, "gate_open"), size, replacement=replacement),
            "mean",
        )

    builders = {size: of_size(size) for size in sizes}
    return estimate_each(function, log, inputs, names, design, builders, ("batch", pl.Int64()))


def batch_inputs(
    function: str, log: Log, arm: str, where: str | None, by: By, design: Design
) -> pl.DataFrame:
    """Return one row an input: whether its gate is open, and the mean fraction that it keeps."""
    rows = with_kept_fraction(function, runs_of(function, log, arm, where, by))
    if "gate_open" not in rows.columns or rows["gate_open"].null_count():
        raise InputError.argument(
            function,
            "arm",
            arm,
            "has runs without gate_open",
            "name the arm of a gate, such as of kvstats.gate",
        )
    columns = {"kept": pl.col("kept_fraction").mean()}
    return per_input(function, rows, by, design, columns, also={"gate_open": "arm"})


def batch_sizes(function: str, batch: int | Sequence[int]) -> list[int]:
    """Return sizes of batches, or raise `InputError` where one is out of range or named twice."""
    sizes = [batch] if isinstance(batch, int) else list(batch)
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError.argument(
                function, "batch", size, "is not a whole number of at least 1", "pass sizes such as [1, 4, 8]"
            )
    if not sizes or len(set(sizes)) < len(sizes):
        raise InputError.argument(
            function, "batch", batch, "is empty or names a size twice", "name each size once"
        )
    return sizes
