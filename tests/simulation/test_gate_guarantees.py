"""Whether thresholds keep what they promise, and how often the intervals of ratios hold the truth."""

import math

import numpy as np
import polars as pl
import pytest

from kvstats.inference import Design, Sample
from kvstats.inference.cell import infer_cell
from kvstats.log.frames import INPUT_SCHEMA, RUN_SCHEMA, Log
from kvstats.policies import midpoint_threshold, risk_controlled_threshold, z_threshold
from kvstats.statistics import Mean, Ratio

pytestmark = pytest.mark.slow

REPLICATIONS = 300


def tolerance(share, replications=REPLICATIONS):
    """Three and a half binomial standard deviations of a simulated share."""
    return 3.5 * math.sqrt(share * (1 - share) / replications)


def log_of(drop, harmed=None, tasks="t"):
    """Make a log of one run an input, by columns."""
    size = len(drop)
    key = {
        "suite": ["s"] * size,
        "model": ["m"] * size,
        "task": [tasks] * size if isinstance(tasks, str) else list(tasks),
        "input_id": [f"{n:04}" for n in range(size)],
    }
    inputs = pl.DataFrame(key | {"drop": drop})
    frames = []
    if harmed is not None:
        for arm, budget, score in (("full", 1.0, np.ones(size)), ("a", 0.25, 1.0 - harmed)):
            columns = {"arm": [arm] * size, "budget": [budget] * size, "seed": [0] * size, "score": score}
            frames.append(pl.DataFrame(key | columns))
    runs = pl.concat([pl.DataFrame(schema=RUN_SCHEMA), *frames], how="diagonal")
    return Log(inputs=pl.concat([pl.DataFrame(schema=INPUT_SCHEMA), inputs], how="diagonal"), runs=runs)


def harm_above(tau, step):
    """Harm rate of a gate at tau: drops uniform on [0, 1], harmed by 0.3 (1 - D), or below a step by 0.3."""
    if step:
        return 0.3 * max(0.4 - tau, 0.0)
    return 0.15 * (1 - min(tau, 1.0)) ** 2


@pytest.mark.parametrize(
    ("level", "confidence", "step"), [(0.05, 0.9, False), (0.1, 0.8, False), (0.06, 0.9, True)]
)
def test_risk_controlled_thresholds_break_their_level_no_more_often_than_they_say(level, confidence, step):
    random = np.random.default_rng([1, int(100 * level), int(step)])
    broken, values = 0, []
    for _ in range(REPLICATIONS):
        drop = random.uniform(size=150)
        rate = np.where(drop < 0.4, 0.3, 0.0) if step else 0.3 * (1 - drop)
        log = log_of(drop, random.uniform(size=150) < rate)
        tau = risk_controlled_threshold(log, base="a", level=level, confidence=confidence).value
        values.append(tau)
        broken += harm_above(tau, step) > level
    assert broken / REPLICATIONS <= 1 - confidence + tolerance(1 - confidence)
    # It does not get there by never opening: the chance is nearly used up, as far as whole numbers allow.
    assert broken / REPLICATIONS >= 0.25 * (1 - confidence)
    assert np.isfinite(values).all()


def test_a_plain_estimate_in_place_of_the_test_would_break_the_level_half_of_the_time():
    random = np.random.default_rng(2)
    broken = 0
    for _ in range(REPLICATIONS):
        drop = random.uniform(size=150)
        harmed = random.uniform(size=150) < 0.3 * (1 - drop)
        order = np.argsort(-drop)
        below = np.cumsum(harmed[order]) / 150 <= 0.05
        broken += harm_above(float(drop[order][np.flatnonzero(below)[-1]]), False) > 0.05
    assert broken / REPLICATIONS > 0.4


@pytest.mark.parametrize("method", ["z", "midpoint"])
def test_standard_errors_of_calibrated_thresholds(method):
    random = np.random.default_rng(3)
    held = 0
    for _ in range(REPLICATIONS):
        if method == "z":
            found = z_threshold(log_of(random.normal(0.1, 0.03, 80)))
            truth = 0.1 - 0.69 * 0.03
        else:
            drop = np.concatenate([random.normal(0.05, 0.02, 20), random.normal(0.15, 0.06, 20)])
            log = log_of(drop, tasks=["c"] * 20 + ["d"] * 20)
            found, truth = midpoint_threshold(log, capacity_task="c", dilution_task="d"), 0.1
        held += abs(found.value - truth) <= 2.02 * found.se
    assert abs(held / REPLICATIONS - 0.95) <= tolerance(0.95) + 0.01


def sample_of(statistic, codes, kind):
    names, codes = np.unique(codes, return_inverse=True)
    clusters = tuple((f"{name:04}",) for name in names)
    return Sample((), statistic, np.ones(statistic.n), codes.astype(np.int64), clusters, kind)


def harms(random, clusters, budgets, gated):
    """Harms of a plain and a gated arm at several budgets, alike within inputs.

    The gate, where there is one, closes for 70% of the inputs that are weak, and for 20% of the others.
    """
    weak = random.uniform(size=clusters) < 0.4
    rate = np.where(weak, 0.8, 0.1)[:, None]
    plain = random.uniform(size=(clusters, budgets)) < rate
    if gated:
        closed = random.uniform(size=clusters) < np.where(weak, 0.7, 0.2)
        return plain, plain & ~closed[:, None]
    return plain, random.uniform(size=(clusters, budgets)) < 0.5 * rate


RATIOS = {True: (0.4 * 0.8 * 0.3 + 0.6 * 0.1 * 0.8) / (0.4 * 0.8 + 0.6 * 0.1), False: 0.5}


@pytest.mark.parametrize(("clusters", "gated"), [(40, False), (150, False), (40, True), (150, True)])
def test_the_interval_of_a_harm_ratio(clusters, gated):
    random = np.random.default_rng([4, clusters, int(gated)])
    replications, held = 1000, 0
    for _ in range(replications):
        plain, other = harms(random, clusters, 4, gated)
        codes = np.repeat(np.arange(clusters), 4)
        if gated:
            rows = plain.ravel()
            sample = sample_of(Mean(other.ravel()[rows]), codes[rows], "rate")
        else:
            sample = sample_of(Ratio(other.ravel(), plain.ravel()), codes, "ratio")
        cell = infer_cell("simulation", sample, Design())
        held += cell.low is not None and cell.low <= RATIOS[gated] <= cell.high
    assert held / replications >= 0.95 - tolerance(0.95, replications)
    assert held / replications <= (0.995 if clusters == 40 else 0.98)
