import dataclasses
import re

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.inference import DEFAULT_DESIGN, INTERVALS, Design
from kvstats.inference.design import BOOTSTRAPS


def test_defaults():
    assert Design() == DEFAULT_DESIGN
    assert dataclasses.asdict(Design()) == {
        "cluster": ("suite", "task", "input_id"),
        "weight": None,
        "level": 0.95,
        "interval": "auto",
        "n_resamples": 2000,
        "seed": 0,
        "strata": None,
    }


def test_frozen_and_hashable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Design().level = 0.9
    assert len({Design(), Design(), Design(level=0.9)}) == 2


def test_one_name_or_a_list_of_names_makes_a_tuple():
    assert Design(cluster="input_id").cluster == ("input_id",)
    assert Design(cluster=["task", "input_id"]) == Design(cluster=("task", "input_id"))


@pytest.mark.parametrize("interval", INTERVALS)
def test_every_listed_interval_is_accepted(interval):
    assert Design(interval=interval, n_resamples=np.int64(100), level=np.float64(0.5)).interval == interval


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cluster": []}, "Design: cluster=[] is not a list of different column names; pass at least one"),
        ({"cluster": ["a", "a"]}, "Design: cluster=['a', 'a'] is not a list of different column names"),
        ({"cluster": ["a", 3]}, "Design: cluster=['a', 3] is not a list of different column names"),
        ({"cluster": None}, "Design: cluster=None is not a list of different column names"),
        (
            {"strata": []},
            "Design: strata=[] is not a list of different column names; pass at least one, such",
        ),
        ({"strata": ["a", "a"]}, "Design: strata=['a', 'a'] is not a list of different column names"),
        ({"strata": 3}, "Design: strata=3 is not a list of different column names"),
        ({"weight": 2}, "Design: weight=2 is no column name; pass the name of a column, or None"),
        ({"weight": ""}, "Design: weight='' is no column name"),
        ({"level": 1}, "Design: level=1 is not between 0 and 1; pass a share such as 0.95"),
        ({"level": 0.0}, "Design: level=0.0 is not between 0 and 1"),
        ({"level": float("nan")}, "Design: level=nan is not between 0 and 1"),
        ({"level": "0.95"}, "Design: level='0.95' is not between 0 and 1"),
        ({"level": True}, "Design: level=True is not between 0 and 1"),
        ({"interval": "percentil"}, "interval='percentil' is not known; did you mean 'percentile'?"),
        (
            {"interval": None},
            "Design: interval=None is not known; known: auto, basic, bca, clopper_pearson, jackknife",
        ),
        ({"n_resamples": 99}, "Design: n_resamples=99 is not a whole number of at least 100; pass one such"),
        ({"n_resamples": 200.0}, "Design: n_resamples=200.0 is not a whole number of at least 100"),
        ({"seed": -1}, "Design: seed=-1 is not a whole number of at least 0; pass one such as 0"),
        ({"seed": True}, "Design: seed=True is not a whole number of at least 0"),
    ],
)
def test_values_out_of_range_are_refused(arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        Design(**arguments)


def test_strata_are_none_one_name_or_several():
    assert Design().stratum == ()
    assert Design(strata="task").stratum == Design(strata=["task"]).stratum == ("task",)
    assert Design(strata=["suite", "task"]) == Design(strata=("suite", "task"))


@pytest.mark.parametrize("interval", BOOTSTRAPS)
def test_a_bootstrap_interval_needs_resamples_beyond_its_bounds(interval):
    assert Design(interval=interval, level=0.98, n_resamples=100).n_resamples == 100
    assert Design(interval=interval, level=0.99, n_resamples=199).level == 0.99
    message = "Design: n_resamples=198 is too few for a bootstrap interval of level 0.99; pass at least 199"
    with pytest.raises(InputError, match=re.escape(message)):
        Design(interval=interval, level=0.99, n_resamples=198)
    assert Design(interval="linear", level=0.9999, n_resamples=100).level == 0.9999
