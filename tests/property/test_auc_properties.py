"""What statistics of discrimination must satisfy for any small sample, with ties and weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvstats.statistics import (
    AUC,
    AUCDifference,
    OperatingThreshold,
    PartialAUC,
    RiskAtCoverage,
    RiskCoverageArea,
    StratifiedAUC,
    TruePositiveRate,
    delong,
    obuchowski,
)

KINDS = {
    "stratified": StratifiedAUC,
    "difference": lambda score, label, other: AUCDifference(score, other, label),
    "stratified difference": lambda score, label, other: AUCDifference(score, -score, label, other),
    "partial": lambda score, label, other: PartialAUC(score, label, 0.1, 0.45),
    "true positives": lambda score, label, other: TruePositiveRate(score, label, 0.37),
    "threshold": lambda score, label, other: OperatingThreshold(score, label, 0.37),
    "risk area": lambda score, label, other: RiskCoverageArea(score, label),
    "risk": lambda score, label, other: RiskAtCoverage(score, label, 0.63),
}
SMOOTHED = ("true positives", "threshold", "risk")
"""Kinds whose influence is that of a smoothed curve."""


@st.composite
def columns(draw, least=4, levels=5):
    """A score of few levels, classes, another column, and positive weights."""
    size = draw(st.integers(least, 14))
    level = st.integers(0, levels - 1).map(float)
    score, other = (np.array(draw(st.lists(level, min_size=size, max_size=size))) for _ in range(2))
    label = np.array(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
    # Sixteenths add up without rounding, so that shares meet a rate or do not, in any order.
    weights = np.array(draw(st.lists(st.integers(2, 80), min_size=size, max_size=size))) / 16
    return score, label, other, weights


def close(first, second):
    assert first == pytest.approx(second, nan_ok=True, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@given(columns(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(kind, sample, random):
    *rows, weights = sample
    order = np.array(random.sample(range(weights.size), weights.size))
    one, other = KINDS[kind](*rows), KINDS[kind](*(column[order] for column in rows))
    close(one.value(weights), other.value(weights[order]))
    close(one.influence(weights)[order], other.influence(weights[order]))


@pytest.mark.parametrize("kind", KINDS)
@given(columns(), st.data())
def test_a_row_twice_is_a_row_of_twice_the_weight(kind, sample, data):
    *rows, weights = sample
    row = data.draw(st.integers(0, weights.size - 1))
    heavier = weights.copy()
    heavier[row] *= 2
    one = KINDS[kind](*rows).value(heavier)
    rows = [np.append(column, column[row]) for column in rows]
    close(KINDS[kind](*rows).value(np.append(weights, weights[row])), one)


@pytest.mark.parametrize("kind", KINDS)
@given(columns(), st.data())
def test_a_row_of_weight_zero_is_absent(kind, sample, data):
    *rows, weights = sample
    row = data.draw(st.integers(0, weights.size - 1))
    lighter = weights.copy()
    lighter[row] = 0
    one = KINDS[kind](*rows)
    rest = KINDS[kind](*(np.delete(column, row) for column in rows))
    close(one.value(lighter), rest.value(np.delete(weights, row)))
    close(np.delete(one.influence(lighter), row), rest.influence(np.delete(weights, row)))


@pytest.mark.parametrize("kind", KINDS)
@given(columns(), st.sampled_from([0.25, 8.0, 1024.0]))
def test_the_scale_of_the_weights_does_not_matter(kind, sample, scale):
    *rows, weights = sample
    statistic = KINDS[kind](*rows)
    close(statistic.value(scale * weights), statistic.value(weights))
    close(scale * statistic.influence(scale * weights), statistic.influence(weights))
    close(weights @ statistic.influence(weights), np.nan if np.isnan(statistic.value(weights)) else 0)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in (*SMOOTHED, "partial")])
@given(columns())
def test_the_influence_is_the_derivative(kind, sample):
    *rows, weights = sample
    statistic, step = KINDS[kind](*rows), 1e-5
    if np.isnan(statistic.value(weights)):
        assert np.isnan(statistic.influence(weights)).all()
        return
    numerical = [
        (statistic.value(weights + step * unit) - statistic.value(weights - step * unit)) / (2 * step)
        for unit in np.eye(statistic.n)
    ]
    np.testing.assert_allclose(statistic.influence(weights), numerical, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@given(columns(), st.data())
def test_resampled_values_are_values_under_multiplied_weights(kind, sample, data):
    *rows, weights = sample
    statistic = KINDS[kind](*rows)
    codes = np.array(data.draw(st.lists(st.integers(0, 2), min_size=statistic.n, max_size=statistic.n)))
    counts = np.array(data.draw(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=4)))
    for base in (weights, np.ones(statistic.n), np.round(weights)):
        found = statistic.cluster_values(counts.astype(float), codes, base)
        close(found, [statistic.value(base * row[codes]) for row in counts])


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind not in ("threshold", "stratified difference")]
)
@given(columns())
def test_only_the_ranks_of_the_score_matter(kind, sample):
    score, label, other, weights = sample
    one, stretched = KINDS[kind](score, label, other), KINDS[kind](np.exp(score) - 3, label, other)
    close(one.value(weights), stretched.value(weights))
    close(one.influence(weights), stretched.influence(weights))


@given(columns(), st.integers(1, 4))
def test_the_areas_of_a_signal_and_its_negative_make_one(sample, strata):
    score, label, other, weights = sample
    for stratum in (np.zeros(score.size), other % strata):
        forwards, backwards = StratifiedAUC(score, label, stratum), StratifiedAUC(-score, label, stratum)
        value = forwards.value(weights)
        close(value + backwards.value(weights), np.nan if np.isnan(value) else 1.0)
        close(StratifiedAUC(score, 1 - label, stratum).value(weights), backwards.value(weights))


@given(columns())
def test_one_stratum_is_the_pooled_area(sample):
    score, label, _, weights = sample
    pooled, one = AUC(score, label), StratifiedAUC(score, label, np.full(score.size, "s"))
    close(one.value(weights), pooled.value(weights))
    close(one.influence(weights), pooled.influence(weights))


@given(columns())
def test_the_names_of_strata_and_clusters_do_not_matter(sample):
    score, label, other, weights = sample
    names = np.array(["d", "a", "e", "c", "b"])[other.astype(int)]
    close(
        StratifiedAUC(score, label, other).value(weights), StratifiedAUC(score, label, names).value(weights)
    )
    close(obuchowski(score, label, other).covariance, obuchowski(score, label, names).covariance)


@given(columns())
def test_obuchowskis_variance_is_no_smaller_than_the_linearised_one(sample):
    score, label, cluster, _ = sample
    names, codes = np.unique(cluster, return_inverse=True)
    found = obuchowski([score, cluster], label, cluster).covariance
    if np.isnan(found).any():
        return
    ones = np.ones(score.size)
    totals = np.array([np.bincount(codes, AUC(column, label).influence(ones)) for column in (score, cluster)])
    extra = found - totals @ totals.T * names.size / (names.size - 1)
    assert np.linalg.eigvalsh(extra).min() >= -1e-12


@given(columns())
def test_delongs_covariance_is_symmetric_and_positive(sample):
    score, label, other, _ = sample
    found = delong([score, other, score + other], label).covariance
    close(found, found.T)
    assert np.isnan(found).all() or np.linalg.eigvalsh(found).min() >= -1e-12


@given(columns())
def test_more_false_alarms_find_no_less(sample):
    score, label, _, weights = sample
    found = [TruePositiveRate(score, label, rate).value(weights) for rate in (0.1, 0.2, 0.5, 0.9)]
    assert np.isnan(found).all() or (np.diff(found) >= -1e-12).all()
    thresholds = [OperatingThreshold(score, label, rate).value(weights) for rate in (0.1, 0.2, 0.5, 0.9)]
    defined = [t for t in thresholds if not np.isnan(t)]
    assert thresholds[len(thresholds) - len(defined) :] == defined
    assert (np.diff(defined) <= 0).all()


@given(columns())
def test_the_risk_area_is_bounded_by_the_losses_and_least_for_the_oracle(sample):
    score, label, _, weights = sample
    area = RiskCoverageArea(score, label).value(weights)
    best, worst = (RiskCoverageArea(sign * label, label).value(weights) for sign in (1, -1))
    assert -1e-12 <= best <= area + 1e-12
    assert area <= worst + 1e-12 <= 1 + 2e-12
