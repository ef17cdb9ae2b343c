import os
import re
import subprocess
import sys

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.statistics import AUC, Difference, Mean, Ratio
from kvstats.statistics.statistic import Statistic, as_column, as_weights


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            [1.0, np.nan, np.inf],
            "f: y=nan is not finite, at row 1 and 1 more; leave out rows without a value",
        ),
        ([[1.0], [2.0]], "f: y='array of shape (2, 1)' is not a vector; pass one value a row"),
        (["a", "b"], "f: y='list' is no array of numbers: could not convert string to float: 'a'; pass num"),
        ([1.0, None], "f: y=nan is not finite, at row 1"),
        ([1.0, {}], "f: y='list' is no array of numbers: float() argument must be"),
        ([[1.0], [1.0, 2.0]], "f: y='list' is no array of numbers: setting an array element"),
    ],
)
def test_a_column_that_is_no_vector_of_finite_numbers_is_refused(values, message):
    with pytest.raises(InputError, match=re.escape(message)):
        as_column("f", "y", values)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (["a", "b"], "f: weights='list' is no array of numbers: could not convert"),
        ([1.0], "f: weights='array of shape (1,)' does not fit 2 rows; pass one a row"),
        ([1.0, -0.5], "f: weights=-0.5 is not a weight, at row 1; pass finite numbers of at least 0"),
        ([np.nan, 1.0], "f: weights=nan is not a weight, at row 0; pass finite numbers of at least 0"),
        ([1.0, np.inf], "f: weights=inf is not a weight, at row 1; pass finite numbers of at least 0"),
    ],
)
def test_weights_that_are_none_are_refused(weights, message):
    with pytest.raises(InputError, match=re.escape(message)):
        as_weights("f", weights, 2)


def test_no_rows_need_no_weights():
    assert as_weights("f", [], 0).size == 0


@pytest.mark.parametrize("build", [lambda y, label: Mean(y), AUC])
def test_cluster_values_are_values_on_resampled_copies(build):
    random = np.random.default_rng(3)
    y, label, codes = random.normal(size=12), random.integers(0, 2, 12), random.integers(0, 4, 12)
    weights = random.uniform(0.5, 2, 12)
    counts = random.multinomial(4, np.full(4, 0.25), size=6).astype(float)
    found = build(y, label).cluster_values(counts, codes, weights)
    for row, value in zip(counts, found, strict=True):
        rows = np.concatenate([np.flatnonzero(codes == c) for c in range(4) for _ in range(int(row[c]))])
        copy = build(y[rows], label[rows])
        assert value == pytest.approx(copy.value(weights[rows]), nan_ok=True)


def test_the_default_and_the_fast_cluster_values_agree():
    random = np.random.default_rng(4)
    mean, codes = Mean(random.normal(size=10)), np.arange(10) // 2
    counts = np.vstack([np.zeros(5), random.integers(0, 3, size=(7, 5))])
    weights = random.uniform(0, 1, 10)
    slow = Statistic.cluster_values(mean, counts, codes, weights)
    np.testing.assert_allclose(mean.cluster_values(counts, codes, weights), slow)
    assert np.isnan(slow[0])


def statistics_of(n):
    random = np.random.default_rng(5)
    y, x, label = random.normal(size=n) + 50, random.uniform(1, 2, n), np.arange(n) % 2
    return [Mean(y), Ratio(y, x), AUC(y, label), Difference(Mean(y[: n // 2]), Ratio(y, x))]


@pytest.mark.parametrize("index", range(4))
def test_values_of_a_matrix_of_weights_are_the_values_row_by_row(index):
    statistic = statistics_of(30)[index]
    random = np.random.default_rng(6)
    matrix = random.integers(0, 3, size=(20, statistic.n)) * random.uniform(size=(20, statistic.n))
    matrix[3] = 0
    found = statistic.values(matrix)
    expected = [statistic.value(row) for row in matrix]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.isnan(found).sum() == 1
    assert statistic.values(np.empty((0, statistic.n))).shape == (0,)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones(30), "weights='array of shape (30,)' does not fit 30 rows; pass a matrix with one column"),
        (np.ones((2, 29)), "weights='array of shape (2, 29)' does not fit 30 rows"),
        (np.diag(np.full(30, -1.0)), "weights=-1.0 is not a weight, at row 0 of vector 0; pass finite"),
        (np.full((1, 30), np.nan), "weights=nan is not a weight, at row 0 of vector 0"),
    ],
)
@pytest.mark.parametrize("index", range(3))
def test_matrices_that_are_no_weights_are_refused(index, matrix, message):
    with pytest.raises(InputError, match=re.escape(message)):
        statistics_of(30)[index].values(matrix)


VALUES_OF_LONG_COLUMNS = """
import numpy as np
from kvstats.statistics import AUC, Mean, Quantile, RankCorrelation, RiskCoverageArea, StratifiedAUC
from kvstats.statistics import TopShareMean

random = np.random.default_rng(0)
n = 50_000
x, y, w = random.normal(size=n), random.normal(size=n), random.uniform(0.5, 2, size=n)
label, stratum, codes = y > 0.3, np.arange(n) % 7, np.arange(n) // 5
counts = random.multinomial(n // 5, np.full(n // 5, 5 / n), size=3).astype(float)
for statistic in (
    AUC(x, label), StratifiedAUC(x, label, stratum), Mean(y), TopShareMean(x, y, 0 * y, 0.25),
    RankCorrelation(x, y), RiskCoverageArea(x, label), Quantile(x),
):
    influence = statistic.influence(w)
    resampled = statistic.cluster_values(counts, codes, w)
    print(statistic.value(w).hex(), influence.tobytes().hex()[-64:], resampled.tobytes().hex())
"""


def test_threads_change_no_figure():
    shown = [
        subprocess.run(
            [sys.executable, "-c", VALUES_OF_LONG_COLUMNS],
            env={**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for threads in ("1", "4")
    ]
    assert shown[0].count("\n") == 7
    assert shown[0] == shown[1]
