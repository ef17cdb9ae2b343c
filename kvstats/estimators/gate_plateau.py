"""The plateau of a sweep: the thresholds that do as well as the best, as far as the data can tell."""

from __future__ import annotations

import math
from numbers import Real

import polars as pl

from kvstats.errors import InputError
from kvstats.inference.contrast import difference_sample
from kvstats.inference.result import Result, infer
from kvstats.inference.sample import Sample
from kvstats.tables import TIE
from kvstats.titled_table import TitledTable

__all__ = ["gate_plateau"]


def gate_plateau(sweep: Result, *, tolerance: float | None = None) -> TitledTable:
    """Return the range of thresholds around the best whose delta is as good.

    Without a tolerance, a threshold is as good as the best where the interval of the difference of the two
    deltas, on the same inputs, reaches 0, or where nothing can be told apart, as in one cluster; with one,
    where its delta is at most that much below. The plateau is the run of swept thresholds around the best,
    without a gap, that are as good; the best is the one of the largest delta, among equals the lowest, which
    keeps the least. Thresholds whose gate is open or closed for hardly any input count too: a plateau that
    reaches them says that the gate is not needed. A delta does not pay for the cache that is kept: where
    eviction never helps, no threshold beats the highest. Read the plateau beside the ``kept_fraction`` of the
    sweep.

    Parameters
    ----------
    sweep : Result
        What `gate_sweep` returned, with the quantity ``delta``.
    tolerance : float, optional
        Loss of delta that does not matter, at least 0, in the unit of the score.

    Returns
    -------
    TitledTable
        Its ``frame`` has the by-columns of the sweep but for ``tau`` and ``quantity``, then ``best_tau``,
        ``best_delta``, ``low_tau`` and ``high_tau``, ``swept`` (thresholds swept) and ``as_good`` (those of
        the plateau).
        The best delta was chosen for being the largest, and flatters: judge the gate on other inputs.

    Raises
    ------
    InputError
        When the result is no sweep of ``delta``, or the tolerance is negative.

    Examples
    --------
    >>> from kvstats.estimators.gate_sweep import gate_sweep
    >>> from kvstats.log import InputRecord, RunRecord, log_from_records
    >>> keys = [dict(suite="s", model="m", task="t", input_id=f"{i:02}") for i in range(40)]
    >>> log = log_from_records([
    ...     record for i, key in enumerate(keys) for record in (
    ...         InputRecord(**key, drop=0.005 * i), RunRecord(**key, arm="full", budget=1.0, score=1.0),
    ...         RunRecord(**key, arm="snapkv", budget=0.25, score=float(i > 9)))
    ... ])
    >>> sweep = gate_sweep(log, base="snapkv", taus=[0.02, 0.04, 0.06, 0.15], quantities=["delta"])
    >>> gate_plateau(sweep)
    plateau of a gate's thresholds
    best_tau  best_delta  low_tau  high_tau  swept  as_good
        0.06        0.25     0.04      0.15      4        3
    """
    if sweep.estimator != "gate_sweep" or "delta" not in set(sweep.frame["quantity"]):
        raise InputError.argument(
            "gate_plateau", "sweep", sweep.estimator, "is no sweep of delta", "pass a result of gate_sweep"
        )
    if tolerance is not None and (
        isinstance(tolerance, bool) or not isinstance(tolerance, Real) or not 0 <= tolerance < math.inf
    ):
        raise InputError.argument(
            "gate_plateau", "tolerance", tolerance, "is not a number of at least 0", "pass one such as 0.01"
        )
    names = sweep.by[:-2]
    curves: dict[tuple[object, ...], list[tuple[float, float, Sample]]] = {}
    for row, sample in zip(sweep.frame.iter_rows(named=True), sweep.samples, strict=True):
        if row["quantity"] == "delta" and row["estimate"] is not None:
            curve = curves.setdefault(tuple(row[name] for name in names), [])
            curve.append((row["tau"], row["estimate"], sample))
    rows = []
    for key, curve in curves.items():
        best = max(range(len(curve)), key=lambda i: (round(curve[i][1], 12), -i))
        good = as_good(sweep, curve, best, tolerance)
        low, high = best, best
        while low > 0 and good[low - 1]:
            low -= 1
        while high < len(curve) - 1 and good[high + 1]:
            high += 1
        figures = (curve[best][0], curve[best][1], curve[low][0], curve[high][0], len(curve), high - low + 1)
        rows.append((*key, *figures))
    schema = {name: sweep.frame.schema[name] for name in names}
    schema |= dict.fromkeys(("best_tau", "best_delta", "low_tau", "high_tau"), pl.Float64())
    schema |= dict.fromkeys(("swept", "as_good"), pl.Int64())
    return TitledTable("plateau of a gate's thresholds", pl.DataFrame(rows, schema=schema, orient="row"))


def as_good(
    sweep: Result, curve: list[tuple[float, float, Sample]], best: int, tolerance: float | None
) -> list[bool]:
    """Say for each threshold of a curve whether it is as good as the best."""
    _, top, best_sample = curve[best]
    if tolerance is not None:
        return [top - estimate <= tolerance * (1 + 1e-12) for _, estimate, _ in curve]
    samples = [difference_sample((tau,), best_sample, sample) for tau, _, sample in curve]
    found = infer("gate_plateau", samples, sweep.design, {"tau": pl.Float64()}, null=0.0).frame
    # Two series that differ by a constant differ beyond doubt; without an interval for another reason, such
    # as a single cluster, nothing can be told apart.
    constant = pl.col("status") == "zero variance"
    apart = pl.when(constant).then(pl.col("estimate") > TIE).otherwise(pl.col("low").fill_null(0.0) > 0)
    return found.select(~apart).to_series().to_list()
