import math
import re

import numpy as np
import polars as pl
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.estimators import harm_rate, harm_ratio
from kvstats.inference import Design
from kvstats.inference.intervals import log_interval
from kvstats.log import InputRecord, RunRecord, log_from_records
from kvstats.policies import gate


def study(size=80, seed=0, budgets=(0.25, 0.5)):
    """Arms `plain` and `other`, whose harms overlap, and a drop that says little."""
    random = np.random.default_rng(seed)
    records = []
    for number in range(size):
        key = {"suite": "s", "model": "m", "task": f"t{number % 2}", "input_id": f"{number:03}"}
        records += [
            InputRecord(**key, drop=float(random.uniform())),
            RunRecord(**key, arm="full", budget=1.0, score=1.0),
        ]
        weak = random.uniform()
        for budget in budgets:
            for arm, rate in (("plain", 0.8), ("other", 0.4)):
                score = float(random.uniform() > rate * weak)
                records.append(RunRecord(**key, arm=arm, budget=budget, score=score))
    return log_from_records(records)


def harms(log, arm):
    runs = log.runs.filter(log.runs["arm"] == arm).select("input_id", "budget", "score").rows()
    return {(name, budget): score < 1 for name, budget, score in runs}


def only(result):
    return result.frame.row(0, named=True)


def test_the_ratio_of_two_arms_and_its_linearised_error():
    log = study()
    row = only(harm_ratio(log, arm="other", reference="plain"))
    tops, bottoms = harms(log, "other"), harms(log, "plain")
    ratio = sum(tops.values()) / sum(bottoms.values())
    assert (row["estimate"], row["n"], row["clusters"]) == (pytest.approx(ratio), 160, 80)
    rates = [only(harm_rate(log, arm=arm))["estimate"] for arm in ("other", "plain")]
    assert row["estimate"] == pytest.approx(rates[0] / rates[1])
    totals: dict[str, float] = {}
    for (name, budget), harmed in tops.items():
        totals[name] = totals.get(name, 0.0) + harmed - ratio * bottoms[name, budget]
    variance = 80 / 79 * sum(total**2 for total in totals.values()) / sum(bottoms.values()) ** 2
    assert row["se"] == pytest.approx(math.sqrt(variance))
    half = stats.t.ppf(0.975, 79) * row["se"] / ratio
    assert (row["low"], row["high"]) == pytest.approx((ratio * math.exp(-half), ratio * math.exp(half)))


def test_its_p_value_inverts_the_interval():
    result = harm_ratio(study(), arm="other", reference="plain")
    row = only(result)
    for bound in (row["low"], row["high"]):
        assert result.p_value(bound)["p_value"].item() == pytest.approx(0.05)
    assert result.p_value(row["estimate"])["p_value"].item() == pytest.approx(1.0)
    assert result.p_value()["p_value"].item() == pytest.approx(result.p_value(1.0)["p_value"].item())
    assert result.p_value(0.0, "greater")["p_value"].item() == 0
    assert result.p_value(0.0, "less")["p_value"].item() == 1


def test_a_gate_leaves_a_share_of_the_harm_of_its_base():
    log = study()
    gated = gate(log, tau=0.5, base="plain")
    row = only(harm_ratio(gated, arm="gate", reference="plain"))
    tops, bottoms = harms(gated, "gate"), harms(log, "plain")
    assert row["estimate"] == pytest.approx(sum(tops.values()) / sum(bottoms.values()))
    assert row["n"] == sum(bottoms.values())
    assert 0 < row["low"] < row["estimate"] < row["high"] < 1


def test_a_gate_without_harm_has_an_upper_bound():
    log = study()
    row = only(harm_ratio(gate(log, tau=2.0, base="plain"), arm="gate", reference="plain"))
    assert (row["estimate"], row["low"], row["se"], row["status"]) == (0, 0, None, "ok")
    assert 0 < row["high"] < 0.1


def test_pooled_and_by_cell():
    log = study()
    frame = harm_ratio(log, arm="other", reference="plain", by=["task", "budget"]).frame
    tops, bottoms = harms(log, "other"), harms(log, "plain")
    for task, budget, estimate in frame.select("task", "budget", "estimate").rows():
        keys = [k for k in tops if k[1] == budget and f"t{int(k[0]) % 2}" == task]
        assert estimate == pytest.approx(sum(tops[k] for k in keys) / sum(bottoms[k] for k in keys))


