"""The theorem-backed radii against a scalar solution, exact coverage by enumeration, and bad input."""

import itertools
import math

import numpy as np
import pytest
import torch

from kvstats.errors import InputError
from kvstats.statistics.certificate import attention_certificate
from kvstats.statistics.certified_radius import certified_radius

METHODS = ["bernstein", "empirical_bernstein"]


def one_read(n=2000, d=4, seed=0):
    rng = np.random.default_rng(seed)
    logits, values = rng.normal(size=n), rng.normal(size=(n, d)) + 1
    pi = np.where(np.arange(n) < n // 10, 1.0, rng.uniform(0.3, 0.7, n))
    return logits, values, pi, rng.random(n) < pi


def bounds_of(logits, values, pi):
    """The smallest bounds that hold."""
    return {
        "value_norm": np.linalg.norm(values, axis=-1).max(),
        "log_weight": (logits - np.log(pi))[pi < 1].max(),
    }


def solved(read, bounds, delta, method):
    """The largest error that does not contradict the inequality, in absolute sums, by bisection."""
    logits, values, pi, kept = read
    a = np.exp(logits)
    total = (a / pi)[kept].sum()
    estimate = ((a / pi)[:, None] * values)[kept].sum(axis=0) / total
    reach, norm = bounds["value_norm"], np.linalg.norm(estimate)
    tail = kept & (pi < 1)
    power = ((1 - pi) if method == "bernstein" else 1) * a**2 / pi**2
    spread = math.sqrt((power * ((values - estimate) ** 2).sum(axis=1))[tail].sum())
    lever = math.sqrt(power[tail].sum())
    weight = math.exp(bounds["log_weight"])

    def right_hand_side(error):
        c = weight * min(2 * reach, reach + norm + error)
        squares = (spread + error * lever) ** 2
        if method == "bernstein":
            half = c**2 * math.log(2 / delta) / 2
            variance = (math.sqrt(half) + math.sqrt(squares + half)) ** 2
            b = c * math.log(4 / delta) / 3
            return (b + math.sqrt(b**2 + 2 * variance * math.log(4 / delta))) / total
        prices = []
        for k in range(1, 9):
            theta = 2.0**-k / (2 * weight * reach)
            prices.append(
                (math.log(16 / delta) + squares * (-math.log1p(-theta * c) - theta * c) / c**2) / theta
            )
        return min(prices) / total

    low, high = 0.0, 2 * reach
    if right_hand_side(high) >= high:
        return high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if right_hand_side(middle) >= middle else (low, middle)
    return high


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("delta", [0.01, 0.3])
def test_equals_the_largest_error_that_the_inequality_allows(method, delta):
    read = one_read()
    bounds = bounds_of(*read[:3])
    found = certified_radius(*read, **bounds, delta=delta, method=method)
    assert found.absolute == pytest.approx(solved(read, bounds, delta, method), rel=1e-6)
    assert found.absolute < 2 * bounds["value_norm"]
    certificate = attention_certificate(*read)
    np.testing.assert_allclose(found.estimate, certificate.estimate, rtol=1e-12)
    assert found.radius == pytest.approx(found.absolute / (np.linalg.norm(found.estimate) + 1e-9))


@pytest.mark.parametrize("method", METHODS)
def test_batches_and_torch(method):
    reads = [one_read(300, seed=seed) for seed in range(4)]
    bounds = [bounds_of(*read[:3]) for read in reads]
    stacked = [np.stack(part).reshape(2, 2, *part[0].shape) for part in zip(*reads, strict=True)]
    limits = {name: np.array([b[name] for b in bounds]).reshape(2, 2) for name in bounds[0]}
    batch = certified_radius(*stacked, **limits, method=method)
    tensors = certified_radius(
        *(torch.from_numpy(part) for part in stacked),
        **{name: torch.from_numpy(limit) for name, limit in limits.items()},
        method=method,
    )
    for number, read in enumerate(reads):
        one = certified_radius(*read, **bounds[number], method=method)
        for single, many, tensor in zip(one, batch, tensors, strict=True):
            np.testing.assert_allclose(many[divmod(number, 2)], single, rtol=1e-10)
            np.testing.assert_allclose(tensor[divmod(number, 2)].numpy(), single, rtol=1e-10)
    low = certified_radius(
        *(
            torch.from_numpy(part).float() if part.dtype == float else torch.from_numpy(part)
            for part in stacked
        ),
        value_norm=20.0,
        log_weight=10.0,
        method=method,
    )
    assert low.radius.dtype == torch.float32


@pytest.mark.parametrize("method", METHODS)
def test_the_error_of_every_possible_sample_is_within_the_radius_often_enough(method):
    """All samples of ten units, weighted by their probabilities, at a delta so large that radii are small."""
    rng = np.random.default_rng(4)
    n = 10
    logits, values = rng.normal(0, 0.3, n), rng.choice([-1.0, 1.0], size=(n, 1)) * rng.uniform(0.9, 1, (n, 1))
    pi = np.r_[1.0, 1.0, np.full(n - 2, 0.8)]
    samples = np.array(list(itertools.product([False, True], repeat=n)))
    chance = np.where(samples, pi, 1 - pi).prod(axis=1)
    samples, chance = samples[chance > 0], chance[chance > 0]
    weights = np.exp(logits)
    truth = weights @ values / weights.sum()
    delta = 0.999
    found = certified_radius(
        np.broadcast_to(logits, samples.shape),
        np.broadcast_to(values, (*samples.shape, 1)),
        pi,
        samples,
        **bounds_of(logits, values, pi),
        delta=delta,
        method=method,
    )
    error = np.abs(found.estimate - truth)[:, 0]
    assert chance.sum() == pytest.approx(1)
    assert chance[error > found.absolute].sum() <= delta
    assert (found.absolute <= 2).all()


@pytest.mark.parametrize("method", METHODS)
def test_nothing_sampled_means_no_error(method):
    logits, values, _, _ = one_read(20)
    certain, all_kept = np.ones(20), np.ones(20, dtype=bool)
    found = certified_radius(
        logits, values, certain, all_kept, value_norm=10.0, log_weight=-math.inf, method=method
    )
    assert found.absolute == 0
    found = certified_radius(
        logits, 0 * values, np.full(20, 0.5), all_kept, value_norm=0.0, log_weight=9.0, method=method
    )
    assert found.absolute == 0


@pytest.mark.parametrize("method", METHODS)
def test_useless_bounds_give_twice_the_norm(method):
    read = one_read(50)
    found = certified_radius(*read, value_norm=30.0, log_weight=5000.0, method=method)
    assert found.absolute == 60


@pytest.mark.parametrize("method", METHODS)
def test_huge_logits_change_nothing(method):
    logits, values, pi, kept = one_read()
    bounds = bounds_of(logits, values, pi)
    low = certified_radius(logits, values, pi, kept, **bounds, method=method)
    bounds["log_weight"] += 5000.0
    high = certified_radius(logits + 5000.0, values, pi, kept, **bounds, method=method)
    assert high.radius == pytest.approx(low.radius, rel=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_looser_bounds_never_make_the_radius_smaller(method):
    read = one_read()
    bounds = bounds_of(*read[:3])
    tight = certified_radius(*read, **bounds, method=method)
    for name, more in (("value_norm", 1.0), ("log_weight", 0.5)):
        loose = certified_radius(*read, **{**bounds, name: bounds[name] + more}, method=method)
        assert loose.absolute > tight.absolute


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 0.0}, r"delta=0.0 is not in \(0, 1\)"),
        ({"method": "berstein"}, r"method='berstein' is unknown; did you mean 'bernstein'\?"),
        ({"value_norm": -1.0}, "value_norm=-1.0 is negative or undefined"),
        ({"value_norm": math.nan}, "value_norm=nan is negative or undefined"),
        ({"value_norm": math.inf}, "value_norm='a bound' is infinite or below that of a kept unit"),
        ({"value_norm": 0.1}, "value_norm='a bound' is infinite or below that of a kept unit"),
        ({"log_weight": -9.0}, "log_weight='a bound' is undefined or below that of a kept unit"),
        ({"log_weight": math.nan}, "log_weight='a bound' is undefined or below that of a kept unit"),
        ({"inclusion_probability": np.zeros(50)}, r"inclusion_probability='an array' is outside \(0, 1\]"),
        ({"inclusion_probability": np.full(50, math.nan)}, "inclusion_probability='an array' is outside"),
        ({"kept": np.zeros(50, dtype=bool)}, "kept='an array' keeps no unit of a read"),
    ],
)
def test_bad_input(change, message):
    logits, values, pi, kept = one_read(50)
    arguments = {"logits": logits, "values": values, "inclusion_probability": pi, "kept": kept}
    arguments |= {"value_norm": 20.0, "log_weight": 20.0} | change
    with pytest.raises(InputError, match=f"certified_radius: {message}"):
        certified_radius(**arguments)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("junk", [math.nan, math.inf, 1e308])
