import re

import numpy as np
import pytest

from kvstats import Design, accuracy
from kvstats.errors import InputError
from kvstats.estimators.quantiles import crossing_budget, signal_quantile, time_ratio
from kvstats.estimators.red_flag import red_flag
from kvstats.log import InputRecord, RunRecord, log_from_records
from kvstats.policies.retrieve import retrieve

BUDGETS = (0.2, 0.3, 0.4)


def made(seed=0, n=40, tasks=("a", "b")):
    rng = np.random.default_rng(seed)
    records = []
    for task in tasks:
        for i in range(n):
            key = {"suite": "s", "model": "m", "task": task, "input_id": f"{i:03}"}
            age = i % 4
            records.append(InputRecord(**key, drop=0.1, signals={"fact_age": float(age)}))
            full = bool(rng.random() < 0.9)
            records.append(RunRecord(**key, arm="full", budget=1.0, score=float(full), success=full))
            for budget in BUDGETS:
                ok = bool(rng.random() < budget * 2 and full)
                certificate = 1.5 - 1.4 * budget - 0.2 * ok + 0.3 * rng.normal()
                fields = {"budget": budget, "signals": {"certificate": certificate, "logprob": -certificate}}
                records.append(RunRecord(**key, arm="poisson", score=float(ok), success=ok, **fields))
                repaired = ok or bool(rng.random() < 0.5)
                records.append(
                    RunRecord(
                        **key, arm="poisson+ranked", budget=budget, score=float(repaired), success=repaired
                    )
                )
    return log_from_records(records)


def rows_of(log, arm, **keys):
    rows = log.runs.to_dicts()
    return [r for r in rows if r["arm"] == arm and all(r[name] == value for name, value in keys.items())]


def test_quantities_are_their_definitions():
    log = made()
    result = red_flag(log, arm="poisson", tau=1.0, by="budget").frame
    assert result.height == 3 * 7
    assert result.filter(result["tau"].is_null())["quantity"].unique().sort().to_list() == [
        "error_rate",
        "median_when_wrong",
    ]
    for budget in BUDGETS:
        rows = rows_of(log, "poisson", budget=budget)
        flags = [r["certificate"] >= 1.0 for r in rows]
        wrong = [not r["success"] for r in rows]
        pairs = list(zip(flags, wrong, strict=True))
        expected = {
            "flag_rate": np.mean(flags),
            "error_rate": np.mean(wrong),
            "silent_error_rate": np.mean([w and not f for f, w in pairs]),
            "hit_rate": np.mean([f for f, w in pairs if w]),
            "false_alarm_rate": np.mean([f for f, w in pairs if not w]),
            "precision": np.mean([w for f, w in pairs if f]),
            "median_when_wrong": np.median([r["certificate"] for r in rows if not r["success"]]),
        }
        found = {r["quantity"]: r for r in result.to_dicts() if r["budget"] == budget}
        assert {q: r["estimate"] for q, r in found.items()} == pytest.approx(expected)
        assert found["hit_rate"]["n"] == sum(wrong)
        assert all(r["low"] < r["estimate"] < r["high"] for r in found.values())


@pytest.mark.parametrize("higher", ["positive", "negative"])
def test_a_signal_at_the_threshold_is_flagged(higher):
    signal, tau = ("certificate", 1.0) if higher == "positive" else ("logprob", -1.0)
    key = {"suite": "s", "model": "m", "task": "t"}
    records = []
    for i, value in enumerate((0.9, 1.0, 1.1, 0.8)):
        records.append(RunRecord(**key, input_id=str(i), arm="full", budget=1.0, score=1.0, success=True))
        signals = {"certificate": value, "logprob": -value}
        fields = {"budget": 0.5, "score": 0.0, "success": i == 3, "signals": signals}
        records.append(RunRecord(**key, input_id=str(i), arm="poisson", **fields))
    log = log_from_records(records)
    found = red_flag(log, arm="poisson", signal=signal, tau=tau, higher=higher).frame
    estimates = dict(found.select("quantity", "estimate").rows())
    assert (estimates["flag_rate"], estimates["hit_rate"]) == (0.5, pytest.approx(2 / 3))
    answered = retrieve(log, base="poisson", signal=signal, tau=tau, higher=higher)
    assert answered.runs.filter(arm="retrieve").sort("input_id")["rerun"].to_list() == [0, 1, 1, 0]


