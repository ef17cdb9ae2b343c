import itertools
import re

import numpy as np
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.inference import sign_flip as module
from kvstats.inference import sign_flip_test

ALTERNATIVES = ["two-sided", "greater", "less"]


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_few_clusters_are_enumerated(alternative):
    random = np.random.default_rng(0)
    y, codes = random.normal(0.3, size=30), np.r_[np.arange(9), random.integers(0, 9, 21)]
    sums = np.array([y[codes == c].sum() for c in range(9)])
    totals = np.array([np.dot(signs, sums) for signs in itertools.product((1, -1), repeat=9)])
    extreme = {
        "two-sided": np.abs(totals) >= abs(sums.sum()) - 1e-12,
        "greater": totals >= sums.sum() - 1e-12,
        "less": totals <= sums.sum() + 1e-12,
    }[alternative]
    assert sign_flip_test(y, codes, alternative=alternative) == pytest.approx(np.mean(extreme))


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_many_clusters_agree_with_scipys_permutation_test(alternative):
    y = np.random.default_rng(1).normal(0.2, size=60)
    reference = stats.permutation_test(
        (y, np.zeros(60)),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=20_000,
        alternative=alternative,
        rng=np.random.default_rng(2),
    )
    found = sign_flip_test(y, n_permutations=20_000, alternative=alternative)
    assert found == pytest.approx(reference.pvalue, abs=0.012)


def test_random_signs_are_fair_and_independent(monkeypatch):
    monkeypatch.setattr(module, "CELLS", 1000)
    sums = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0])
    drawn = module.random_sums(sums, 50_000, np.random.default_rng(3))
    _, counts = np.unique(drawn, return_counts=True)
    assert counts.size == 512
    assert stats.chisquare(counts).pvalue > 0.001


def test_the_smallest_p_value_is_one_over_all_sign_vectors():
    assert sign_flip_test(np.ones(200)) == pytest.approx(1 / 10_000)
    assert sign_flip_test(np.ones(200), n_permutations=199) == pytest.approx(1 / 200)
    assert sign_flip_test(np.ones(4), alternative="greater") == 1 / 16


@pytest.mark.parametrize("copies", [1, 20])
def test_ties_do_not_depend_on_rounding(copies):
    # 0.1 + 0.2 and 0.3 differ in their last bit; every sign vector with a sum of +-0.6 is a tie.
    y = np.tile([0.1, 0.2, -0.3, 0.3, 0.3], copies)
    exact = np.tile([1, 2, -3, 3, 3], copies)
    for seed in range(3):
        assert sign_flip_test(y, seed=seed) == sign_flip_test(exact, seed=seed)
    shuffled = np.random.default_rng(0).permutation(y)
    assert sign_flip_test(y) == pytest.approx(sign_flip_test(shuffled), abs=0.03)


def test_identical_arms_and_differences_that_cancel_have_p_one():
    for alternative in ALTERNATIVES:
        assert sign_flip_test(np.zeros(50), alternative=alternative) == 1
        assert sign_flip_test([0.1, 0.2, -0.3], ["a", "a", "a"], alternative=alternative) == 1


def test_without_rows_there_is_no_p_value():
    assert sign_flip_test([]) is None


def test_labels_may_be_text_and_their_names_do_not_matter():
    y = np.random.default_rng(4).normal(0.4, size=24)
    codes = np.arange(24) % 8
    renamed = np.array(list("qzmabkxc"))[codes]
    assert sign_flip_test(y, codes) == sign_flip_test(y, renamed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"difference": [1.0, np.nan]}, "sign_flip_test: difference=nan is not finite, at row 1"),
        (
            {"cluster": ["a"]},
            "cluster='array of shape (1,)' does not fit 2 differences; pass one label a row",
        ),
        (
            {"cluster": [None, "a"]},
            "sign_flip_test: cluster='array of object' holds what is no name; pass text",
        ),
        ({"cluster": [1.0, np.nan]}, "sign_flip_test: cluster='array of float64' holds what is no name"),
        ({"difference": ["x", "y"]}, "sign_flip_test: difference='list' is no array of numbers: could not"),
        ({"n_permutations": 10}, "sign_flip_test: n_permutations=10 is not a whole number of at least 100"),
        ({"seed": -1}, "sign_flip_test: seed=-1 is not a whole number of at least 0"),
        ({"alternative": "both"}, "sign_flip_test: alternative='both' is not known; known: greater, less"),
    ],
)
def test_what_cannot_be_tested_is_refused(arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        sign_flip_test(**({"difference": [1.0, 2.0]} | arguments))
