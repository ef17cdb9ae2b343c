import re

import numpy as np
import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.estimators import (
    accuracy,
    delta,
    gate_open_rate,
    gate_plateau,
    gate_sweep,
    harm_rate,
    induced_failure_rate,
    kept_fraction,
)
from kvstats.inference import Design
from kvstats.log import InputRecord, RunRecord, log_from_records
from kvstats.policies import Threshold, gate, z_threshold
from kvstats.tables import paired


def study(size=40, seed=0, models=("m",)):
    """Two tasks: low drops are destroyed by eviction, high ones are not; some full runs fail."""
    random = np.random.default_rng(seed)
    records = []
    for model in models:
        for task in ("mk3", "vt"):
            for number in range(size):
                drop = float(random.normal(0.05 if task == "mk3" else 0.12, 0.02))
                key = {"suite": "s", "model": model, "task": task, "input_id": f"{number:03}"}
                full = bool(random.uniform() < 0.8)
                records += [
                    InputRecord(**key, drop=drop, signals={"entropy": 10 * drop}),
                    RunRecord(
                        **key,
                        arm="full",
                        budget=1.0,
                        score=float(full),
                        success=full,
                        n_prompt=100,
                        n_kept=100,
                    ),
                ]
                for budget in (0.25, 0.5, 1.0):
                    evicted = full if budget == 1 else bool(random.uniform() < (0.2 if drop < 0.08 else 0.75))
                    records.append(
                        RunRecord(
                            **key,
                            arm="a",
                            budget=budget,
                            score=float(evicted),
                            success=evicted,
                            n_prompt=100,
                            n_kept=round(100 * budget),
                        )
                    )
    return log_from_records(records)


@pytest.fixture(scope="module")
def log():
    return study()


TAUS = [-1.0, 0.04, 0.07, 0.1, 1.0]


def rows_of(result):
    return {(row["tau"], row["quantity"]): row for row in result.frame.iter_rows(named=True)}


def test_a_sweep_is_the_gate_at_each_threshold(log):
    found = rows_of(gate_sweep(log, base="a", taus=TAUS))
    assert len(found) == 25
    for tau in TAUS:
        gated = gate(log, tau=tau, base="a")
        below = {"where": "budget < 1"}
        for quantity, result in (
            ("delta", delta(gated, arm="gate", baseline="a", **below)),
            ("kept_fraction", kept_fraction(gated, arm="gate", **below)),
            ("gate_open", gate_open_rate(gated, arm="gate", **below)),
        ):
            row = rows_of(gate_sweep(log, base="a", taus=[tau]))[tau, quantity]
            expected = result.frame.row(0, named=True)
            numbers = ("estimate", "low", "high", "se", "n", "clusters")
            assert [row[n] for n in numbers] == pytest.approx([expected[n] for n in numbers]), quantity
            assert found[tau, quantity] == row


def test_false_open_and_false_closed_by_definition(log):
    found = rows_of(gate_sweep(log, base="a", taus=TAUS))
    pairs = paired(log, arm="a", where="budget < 1").filter("baseline_success").to_dicts()
    for tau in TAUS:
        opened = [p for p in pairs if p["drop"] >= tau and not p["success"]]
        closed = [p for p in pairs if p["drop"] < tau and p["success"]]
        assert found[tau, "false_open"]["estimate"] == pytest.approx(len(opened) / len(pairs))
        assert found[tau, "false_closed"]["estimate"] == pytest.approx(len(closed) / len(pairs))
        assert found[tau, "false_open"]["n"] == len(pairs)