def test_freed_slots_are_not_looked_at(method, junk):
    logits, values, pi, kept = one_read(300)
    bounds = bounds_of(logits, values, pi)
    expected = certified_radius(logits, values, pi, kept, **bounds, method=method)
    parts = [part.copy() for part in (logits, values, pi)]
    for part in parts:
        part[~kept] = junk
    for read in ([*parts, kept], [torch.from_numpy(part) for part in (*parts, kept)]):
        with np.errstate(over="ignore"):
            found = certified_radius(*read, **bounds, method=method)
        for one, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(one), wanted, rtol=1e-10)


@pytest.mark.parametrize(("argument", "name"), [(0, "logits"), (1, "values")])
def test_kept_units_must_be_finite(argument, name):
    parts = list(one_read(50))
    parts[argument] = np.full_like(parts[argument], math.nan)
    with pytest.raises(
        InputError, match=f"certified_radius: {name}='an array' is not finite for a kept unit"
    ):
        certified_radius(*parts, value_norm=20.0, log_weight=20.0)


def three_units():
    """Logits 0, log 2 and log 3 with values 1, -1 and 2 and probabilities 1, 1/2 and 3/4; the first two kept.

    Weights a/pi of 1 and 4 sum to 5, and the estimate is (1 - 4) / 5. The largest a/pi of the two units that
    might be evicted is 4, and the largest norm is 2.
    """
    logits, values = np.log([1.0, 2.0, 3.0]), np.array([[1.0], [-1.0], [2.0]])
    read = (logits, values, np.array([1.0, 0.5, 0.75]), np.array([True, True, False]))
    return read, {"value_norm": 2.0, "log_weight": math.log(4.0)}, -0.6, 5.0


