import re

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.statistics import AUC, AUCDifference, Combination, Mean, Quotient

RANDOM = np.random.default_rng(3)
N = 30
FIRST, SECOND = RANDOM.normal(size=(2, N))
LABEL = RANDOM.uniform(size=N) < 0.4
WEIGHTS = RANDOM.uniform(0.5, 2, N)


def test_a_combination_of_areas_is_their_difference():
    expected = AUCDifference(FIRST, SECOND, LABEL)
    found = Combination([1.0, -1.0], [AUC(FIRST, LABEL), AUC(SECOND, LABEL)])
    assert found.value(WEIGHTS) == pytest.approx(expected.value(WEIGHTS), abs=1e-15)
    assert found.influence(WEIGHTS) == pytest.approx(expected.influence(WEIGHTS), abs=1e-15)
    assert (found.classes == expected.classes).all()
    counts, codes = RANDOM.poisson(1, (5, 10)).astype(float), np.arange(N) % 10
    assert found.cluster_values(counts, codes, WEIGHTS) == pytest.approx(
        expected.cluster_values(counts, codes, WEIGHTS), abs=1e-15
    )


def test_parts_of_other_classes_have_none_in_common():
    assert Combination([1, 1], [AUC(FIRST, LABEL), AUC(FIRST, ~LABEL)]).classes is None
    assert Combination([1, 1], [AUC(FIRST, LABEL), Mean(FIRST)]).classes is None
    assert Quotient(Mean(FIRST), Mean(SECOND)).classes is None


def test_a_quotient_and_its_derivative():
    quotient = Quotient(Mean(FIRST), Combination([2.0, 1.0], [Mean(SECOND), Mean(np.ones(N))]))
    expected = np.average(FIRST, weights=WEIGHTS) / (2 * np.average(SECOND, weights=WEIGHTS) + 1)
    assert quotient.value(WEIGHTS) == pytest.approx(expected, abs=1e-14)
    influence = quotient.influence(WEIGHTS)
    for row in range(0, N, 7):
        step = np.zeros(N)
        step[row] = 1e-5
        slope = (quotient.value(WEIGHTS + step) - quotient.value(WEIGHTS - step)) / 2e-5
        assert influence[row] == pytest.approx(slope, abs=1e-8)


def test_a_quotient_by_zero_is_undefined():
    quotient = Quotient(Mean(FIRST), Mean(np.zeros(N)))
    assert np.isnan(quotient.value(WEIGHTS))
    assert np.isnan(quotient.influence(WEIGHTS)).all()
    values = Quotient(Mean([1.0, 2.0]), Mean([0.0, 4.0])).cluster_values(
        np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 1]), np.ones(2)
    )
    assert np.isnan(values[0])
    assert values[1] == 0.5


def test_an_undefined_part_leaves_the_whole_undefined():
    both = Combination([1.0, 1.0], [Mean(FIRST), AUC(FIRST, np.ones(N))])
    assert np.isnan(both.value(WEIGHTS))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Combination([1.0], []), "Combination: coefficients=[1.0] does not fit 0 statistics"),
        (lambda: Combination([], []), "pass one for each, and one at least"),
        (
            lambda: Quotient(Mean([1.0]), Mean([1.0, 2.0])),
            "Quotient: statistics=[1, 2] are numbers of rows that differ",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=re.escape(message)):
        call()