def test_a_gate_that_is_always_open_destroys_as_eviction_does(log):
    always = rows_of(gate_sweep(log, base="a", taus=[-1.0]))[-1.0, "false_open"]
    expected = induced_failure_rate(log, arm="a", where="budget < 1").frame.row(0, named=True)
    assert {name: always[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("tau", "status"),
    [(-1.0, "gate open on over 95%"), (0.08, "ok"), (1.0, "gate open on under 5%")],
)
def test_a_delta_of_the_fallback_says_so(log, tau, status):
    result = gate_sweep(log, base="a", taus=[tau])
    found = rows_of(result)
    assert found[tau, "delta"]["status"] == status
    assert found[tau, "gate_open"]["status"] == "ok"
    assert status in repr(result)
    p_value = result.p_value(0.0).filter(pl.col("quantity") == "delta")["p_value"].item()
    assert (p_value is None) == (status != "ok")


@pytest.mark.parametrize(
    ("closed", "status"), [(4, "gate open on over 95%"), (5, "ok"), (95, "ok"), (96, None)]
)
def test_exactly_five_percent_are_enough(make_log, closed, status):
    log = make_log({"full": {1.0: [1] * 100}, "a": {0.5: [0] * 100}}, drop=[n / 1000 for n in range(100)])
    found = gate_sweep(log, base="a", taus=[closed / 1000 - 1e-6], quantities=["delta"])
    assert found.frame["status"].item() == (status or "gate open on under 5%")


def test_default_thresholds_are_quantiles_of_the_inputs(log):
    found = gate_sweep(log, base="a", quantities=["gate_open"]).frame
    drops = log.inputs["drop"].to_numpy()
    assert found["tau"].to_numpy() == pytest.approx(np.quantile(drops, np.linspace(0, 1, 21)))
    assert found["estimate"].to_list()[0] == 1
    assert np.diff(found["estimate"].to_numpy()).max() < 0


def test_within_tasks_as_with_a_filter(log):
    by_task = gate_sweep(log, base="a", taus=TAUS, by="task").frame
    for task in ("mk3", "vt"):
        own = by_task.filter(pl.col("task") == task).drop("task")
        assert own.equals(gate_sweep(log, base="a", taus=TAUS, where=f"task = '{task}'").frame)


def test_weights_strata_and_bootstrap_reach_the_engine(log):
    design = Design(strata="task", interval="percentile", n_resamples=200)
    row = gate_sweep(log, base="a", taus=[0.08], quantities=["delta"], design=design).frame.row(0, named=True)
    gated = gate(log, tau=0.08, base="a")
    expected = delta(gated, arm="gate", baseline="a", where="budget < 1", design=design).frame.row(
        0, named=True
    )
    assert row["estimate"] == pytest.approx(expected["estimate"])
    assert row["se"] == pytest.approx(expected["se"], rel=0.2)


def test_rows_of_a_sweep_can_be_contrasted(log):
    found = gate_sweep(log, base="a", taus=[0.04, 0.08], quantities=["delta"]).contrast(tau=(0.08, 0.04))
    both = gate(gate(log, tau=0.08, base="a", name="b"), tau=0.04, base="a", name="c")
    expected = delta(both, arm="b", baseline="c", where="budget < 1").frame.row(0, named=True)
    row = found.frame.row(0, named=True)
    assert row["estimate"] == pytest.approx(expected["estimate"])
    assert row["se"] == pytest.approx(expected["se"])


def test_a_part_without_answers_has_no_false_rates():
    log = log_from_records(
        [
            record
            for number in range(10)
            for key in [{"suite": "s", "model": "m", "task": "t", "input_id": str(number)}]
            for record in (
                InputRecord(**key, drop=0.01 * number),
                RunRecord(**key, arm="full", budget=1.0, score=0.0, success=False, kept_fraction=1.0),
                RunRecord(**key, arm="a", budget=0.5, score=0.0, success=False, kept_fraction=0.5),
            )
        ]
    )
    found = rows_of(gate_sweep(log, base="a", taus=[0.045]))
    assert found[0.045, "false_open"]["status"] == found[0.045, "false_closed"]["status"] == "no rows"
    assert (found[0.045, "delta"]["estimate"], found[0.045, "delta"]["status"]) == (0, "no discordant pairs")
    assert found[0.045, "kept_fraction"]["estimate"] == 0.75


def test_an_empty_selection_has_no_rows(log):
    found = gate_sweep(log, base="a", taus=[0.05], where="budget > 1").frame
    assert set(found["status"]) == {"no rows"}
    with pytest.raises(InputError, match="gate_sweep: no pair is left, and thresholds are quantiles of its"):
        gate_sweep(log, base="a", where="budget > 1")


def test_one_cluster_has_estimates_without_intervals(log):
    found = gate_sweep(log, base="a", taus=[0.05], where="input_id = '000' AND task = 'vt'").frame
    assert found.filter(pl.col("quantity") == "gate_open")["status"].item() == "one cluster"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"taus": ["x"]}, "gate_sweep: tau='x' is not a number"),
        ({"quantities": ["open"]}, "gate_sweep: quantities='open' is not known; did you mean 'gate_open'?"),
        ({"quantities": []}, "gate_sweep: quantities=[] is not a list of different names"),
        ({"quantities": ["delta", "delta"]}, "is not a list of different names; name each once"),
        ({"signal": "dropp"}, "gate_sweep: signal='dropp' is not a numeric column of the inputs"),
        ({"signal": "entropy"}, "gate_sweep: tau=0.05 is a plain number, and 'entropy' is not on the scale"),
        ({"base": "b"}, "gate_sweep: base='b' is not an arm of the log"),
    ],
)
def test_sweeps_that_mean_nothing_are_refused(log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        gate_sweep(log, **({"base": "a", "taus": [0.05]} | arguments))


def test_another_signal_has_thresholds_of_its_own(log):
    taus = [Threshold.given(10 * tau, signal="entropy") for tau in (0.04, 0.08)]
    found = gate_sweep(log, base="a", signal="entropy", taus=taus, quantities=["delta"]).frame
    expected = gate_sweep(log, base="a", taus=[0.04, 0.08], quantities=["delta"]).frame
    assert found["estimate"].to_list() == expected["estimate"].to_list()
    default = gate_sweep(log, base="a", signal="entropy", quantities=["delta"]).frame
    assert default["tau"].min() == pytest.approx(10 * log.inputs["drop"].min())


def test_a_calibrated_threshold_is_not_swept_over_another_model():
    log = study(10, models=("m", "n"))
    tau = z_threshold(log, where="model = 'm'")
    assert gate_sweep(log, base="a", taus=[tau], where="model = 'm'").frame.height == 5
    with pytest.raises(
        InputError, match=r"gate_sweep: tau=.* was calibrated on other inputs than those of model=n"
    ):
        gate_sweep(log, base="a", taus=[tau])


def test_what_a_quantity_needs_must_be_logged(make_records):
    log = log_from_records(
        make_records({"full": {1.0: [1, 1]}, "a": {0.5: [0, 1]}}, drop=[0.1, 0.2], n_kept=None)
    )
    with pytest.raises(InputError, match="gate_sweep: kept_fraction is null in 2 of 2 rows"):
        gate_sweep(log, base="a", taus=[0.15])
    assert gate_sweep(log, base="a", taus=[0.15], quantities=["delta"]).frame["estimate"].item() == 0.5


def test_a_signal_named_as_a_column_of_the_sweep_is_refused():
    key = {"suite": "s", "model": "m", "task": "t", "input_id": "1"}
    log = log_from_records(
        [
            InputRecord(**key, drop=0.1, signals={"tau": 1.0}),
            RunRecord(**key, arm="full", budget=1.0, score=1.0),
            RunRecord(**key, arm="a", budget=0.5, score=1.0),
        ]
    )
    with pytest.raises(InputError, match="gate_sweep: by='tau' is a signal of the log, and the name of a c"):
        gate_sweep(log, base="a", taus=[0.05], by="tau")


@pytest.mark.parametrize("taus", [0.05, [], "0.05"])
def test_thresholds_are_a_list(log, taus):
    with pytest.raises(
        InputError, match=re.escape(f"gate_sweep: taus={taus!r} is no list of thresholds; pass")
    ):
        gate_sweep(log, base="a", taus=taus, quantities=["delta"])
    expected = gate_sweep(log, base="a", taus=[0.05, 0.08], quantities=["delta"]).frame
    found = gate_sweep(log, base="a", taus=np.array([0.08, 0.05]), quantities=["delta"]).frame
    assert found.equals(expected)


def brute_plateau(frame, tolerance):
    taus, deltas = frame["tau"].to_list(), frame["estimate"].to_list()
    best = deltas.index(max(deltas))
    good = [max(deltas) - d <= tolerance + 1e-12 for d in deltas]
    low = max((i + 1 for i in range(best) if not good[i]), default=0)
    high = min((i - 1 for i in range(best, len(taus)) if not good[i]), default=len(taus) - 1)
    return taus[best], taus[low], taus[high]


@pytest.mark.parametrize("tolerance", [0.0, 0.01, 0.05, 1.0])
def test_the_plateau_within_a_tolerance(log, tolerance):
    sweep = gate_sweep(log, base="a", quantities=["delta"])
    found = gate_plateau(sweep, tolerance=tolerance).frame
    assert found.select("best_tau", "low_tau", "high_tau").row(0) == brute_plateau(sweep.frame, tolerance)


def below(sweep, tau):
    return max((other for other in sweep.frame["tau"] if other < tau), default=None)


def above(sweep, tau):
    return min((other for other in sweep.frame["tau"] if other > tau), default=None)


def test_the_plateau_of_what_cannot_be_told_from_the_best(log):
    sweep = gate_sweep(log, base="a", by="task")
    found = gate_plateau(sweep).frame
    assert found["task"].to_list() == ["mk3", "vt"]
    for row in found.iter_rows(named=True):
        own = gate_sweep(
            log,
            base="a",
            quantities=["delta"],
            where=f"task = '{row['task']}'",
            taus=sweep.frame["tau"].unique().to_list(),
        )
        for tau in own.frame["tau"].to_list():
            if tau == row["best_tau"]:
                continue
            contrast = own.contrast(tau=(row["best_tau"], tau)).frame.row(0, named=True)
            sure = contrast["low"] is None and contrast["status"] == "zero variance"
            tied = contrast["estimate"] == 0 or (not sure and (contrast["low"] or 0) <= 0)
            if row["low_tau"] <= tau <= row["high_tau"]:
                assert tied
            elif tau in (below(own, row["low_tau"]), above(own, row["high_tau"])):
                assert not tied
        assert row["best_delta"] == own.frame["estimate"].max()


def test_nothing_can_be_told_apart_in_one_cluster(log):
    taus = [0.04, 0.06, 0.08, 0.1]
    sweep = gate_sweep(log, base="a", taus=taus, quantities=["delta"], design=Design(cluster="suite"))
    assert sweep.frame["estimate"].n_unique() == 4
    assert gate_plateau(sweep).frame.select("low_tau", "high_tau", "as_good").row(0) == (0.04, 0.1, 4)
    # A difference that is the same for every input is beyond doubt: one threshold opens all gates, one none.
    key = {"suite": "s", "model": "m", "task": "t"}
    same = log_from_records(
        [
            record
            for i in range(6)
            for record in (
                InputRecord(**key, input_id=str(i), drop=0.05),
                RunRecord(**key, input_id=str(i), arm="full", budget=1.0, score=1.0),
                RunRecord(**key, input_id=str(i), arm="a", budget=0.5, score=0.5),
            )
        ]
    )
    sweep = gate_sweep(same, base="a", taus=[0.01, 0.1], quantities=["delta"])
    assert gate_plateau(sweep).frame.select("low_tau", "high_tau").row(0) == (0.1, 0.1)


def test_among_equals_the_lowest_threshold_is_best(make_log):
    log = make_log({"full": {1.0: [1, 1, 1]}, "a": {0.5: [0, 1, 1]}}, drop=[0.01, 0.05, 0.09])
    sweep = gate_sweep(log, base="a", taus=[0.02, 0.06, 0.1], quantities=["delta"])
    assert gate_plateau(sweep, tolerance=0).frame.row(0) == (0.02, pytest.approx(1 / 3), 0.02, 0.1, 3, 3)


def test_a_gap_ends_the_plateau(make_log):
    log = make_log({"full": {1.0: [1, 0, 1]}, "a": {0.5: [0, 1, 0]}}, drop=[0.01, 0.05, 0.09])
    sweep = gate_sweep(log, base="a", taus=[0.02, 0.06, 0.1], quantities=["delta"])
    assert gate_plateau(sweep, tolerance=0.0).frame.row(0) == (0.02, pytest.approx(1 / 3), 0.02, 0.02, 3, 1)


def test_results_without_a_plateau_are_refused(log):
    with pytest.raises(InputError, match="gate_plateau: sweep='accuracy' is no sweep of delta"):
        gate_plateau(accuracy(log, arm="a"))
    with pytest.raises(InputError, match="gate_plateau: sweep='gate_sweep' is no sweep of delta"):
        gate_plateau(gate_sweep(log, base="a", quantities=["gate_open"]))
    with pytest.raises(InputError, match="gate_plateau: tolerance=-1 is not a number of at least 0"):
        gate_plateau(gate_sweep(log, base="a", quantities=["delta"]), tolerance=-1)


def test_estimates_given_what_the_gate_decided(log):
    gated = gate(log, tau=0.08, base="a")
    drops = dict(zip(log.inputs.select("task", "input_id").rows(), log.inputs["drop"], strict=True))
    scores = {(r["task"], r["input_id"], r["arm"], r["budget"]): r["score"] for r in log.runs.to_dicts()}
    for where, is_open in (("gate_open", True), ("NOT gate_open", False)):
        keys = [key for key, drop in drops.items() if (drop >= 0.08) is is_open]
        cells = [(key, b) for key in keys for b in (0.25, 0.5)]
        own = [scores[*key, "a", b] if is_open else scores[*key, "full", 1.0] for key, b in cells]
        plain = [scores[*key, "a", b] for key, b in cells]
        full = [scores[*key, "full", 1.0] for key, _ in cells]
        condition = {"where": f"{where} AND budget < 1"}
        mean = accuracy(gated, arm="gate", **condition).frame.row(0, named=True)
        assert (mean["estimate"], mean["n"]) == (pytest.approx(np.mean(own)), len(cells))
        gain = delta(gated, arm="gate", baseline="a", **condition).frame["estimate"].item()
        assert gain == pytest.approx(np.mean(own) - np.mean(plain))
        harm = harm_rate(gated, arm="gate", **condition).frame["estimate"].item()
        assert harm == pytest.approx(np.mean([a < b for a, b in zip(own, full, strict=True)]))


def test_delta_over_any_set_of_budgets(log):
    gated = gate(log, tau=0.08, base="a")
    scores = {(r["task"], r["input_id"], r["arm"], r["budget"]): r["score"] for r in gated.runs.to_dicts()}
    for where, budgets in (
        ("budget < 1", (0.25, 0.5)),
        ("budget IN (0.5, 1.0)", (0.5, 1.0)),
        ("budget = 0.25", (0.25,)),
    ):
        gains = [
            score - scores[task, name, "a", budget]
            for (task, name, arm, budget), score in scores.items()
            if arm == "gate" and budget in budgets
        ]
        found = delta(gated, arm="gate", baseline="a", where=where).frame["estimate"].item()
        assert found == pytest.approx(np.mean(gains))


def test_how_often_a_gate_is_open(log):
    gated = gate(log, tau=0.08, base="a")
    found = gate_open_rate(gated, arm="gate", by="task").frame
    for task, share in found.select("task", "estimate").rows():
        own = log.inputs.filter(pl.col("task") == task)["drop"]
        assert share == pytest.approx(float((own >= 0.08).mean()))
    with pytest.raises(InputError, match="gate_open_rate: gate_open is null in 240 of 240 rows"):
        gate_open_rate(gated, arm="a")
