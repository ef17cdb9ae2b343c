import numpy as np
import pytest
from scipy import stats

from kvstats.inference import Design
from kvstats.inference import jackknife as module
from kvstats.inference.cell import infer_cell
from kvstats.inference.contrast import difference_sample
from kvstats.inference.jackknife import jackknife_error
from kvstats.inference.p_values import cell_p_value
from kvstats.inference.sample import Sample
from kvstats.statistics import AUC, Mean, RankCorrelation, Ratio

RANDOM = np.random.default_rng(0)
CODES = np.r_[np.arange(8), RANDOM.integers(0, 8, 32)]
WEIGHTS = RANDOM.uniform(0.5, 2, 40)
X, Y = RANDOM.uniform(1, 2, 40), RANDOM.normal(size=40)
STATISTICS = {
    "mean": Mean(Y),
    "ratio": Ratio(Y, X),
    "auc": AUC(Y, X > 1.5),
    "correlation": RankCorrelation(X, Y),
}


def sample_of(statistic, codes=CODES, weights=WEIGHTS, strata=None, kind="mean"):
    clusters = tuple((str(number),) for number in range(int(np.max(codes)) + 1))
    return Sample((), statistic, np.asarray(weights), np.asarray(codes), clusters, kind, strata)


@pytest.mark.parametrize("name", STATISTICS)
def test_the_definition(name):
    statistic = STATISTICS[name]
    left_out = np.array([statistic.value(np.where(c == CODES, 0, WEIGHTS)) for c in range(8)])
    expected = np.sqrt(7 / 8 * np.sum((left_out - left_out.mean()) ** 2))
    assert jackknife_error(sample_of(statistic)) == pytest.approx((expected, 7))


@pytest.mark.parametrize("name", STATISTICS)
def test_the_definition_in_strata(name):
    statistic = STATISTICS[name]
    strata = np.array([0, 0, 0, 1, 1, 1, 1, 1])
    variance = 0.0
    for stratum, size in ((0, 3), (1, 5)):
        values = []
        for c in np.flatnonzero(strata == stratum):
            raised = np.where(strata[CODES] == stratum, size / (size - 1), 1.0)
            values.append(statistic.value(np.where(c == CODES, 0, WEIGHTS * raised)))
        variance += (size - 1) / size * np.sum((np.array(values) - np.mean(values)) ** 2)
    sample = sample_of(statistic, strata=tuple((str(s),) for s in strata))
    assert jackknife_error(sample) == pytest.approx((np.sqrt(variance), 6))


def test_blocks_do_not_matter(monkeypatch):
    whole = jackknife_error(sample_of(STATISTICS["auc"]))
    monkeypatch.setattr(module, "CELLS", 20)
    assert jackknife_error(sample_of(STATISTICS["auc"])) == pytest.approx(whole)


def test_of_independent_rows_it_is_students_interval_and_test():
    y = np.random.default_rng(1).normal(0.3, size=14)
    sample, design = sample_of(Mean(y), np.arange(14), np.ones(14)), Design(interval="jackknife")
    cell = infer_cell("f", sample, design)
    test = stats.ttest_1samp(y, 0)
    assert (cell.low, cell.high) == pytest.approx(tuple(test.confidence_interval()))
    assert (cell.se, cell.df) == pytest.approx((stats.sem(y), 13))
    assert cell_p_value("f", sample, design, cell, 0.0, "two-sided") == pytest.approx(test.pvalue)


@pytest.mark.parametrize("shared", [True, False])
def test_of_two_sides_it_is_the_paired_test_or_welchs(shared):
    a, b = np.random.default_rng(2).normal(size=(2, 9))
    first = sample_of(Mean(a), np.arange(9), np.ones(9))
    second = sample_of(Mean(3 * b), np.arange(9), np.ones(9))
    if not shared:
        second = Sample(
            (), Mean(3 * b), np.ones(9), np.arange(9), tuple((f"x{i}",) for i in range(9)), "mean"
        )
    test = stats.ttest_rel(a, 3 * b) if shared else stats.ttest_ind(a, 3 * b, equal_var=False)
    se, df = jackknife_error(difference_sample((), first, second))
    assert (a.mean() - 3 * b.mean()) / se == pytest.approx(test.statistic)
    assert df == pytest.approx(test.df)


def test_undefined_without_a_cluster():
    correlation = RankCorrelation([1.0, 1.0, 1.0, 2.0], [1.0, 3.0, 2.0, 2.5])
    sample = sample_of(correlation, np.arange(4), np.ones(4), kind="correlation")
    cell = infer_cell("f", sample, Design(interval="jackknife"))
    assert cell.status == "undefined without a cluster"
    assert cell.estimate == pytest.approx(stats.spearmanr([1, 1, 1, 2], [1, 3, 2, 2.5]).statistic)
    assert (cell.low, cell.se) == (None, None)


def test_one_cluster_of_a_side_or_stratum():
    assert np.isnan(jackknife_error(sample_of(Mean([1.0, 2.0]), [0, 0], np.ones(2)))).all()
    strata = (("a",), ("a",), ("b",))
    three = sample_of(Mean([1.0, 2.0, 4.0]), np.arange(3), np.ones(3), strata)
    assert np.isnan(jackknife_error(three)).all()