def test_several_thresholds_trace_the_curve():
    log = made()
    taus = [0.8, 1.0, 1.2]
    curve = red_flag(log, arm="poisson", tau=taus, quantities=["hit_rate", "false_alarm_rate"]).frame
    assert curve.select("tau", "quantity").rows() == [
        (tau, quantity) for tau in taus for quantity in ("false_alarm_rate", "hit_rate")
    ]
    for tau in taus:
        alone = red_flag(log, arm="poisson", tau=tau, quantities=["hit_rate", "false_alarm_rate"]).frame
        assert alone.rows() == curve.filter(tau=tau).rows()
    assert curve.filter(quantity="hit_rate")["estimate"].is_sorted(descending=True)
    assert red_flag(log, arm="poisson", tau=np.array(taus)).frame.height == 2 + 5 * 3
    low = red_flag(log, arm="poisson", signal="logprob", tau=[-tau for tau in taus], higher="negative").frame
    turned = low.filter(quantity="hit_rate")["estimate"].to_list()[::-1]
    assert turned == curve.filter(quantity="hit_rate")["estimate"].to_list()


def test_a_quantity_about_nothing_keeps_its_row():
    log = made(n=5)
    result = red_flag(log, arm="poisson", tau=9.0, design=Design(interval="wilson")).frame
    precision = result.filter(quantity="precision").row(0, named=True)
    assert (precision["estimate"], precision["n"], precision["status"]) == (None, 0, "no rows")
    assert result.filter(quantity="flag_rate")["high"].item() > 0


def test_retrieval_takes_the_full_run_of_flagged_rows():
    log = retrieve(made(), base="poisson", tau=1.0)
    full = {(r["task"], r["input_id"]): r for r in rows_of(log, "full")}
    base = {(r["task"], r["input_id"], r["budget"]): r for r in rows_of(log, "poisson")}
    answered = rows_of(log, "retrieve")
    assert len(answered) == len(base) == 240
    for row in answered:
        own = base[row["task"], row["input_id"], row["budget"]]
        source = full[row["task"], row["input_id"]] if own["certificate"] >= 1.0 else own
        assert row["rerun"] == (own["certificate"] >= 1.0)
        assert row["success"] == source["success"]
        assert row["certificate"] == source["certificate"]
    assert {r["rerun"] for r in rows_of(log, "poisson")} == {None}


def test_retrieval_from_an_arm_of_the_same_budget_and_by_a_low_signal():
    log = retrieve(made(), base="poisson", full="poisson+ranked", name="partial")
    other = retrieve(
        log,
        base="poisson",
        full="poisson+ranked",
        signal="logprob",
        tau=-1.0,
        higher="negative",
        name="again",
    )
    ranked = {(r["task"], r["input_id"], r["budget"]): r for r in rows_of(log, "poisson+ranked")}
    for row in rows_of(log, "partial"):
        if row["rerun"]:
            assert row["score"] == ranked[row["task"], row["input_id"], row["budget"]]["score"]
    by_arm = accuracy(other, where="arm IN ('partial', 'again')", by=["arm", "budget"]).frame
    assert (
        by_arm.filter(arm="partial")["estimate"].to_list() == by_arm.filter(arm="again")["estimate"].to_list()
    )


def test_recall_by_age_is_accuracy_by_the_age_of_the_fact():
    log = made()
    result = accuracy(log, arm="poisson", by=["fact_age", "budget"]).frame
    assert result.select("fact_age", "budget").rows() == [(age, b) for age in range(4) for b in BUDGETS]
    assert result["n"].sum() == 240
    for row in result.to_dicts():
        asked = [
            r
            for r in rows_of(log, "poisson", budget=row["budget"])
            if int(r["input_id"]) % 4 == row["fact_age"]
        ]
        assert row["estimate"] == pytest.approx(np.mean([r["score"] for r in asked]))


