"""The certificate against its formula in a loop, on numpy and torch, and against simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from kvstats.errors import InputError
from kvstats.statistics.certificate import attention_certificate, relative_error


def one_read(n: int = 40, d: int = 5, seed: int = 0):
    rng = np.random.default_rng(seed)
    logits, values = rng.normal(0, 2, n), rng.normal(size=(n, d)) + 0.5
    pi = np.where(np.arange(n) < 4, 1.0, rng.uniform(0.1, 0.9, n))
    kept = rng.random(n) < pi
    return logits, values, pi, kept


def in_a_loop(logits, values, pi, kept, delta):
    kept_units = [i for i in range(len(logits)) if kept[i]]
    n_hat = sum(math.exp(logits[i]) / pi[i] for i in kept_units)
    y_hat = sum(math.exp(logits[i]) / pi[i] * values[i] for i in kept_units) / n_hat
    distance = {i: float(np.sqrt(((values[i] - y_hat) ** 2).sum())) for i in kept_units}
    variance = sum((1 - pi[i]) / pi[i] ** 2 * math.exp(logits[i]) ** 2 * distance[i] ** 2 for i in kept_units)
    variance /= n_hat**2
    largest = max(math.sqrt((1 - pi[i]) / pi[i] ** 2) * math.exp(logits[i]) * distance[i] for i in kept_units)
    largest /= n_hat
    log_term = math.log(1 / delta)
    norm = float(np.sqrt((y_hat**2).sum())) + 1e-9
    return y_hat, variance, largest, (math.sqrt(2 * variance * log_term) + largest * log_term) / norm


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5])
def test_equals_the_formula(delta):
    read = one_read()
    expected = in_a_loop(*read, delta)
    for found, wanted in zip(attention_certificate(*read, delta=delta), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_numpy_equals_torch_and_batches_equal_single_reads():
    reads = [one_read(seed=seed) for seed in range(6)]
    stacked = [np.stack(part).reshape(2, 3, *part[0].shape) for part in zip(*reads, strict=True)]
    batch = attention_certificate(*stacked)
    tensors = attention_certificate(*(torch.from_numpy(part) for part in stacked))
    for number, read in enumerate(reads):
        place = divmod(number, 3)
        for one, many, tensor in zip(attention_certificate(*read), batch, tensors, strict=True):
            np.testing.assert_allclose(many[place], one, rtol=1e-12)
            np.testing.assert_allclose(tensor[place].numpy(), one, rtol=1e-12)


def test_huge_logits_change_nothing():
    logits, values, pi, kept = one_read()
    low = attention_certificate(logits, values, pi, kept)
    high = attention_certificate(logits + 5000.0, values, pi, kept)
    np.testing.assert_allclose(high.radius, low.radius, rtol=1e-9)
    assert np.isfinite(high.radius)


def test_what_was_not_kept_has_no_influence():
    logits, values, pi, kept = one_read()
    before = attention_certificate(logits, values, pi, kept)
    logits, values = logits.copy(), values.copy()
    logits[~kept], values[~kept] = 1e4, 1e6
    after = attention_certificate(logits, values, pi, kept)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_full_cache_has_no_error_and_radius_zero():
    logits, values, _, _ = one_read()
    read = attention_certificate(logits, values, np.ones(40), np.ones(40, dtype=bool))
    assert read.variance == read.largest == read.radius == 0.0
    assert relative_error(logits, values, read.estimate) < 1e-12


def test_relative_error_is_the_distance_to_the_softmax_output():
    logits, values, pi, kept = one_read()
    estimate = attention_certificate(logits, values, pi, kept).estimate
    weight = np.exp(logits) / np.exp(logits).sum()
    expected = np.linalg.norm(weight @ values - estimate) / (np.linalg.norm(estimate) + 1e-9)
    np.testing.assert_allclose(relative_error(logits, values, estimate), expected, rtol=1e-12)


def test_variance_is_unbiased_for_the_linearised_error_by_enumeration():
    """Over all samples of a small Poisson design, E of the HT variance form equals the true variance.

    With the truth y in place of its estimate, N^2 V is the Horvitz-Thompson estimate of the variance of the
    linearised error; the plug-in differs from it only through y and N.
    """
    rng = np.random.default_rng(3)
    n = 10
    a, values, pi = np.exp(rng.normal(0, 0.3, n)), rng.normal(size=(n, 2)), rng.uniform(0.3, 0.9, n)
    pi[:2] = 1.0
    y = a @ values / a.sum()
    squared = ((values - y) ** 2).sum(1)
    true_variance = ((1 - pi) / pi * a**2 * squared).sum()
    expected_variance = expected_square = 0.0
    for sample in itertools.product([False, True], repeat=n):
        kept = np.array(sample)
        chance = np.prod(np.where(kept, pi, 1 - pi))
        if chance == 0:
            continue
        expected_variance += chance * ((1 - pi) / pi**2 * a**2 * squared)[kept].sum()
        error = (a / pi)[kept] @ (values - y)[kept]
        expected_square += chance * (error**2).sum()
    assert expected_variance == pytest.approx(true_variance, rel=1e-12)
    assert expected_square == pytest.approx(true_variance, rel=1e-12)


def test_coverage_and_rank_correlation_in_simulation():
    """On reads with a concentrated softmax the nominal 90% radius covers, and ranks the true errors."""
    rng = np.random.default_rng(5)
    reads, n, d = 2000, 200, 16
    logits = rng.normal(0, 1.5, (reads, n)) * rng.uniform(0.3, 1.5, (reads, 1))
    values = rng.normal(size=(reads, n, d))
    pi = np.clip(0.5 * np.exp(0.5 * logits) / np.exp(0.5 * logits).mean(-1, keepdims=True), 0.02, 1)
    kept = rng.random((reads, n)) < pi
    read = attention_certificate(logits, values, pi, kept)
    error = relative_error(logits, values, read.estimate)
    assert (error <= read.radius).mean() > 0.9
    assert np.corrcoef(error.argsort().argsort(), read.radius.argsort().argsort())[0, 1] > 0.3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 0.0}, r"delta=0.0 is not in \(0, 1\]?"),
        ({"delta": 1.0}, r"delta=1.0 is not in \(0, 1\); pass a probability"),
        ({"inclusion_probability": np.zeros(40)}, r"is outside \(0, 1\] for a kept unit"),
        ({"inclusion_probability": np.full(40, math.nan)}, r"is outside \(0, 1\] for a kept unit"),
        ({"inclusion_probability": np.full(40, 1.5)}, r"is outside \(0, 1\] for a kept unit"),
        ({"kept": np.zeros(40, dtype=bool)}, "keeps no unit of a read; keep at least one"),
    ],
)
def test_bad_input(change, message):
    logits, values, pi, kept = one_read()
    arguments = {"inclusion_probability": pi, "kept": kept, "delta": 0.1, **change}
    with pytest.raises(InputError, match=message):
        attention_certificate(logits, values, **arguments)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("junk", [math.nan, math.inf, -math.inf, 1e308])
def test_freed_slots_are_not_looked_at(library, junk):
    logits, values, pi, kept = one_read()
    expected = attention_certificate(logits, values, pi, kept)
    parts = [part.copy() for part in (logits, values, pi)]
    for part in parts:
        part[~kept] = junk
    parts.append(kept)
    if library == "torch":
        parts = [torch.from_numpy(part) for part in parts]
    with np.errstate(over="ignore"):
        found = attention_certificate(*parts)
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), wanted, rtol=1e-12)


@pytest.mark.parametrize("argument", [0, 1])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_kept_units_must_be_finite(argument, value):
    parts = list(one_read())
    parts[argument] = parts[argument].copy()
    parts[argument][np.flatnonzero(parts[3])[0]] = value
    name = ("logits", "values")[argument]
    for read in (parts, [torch.from_numpy(part) for part in parts]):
        message = f"attention_certificate: {name}='an array' is not finite for a kept unit; look for"
        with pytest.raises(InputError, match=message):
            attention_certificate(*read)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("logits", "relative_error: logits='an array' is not finite; look for an overflow upstream"),
        ("values", "relative_error: values='an array' is not finite"),
        ("estimate", "relative_error: estimate='an array' is not finite"),
    ],
)
def test_the_true_error_needs_finite_numbers(argument, message):
    arguments = {"logits": np.zeros(2), "values": np.ones((2, 1)), "estimate": np.ones(1)}
    arguments[argument] = np.full_like(arguments[argument], math.nan)
    with pytest.raises(InputError, match=message):
        relative_error(**arguments)


def test_whole_numbers_become_the_default_float():
    logits, values = np.array([0, 1, 2]), np.array([[1], [2], [6]])
    pi, kept = np.array([1.0, 0.5, 0.5]), np.array([True, True, False])
    expected = attention_certificate(logits.astype(float), values.astype(float), pi, kept)
    assert expected.radius == attention_certificate(logits, values, pi, kept).radius
    tensors = [torch.from_numpy(part) for part in (logits, values, pi, kept)]
    assert float(attention_certificate(*tensors).radius) == pytest.approx(expected.radius, rel=1e-12)
    certain = attention_certificate(tensors[0], tensors[1], torch.ones(3, dtype=torch.int64), tensors[3])
    assert (certain.radius.dtype, float(certain.radius)) == (torch.float32, 0.0)
    assert relative_error(logits, values, np.array([3])) == relative_error(
        logits * 1.0, values, np.array([3.0])
    )
