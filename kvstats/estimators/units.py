"""Layers and heads: which of them foretells a failure, without the winner's curse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from kvstats.errors import InputError
from kvstats.estimators.joint_table import estimate_table
from kvstats.estimators.population import By, numbers
from kvstats.estimators.registry import table_estimator
from kvstats.estimators.signal_pairs import outcome_pairs
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.inference.sample import Sample
from kvstats.log.frames import Log
from kvstats.statistics.auc import AUC
from kvstats.statistics.statistic import FloatArray, IntArray, Statistic
from kvstats.statistics.stratified_auc import StratifiedAUC
from kvstats.tables import require_values

__all__ = ["best_unit_auc", "unit_auc"]

MATRIX = "certificate_per_head"
CHOSEN_HERE = "chosen on the same rows"
"""Status of an area whose unit was chosen by it: it has no honest interval."""


UNIT: dict[str, pl.DataType] = {"layer": pl.Int64(), "head": pl.Int64()}

QUANTITY: dict[str, pl.DataType] = {"quantity": pl.String()}


@table_estimator(**UNIT)
def unit_auc(
    log: Log,
    *,
    arm: str,
    outcome: str = "failure",
    baseline: str = "full",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Area under the curve of the certificate of each layer and head for an outcome.

    Formula: that of `kvstats.auc`, once for each place of ``certificate_per_head``. In [0, 1]; the null
    hypothesis of its tests is 0.5. Some of many areas are high by chance: adjust their p-values, as
    ``kv.adjust(result.p_value()["p_value"])`` does by Benjamini and Hochberg, and judge the best unit by
    `best_unit_auc`.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm, whose runs carry ``certificate_per_head`` of one shape.
    outcome : str, default "failure"
        Boolean column of the pairs; see `auc`.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within, such as the model, whose layers differ.
    design : Design
        How to judge it; as for `auc`.

    Returns
    -------
    Result
        By-columns, ``layer`` and ``head``, both counted from 0 among those that the log holds. Null with
        status ``one class`` where all or none have the outcome; without rows where no pair is left.

    Raises
    ------
    InputError
        When a matrix is null, has null inside or another shape than others of its cell, a run has no twin, an
        outcome is null, or a name is not known.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", layers and heads.
    .. [2] Benjamini and Hochberg, Journal of the Royal Statistical Society B 57, 1995.

    Examples
    --------
    >>> import kvstats as kv
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(success), success=success,
    ...               certificate_per_head=[[i % 7, i * i % 5]] if arm == "poisson" else None)
    ...     for i in range(40)
    ...     for arm, budget, success in (("full", 1.0, True), ("poisson", 0.5, i % 5 > i % 7))
    ... ])
    >>> result = unit_auc(log, arm="poisson")
    >>> result.frame.select("layer", "head", pl.col("estimate").round(2)).rows()
    [(0, 0, 0.87), (0, 1, 0.37)]
    >>> kv.adjust(result.p_value()["p_value"]).round(4).tolist()
    [0.001, 0.1416]
    """
    function = "unit_auc"
    pairs = matrix_pairs(function, log, arm, baseline, outcome, where)

    def build(everything: Sample, part: pl.DataFrame) -> list[Sample]:
        values, label = matrix_of(function, part), numbers(part, outcome)
        return [
            replace(
                everything,
                key=(*everything.key, layer, head),
                statistic=AUC(values[:, layer, head], label),
                kind="auc",
            )
            for layer, head in np.ndindex(values.shape[1:])
        ]

    return estimate_table(function, function, log, pairs, by, design, build, UNIT, 0.5)


