"""What every interval and every adjustment must satisfy."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvstats.inference import Design, adjust, infer, samples_by
from kvstats.inference.design import BOOTSTRAPS
from kvstats.inference.intervals import (
    clopper_pearson_interval,
    clustered_wilson_interval,
    korn_graubard_interval,
    wilson_interval,
)
from kvstats.inference.multiplicity import METHODS
from kvstats.statistics import Mean

GENERAL = ("linear", "jackknife", *BOOTSTRAPS)
FAMILIES = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=8)


@st.composite
def frames(draw):
    rows = draw(
        st.lists(
            st.tuples(st.sampled_from("ab"), st.integers(0, 5), st.sampled_from([0.0, 0.5, 1.0])),
            min_size=2,
            max_size=25,
        )
    )
    weights = draw(st.lists(st.floats(0.1, 5), min_size=len(rows), max_size=len(rows)))
    return pl.DataFrame(rows, schema=["group", "id", "y"], orient="row").with_columns(w=pl.Series(weights))


def estimate(frame, weight="w", by=("group",), **design):
    design = Design(cluster="id", weight=weight, n_resamples=199, **design)
    samples = samples_by("f", frame, by, design, lambda part: (Mean(part["y"].to_numpy()), "mean"))
    return infer("f", samples, design, {name: frame.schema[name] for name in by}, 0.0)


def same(one, other, columns=("estimate", "low", "high", "se", "df", "clusters")):
    assert one.frame["status"].to_list() == other.frame["status"].to_list()
    for name in columns:
        first, second = (result.frame[name].cast(float).fill_null(-99).to_numpy() for result in (one, other))
        np.testing.assert_allclose(first, second, rtol=1e-8, atol=1e-9)


@given(frames(), st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(frame, seed):
    same(estimate(frame), estimate(frame.sample(fraction=1, shuffle=True, seed=seed)))


@pytest.mark.parametrize("interval", GENERAL)
@given(frames(), st.integers(0, 99))
def test_no_interval_depends_on_the_order_of_rows(interval, frame, seed):
    shuffled = frame.sample(fraction=1, shuffle=True, seed=seed)
    same(estimate(frame, interval=interval), estimate(shuffled, interval=interval))


@pytest.mark.parametrize("interval", ["linear", "jackknife"])
@given(frames(), st.permutations(range(6)))
def test_the_names_of_clusters_do_not_matter(interval, frame, names):
    renamed = frame.with_columns(pl.col("id").replace_strict(dict(enumerate(names))))
    same(estimate(frame, interval=interval), estimate(renamed, interval=interval))


@pytest.mark.parametrize("interval", BOOTSTRAPS)
@given(frames())
def test_the_names_of_clusters_do_not_matter_to_a_bootstrap_where_their_order_stays(interval, frame):
    renamed = frame.with_columns(pl.col("id") * 10 + 3)
    same(estimate(frame, interval=interval), estimate(renamed, interval=interval))


@pytest.mark.parametrize("interval", GENERAL)
@given(frames(), st.floats(0.01, 100))
def test_no_interval_depends_on_the_scale_of_the_weights(interval, frame, scale):
    rescaled = frame.with_columns(w=pl.col("w") * scale)
    same(estimate(frame, interval=interval), estimate(rescaled, interval=interval))


@pytest.mark.parametrize("interval", GENERAL)
@given(frames())
def test_one_stratum_is_none(interval, frame):
    whole = frame.with_columns(site=pl.lit("a"))
    same(estimate(whole, interval=interval), estimate(whole, interval=interval, strata="site"))


@given(frames(), st.floats(0.01, 100))
def test_the_scale_of_the_weights_does_not_matter(frame, scale):
    same(estimate(frame), estimate(frame.with_columns(w=pl.col("w") * scale)))


@given(frames(), st.data())
def test_a_row_twice_is_a_row_of_twice_the_weight(frame, data):
    row = data.draw(st.integers(0, frame.height - 1))
    twice = pl.concat([frame, frame[row]])
    factor = pl.when(pl.int_range(pl.len()) == row).then(2.0).otherwise(1.0)
    same(estimate(twice), estimate(frame.with_columns(w=pl.col("w") * factor)))


@given(frames(), st.floats(0.1, 5))
def test_constant_weights_are_none(frame, weight):
    same(estimate(frame.with_columns(w=pl.lit(weight))), estimate(frame, weight=None))


@given(frames())
def test_rows_of_weight_zero_are_absent(frame):
    absent = frame.with_columns(w=pl.lit(0.0), y=pl.lit(77.0), id=pl.lit(9, pl.Int64))
    same(estimate(pl.concat([frame, absent])), estimate(frame), ("estimate", "low", "high", "n", "clusters"))


@given(frames())
def test_a_contrast_changes_sign_with_its_sides(frame):
    result = estimate(frame)
    if result.frame.height < 2:
        return
    one, other = result.contrast(group=("a", "b")).frame, result.contrast(group=("b", "a")).frame
    assert one["status"].item() == other["status"].item()
    for first, second in (("estimate", "estimate"), ("low", "high"), ("high", "low")):
        a, b = one[first].item(), other[second].item()
        assert (a is None) == (b is None)
        assert a is None or a == pytest.approx(-b, abs=1e-12)


@pytest.mark.parametrize("interval", GENERAL)
@given(frames(), st.floats(-1, 2))
def test_a_two_sided_test_rejects_what_the_interval_leaves_out(interval, frame, null):
    result = estimate(frame, interval=interval)
    for row, p in zip(
        result.frame.iter_rows(named=True), result.p_value(null)["p_value"].to_list(), strict=True
    ):
        if row["status"] == "ok" and abs(p - 0.05) > 1e-9:
            assert (p < 0.05) == (not row["low"] <= null <= row["high"])


@given(st.integers(1, 60), st.data(), st.floats(0.5, 0.999))
def test_intervals_of_a_proportion_hold_it_and_mirror_with_it(n, data, level):
    p = data.draw(st.integers(0, n)) / n
    for function in (wilson_interval, clopper_pearson_interval):
        low, high = function(p, n, level)
        assert 0 <= low <= p <= high <= 1
        assert high > low
        mirrored_low, mirrored_high = function(1 - p, n, level)
        np.testing.assert_allclose([1 - mirrored_high, 1 - mirrored_low], [low, high], atol=1e-9)


@given(st.integers(2, 40), st.integers(1, 6), st.data(), st.floats(0.01, 0.5))
def test_intervals_of_a_clustered_rate_hold_it_and_widen_with_the_level(clusters, size, data, se):
    n = clusters * size
    p = data.draw(st.integers(0, n)) / n
    for function in (korn_graubard_interval, clustered_wilson_interval):
        narrow, wide = (function(p, se, n, clusters, clusters - 1, level) for level in (0.8, 0.99))
        assert 0 <= wide[0] <= narrow[0] <= p <= narrow[1] <= wide[1] <= 1
        assert narrow[0] < narrow[1]


@pytest.mark.parametrize("method", METHODS)
@given(FAMILIES, st.randoms(use_true_random=False))
def test_adjusted_p_values_are_no_smaller_and_keep_the_order(method, family, random):
    adjusted, plain = adjust(family, method), adjust(family, "none")
    assert (adjusted >= plain - 1e-15).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(plain, kind="stable")]) >= -1e-12).all()
    order = random.sample(range(len(family)), len(family))
    shuffled = adjust([family[i] for i in order], method)
    np.testing.assert_allclose(shuffled, adjusted[order], rtol=1e-12)
