"""Block ranking: where the block that holds the answer stands among the evicted ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from kvstats.errors import InputError
from kvstats.estimators.joint_table import estimate_table
from kvstats.estimators.population import By, narrowed, numbers, runs_of
from kvstats.estimators.registry import table_estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.inference.sample import Sample
from kvstats.log.frames import Log
from kvstats.statistics.ratios import Mean
from kvstats.statistics.statistic import FloatArray
from kvstats.tables import require_values

__all__ = ["block_ranking"]

RANK, BLOCKS = "true_block_rank", "candidate_blocks"


COLUMNS: dict[str, pl.DataType] = {"quantity": pl.String()}


@table_estimator(**COLUMNS)
def block_ranking(
    log: Log,
    *,
    arm: str,
    top: Sequence[int] = (1, 3),
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Say how high the block that holds the answer ranks by its contribution to the certificate.

    Formula, over runs of the arm with rank r of B blocks: ``top_k``, the share with r <= k; ``chance_top_k``,
    the mean of min(k / B, 1), what a random order reaches; ``relative_rank``, the mean of (r - 1) / (B - 1),
    0 at the top and 0.5 by chance. What partial retrieval gains is `kvstats.delta` between arms such as
    ``poisson+ranked``, ``poisson+random`` and ``poisson+oracle``.

    Parameters
    ----------
    log : Log
        The log; its runs carry the signals ``true_block_rank`` and ``candidate_blocks``.
    arm : str
        The arm.
    top : sequence of int, default (1, 3)
        The ranks k.
    where : str, optional
        SQL expression over the runs with the columns of their input records.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a Korn-Graubard interval for shares, else a linearised one.

    Returns
    -------
    Result
        By-columns and ``quantity``. ``relative_rank`` is about runs with two blocks or more. Null with status
        ``no rows`` where no run is left.

    Raises
    ------
    InputError
        When runs have no rank, a rank exceeds its number of blocks, `top` holds no positive whole numbers, or
        a name is not known.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", partial retrieval.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm="poisson", budget=0.5, score=1.0,
    ...               signals={"true_block_rank": 1 + i % 4, "candidate_blocks": 8})
    ...     for i in range(40)
    ... ])
    >>> block_ranking(log, arm="poisson").frame.select("quantity", pl.col("estimate").round(4)).rows()
    [('chance_top_1', 0.125), ('chance_top_3', 0.375), ('relative_rank', 0.2143), ('top_1', 0.25),
     ('top_3', 0.75)]
    """
    function = "block_ranking"
    ranks = list(top)
    if not ranks or any(isinstance(k, bool) or not isinstance(k, int) or k < 1 for k in ranks):
        raise InputError.argument(function, "top", top, "holds no positive whole numbers", "pass (1, 3)")
    rows = runs_of(function, log, arm, where, by)
    for column in (RANK, BLOCKS):
        require_values(function, rows, column)
    faulty = rows.filter((pl.col(RANK) < 1) | (pl.col(RANK) > pl.col(BLOCKS)))
    if faulty.height:
        raise InputError.argument(
            function,
            RANK,
            faulty[RANK][0],
            f"is no rank among {faulty[BLOCKS][0]:g} blocks, in {faulty.height} runs",
            "repair the log",
        )

    def build(everything: Sample, part: pl.DataFrame) -> list[Sample]:
        found = rank_samples(everything, numbers(part, RANK), numbers(part, BLOCKS), ranks)
        return [replace(sample, key=(*everything.key, quantity)) for quantity, sample in found]

    return estimate_table(function, function, log, rows, by, design, build, COLUMNS, None)


def rank_samples(
    everything: Sample, rank: FloatArray, blocks: FloatArray, ranks: Sequence[int]
) -> Iterator[tuple[str, Sample]]:
    """Yield each quantity with its sample, on the runs that it is about."""
    every, several = np.ones(rank.size, dtype=np.bool_), blocks > 1
    relative = (rank[several] - 1) / (blocks[several] - 1)
    yield "relative_rank", narrowed(everything, several, Mean(relative), "mean")
    for k in ranks:
        yield f"top_{k}", narrowed(everything, every, Mean(rank <= k), "rate")
        yield f"chance_top_{k}", narrowed(everything, every, Mean(np.minimum(k / blocks, 1)), "mean")