@table_estimator(**QUANTITY)
def best_unit_auc(
    log: Log,
    *,
    arm: str,
    outcome: str = "failure",
    baseline: str = "full",
    folds: int = 5,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Area under the curve of the best layer and head, chosen on other inputs than it is judged on.

    Formula: clusters are dealt into folds; for each fold the unit with the largest area on the other folds is
    chosen, and its area is taken on the fold. ``cross_fitted`` is the mean of these areas weighted by their
    numbers of pairs; runs of different folds are never compared. ``apparent`` is the largest area on all
    runs, chosen and judged on the same ones, and so too large: the winner's curse is their difference.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm, whose runs carry ``certificate_per_head`` of one shape.
    outcome : str, default "failure"
        Boolean column of the pairs; see `auc`.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    folds : int, default 5
        Number of folds, at least 2.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within, such as the model.
    design : Design
        How to judge it; as for `auc`. Clusters are dealt by its seed; the interval is that of the units that
        were chosen, and does not count that other data would have chosen others.

    Returns
    -------
    Result
        By-columns and ``quantity``: ``cross_fitted`` with its interval, and ``apparent`` without one, status
        ``chosen on the same rows``. Null with status ``one class`` where no fold has both classes, ``no
        rows`` where no pair is left.

    Raises
    ------
    InputError
        When there are fewer clusters than folds, and as for `unit_auc`.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", layers and heads.
    .. [2] Chernozhukov et al., The Econometrics Journal 21, 2018, definition 3.1, for cross-fitting.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> rng = np.random.default_rng(0)
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(success), success=success,
    ...               certificate_per_head=rng.random((4, 4)).tolist() if arm == "poisson" else None)
    ...     for i in range(60)
    ...     for arm, budget, success in (("full", 1.0, True), ("poisson", 0.5, i % 3 > 0))
    ... ])
    >>> best = best_unit_auc(log, arm="poisson").frame
    >>> best.select("quantity", pl.col("estimate").round(2), "status").rows()
    [('apparent', 0.61, 'chosen on the same rows'), ('cross_fitted', 0.47, 'ok')]
    """
    function = "best_unit_auc"
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
        raise InputError.argument(function, "folds", folds, "is no number of folds", "pass 2 or more")
    pairs = matrix_pairs(function, log, arm, baseline, outcome, where)

    def build(everything: Sample, part: pl.DataFrame) -> list[Sample]:
        values, label = matrix_of(function, part), numbers(part, outcome)
        units = values.reshape(label.size, int(np.prod(values.shape[1:])))
        if not label.size:
            score, fold = np.empty(0), np.empty(0, dtype=np.int64)
            apparent: Statistic = AUC(score, label)
        else:
            fold = dealt(function, everything, folds, design.seed)
            score = held_out(units, label, everything.weights, fold)
            best = best_unit(units, label, everything.weights)
            apparent = AUC(units[:, best], label)
        cross_fitted = StratifiedAUC(score, label, fold)
        areas = {"apparent": apparent, "cross_fitted": cross_fitted}
        return [
            replace(everything, key=(*everything.key, quantity), statistic=area, kind="auc")
            for quantity, area in areas.items()
        ]

    return without_interval(estimate_table(function, function, log, pairs, by, design, build, QUANTITY, 0.5))


def matrix_pairs(
    function: str, log: Log, arm: str, baseline: str, outcome: str, where: str | None
) -> pl.DataFrame:
    """Return the pairs with an outcome and a matrix of certificates."""
    pairs = outcome_pairs(function, log, arm, baseline, outcome, where)
    require_values(function, pairs, MATRIX)
    return pairs


def matrix_of(function: str, part: pl.DataFrame) -> FloatArray:
    """Return the certificates of a part, shape [n, L, H], or raise `InputError` where shapes differ."""
    rows = part[MATRIX].to_list()
    shapes = sorted({tuple(map(len, matrix)) for matrix in rows})
    if len(shapes) > 1 or any(len(set(shape)) > 1 for shape in shapes):
        raise InputError(
            f"{function}: {MATRIX} has {len(shapes)} shapes in one cell, the smallest of {len(shapes[0])} "
            "layers; select one model through `where`, or pass by='model'"
        )
    if any(value is None for matrix in rows for layer in matrix for value in layer):
        raise InputError.argument(
            function,
            "arm",
            MATRIX,
            "has matrices with null inside",
            "record every unit of every run, or leave these runs out through `where`",
        )
    shape = (len(rows), len(shapes[0]), shapes[0][0] if shapes[0] else 0) if rows else (0, 0, 0)
    return np.array(rows, dtype=np.float64).reshape(shape)


def dealt(function: str, sample: Sample, folds: int, seed: int) -> IntArray:
    """Return the fold of each row: clusters are shuffled, then dealt in turn."""
    clusters = np.unique(sample.codes)
    if clusters.size < folds:
        raise InputError.argument(
            function, "folds", folds, f"exceeds the {clusters.size} clusters of a cell", "pass fewer folds"
        )
    fold_of = np.empty(int(clusters.max()) + 1, dtype=np.int64)
    fold_of[np.random.default_rng(seed).permutation(clusters)] = np.arange(clusters.size) % folds
    return np.asarray(fold_of[sample.codes])


def best_unit(units: FloatArray, label: FloatArray, weights: FloatArray) -> int:
    """Return which column has the largest area, the first of equals; 0 where none is defined."""
    areas = [AUC(column, label).value(weights) for column in units.T]
    return int(np.argmax(np.nan_to_num(areas, nan=-1.0)))


def held_out(units: FloatArray, label: FloatArray, weights: FloatArray, fold: IntArray) -> FloatArray:
    """Return for each row the value of the unit that is best on the other folds."""
    score = np.empty(label.size)
    for number in np.unique(fold):
        inside = fold == number
        best = best_unit(units[~inside], label[~inside], weights[~inside])
        score[inside] = units[inside, best]
    return score


def without_interval(result: Result) -> Result:
    """Return a result whose apparent areas have no interval, and say why."""
    chosen = (pl.col("quantity") == "apparent") & pl.col("estimate").is_not_null()
    figures = [pl.when(~chosen).then(name).alias(name) for name in ("low", "high", "se", "df")]
    status = pl.when(chosen).then(pl.lit(CHOSEN_HERE)).otherwise("status").alias("status")
    return replace(result, frame=result.frame.with_columns(*figures, status))
