import numpy as np
import pytest

from kvstats.inference.contrast import difference_sample
from kvstats.inference.linear import linear_error
from kvstats.inference.replicate_error import ReplicateErrors
from kvstats.inference.sample import Sample
from kvstats.statistics import AUC, Difference, Mean, Ratio

RANDOM = np.random.default_rng(0)
ROWS, CLUSTERS = 60, 9
CODES = np.r_[np.arange(CLUSTERS), RANDOM.integers(0, CLUSTERS, ROWS - CLUSTERS)]
WEIGHTS = RANDOM.uniform(0.5, 2, ROWS)
Y, BOTTOM = RANDOM.normal(size=ROWS), RANDOM.uniform(1, 2, ROWS)
LABEL = RANDOM.integers(0, 2, ROWS)
NAMES = tuple((f"{number}",) for number in range(CLUSTERS))
STRATA = tuple((f"{number % 2}",) for number in range(CLUSTERS))


def sample_of(build, rows=slice(None), strata=None):
    codes = CODES[rows]
    present = np.unique(codes)
    return Sample(
        (),
        build(rows),
        WEIGHTS[rows],
        np.searchsorted(present, codes),
        tuple(NAMES[c] for c in present),
        "mean",
        None if strata is None else tuple(strata[c] for c in present),
    )


def mean(rows):
    return Mean(Y[rows] + 100)


def ratio(rows):
    return Ratio(Y[rows], BOTTOM[rows])


def auc(rows):
    return AUC(Y[rows], LABEL[rows])


def contrast(build, strata=None):
    first, second = np.flatnonzero(CODES < 7), np.flatnonzero(CODES > 2)
    return difference_sample((), sample_of(build, first, strata), sample_of(build, second, strata))


def resampled(sample, counts):
    """Return a copy of the sample in which each drawn cluster is a cluster of its own."""
    drawn = [c for c, count in enumerate(counts) for _ in range(int(count))]

    def copied(statistic, begin):
        if isinstance(statistic, Difference):
            first, first_rows, first_codes = copied(statistic.first, begin)
            second, rows, codes = copied(statistic.second, begin + statistic.first.n)
            return Difference(first, second), first_rows + rows, first_codes + codes
        own = range(begin, begin + statistic.n)
        pairs = [(row, new) for new, c in enumerate(drawn) for row in own if sample.codes[row] == c]
        rows, codes = [row for row, _ in pairs], [new for _, new in pairs]
        local = np.array(rows, dtype=int) - begin
        if isinstance(statistic, Ratio):
            return Ratio(statistic.numerator[local], statistic.denominator[local]), rows, codes
        return AUC(Y[local], LABEL[local]), rows, codes

    statistic, rows, codes = copied(sample.statistic, 0)
    strata = None if sample.strata is None else tuple(sample.strata[c] for c in drawn)
    names = tuple((f"{new:03}",) for new in range(len(drawn)))
    listed = sample.drawn_from[:, drawn]
    return Sample((), statistic, sample.weights[rows], np.array(codes), names, sample.kind, strata, listed)


def domain(build):
    """Return a sample of the rows of some of the clusters, drawn from all."""
    rows = np.flatnonzero(CODES < 7)
    drawn = np.ones((1, CLUSTERS), dtype=bool)
    return Sample((), build(rows), WEIGHTS[rows], CODES[rows], NAMES, "mean", STRATA, drawn)


@pytest.mark.parametrize("strata", [None, STRATA])
@pytest.mark.parametrize(
    "build",
    [
        lambda strata: sample_of(mean, strata=strata),
        lambda strata: sample_of(ratio, strata=strata),
        lambda strata: sample_of(auc, strata=strata),
        lambda strata: contrast(mean, strata),
        lambda strata: contrast(ratio, strata),
        lambda strata: domain(ratio),
    ],
    ids=["mean", "ratio", "auc", "difference of means", "difference of ratios", "domain"],
)
def test_it_is_the_standard_error_of_a_resampled_copy(build, strata):
    sample = build(strata)
    random = np.random.default_rng(1)
    counts = np.zeros((12, CLUSTERS))
    for row in counts:
        for stratum in np.unique(sample.stratum_codes):
            members = np.flatnonzero(sample.stratum_codes == stratum)
            np.add.at(row, random.choice(members, members.size), 1)
    found = ReplicateErrors(sample)(counts)
    expected = [linear_error(resampled(sample, row))[0] for row in counts]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert np.isfinite(found).sum() >= 8


def test_a_resample_of_one_cluster_only_has_no_error():
    sample = sample_of(mean)
    counts = np.zeros((1, CLUSTERS))
    counts[0, 3] = CLUSTERS
    assert ReplicateErrors(sample)(counts).tolist() == [0.0]
    one_side = contrast(mean)
    assert np.isnan(ReplicateErrors(one_side)(counts * np.eye(CLUSTERS)[0])).all()
