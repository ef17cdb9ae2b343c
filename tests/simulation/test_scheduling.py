"""Recomputation and terciles: do the estimators hit known values, and how often do intervals hold them.

Where a figure stands in UNDERCOVERS the interval is known to fall short there, and by how much is part of the
test. An undefined interval holds nothing.
"""

import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy.optimize import brentq

import kvstats as kv
from kvstats.estimators.attribution import tercile_samples
from kvstats.estimators.scheduling import Rerun, members
from kvstats.inference import Design
from kvstats.inference.cell import infer_cell
from kvstats.inference.joint import joint_samples
from kvstats.inference.sample import Sample
from kvstats.statistics import BandMean, Mean

pytestmark = pytest.mark.slow

REPLICATIONS = 300
SIZE = 4
"""Runs of a cluster."""
SHARED = 0.36
"""Share of the variance of a signal that the runs of a cluster share."""
SHIFT = 1.2
"""How much higher the signal of induced failures is, in standard deviations."""
INDUCED, RECOVERED, SHARE = 0.3, 0.04, 0.25
NORMAL = NormalDist()


def above(limit, shift):
    """Share of the runs above a limit whose signal is shifted."""
    return 1 - NORMAL.cdf(limit - shift)


def gain_of(share, induced, recovered):
    """Gain of running the share of the highest signal again."""

    def excess(limit):
        return induced * above(limit, SHIFT) + (1 - induced) * above(limit, 0) - share

    limit = brentq(excess, -10, 10)
    return induced * above(limit, SHIFT) - recovered * above(limit, 0)


GAIN = gain_of(SHARE, INDUCED, RECOVERED)
TERCILES = [3 * (gain_of((k + 1) / 3, 0.4, 0) - (gain_of(k / 3, 0.4, 0) if k else 0)) for k in range(2)]
TOP, BOTTOM = TERCILES[0], 3 * 0.4 - sum(TERCILES)
"""Shares of induced failures in the highest and the lowest tercile, where 0.4 of all failures are."""


def clusters_of(n_clusters, induced, recovered, seed):
    """Return signal, gain and cluster of the runs; runs of a cluster are alike in both."""
    random = np.random.default_rng([n_clusters, seed])
    codes = np.repeat(np.arange(n_clusters), SIZE)
    chance = random.beta(3 * induced, 3 * (1 - induced), n_clusters)[codes]
    harmed = random.uniform(size=codes.size) < chance
    helped = ~harmed & (random.uniform(size=codes.size) < recovered / (1 - induced))
    signal = SHIFT * harmed + random.normal(0, math.sqrt(SHARED), n_clusters)[codes]
    signal += random.normal(0, math.sqrt(1 - SHARED), codes.size)
    return signal, harmed.astype(float) - helped, codes


TRUTH = {
    "gain": GAIN,
    "gain_over_random": GAIN - SHARE * (INDUCED - RECOVERED),
    "gain_ratio": GAIN / (SHARE * (INDUCED - RECOVERED)),
    "headroom_captured": GAIN / min(SHARE, INDUCED),
    "top": TOP,
    "bottom": BOTTOM,
    "enrichment": TOP / BOTTOM,
}


def recomputed(everything, signal, gain, thresholds):
    """Samples of the table of recomputation, for runs whose outcome is 0 and would be the gain."""
    fixed = everything.weights if thresholds == "fixed" else None
    table = members(Rerun(np.zeros(gain.size), gain, SHARE, None, fixed), {"policy": signal})
    return {s.key[0]: s for s in joint_samples("simulation", everything, table)}


def thirds(everything, signal, gain, thresholds):
    """Samples of the table of terciles, for failures that would be recovered where the gain is 1."""
    bands = [BandMean(signal, gain, k / 3, (k + 1) / 3) for k in (2, 1, 0)]
    table = tercile_samples("simulation", everything, bands, gain, thresholds == "refit")
    names = {("recovery", 3): "top", ("recovery", 1): "bottom", ("enrichment", None): "enrichment"}
    return {names[s.key]: s for s in table if s.key in names}


def coverage(build, n_clusters, thresholds, interval, names):
    """Return the share of intervals that hold the truth, for each quantity."""
    design = Design(interval=interval, n_resamples=200)
    labels = tuple((f"{i:03}",) for i in range(n_clusters))
    held = dict.fromkeys(names, 0)
    rates = (INDUCED, RECOVERED) if build is recomputed else (0.4, 0.0)
    for seed in range(REPLICATIONS):
        signal, gain, codes = clusters_of(n_clusters, *rates, seed)
        everything = Sample((), Mean(gain), np.ones(gain.size), codes, labels, "mean")
        samples = build(everything, signal, gain, thresholds)
        for name in names:
            cell = infer_cell("simulation", samples[name], design)
            held[name] += cell.low is not None and cell.low <= TRUTH[name] <= cell.high
    return {name: count / REPLICATIONS for name, count in held.items()}


UNDERCOVERS = {
    ("enrichment", 40, "refit", "percentile"): (0.82, 0.93),
}
"""Lowest and highest coverage where it is not within simulation error of 0.95."""

ALL_GAINS = ("gain", "gain_over_random", "headroom_captured", "gain_ratio")
ALL_THIRDS = ("top", "bottom", "enrichment")


