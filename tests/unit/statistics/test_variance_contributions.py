"""What each unit adds to the estimated variance of a read: against a loop, and against the certificate."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from kvstats.errors import InputError
from kvstats.statistics.certificate import attention_certificate
from kvstats.statistics.variance_contributions import variance_contributions


@pytest.fixture
def read():
    rng = np.random.default_rng(4)
    logits, values = rng.normal(size=(3, 40)) * 2, rng.normal(size=(3, 40, 5))
    pi = rng.uniform(0.1, 1.0, size=(3, 40))
    pi[:, :4] = 1.0
    kept = rng.random((3, 40)) < pi
    return logits, values, pi, kept


def test_equals_the_formula_written_out(read):
    logits, values, pi, kept = read
    found = variance_contributions(*read)
    for row in range(3):
        sample = [i for i in range(40) if kept[row, i]]
        weight = {i: math.exp(logits[row, i]) / pi[row, i] for i in sample}
        total = sum(weight.values())
        estimate = sum(weight[i] * values[row, i] for i in sample) / total
        for i in range(40):
            part = 0.0
            if i in weight:
                distance = np.linalg.norm(values[row, i] - estimate)
                a = math.exp(logits[row, i])
                part = (1 - pi[row, i]) / pi[row, i] ** 2 * (a * distance / total) ** 2
            assert found[row, i] == pytest.approx(part, rel=1e-10, abs=1e-15)


def test_sums_to_the_variance_of_the_certificate(read):
    np.testing.assert_allclose(variance_contributions(*read).sum(-1), attention_certificate(*read).variance)


def test_torch_gives_the_same_numbers(read):
    tensors = [torch.from_numpy(part) for part in read]
    found = variance_contributions(*tensors)
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.numpy(), variance_contributions(*read), rtol=1e-12)


def test_what_was_evicted_may_hold_anything(read):
    logits, values, pi, kept = read
    other_logits, other_values = np.where(kept, logits, np.nan), values.copy()
    other_values[~kept] = np.nan
    np.testing.assert_array_equal(
        variance_contributions(other_logits, other_values, pi, kept), variance_contributions(*read)
    )


def test_certain_and_evicted_units_add_nothing(read):
    _, _, pi, kept = read
    found = variance_contributions(*read)
    assert (found[~kept] == 0).all()
    assert (found[:, :4] == 0).all()
    assert (found[kept & (pi < 1)] > 0).all()


def test_a_read_that_keeps_nothing_is_refused(read):
    logits, values, pi, kept = read
    with pytest.raises(InputError, match=r"variance_contributions: kept=.* keeps no unit of a read"):
        variance_contributions(logits, values, pi, np.zeros_like(kept))
