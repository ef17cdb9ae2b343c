import math

import numpy as np
import pytest
from scipy import special

from kvstats.errors import InputError
from kvstats.planning import anticipated_harm
from kvstats.statistics import AUC


def test_the_mean_is_the_rate_and_the_order_that_of_the_signal():
    signal = np.random.default_rng(0).exponential(size=500)
    p = anticipated_harm(signal, rate=0.03, auc=0.8)
    assert p.mean() == pytest.approx(0.03, rel=1e-12)
    assert (np.argsort(p) == np.argsort(signal)).all()
    assert (anticipated_harm(np.log(signal), rate=0.03, auc=0.8) == p).all()


@pytest.mark.parametrize("auc", [0.2, 0.75, 0.99])
def test_the_share_of_harmed_runs_between_two_quantiles_of_the_mixture(auc):
    d = math.sqrt(2) * special.ndtri(auc)
    p = anticipated_harm([3.0, 1.0, 2.0, 2.0, 4.0], rate=0.2, auc=auc)
    x = np.linspace(-12, 12, 400_001)
    mixture = 0.8 * special.ndtr(x) + 0.2 * special.ndtr(x - d)
    harmed = np.interp([0.2, 0.6, 0.8], mixture, special.ndtr(x - d))
    shares = 0.2 * np.diff([0, *harmed, 1]) / [0.2, 0.4, 0.2, 0.2]
    assert p == pytest.approx(shares[[2, 0, 1, 1, 3]], abs=1e-7)


def test_probabilities_are_calibrated_where_the_signal_is_normal():
    random = np.random.default_rng(1)
    harmed = random.random(200_000) < 0.1
    signal = random.standard_normal(harmed.size) + math.sqrt(2) * special.ndtri(0.8) * harmed
    p = anticipated_harm(signal, rate=0.1, auc=0.8)
    for low, high in ((0.0, 0.03), (0.03, 0.1), (0.1, 0.3), (0.3, 1.0)):
        inside = (p >= low) & (p < high)
        assert harmed[inside].mean() == pytest.approx(p[inside].mean(), abs=0.01)


def test_a_signal_that_says_nothing_or_the_opposite():
    signal = [1.0, 2.0, 3.0, 3.0]
    assert anticipated_harm(signal, rate=0.1, auc=0.5) == pytest.approx([0.1] * 4)
    p = anticipated_harm(signal, rate=0.1, auc=0.2)
    assert p[0] > p[1] > p[2] == p[3]
    assert AUC(p, [1, 0, 0, 0]).value(np.ones(4)) == 1.0
    assert anticipated_harm([5.0, 5.0], rate=0.3, auc=0.9) == pytest.approx([0.3, 0.3])


@pytest.mark.parametrize(
    ("signal", "change", "message"),
    [
        ([], {}, "anticipated_harm: signal='an empty array' has no runs"),
        ([1.0, math.nan], {}, "signal=nan is not finite, at row 1"),
        ([1.0], {"rate": 0.0}, "rate=0.0 is not between 0 and 1"),
        ([1.0], {"auc": 1.0}, "auc=1.0 is not between 0 and 1"),
    ],
)
def test_bad_input(signal, change, message):
    with pytest.raises(InputError, match=message):
        anticipated_harm(signal, **{"rate": 0.1, "auc": 0.7, **change})