@pytest.mark.parametrize(
    ("build", "names", "n_clusters", "thresholds", "interval"),
    [
        (recomputed, ALL_GAINS, 40, "refit", "auto"),
        (recomputed, ALL_GAINS, 200, "refit", "auto"),
        (recomputed, ALL_GAINS, 40, "fixed", "auto"),
        (recomputed, ALL_GAINS, 200, "fixed", "auto"),
        (recomputed, ("gain", "headroom_captured"), 40, "refit", "percentile"),
        (thirds, ALL_THIRDS, 40, "refit", "auto"),
        (thirds, ALL_THIRDS, 200, "refit", "auto"),
        (thirds, ALL_THIRDS, 40, "fixed", "auto"),
        (thirds, ALL_THIRDS, 200, "fixed", "auto"),
        (thirds, ("enrichment",), 40, "refit", "percentile"),
    ],
)
def test_intervals_hold_the_truth(build, names, n_clusters, thresholds, interval):
    found = coverage(build, n_clusters, thresholds, interval, names)
    error = 3.3 * math.sqrt(0.95 * 0.05 / REPLICATIONS)
    for name, share in found.items():
        low, high = UNDERCOVERS.get((name, n_clusters, thresholds, interval), (0.95 - error, 1.0))
        assert low <= share <= high, (name, share)


@pytest.fixture(scope="module")
def study():
    """Certificate: 0.9 for induced failures, blind to inherent ones. Log-probability: 0.8 for both alike."""
    return kv.simulate_log(
        seed=1,
        inputs=6000,
        arms=["poisson"],
        budgets=[0.25],
        accuracy=0.6,
        harm=0.15,
        recovery=0.02,
        signals={"certificate": (0.9, 0.5), "logprob": (0.2, 0.2)},
    ).log


def held(row, truth):
    """Whether a 99.9% interval holds the truth."""
    return row["low"] <= truth <= row["high"]


WIDE = Design(level=0.999)


def test_the_split_of_the_signals(study):
    share_induced = 0.15 / (0.15 + 0.4 - 0.02)
    truth = {
        ("attribution", "certificate"): 0.9,
        ("attribution", "logprob"): 0.5,
        ("failure", "certificate"): share_induced * 0.9 + (1 - share_induced) * 0.5,
        ("failure", "logprob"): 0.8,
        ("induced_failure", "certificate"): 0.9,
        ("induced_failure", "logprob"): 0.8,
    }
    outcomes = ["failure", "induced_failure", "attribution"]
    panel = kv.signal_panel(study, arm="poisson", outcomes=outcomes, design=WIDE).frame
    for (outcome, signal), value in truth.items():
        row = panel.filter(outcome=outcome, signal=signal, quantity="auc").row(0, named=True)
        assert held(row, value), (outcome, signal, row)
        assert row["high"] - row["low"] < 0.08
    for outcome, sign in (("failure", 1), ("attribution", -1), ("induced_failure", -1)):
        row = panel.filter(outcome=outcome, signal="logprob", quantity="difference").row(0, named=True)
        assert held(row, truth[outcome, "logprob"] - truth[outcome, "certificate"])
        assert sign * row["low"] > 0 or sign * row["high"] > 0
        assert row["low"] * row["high"] > 0
    share = panel.filter(outcome="attribution", quantity="share").row(0, named=True)
    assert held(share, share_induced)


def test_recomputation_of_the_simulated_study(study):
    shift = math.sqrt(2) * NORMAL.inv_cdf(0.9)

    def excess(limit):
        return 0.15 * above(limit, shift) + 0.85 * above(limit, 0) - 0.25

    limit = brentq(excess, -10, 10)
    gain = 0.15 * above(limit, shift) - 0.02 * above(limit, 0)
    truth = {
        "base": 0.6 - 0.15 + 0.02,
        "full": 0.6,
        "random_gain": 0.25 * 0.13,
        "oracle_gain": 0.15,
        "gain": gain,
        "policy": 0.47 + gain,
        "gain_over_random": gain - 0.25 * 0.13,
        "gain_ratio": gain / (0.25 * 0.13),
        "headroom_captured": gain / 0.15,
    }
    for thresholds in ("refit", "fixed"):
        table = kv.recomputation(
            study,
            arm="poisson",
            signal="certificate",
            share=0.25,
            confidence="logprob",
            thresholds=thresholds,
            design=WIDE,
        ).frame
        for quantity, value in truth.items():
            row = table.filter(quantity=quantity).row(0, named=True)
            assert held(row, value), (quantity, value, row)
        assert table.filter(quantity="gain_over_confidence")["low"].item() > 0


def test_terciles_of_the_simulated_study(study):
    shift = math.sqrt(2) * NORMAL.inv_cdf(0.9)
    share = 0.15 / 0.53
    ends = [1.0]
    for part in (2 / 3, 1 / 3):
        limit = brentq(lambda t, p=part: share * above(t, shift) + (1 - share) * above(t, 0) - p, -10, 10)
        ends.append(share / part * above(limit, shift) * part)
    ends = [share, *ends[1:], 0.0]
    rates = [3 * (ends[k] - ends[k + 1]) for k in range(3)]
    table = kv.recovery_by_tercile(study, arm="poisson", signal="certificate", design=WIDE).frame
    for tercile, rate in enumerate(rates, start=1):
        assert held(table.filter(quantity="recovery", tercile=tercile).row(0, named=True), rate)
    assert held(table.filter(quantity="enrichment").row(0, named=True), rates[2] / rates[0])
    flat = kv.recovery_by_tercile(
        study, arm="poisson", signal="logprob", higher="negative", design=WIDE
    ).frame
    assert held(flat.filter(quantity="enrichment").row(0, named=True), 1.0)
