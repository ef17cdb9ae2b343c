import re

import numpy as np
import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.inference import Design, samples_by
from kvstats.inference.contrast import difference_sample
from kvstats.statistics import Mean

FRAME = pl.DataFrame(
    {
        "group": ["b", "a", None, "b", "a"],
        "id": ["2", "1", "1", "1", "1"],
        "draw": [0, 0, 0, 0, 1],
        "y": [1.0, 2.0, 3.0, 4.0, 5.0],
        "w": [1.0, 2.0, 1.0, 0.0, 0.5],
        "layers": [[1.0]] * 5,
    }
)


def build(part):
    return Mean(part["y"].to_numpy()), "mean"


def test_without_by_there_is_one_sample_with_clusters_in_sorted_order():
    (sample,) = samples_by("f", FRAME, (), Design(cluster="id"), build)
    assert sample.key == ()
    assert sample.clusters == (("1",), ("2",))
    assert sample.codes.tolist() == [1, 0, 0, 0, 0]
    assert sample.weights.tolist() == [1.0] * 5
    assert sample.kind == "mean"


def test_parts_come_in_the_order_of_their_values_null_first():
    samples = samples_by("f", FRAME, ("group",), Design(cluster=["id", "draw"]), build)
    assert [sample.key for sample in samples] == [(None,), ("a",), ("b",)]
    assert [sample.clusters for sample in samples] == [
        (("1", "0"),),
        (("1", "0"), ("1", "1")),
        (("1", "0"), ("2", "0")),
    ]
    assert samples[2].statistic.value(np.ones(2)) == 2.5


def test_rows_of_weight_zero_are_absent():
    (sample,) = samples_by("f", FRAME, (), Design(cluster=["group", "id"], weight="w"), build)
    assert sample.statistic.n == 4
    assert sample.weights.tolist() == [1.0, 2.0, 1.0, 0.5]
    assert sample.clusters == ((None, "1"), ("a", "1"), ("b", "2"))


def test_an_empty_population_has_one_empty_sample_without_by_and_none_with():
    empty = FRAME.clear()
    (sample,) = samples_by("f", empty, (), Design(cluster="id"), build)
    assert (sample.statistic.n, sample.clusters) == (0, ())
    assert samples_by("f", empty, ("group",), Design(cluster="id"), build) == []


@pytest.mark.parametrize(
    ("by", "design", "message"),
    [
        (("grop",), Design(cluster="id"), "f: by='grop' is not a column; did you mean 'group'?"),
        ((), Design(cluster="ids"), "f: design.cluster='ids' is not a column; did you mean 'id'?"),
        (("layers",), Design(cluster="id"), "f: by='layers' is a column of lists; name a column of plain"),
        ((), Design(cluster="id", strata="w2"), "f: design.strata='w2' is not a column"),
        ((), Design(cluster="id", weight="v"), "f: design.weight='v' is not a column; known: draw, group"),
        ((), Design(cluster="id", weight="group"), "f: design.weight='group' is not a column of numbers"),
    ],
)
def test_columns_that_cannot_be_used_are_refused(by, design, message):
    with pytest.raises(InputError, match=re.escape(message)):
        samples_by("f", FRAME, by, design, build)