def test_messages_of_retrieve():
    log = made(n=3)
    for call, message in (
        (lambda: retrieve(log, base="poisson", tau=float("nan")), "retrieve: tau=nan is not a number"),
        (
            lambda: retrieve(log, base="poison"),
            "retrieve: base='poison' is not an arm of the log; did you mean",
        ),
        (
            lambda: retrieve(log, base="poisson", signal="certificat"),
            "is not a numeric column of runs or inputs; did",
        ),
        (
            lambda: retrieve(log, base="poisson", signal="prediction"),
            "is not a numeric column of runs or inputs",
        ),
        (lambda: retrieve(log, base="poisson", higher="up"), "retrieve: higher='up' is not known"),
        (lambda: retrieve(log, base="poisson", name="full"), "retrieve: name='full' is taken or empty"),
        (
            lambda: retrieve(log, base="full"),
            "retrieve: signal='certificate' is null for 6 of 6 rows of arm 'full'",
        ),
        (lambda: red_flag(log, arm="poisson", tau=True), "red_flag: tau=True is not a number"),
        (lambda: red_flag(log, arm="poisson", tau=[]), "red_flag: tau=[] names no threshold, or one twice"),
        (lambda: red_flag(log, arm="poisson", tau=[1.0, 1]), "red_flag: tau=[1.0, 1] names no threshold"),
        (lambda: red_flag(log, arm="poisson", tau="1"), "red_flag: tau='1' is not a number"),
        (lambda: red_flag(log, arm="poisson", higher="up"), "red_flag: higher='up' is not known"),
        (
            lambda: red_flag(log, arm="poisson", quantities=["recall"]),
            "red_flag: quantities='recall' is not a quantity of the table",
        ),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            call()


def test_median_certificates_and_their_crossing():
    log = made(n=120)
    medians = signal_quantile(log, signal="certificate", arm="poisson", where="failure", by="budget").frame
    for row in medians.to_dicts():
        values = [r["certificate"] for r in rows_of(log, "poisson", budget=row["budget"]) if not r["success"]]
        assert row["estimate"] == pytest.approx(np.median(values))
        assert row["low"] < row["estimate"] < row["high"]
    crossing = crossing_budget(log, signal="certificate", arm="poisson", where="failure").frame.row(
        0, named=True
    )
    expected = np.interp(-1.0, -medians["estimate"].to_numpy(), medians["budget"].to_numpy())
    assert crossing["estimate"] == pytest.approx(expected)
    assert 0.2 <= crossing["low"] < crossing["estimate"] < crossing["high"] <= 0.4
    nowhere = crossing_budget(log, signal="certificate", arm="poisson", level=5.0).frame.row(0, named=True)
    assert (nowhere["estimate"], nowhere["status"]) == (None, "undefined")
    edge = crossing_budget(
        log, signal="certificate", arm="poisson", where="failure", level=medians["estimate"][0] - 1e-3
    ).frame.row(0, named=True)
    # Half of the resamples begin below the level: the lower bound lies before the smallest budget.
    assert (edge["status"], edge["low"]) == ("undefined in bootstrap", None)
    assert 0.2 < edge["estimate"] < 0.21
    for level, message in (
        (float("nan"), "crossing_budget: level=nan is not a finite number"),
        (True, "crossing_budget: level=True is not a finite number"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            crossing_budget(log, signal="certificate", arm="poisson", level=level)
    with pytest.raises(InputError, match=r"where='budget = 0.2' leaves one budget, 0\.2, of arm 'poisson'"):
        crossing_budget(log, signal="certificate", arm="poisson", where="budget = 0.2")
    nothing = signal_quantile(log, signal="certificate", arm="poisson", where="budget > 5").frame
    assert nothing.select("estimate", "status").row(0) == (None, "no rows")


def test_time_ratio_counts_a_batch_once():
    key = {"suite": "s", "model": "m", "task": "t"}
    records = [
        RunRecord(
            **key,
            input_id=f"{i}",
            arm=arm,
            budget=0.5,
            score=1.0,
            seconds={"decode_certified": 1.0 + i / 10, "decode_plain": 1.0} if i < 9 else {"prefill": 2.0},
        )
        for i in range(12)
        for arm in ("poisson", "snapkv", "uniform")
    ]
    by_arm = time_ratio(log_from_records(records), by="arm").frame
    assert by_arm.select("arm", "estimate", "n").rows() == [
        (arm, pytest.approx(1.4), 9) for arm in ("poisson", "snapkv", "uniform")
    ]
    row = time_ratio(log_from_records(records)).frame.row(0, named=True)
    assert (row["estimate"], row["n"], row["clusters"]) == (pytest.approx(1.4), 9, 9)
    assert row["low"] <= 1.4 <= row["high"]
    with pytest.raises(InputError, match=r"time_ratio: denominator='decode' is no phase .* 'decode_plain'\?"):
        time_ratio(log_from_records(records), denominator="decode")
    with pytest.raises(
        InputError, match="time_ratio: numerator='decode_certified' is no phase that was timed"
    ):
        time_ratio(made(n=2))


@pytest.mark.slow
def test_intervals_of_medians_hold_the_truth():
    held = np.zeros(2)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        effect = rng.normal(size=40)
        log = log_from_records(
            [
                RunRecord(
                    suite="s",
                    model="m",
                    task="t",
                    input_id=f"{i}",
                    arm=arm,
                    budget=budget,
                    seed=draw,
                    score=0.0,
                    success=False,
                    signals={"certificate": float(effect[i] + rng.normal() - 60 * (budget - 0.25))},
                )
                for i in range(40)
                for arm, budget, draw in (
                    ("full", 1.0, 0),
                    *(("poisson", b, d) for b in (0.2, 0.3) for d in range(3)),
                )
            ]
        )
        design = Design(n_resamples=400)
        median = signal_quantile(
            log, signal="certificate", arm="poisson", where="budget = 0.2", design=design
        )
        crossing = crossing_budget(log, signal="certificate", arm="poisson", level=0.0, design=design)
        for place, (result, truth) in enumerate(((median, 3.0), (crossing, 0.25))):
            row = result.frame.row(0, named=True)
            assert row["status"] == "ok"
            held[place] += row["low"] <= truth <= row["high"]
    assert (held / 200 > 0.9).all(), held / 200
