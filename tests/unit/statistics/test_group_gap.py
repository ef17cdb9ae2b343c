import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvstats.errors import InputError
from kvstats.statistics.group_gap import GroupGap
from kvstats.statistics.ordered_groups import OrderedConcordance

RNG = np.random.default_rng(5)
Y = RNG.normal(size=40).round(1)
GROUP = np.array(list("abcd"))[np.arange(40) % 4]


def brute_gap(y, group, upper, w, standardised):
    means, square = {}, 0.0
    for name in sorted(set(group)):
        rows = [i for i in range(len(y)) if group[i] == name]
        means[name] = sum(w[i] * y[i] for i in rows) / sum(w[i] for i in rows)
        square += sum(w[i] * (y[i] - means[name]) ** 2 for i in rows)
    gap = min(means[g] for g in upper) - max(m for g, m in means.items() if g not in upper)
    return gap / np.sqrt(square / sum(w)) if standardised else gap


def brute_concordance(y, place, w):
    shares = []
    for g in sorted(set(place)):
        for h in sorted(set(place)):
            if g < h:
                pairs = [
                    (i, j) for i in range(len(y)) for j in range(len(y)) if (place[i], place[j]) == (g, h)
                ]
                above = sum(w[i] * w[j] * ((y[i] < y[j]) + 0.5 * (y[i] == y[j])) for i, j in pairs)
                shares.append(above / sum(w[i] * w[j] for i, j in pairs))
    return np.mean(shares)


@pytest.mark.parametrize("standardised", [False, True])
@pytest.mark.parametrize("upper", [["c"], ["c", "d"], ["a", "b", "c"]])
def test_the_gap_is_its_definition(upper, standardised):
    statistic = GroupGap(Y, GROUP, upper, standardised=standardised)
    for w in (np.ones(40), RNG.exponential(size=40)):
        assert statistic.value(w) == pytest.approx(brute_gap(Y, GROUP, upper, w, standardised), rel=1e-12)


def test_the_concordance_is_its_definition():
    place = np.arange(40) % 4
    statistic = OrderedConcordance(Y, place)
    for w in (np.ones(40), RNG.exponential(size=40)):
        assert statistic.value(w) == pytest.approx(brute_concordance(Y, place, w), rel=1e-12)


@pytest.mark.parametrize(
    "statistic",
    [
        GroupGap(Y, GROUP, ["c", "d"]),
        GroupGap(Y, GROUP, ["c", "d"], standardised=True),
        OrderedConcordance(Y, np.arange(40) % 4),
    ],
)
def test_influences_are_derivatives_and_resamples_are_weights(statistic):
    w = RNG.exponential(size=40) + 0.1
    influence = statistic.influence(w)
    for i in range(0, 40, 3):
        step = np.zeros(40)
        step[i] = 1e-6
        slope = (statistic.value(w + step) - statistic.value(w - step)) / 2e-6
        assert influence[i] == pytest.approx(slope, abs=1e-6)
    codes = np.arange(40) // 4
    counts = RNG.poisson(1.0, size=(20, 10)).astype(float)
    expected = [statistic.value(w * row[codes]) for row in counts]
    np.testing.assert_allclose(statistic.cluster_values(counts, codes, w), expected, rtol=1e-10)


@given(st.floats(-1e6, 1e6), st.floats(0.1, 1e3))
def test_shift_and_scale(shift, scale):
    base = GroupGap(Y, GROUP, ["c"], standardised=True).value(np.ones(40))
    moved = GroupGap(shift + scale * Y, GROUP, ["c"], standardised=True).value(np.ones(40))
    assert moved == pytest.approx(base, rel=1e-5)


def test_what_is_undefined():
    w = np.ones(40)
    w[GROUP == "a"] = 0
    for statistic in (GroupGap(Y, GROUP, ["b"]), OrderedConcordance(Y, np.arange(40) % 4)):
        assert np.isnan(statistic.value(w))
        assert np.isnan(statistic.influence(w)).all()
    flat = GroupGap([0.1, 0.1, 0.3], ["a", "a", "b"], ["b"], standardised=True)
    assert np.isnan(flat.value(np.ones(3)))
    assert np.isnan(OrderedConcordance([], []).value([]))
    assert np.isnan(GroupGap([], [], []).value([]))


def test_messages():
    with pytest.raises(
        InputError, match=r"GroupGap: upper=\['z'\] leaves one side without a group; name some"
    ):
        GroupGap(Y, GROUP, ["z"])
    with pytest.raises(InputError, match=r"GroupGap: upper=\['a', 'b', 'c', 'd'\] leaves one side"):
        GroupGap(Y, GROUP, list("abcd"))
    with pytest.raises(InputError, match="OrderedConcordance: group=1 is the only group; pass two or more"):
        OrderedConcordance([1.0, 2.0], [1, 1])
    with pytest.raises(
        InputError, match=r"OrderedConcordance: group='array of shape \(1,\)' does not fit 2 rows"
    ):
        OrderedConcordance([1.0, 2.0], [1])


def test_tied_means_have_the_influence_of_the_first_whatever_the_order_of_rows():
    rng = np.random.default_rng(0)
    y = np.array([0.1, 0.2, 0.3, 0.3, 0.1, 0.2, 0.7, 0.9, 0.8, 0.6, 1.0, 0.8])
    group = np.repeat(["a", "b", "c", "d"], 3)
    expected = GroupGap(y, group, ["c", "d"]).influence(np.ones(12))
    assert (expected[3:6] == 0).all()
    assert (expected[9:] == 0).all()
    for _ in range(20):
        order = rng.permutation(12)
        found = GroupGap(y[order], group[order], ["c", "d"]).influence(np.ones(12))
        assert found == pytest.approx(expected[order], abs=1e-12)