def test_weights_that_are_none_are_counted():
    frame = FRAME.with_columns(w=pl.Series([1.0, None, -1.0, float("nan"), float("inf")]))
    message = (
        "f: design.weight='w' has 4 of 5 rows that are null, not finite or negative; leave these rows out"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        samples_by("f", frame, (), Design(cluster="id", weight="w"), build)


def test_each_cluster_has_its_stratum():
    frame = FRAME.with_columns(site=pl.Series([7, 5, 5, 5, 5]))
    (sample,) = samples_by("f", frame, (), Design(cluster=["id"], strata="site"), build)
    assert sample.strata == (("5",), ("7",))
    assert sample.stratum_codes.tolist() == [0, 1]
    (plain,) = samples_by("f", frame, (), Design(cluster=["id"]), build)
    assert plain.strata is None
    assert plain.stratum_codes.tolist() == [0, 0]
    (own,) = samples_by("f", frame, (), Design(cluster=["site", "id"], strata=["site"]), build)
    assert own.strata == (("5",), ("7",))


def test_null_is_a_stratum_and_may_be_a_cluster():
    frame = FRAME.with_columns(site=pl.Series(["x", None, None, None, None]))
    (sample,) = samples_by("f", frame, (), Design(cluster="id", strata="site"), build)
    assert sample.strata == ((None,), ("x",))
    frame = frame.with_columns(id=pl.Series([None, "1", "1", "1", "1"], dtype=pl.String))
    (sample,) = samples_by("f", frame, (), Design(cluster="id", strata="site"), build)
    assert (sample.clusters, sample.strata) == (((None,), ("1",)), (("x",), (None,)))


def test_a_cluster_in_two_strata_is_refused():
    message = (
        "f: design.strata=('group',) puts the cluster (id=1) into several strata (None, a, b); "
        "name columns that have one value in each cluster"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        samples_by("f", FRAME, (), Design(cluster="id", strata="group"), build)
    apart = samples_by("f", FRAME, ("group",), Design(cluster="id", strata="group"), build)
    assert [sample.strata for sample in apart] == [((None,),), (("a",),), (("b",),) * 2]


STRATIFIED = pl.DataFrame(
    {
        "id": ["1", "2", "3", "4", "5", "6", "7"],
        "site": ["a", "a", "a", "b", "b", "b", "c"],
        "y": [0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0],
        "inside": [True, True, False, True, False, True, False],
    }
)


def mean_of(part):
    return Mean(part["y"].to_numpy()), "mean"


def test_clusters_without_rows_of_the_part_are_listed_in_its_strata():
    design = Design(cluster="id", strata="site")
    inside = STRATIFIED.filter("inside")
    (selected,) = samples_by("f", inside, (), design, mean_of, STRATIFIED)
    _, by = samples_by("f", STRATIFIED, ("inside",), design, mean_of)
    for sample in (selected, by):
        assert sample.clusters == tuple((name,) for name in "123456")
        assert sample.strata == tuple((name,) for name in "aaabbb")
        assert sample.codes.tolist() == [0, 1, 3, 5]
        assert sample.drawn_from.tolist() == [[True] * 6]
        assert sample.n_clusters == 4
    (unaware,) = samples_by("f", inside, (), design, mean_of)
    assert unaware.clusters == tuple((name,) for name in "1246")
    (plain,) = samples_by("f", inside, (), Design(cluster="id"), mean_of, STRATIFIED)
    assert (plain.clusters, plain.drawn) == (unaware.clusters, None)


def test_a_part_in_one_stratum_is_judged_like_one_without_strata():
    frame = STRATIFIED.filter(pl.col("site") == "a", "inside")
    (sample,) = samples_by("f", frame, (), Design(cluster="id", strata="site"), mean_of, STRATIFIED)
    assert sample.clusters == (("1",), ("2",))


def test_a_stratum_that_cannot_be_counted_is_refused():
    message = (
        "f: design.strata='site' is not a column of the runs or inputs, so that the clusters drawn from a "
        "stratum cannot be counted"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        samples_by("f", STRATIFIED, (), Design(cluster="id", strata="site"), mean_of, STRATIFIED.drop("site"))


def test_clusters_of_which_both_sides_are_selected_are_kept_in_a_contrast():
    frame = STRATIFIED.filter(pl.col("site") != "c")
    sides = samples_by("f", frame, ("inside",), Design(cluster="id", strata="site"), mean_of)
    contrast = difference_sample((), *sides)
    assert contrast.drawn_from.tolist() == [[True] * 6] * 2
    assert contrast.n_clusters == 6
