import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.estimators import delta, harm_rate, recovery_indicator
from kvstats.inference import Design
from kvstats.log import log_from_records
from kvstats.policies import gate

FULL = [1.0, 0.5, 0.0, 1.0, 0.3]
EVICTED = {0.25: [0.0, 0.5, 0.6, 1.0, 0.1 + 0.2], 0.5: [1.0, 0.9, 0.0, 0.2, 0.0]}
DROP = [0.1, 0.2, 0.05, 0.3, 0.0]


def shares(result):
    return dict(result.frame.select("quantity", "estimate").rows())


def test_the_mean_and_the_share_of_each_value(make_log):
    log = make_log({"full": {1.0: FULL}, "a": EVICTED | {1.0: FULL}})
    signs = [
        0 if abs(score - full) <= 1e-9 else int(np.sign(score - full))
        for scores in EVICTED.values()
        for score, full in zip(scores, FULL, strict=True)
    ]
    found = shares(recovery_indicator(log, arm="a"))
    assert found == pytest.approx(
        {
            "mean": np.mean(signs),
            "lost": signs.count(-1) / 10,
            "same": signs.count(0) / 10,
            "gained": signs.count(1) / 10,
            "identity": 1.0,
        }
    )
    assert found["lost"] + found["same"] + found["gained"] == pytest.approx(1)


def test_intervals_are_those_of_the_harm_rate_and_of_delta(make_log):
    log = make_log({"full": {1.0: [1, 0, 1, 1]}, "a": {0.25: [0, 1, 1, 0], 0.5: [1, 0, 1, 0]}})
    frame = recovery_indicator(log, arm="a").frame
    rows = {row["quantity"]: row for row in frame.iter_rows(named=True)}
    for quantity, result in (("lost", harm_rate(log, arm="a")), ("mean", delta(log, arm="a"))):
        expected = result.frame.row(0, named=True)
        assert {name: rows[quantity][name] for name in expected} == expected


def test_a_cache_kept_whole_that_changes_an_answer_is_flagged(make_log):
    log = make_log({"full": {1.0: FULL}, "a": EVICTED | {1.0: [0.0, *FULL[1:]]}})
    result = recovery_indicator(log, arm="a")
    statuses = dict(result.frame.select("quantity", "status").rows())
    assert statuses["identity"] == "not the identity at budget 1"
    assert shares(result)["identity"] == 0.8
    assert set(statuses.values()) == {"ok", "not the identity at budget 1"}
    assert "not the identity at budget 1" in repr(result)


def test_without_runs_at_budget_one_there_is_no_audit(make_log):
    result = recovery_indicator(make_log({"full": {1.0: FULL}, "a": EVICTED}), arm="a")
    assert dict(result.frame.select("quantity", "status").rows())["identity"] == "no rows"


def test_within_parts_each_has_all_quantities(make_records):
    records = [
        *make_records({"full": {1.0: [1, 0]}, "a": {0.5: [0, 0], 1.0: [1, 0]}}, task="qa"),
        *make_records({"full": {1.0: [1, 0]}, "a": {0.5: [1, 1]}}, task="vt"),
    ]
    frame = recovery_indicator(log_from_records(records), arm="a", by="task").frame
    assert frame.select("task", "quantity").n_unique() == frame.height == 10
    identity = frame.filter(frame["quantity"] == "identity")
    assert identity.select("task", "status").rows() == [("qa", "ok"), ("vt", "no rows")]


def test_given_what_the_gate_decided(make_log):
    log = make_log({"full": {1.0: FULL}, "a": EVICTED | {1.0: FULL}}, drop=DROP)
    gated = gate(log, tau=0.15, base="a")
    closed = shares(recovery_indicator(gated, arm="gate", where="NOT gate_open"))
    assert closed == {"mean": 0, "lost": 0, "same": 1, "gained": 0, "identity": 1}
    opened = shares(recovery_indicator(gated, arm="gate", where="gate_open"))
    # Inputs 1 and 3 are open: 0.5 -> 0.5 and 0.9, 1.0 -> 1.0 and 0.2.
    assert opened == {"mean": 0.0, "lost": 0.25, "same": 0.5, "gained": 0.25, "identity": 1}


def test_nothing_selected_and_one_input(make_log):
    log = make_log({"full": {1.0: [1]}, "a": {0.5: [0]}})
    assert set(recovery_indicator(log, arm="a", where="budget > 1").frame["status"]) == {"no rows"}
    statuses = dict(recovery_indicator(log, arm="a").frame.select("quantity", "status").rows())
    assert statuses["lost"] == "one cluster"


def test_faults_are_those_of_pairs(make_log):
    with pytest.raises(InputError, match="recovery_indicator: arm='b' is not an arm"):
        recovery_indicator(make_log({"full": {1.0: [1]}, "a": {0.5: [0]}}), arm="b")
    log = make_log({"full": {1.0: [1, 1]}, "a": {0.5: [0, None]}})
    with pytest.raises(InputError, match="recovery_indicator: score is null in 1 of 2 rows"):
        recovery_indicator(log, arm="a")
    with pytest.raises(InputError, match="is for rates, whose values are all 0 or 1"):
        recovery_indicator(
            make_log({"full": {1.0: [1, 1]}, "a": {0.5: [0, 1]}}), arm="a", design=Design(interval="wilson")
        )