def test_what_is_selected_is_said_of_the_arm():
    log = gate(study(), tau=0.5, base="other")
    row = only(harm_ratio(log, arm="gate", reference="plain", where="gate_open AND budget < 0.4"))
    runs = log.runs.filter((log.runs["arm"] == "gate") & (log.runs["budget"] < 0.4)).to_dicts()
    plain = harms(log, "plain")
    opened = [run for run in runs if run["gate_open"]]
    expected = sum(run["score"] < 1 for run in opened) / sum(
        plain[r["input_id"], r["budget"]] for r in opened
    )
    assert row["estimate"] == pytest.approx(expected)


def test_bootstrap_intervals_agree_with_the_linearised_one():
    linear = only(harm_ratio(study(), arm="other", reference="plain"))
    for interval in ("percentile", "bca"):
        row = only(harm_ratio(study(), arm="other", reference="plain", design=Design(interval=interval)))
        assert (row["low"], row["high"]) == pytest.approx((linear["low"], linear["high"]), abs=0.05)


def test_ratios_without_harm_are_undefined(make_log):
    log = make_log({"full": {1.0: [1, 1]}, "a": {0.5: [0, 1]}, "b": {0.5: [1, 1]}})
    assert only(harm_ratio(log, arm="a", reference="b"))["status"] == "undefined"
    none = only(harm_ratio(log, arm="b", reference="a"))
    assert (none["estimate"], none["low"], none["status"]) == (0, None, "zero variance")
    alone = "input_id = 'i001'"
    assert only(harm_ratio(log, arm="b", reference="a", where=alone))["status"] == "undefined"
    assert only(harm_ratio(log, arm="b", reference="a", where="budget > 1"))["status"] == "no rows"


def test_an_arm_that_harms_fewer_by_chance_is_not_taken_for_a_gate(make_log):
    """All inputs that one arm harms are harmed by the other too: the ratio may still exceed 1."""
    plain, other = [0, 0, 0, *[1] * 37], [0, 0, 1, *[1] * 37]
    log = make_log({"full": {1.0: [1] * 40}, "plain": {0.5: plain}, "other": {0.5: other}})
    row = only(harm_ratio(log, arm="other", reference="plain"))
    assert (row["estimate"], row["n"], row["status"]) == (pytest.approx(2 / 3), 40, "ok")
    assert row["high"] > 1
    # The same runs with decisions that do not explain them are no gate either; with the right ones they are.
    decided = pl.col("arm").replace_strict({"other": True}, default=None)
    row = only(
        harm_ratio(log.with_runs(log.runs.with_columns(gate_open=decided)), arm="other", reference="plain")
    )
    assert (row["n"], row["high"] > 1) == (40, True)
    decided = pl.col("arm").replace_strict({"other": False}, default=None)
    row = only(
        harm_ratio(log.with_runs(log.runs.with_columns(gate_open=decided)), arm="other", reference="plain")
    )
    assert (row["n"], row["high"] > 1) == (40, True)
    closed = pl.when(pl.col("arm") == "other").then(pl.col("score") == 0)
    row = only(
        harm_ratio(log.with_runs(log.runs.with_columns(gate_open=closed)), arm="other", reference="plain")
    )
    assert (row["n"], row["high"] <= 1) == (3, True)


def test_arms_that_cannot_be_compared_are_refused(make_log):
    log = make_log({"full": {1.0: [1, 1]}, "a": {0.5: [0, 1]}, "b": {0.25: [1, 1], 0.5: [1, 1]}})
    with pytest.raises(InputError, match="harm_ratio: reference='c' is not an arm of the log"):
        harm_ratio(log, arm="a", reference="c")
    with pytest.raises(InputError, match="harm_ratio: reference='a' is the arm itself; name another arm"):
        harm_ratio(log, arm="a", reference="a")
    message = "harm_ratio: 2 of 4 rows of arm 'b' have no twin of baseline 'a', such as"
    with pytest.raises(InputError, match=re.escape(message)):
        harm_ratio(log, arm="b", reference="a")
    assert only(harm_ratio(log, arm="b", reference="a", where="budget = 0.5"))["estimate"] == 0
    with pytest.raises(InputError, match=r"harm_ratio: .*'wilson' is for rates"):
        harm_ratio(study(), arm="other", reference="plain", design=Design(interval="wilson"))


def test_the_interval_of_a_ratio_is_symmetric_on_the_log_scale():
    low, high = log_interval(0.4, 0.1, 20, 0.9)
    assert low * high == pytest.approx(0.16)
    assert math.log(high / 0.4) == pytest.approx(stats.t.ppf(0.95, 20) * 0.25)
