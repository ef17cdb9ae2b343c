"""What recomputation, terciles and panels must satisfy on any sample."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvstats as kv
from kvstats.log import RunRecord, log_from_records
from kvstats.statistics import BandMean, TopShareMean


@st.composite
def samples(draw):
    """A signal of few levels, two outcomes, strata and whole weights."""
    size = draw(st.integers(4, 14))

    def column(*values):
        return np.array(draw(st.lists(st.sampled_from(values), min_size=size, max_size=size)))

    signal = column(0.0, 1.0, 2.0, 3.0)
    inside, outside = column(0.0, 0.5, 1.0), column(0.0, 0.5, 1.0)
    return signal, inside, outside, column(0, 1), column(1.0, 2.0, 3.0)


SHARES = st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.8, 1.0])


def close(first, second):
    assert first == pytest.approx(second, abs=1e-11)


@given(samples(), SHARES)
def test_order_scale_and_monotone_transforms_change_nothing(sample, share):
    signal, inside, outside, strata, weights = sample
    value = TopShareMean(signal, inside, outside, share, strata).value(weights)
    close(TopShareMean(np.exp(signal) - 7, inside, outside, share, strata).value(weights), value)
    close(TopShareMean(signal, inside, outside, share, strata).value(1e-3 * weights), value)
    back = slice(None, None, -1)
    turned = TopShareMean(signal[back], inside[back], outside[back], share, strata[back])
    close(turned.value(weights[back]), value)


@given(samples(), SHARES)
def test_whole_weights_are_copies(sample, share):
    signal, inside, outside, strata, weights = sample
    rows = np.repeat(np.arange(signal.size), weights.astype(int))
    copied = TopShareMean(signal[rows], inside[rows], outside[rows], share, strata[rows])
    close(
        TopShareMean(signal, inside, outside, share, strata).value(weights), copied.value(np.ones(rows.size))
    )


@given(samples(), SHARES)
def test_the_signal_turned_round_re_runs_the_rest(sample, share):
    signal, inside, outside, strata, weights = sample
    one = TopShareMean(signal, inside, outside, share, strata).value(weights)
    close(TopShareMean(-signal, outside, inside, 1 - share, strata).value(weights), one)


@given(samples(), SHARES)
def test_the_oracle_is_never_beaten_and_chance_is_the_mean(sample, share):
    signal, inside, outside, strata, weights = sample
    gain = inside - outside
    helped = np.maximum(gain, 0)
    nothing = np.zeros(gain.size)
    best = TopShareMean(helped, helped, nothing, share, strata).value(weights)
    assert best >= TopShareMean(signal, gain, nothing, share, strata).value(weights) - 1e-12
    close(
        TopShareMean(nothing, gain, nothing, share).value(weights), share * np.average(gain, weights=weights)
    )


@given(samples())
def test_the_terciles_average_to_the_whole(sample):
    signal, inside, _, strata, weights = sample
    bands = [BandMean(signal, inside, k / 3, (k + 1) / 3, strata).value(weights) for k in range(3)]
    close(np.mean(bands), np.average(inside, weights=weights))


@st.composite
def logs(draw):
    size = draw(st.integers(5, 12))
    flags = st.lists(st.booleans(), min_size=size, max_size=size)
    levels = st.lists(st.integers(0, 3).map(float), min_size=size, max_size=size)
    full, base, signal, other = draw(flags), draw(flags), draw(levels), draw(levels)
    records = []
    for i in range(size):
        key = {"suite": "s", "model": "m", "task": "t", "input_id": str(i)}
        signals = {"certificate": signal[i], "logprob": other[i]}
        records += [
            RunRecord(**key, arm="full", budget=1.0, score=float(full[i]), success=full[i]),
            RunRecord(**key, arm="p", budget=0.5, score=float(base[i]), success=base[i], signals=signals),
        ]
    return log_from_records(records)


@given(logs(), SHARES)
def test_policies_and_the_estimator_agree(log, share):
    both = kv.recompute(log, base="p", signal="certificate", share=share)
    both = kv.random_gate(both, base="p", share=share)
    found = kv.recomputation(log, arm="p", signal="certificate", share=share, outcome="score").frame
    values = dict(found.select("quantity", "estimate").rows())
    for quantity, arm in (("policy", "recompute"), ("random", "random")):
        close(values[quantity], kv.accuracy(both, arm=arm).frame["estimate"].item())
    whole = kv.recompute(log, base="p", signal="certificate", share=share, margin="whole")
    rerun = whole.runs.filter(arm="recompute")["rerun"]
    assert set(rerun) <= {0.0, 1.0}
    assert rerun.sum() == np.floor(share * rerun.len() + 1e-9)
    assert both.runs.filter(arm="recompute")["rerun"].sum() == pytest.approx(share * rerun.len())


@given(logs())
def test_a_panel_turned_round_is_one_less_the_area(log):
    def areas(**arguments):
        frame = kv.signal_panel(log, arm="p", outcomes=["failure", "attribution"], **arguments).frame
        return frame.filter(quantity="auc").sort("outcome", "signal")["estimate"].to_list()

    turned = areas(higher={"certificate": "negative", "logprob": "positive"})
    for one, other in zip(areas(), turned, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            close(one, 1 - other)