def lowered(right_hand_side, largest):
    """The radius of the docstring: from the largest possible error down, 40 times."""
    error = largest
    for _ in range(40):
        error = min(error, right_hand_side(error))
    return error


@pytest.mark.parametrize("delta", [0.1, 0.9999])
@pytest.mark.parametrize("copies", [1, 400])
def test_bernstein_by_hand(delta, copies):
    read, bounds, estimate, total = three_units()
    read = (*(np.concatenate([part] * copies) for part in read),)
    total *= copies
    # One term a copy, of the second unit: (1 - pi) / pi^2 = 2 and a^2 = 4.
    spread = copies * 2 * 4 * (-1 - estimate) ** 2
    lever = copies * 2 * 4

    def right_hand_side(error):
        c = 4 * min(2 * 2, 2 + abs(estimate) + error)
        half = c**2 * math.log(2 / delta) / 2
        variance = (
            math.sqrt(half) + math.sqrt((math.sqrt(spread) + error * math.sqrt(lever)) ** 2 + half)
        ) ** 2
        log_term = math.log(2 / (delta / 2))
        return (c * log_term / 3 + math.sqrt((c * log_term / 3) ** 2 + 2 * variance * log_term)) / total

    found = certified_radius(*read, **bounds, delta=delta)
    assert found.estimate[0] == pytest.approx(estimate)
    assert found.absolute == pytest.approx(lowered(right_hand_side, 4.0), rel=1e-12)
    assert (found.absolute < 4) == (copies == 400)
    assert found.radius == pytest.approx(found.absolute / 0.6, rel=1e-8)


@pytest.mark.parametrize("delta", [0.1, 0.9999])
@pytest.mark.parametrize("copies", [1, 400])
def test_empirical_bernstein_by_hand(delta, copies):
    read, bounds, estimate, total = three_units()
    read = (*(np.concatenate([part] * copies) for part in read),)
    total *= copies
    # One term a copy: a^2 / pi^2 = 16.
    spread, lever = copies * 16 * (-1 - estimate) ** 2, copies * 16

    def right_hand_side(error):
        c = 4 * min(2 * 2, 2 + abs(estimate) + error)
        costs = []
        for bet in (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256):
            theta = bet / (2 * 4 * 2)
            price = -math.log(1 - theta * c) - theta * c
            squares = (math.sqrt(spread) + error * math.sqrt(lever)) ** 2
            costs.append((math.log(2 * 8 / delta) + price / c**2 * squares) / theta)
        return min(costs) / total

    found = certified_radius(*read, **bounds, delta=delta, method="empirical_bernstein")
    assert found.absolute == pytest.approx(lowered(right_hand_side, 4.0), rel=1e-9)
    assert (found.absolute < 4) == (copies == 400)
