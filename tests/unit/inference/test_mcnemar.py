import re
import time

import numpy as np
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.inference import mcnemar_test

COUNTS = [(0, 1), (1, 0), (3, 3), (4, 4), (2, 9), (9, 2), (30, 41), (0, 12)]


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_exact_is_scipys_binomial_test(counts, alternative):
    lost, gained = counts
    expected = stats.binomtest(lost, lost + gained, 0.5, alternative=alternative).pvalue
    assert mcnemar_test(lost, gained, alternative=alternative) == pytest.approx(expected)


@pytest.mark.parametrize("counts", COUNTS)
def test_mid_p_by_its_definition(counts):
    lost, gained = counts
    chances = stats.binom.pmf(np.arange(lost + gained + 1), lost + gained, 0.5)
    greater = chances[lost + 1 :].sum() + chances[lost] / 2
    less = chances[:lost].sum() + chances[lost] / 2
    assert mcnemar_test(lost, gained, mid_p=True, alternative="greater") == pytest.approx(greater)
    assert mcnemar_test(lost, gained, mid_p=True, alternative="less") == pytest.approx(less)
    expected = min(1.0, 2 * min(greater, less))
    assert mcnemar_test(lost, gained, mid_p=True) == pytest.approx(expected)


@pytest.mark.parametrize("mid_p", [False, True])
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_no_discordant_pairs_are_no_evidence(mid_p, alternative):
    assert mcnemar_test(0, 0, mid_p=mid_p, alternative=alternative) == 1


@pytest.mark.parametrize("counts", [(560, 540), (15_200, 14_800), (10**9, 10**9 + 10**5)])
def test_many_pairs_take_no_longer(counts):
    began = time.perf_counter()
    exact, mid = mcnemar_test(*counts), mcnemar_test(*counts, mid_p=True)
    assert time.perf_counter() - began < 0.5
    normal = stats.norm.sf((abs(counts[0] - counts[1]) - 1) / np.sqrt(sum(counts))) * 2
    assert 0 < mid < exact
    assert exact == pytest.approx(normal, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 2), "mcnemar_test: lost=-1 is no whole number of at least 0; pass a number of pairs"),
        ((1, 2.5), "mcnemar_test: gained=2.5 is no whole number of at least 0"),
        ((1, float("nan")), "mcnemar_test: gained=nan is no whole number"),
        ((True, 2), "mcnemar_test: lost=True is no whole number"),
    ],
)
def test_what_is_no_count_is_refused(arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        mcnemar_test(*arguments)


def test_an_unknown_alternative_is_refused():
    message = "mcnemar_test: alternative='more' is not known; known: greater, less, two-sided"
    with pytest.raises(InputError, match=re.escape(message)):
        mcnemar_test(1, 2, alternative="more")
