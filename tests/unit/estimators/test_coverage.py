import re

import numpy as np
import polars as pl
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.estimators import certificate_coverage, rank_correlation
from kvstats.estimators.replay import looseness
from kvstats.log import Log

CELLS = [(0.3, 0.2), (0.2, 0.2), (0.1, 0.4), (0.5, 0.1), (0.25, 0.3), (0.6, 0.5)]


def only(result):
    assert result.frame.height == 1
    return result.frame.row(0, named=True)


def test_coverage_is_the_share_of_errors_within_the_radius(make_log):
    row = only(certificate_coverage(make_log({}, cells=CELLS)))
    assert (row["estimate"], row["n"], row["clusters"]) == (4 / 6, 6, 6)
    assert row["low"] < 0.3


def test_cells_of_an_input_are_one_cluster(make_log):
    log = make_log({}, cells=CELLS)
    more = Log(replays=pl.concat([log.replays.with_columns(layer=pl.lit(i, pl.Int64)) for i in range(9)]))
    once, often = (only(certificate_coverage(one)) for one in (log, more))
    assert (often["n"], often["clusters"]) == (54, 6)
    assert often["se"] == pytest.approx(once["se"])
    ratio = (stats.t.ppf(0.975, 53) / stats.t.ppf(0.975, 5)) ** 2
    size = (2 / 9) / once["se"] ** 2 * ratio
    assert often["low"] == pytest.approx(stats.beta.ppf(0.025, size * 2 / 3, size / 3 + 1))


@pytest.mark.parametrize("column", ["radius", "true_error"])
def test_undefined_cells_are_refused_unless_left_out(make_log, column):
    cell = (None, 0.1) if column == "radius" else (0.1, None)
    log = make_log({}, cells=[*CELLS, cell, cell])
    message = f"certificate_coverage: {column} is null in 2 of 8 rows, such as (suite=s, model=m, task=qa,"
    with pytest.raises(InputError, match=re.escape(message)):
        certificate_coverage(log)
    with pytest.raises(InputError, match=f"rank_correlation: {column} is null in 2 of 8 rows"):
        rank_correlation(log)
    assert only(certificate_coverage(log, where=f"{column} IS NOT NULL"))["n"] == 6


@pytest.mark.parametrize(("column", "value"), [("delta", 0.05), ("arm", "other"), ("design", "uniform")])
def test_neither_levels_nor_arms_nor_designs_are_pooled(make_log, column, value):
    log = make_log({}, cells=CELLS)
    other = log.replays.with_columns(pl.lit(value).alias(column))
    mixed = Log(replays=pl.concat([log.replays, other]))
    for pooling in (certificate_coverage, rank_correlation, looseness):
        message = (
            f"{pooling.__name__}: the rows differ in {column} \\(.*\\), and pooling them estimates nothing"
        )
        with pytest.raises(InputError, match=message):
            pooling(mixed)
        assert pooling(mixed, by=column).frame.height == 2


def test_rank_correlation_of_radius_and_error(make_log):
    row = only(rank_correlation(make_log({}, cells=CELLS)))
    radius, error = np.array(CELLS).T
    assert row["estimate"] == pytest.approx(stats.spearmanr(radius, error).statistic)


def test_rank_correlation_of_runs_and_inputs(make_log):
    scores, drop = [0, 0.5, 0.25, 1, 0.75], [0.01, 0.03, 0.02, 0.04, 0.05]
    log = make_log({"full": {1.0: [1] * 5}, "a": {0.5: scores}}, drop=drop)
    with pytest.raises(InputError, match=r"rank_correlation: the rows differ in arm \(a, full\)"):
        rank_correlation(log, x="drop", y="score", table="runs")
    result = rank_correlation(log, x="drop", y="score", table="runs", where="arm = 'a'")
    assert only(result)["estimate"] == pytest.approx(stats.spearmanr(drop, scores).statistic)
    assert result.null == 0


def test_a_constant_column_has_no_rank_correlation(make_log):
    log = make_log({"a": {0.5: [1, 1, 1]}}, drop=[0.1, 0.2, 0.3])
    row = only(rank_correlation(log, x="drop", y="score", table="runs"))
    assert (row["estimate"], row["status"]) == (None, "undefined")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"table": "run"}, "rank_correlation: table='run' is not known; did you mean 'runs'?"),
        ({"x": "radiuss"}, "rank_correlation: x='radiuss' is not a numeric column; did you mean 'radius'?"),
        ({"y": "task"}, "rank_correlation: y='task' is not a numeric column; known: budget, delta"),
    ],
)
def test_unknown_names_are_refused(make_log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        rank_correlation(make_log({}, cells=CELLS), **arguments)
