import math
import re

import pytest

from kvstats.errors import InputError
from kvstats.planning import gated_kept_fraction, kv_cache_bytes, margin_to_noise, retry_break_even

SHAPE = {"layers": 28, "kv_heads": 2, "head_dim": 128, "tokens": 4096}
COSTS = {"prefill_cost": 2.0, "decode_cost": 1.0, "gate_cost": 0.6}
RATES = {"prevalence": 0.3, "tpr": 0.8, "fpr": 0.1}


def test_bytes_of_a_cache():
    assert kv_cache_bytes(**SHAPE) == 28 * 2 * 128 * 4096 * 2 * 2
    assert kv_cache_bytes(**SHAPE, bytes_per_number=0.5) == kv_cache_bytes(**SHAPE) // 4
    assert kv_cache_bytes(layers=1, kv_heads=1, head_dim=1, tokens=1, bytes_per_number=0.3) == 1


def test_a_gate_keeps_the_budget_or_everything():
    assert gated_kept_fraction(p_open=0.75, budget=0.0625) == pytest.approx(0.75 * 0.0625 + 0.25)
    assert gated_kept_fraction(p_open=0.75, budget=0.0625, batch=3) == pytest.approx(
        0.75**3 * 0.0625 + 1 - 0.75**3
    )
    assert gated_kept_fraction(p_open=0.0, budget=0.1) == 1
    assert gated_kept_fraction(p_open=1.0, budget=0.1, batch=32) == pytest.approx(0.1)


def test_retries_against_a_gate():
    found = retry_break_even(**RATES, **COSTS)
    assert found.retried == pytest.approx(0.3 * 0.8 + 0.7 * 0.1)
    assert found.retry_cost == pytest.approx(0.31 * 3)
    assert found.saving == pytest.approx(0.93 - 0.6)
    at = retry_break_even(**(RATES | {"prevalence": found.break_even_prevalence}), **COSTS)
    assert at.saving == pytest.approx(0)


@pytest.mark.parametrize(
    "changed",
    [{"gate_cost": 0.1}, {"tpr": 0.1}, {"prefill_cost": 0.0, "decode_cost": 0.0}, {"gate_cost": 9.0}],
)
def test_there_may_be_no_break_even(changed):
    assert retry_break_even(**(RATES | COSTS | changed)).break_even_prevalence is None


def test_the_margin_that_beats_noise_everywhere():
    expected = 2 * math.sqrt(math.log(2 * 12**2 * 28 * 4096**2 / 0.05))
    assert margin_to_noise(heads=12, layers=28, tokens=4096) == pytest.approx(expected)
    assert margin_to_noise(heads=12, layers=28, tokens=16384) > expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kv_cache_bytes(**(SHAPE | {"layers": 0})), "layers=0 is not a whole number of at least 1"),
        (lambda: kv_cache_bytes(**(SHAPE | {"tokens": -1})), "tokens=-1 is not a whole number of at least 0"),
        (lambda: kv_cache_bytes(**(SHAPE | {"head_dim": 1.5})), "head_dim=1.5 is not a whole number"),
        (
            lambda: kv_cache_bytes(**SHAPE, bytes_per_number=0.0),
            "kv_cache_bytes: bytes_per_number=0.0 is not a finite number above 0",
        ),
        (lambda: gated_kept_fraction(p_open=1.2, budget=0.1), "p_open=1.2 is not a share in [0, 1]"),
        (lambda: gated_kept_fraction(p_open=0.2, budget=True), "budget=True is not a share in [0, 1]"),
        (lambda: gated_kept_fraction(p_open=0.2, budget=0.1, batch=0), "batch=0 is not a whole number"),
        (lambda: retry_break_even(**(RATES | {"fpr": -0.1}), **COSTS), "fpr=-0.1 is not a share in [0, 1]"),
        (
            lambda: retry_break_even(**RATES, **(COSTS | {"gate_cost": -1.0})),
            "retry_break_even: gate_cost=-1.0 is not a finite number of at least 0",
        ),
        (lambda: margin_to_noise(heads=1, layers=1, tokens=1, beta=1.0), "beta=1.0 is not between 0 and 1"),
        (lambda: margin_to_noise(heads=0, layers=1, tokens=1), "heads=0 is not a whole number of at least 1"),
    ],
)
def test_numbers_out_of_range_are_refused(make, message):
    with pytest.raises(InputError, match=re.escape(message)):
        make()
