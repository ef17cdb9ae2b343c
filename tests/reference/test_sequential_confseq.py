"""Confidence sequences and capitals against the package confseq (sequential/confseq_values.py)."""

import json
from pathlib import Path

import numpy as np
import pytest

from kvstats.inference.sequential import (
    betting_confidence_sequence,
    empirical_bernstein_sequence,
    mean_e_process,
)

CASES = json.loads((Path(__file__).parent / "sequential" / "confseq.json").read_text())
EVERY_TENTH = slice(9, None, 10)


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return CASES[request.param]


def possible(case):
    """Means that are possible when sampling without replacement, which confseq does not cut to."""
    x = np.array(case["outcomes"])
    size = case["population"]
    if size is None:
        return np.zeros(x.size)[EVERY_TENTH], np.ones(x.size)[EVERY_TENTH]
    time = np.arange(1, x.size + 1)
    low = np.cumsum(x) / size
    return low[EVERY_TENTH], (low + (size - time) / size)[EVERY_TENTH]


def test_empirical_bernstein(case):
    found = empirical_bernstein_sequence(
        case["outcomes"], population=case["population"], running_intersection=False
    )
    low, high = possible(case)
    np.testing.assert_allclose(found.low[EVERY_TENTH], np.maximum(case["bernstein_low"], low), rtol=1e-10)
    np.testing.assert_allclose(found.high[EVERY_TENTH], np.minimum(case["bernstein_high"], high), rtol=1e-10)


def test_plug_in_capital(case):
    low, high = possible(case)
    compared = 0
    for alternative in ("greater", "less"):
        for mean, wanted in case["capital"][alternative].items():
            found = mean_e_process(
                case["outcomes"],
                float(mean),
                alternative=alternative,
                population=case["population"],
                bets="plug_in",
                delta=0.025,
            )[EVERY_TENTH]
            # Where the outcomes rule a mean out, confseq says so one step later.
            sure = low > float(mean) + 1e-9 if alternative == "greater" else high < float(mean) - 1e-9
            assert np.isinf(found[sure]).all()
            known = ~sure & np.array([value is not None for value in wanted])
            compared += known.sum()
            np.testing.assert_allclose(found[known], np.array(wanted, dtype=float)[known], rtol=1e-9)
    assert compared > 60


def test_betting_intervals_up_to_the_two_grids(case):
    found = betting_confidence_sequence(
        case["outcomes"],
        population=case["population"],
        bets="plug_in",
        running_intersection=False,
        candidates=4000,
    )
    low, high = possible(case)
    step = 1 / 2000 + np.pi / 8000
    np.testing.assert_allclose(found.low[EVERY_TENTH], np.maximum(case["betting_low"], low), atol=step)
    np.testing.assert_allclose(found.high[EVERY_TENTH], np.minimum(case["betting_high"], high), atol=step)
