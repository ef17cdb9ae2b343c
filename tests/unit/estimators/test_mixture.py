import re

import pytest

from kvstats.errors import InputError
from kvstats.estimators import delta, mixture_crossing, mixture_delta
from kvstats.log import log_from_records


@pytest.fixture
def log(make_records):
    parts = {"keys": ([0, 0, 0, 1], [1, 1, 0, 1]), "qa": ([1, 0, 1], [1, 0, 0]), "vt": ([0.5], [0.75])}
    return log_from_records(
        [
            record
            for task, (plain, gated) in parts.items()
            for record in make_records({"plain": {0.5: plain}, "gate": {0.5: gated}}, task=task)
        ]
    )


CALL = {"arm": "gate", "baseline": "plain", "tasks": ["keys"]}
OWN, REST = 2 / 4, (-1 + 0.25) / 4


def test_the_mixture_is_that_of_both_means(log):
    shares = [0.0, 0.3, 1.0]
    result = mixture_delta(log, **CALL, shares=shares)
    assert result.by == ("share",)
    assert result.frame["share"].to_list() == shares
    assert result.frame["estimate"].to_list() == pytest.approx([f * OWN + (1 - f) * REST for f in shares])
    assert result.null == 0


def test_its_ends_have_the_intervals_of_the_groups(log):
    ends = mixture_delta(log, **CALL, shares=[0.0, 1.0]).frame
    for row, where in zip(ends.iter_rows(named=True), ("task <> 'keys'", "task = 'keys'"), strict=True):
        alone = delta(log, arm="gate", baseline="plain", where=where).frame.row(0, named=True)
        for name in ("estimate", "low", "high", "se", "df"):
            assert row[name] == pytest.approx(alone[name])


def test_variances_of_groups_add_up(log):
    se = [mixture_delta(log, **CALL, shares=[f]).frame["se"].item() for f in (0.0, 0.4, 1.0)]
    assert se[1] ** 2 == pytest.approx((0.6 * se[0]) ** 2 + (0.4 * se[2]) ** 2)


def test_the_crossing_solves_the_mixture(log):
    found = mixture_crossing(log, **CALL, level=0.1).frame.row(0, named=True)
    assert found["estimate"] == pytest.approx((0.1 - REST) / (OWN - REST))
    at = mixture_delta(log, **CALL, shares=[found["estimate"]]).frame["estimate"].item()
    assert at == pytest.approx(0.1)
    assert mixture_crossing(log, **CALL, level=2.0).frame["estimate"].item() > 1


def test_what_is_missing_is_undefined(log):
    alone = mixture_delta(log, **CALL, shares=[0.0, 0.5, 1.0], where="task = 'keys'").frame
    assert alone["estimate"].to_list() == [None, None, 0.5]
    assert alone["status"].to_list() == ["undefined", "undefined", "ok"]
    assert mixture_crossing(log, **CALL, where="task = 'keys'").frame["status"].item() == "undefined"
    assert mixture_delta(log, **CALL, shares=[0.5], where="budget > 1").frame["status"].item() == "no rows"
    same = mixture_delta(log, arm="plain", baseline="plain", tasks=["keys"], shares=[0.5]).frame
    assert same["status"].item() == "no discordant pairs"
    equal = mixture_crossing(log, arm="plain", baseline="plain", tasks=["keys"]).frame
    assert equal["status"].item() == "undefined"


def test_parts_have_mixtures_of_their_own(log):
    named = mixture_delta(log, **CALL, shares=[0.0, 1.0], by="share").contrast(share=(1.0, 0.0))
    assert named.frame["estimate"].item() == pytest.approx(OWN - REST)
    by_budget = mixture_delta(log, **CALL, shares=[0.5], by="budget")
    assert by_budget.by == ("budget", "share")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shares": [1.5]}, "mixture_delta: shares=1.5 is not a share in [0, 1]"),
        ({"shares": 0.5}, "mixture_delta: shares=0.5 is no list of shares; pass a list such as"),
        ({"shares": []}, "mixture_delta: shares=[] is empty or names a share twice"),
        ({"shares": [0.5, 0.5]}, "mixture_delta: shares=[0.5, 0.5] is empty or names a share twice"),
        ({"tasks": ["key"]}, "mixture_delta: tasks='key' is not a task of the log; did you mean 'keys'?"),
        ({"tasks": "keys"}, "mixture_delta: tasks='keys' is no list of tasks"),
        ({"tasks": []}, "mixture_delta: tasks=[] is no list of tasks"),
        ({"by": "shares"}, "mixture_delta: by='shares' is not a column"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        mixture_delta(log, **(CALL | arguments))


def test_a_level_is_a_number(log):
    with pytest.raises(InputError, match=r"mixture_crossing: level=nan is not a finite number"):
        mixture_crossing(log, **CALL, level=float("nan"))
