"""Static batches, drawn from the inputs of a log."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.estimators.memory import batch_inputs, batch_sizes
from kvstats.inference.design import DEFAULT_DESIGN
from kvstats.log.frames import Log
from kvstats.statistics.statistic import FloatArray
from kvstats.titled_table import TitledTable

__all__ = ["resampled_batches"]

CELLS = 2_000_000
"""Random numbers that are held at once."""


def resampled_batches(
    log: Log,
    *,
    arm: str,
    batch: int | Sequence[int] = (1, 4, 8, 16, 32),
    within: str | None = None,
    where: str | None = None,
    n_batches: int = 10_000,
    seed: int = 0,
) -> TitledTable:
    """Draw batches from the inputs of a log, and see what they keep when all gates must be open.

    It answers what no formula does: batches whose inputs are alike. Where any input may be beside any other,
    `kvstats.batch_kept_fraction` is exact, and has an interval.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The gated arm, which has ``gate_open``.
    batch : int or sequence of int
        Sizes of the batch, at least 1.
    within : str, optional
        Column of the runs, such as ``task``: all inputs of a batch have the same value, which is that of an
        input drawn at random. Default: batches of any inputs.
    where : str, optional
        SQL expression over the runs with the columns of their input records.
    n_batches : int, default 10000
        Batches of each size, at least 2.
    seed : int, default 0
        Seed, at least 0.

    Returns
    -------
    TitledTable
        Its ``frame`` has one row a size: ``batch``, ``all_open`` (share of batches that were compressed),
        ``kept_fraction`` (its mean over batches, 1 where not compressed) and ``simulation_error``, the
        standard error of the latter due to the number of batches alone. Inputs are drawn without replacement.

    Raises
    ------
    InputError
        When a batch is larger than what it is drawn from, a number is out of its range, the arm has no gate,
        or a name is not known.

    Examples
    --------
    >>> import kvstats as kv
    >>> from kvstats.log import InputRecord, RunRecord, log_from_records
    >>> records = []
    >>> for i in range(20):
    ...     key = dict(suite="s", model="m", task="keys" if i < 5 else "qa", input_id=str(i))
    ...     records.append(InputRecord(**key, drop=0.05 if i < 5 else 0.1))
    ...     for name, kept in (("full", 1.0), ("snapkv", 0.25)):
    ...         records.append(RunRecord(**key, arm=name, budget=kept, score=1.0, kept_fraction=kept))
    >>> log = kv.gate(log_from_records(records), tau=0.07, base="snapkv")
    >>> mixed = resampled_batches(log, arm="gate", batch=4).frame
    >>> alike = resampled_batches(log, arm="gate", batch=4, within="task").frame
    >>> mixed["kept_fraction"].round(2).item(), alike["kept_fraction"].round(2).item()
    (0.79, 0.44)
    """
    function = "resampled_batches"
    sizes = batch_sizes(function, batch)
    for name, number, least in (("n_batches", n_batches, 2), ("seed", seed, 0)):
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise InputError.argument(
                function, name, number, f"is not a whole number of at least {least}", "pass another"
            )
    columns = [*log.runs.columns, *log.inputs.columns]
    if within is not None and within not in columns:
        raise InputError.argument(
            function, "within", within, "is not a column", nearest_name(str(within), columns)
        )
    inputs = batch_inputs(function, log, arm, where, within, DEFAULT_DESIGN).sort(pl.all())
    if not inputs.height:
        raise InputError.argument(function, "where", where, "leaves no input", "select some")
    groups = [inputs] if within is None else inputs.partition_by(within, maintain_order=True)
    smallest = min(groups, key=lambda group: group.height)
    if max(sizes) > smallest.height:
        place = "" if within is None else f" of {within} {smallest[within][0]!r}"
        raise InputError.argument(
            function,
            "batch",
            max(sizes),
            f"is larger than the {smallest.height} inputs{place}",
            "draw smaller batches, or leave that out through `where`",
        )
    generator = np.random.default_rng(seed)
    shares = np.array([group.height for group in groups]) / inputs.height
    rows = []
    for size in sizes:
        counts = generator.multinomial(n_batches, shares)
        kept = np.concatenate(
            [
                kept_by_batches(generator, group, int(count), size)
                for group, count in zip(groups, counts, strict=True)
            ]
        )
        all_open = ~np.isnan(kept)
        fraction = np.where(all_open, kept, 1.0)
        error = float(fraction.std(ddof=1) / np.sqrt(n_batches))
        rows.append((size, float(all_open.mean()), float(fraction.mean()), error))
    schema = {
        "batch": pl.Int64(),
        "all_open": pl.Float64(),
        "kept_fraction": pl.Float64(),
        "simulation_error": pl.Float64(),
    }
    title = f"{n_batches:,} batches drawn for each size" + (
        "" if within is None else f", each of one {within}"
    )
    return TitledTable(title, pl.DataFrame(rows, schema=schema, orient="row"))


def kept_by_batches(
    generator: np.random.Generator, inputs: pl.DataFrame, n_batches: int, size: int
) -> FloatArray:
    """Return what each of some batches keeps, NaN where a gate is closed, shape [n_batches]."""
    kept = np.where(inputs["gate_open"].to_numpy(), inputs["kept"].to_numpy(), np.nan)
    step = max(1, CELLS // kept.size)
    means = []
    for begin in range(0, n_batches, step):
        keys = generator.random((min(step, n_batches - begin), kept.size))
        # The inputs with the smallest of independent random keys are a draw without replacement.
        drawn = np.argpartition(keys, size - 1, axis=1)[:, :size]
        means.append(kept[drawn].mean(axis=1))
    return np.concatenate(means) if means else np.empty(0)
