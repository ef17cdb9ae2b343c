import re

import numpy as np
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.inference import adjust
from kvstats.inference.multiplicity import METHODS

P = [0.001, 0.04, 0.03, 0.5, 0.03]


def brute_force(p, method):
    m, order = len(p), np.argsort(p, kind="stable")
    harmonic = sum(1 / i for i in range(1, m + 1))
    adjusted = np.empty(m)
    for rank, i in enumerate(order):
        if method in ("bh", "by"):
            factor = harmonic if method == "by" else 1
            adjusted[i] = min(p[j] * m * factor / (r + 1) for r, j in enumerate(order) if r >= rank)
        elif method == "holm":
            adjusted[i] = max(p[j] * (m - r) for r, j in enumerate(order) if r <= rank)
        elif method == "bonferroni":
            adjusted[i] = p[i] * m
        else:
            adjusted[i] = p[i]
    return np.minimum(adjusted, 1)


@pytest.mark.parametrize("method", METHODS)
def test_the_definition(method):
    np.testing.assert_allclose(adjust(P, method), brute_force(P, method))


def test_bh_is_scipys():
    np.testing.assert_allclose(adjust(P), stats.false_discovery_control(P))


@pytest.mark.parametrize("method", METHODS)
def test_an_undefined_p_value_counts_as_one_and_stays_in_the_family(method):
    np.testing.assert_array_equal(adjust([0.01, None, 0.02], method), adjust([0.01, 1.0, 0.02], method))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("family", [[], [0.0, 0.0], [1.0, 1.0], [None], [0.2]])
def test_small_and_extreme_families(method, family):
    expected = [1.0 if p is None else p for p in family]
    assert adjust(family, method).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("p_values", "method", "message"),
    [
        ([0.5, 1.5], "bh", "adjust: p_values=1.5 is no probability; pass p-values in [0, 1], or None"),
        ([-0.1], "holm", "adjust: p_values=-0.1 is no probability"),
        ([float("nan")], "none", "adjust: p_values=nan is no probability"),
        ([0.5], "hommel", "adjust: method='hommel' is not known; did you mean 'holm'?"),
    ],
)
def test_what_is_no_family_is_refused(p_values, method, message):
    with pytest.raises(InputError, match=re.escape(message)):
        adjust(p_values, method)
