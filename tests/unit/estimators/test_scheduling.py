import re
from datetime import UTC, datetime

import msgspec
import numpy as np
import polars as pl
import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.inference import Design
from kvstats.log import StudyRecord, log_from_records

RANDOM = np.random.default_rng(8)
N = 40
FULL = (RANDOM.uniform(size=N) < 0.7).astype(float)
BASE = FULL * (RANDOM.uniform(size=N) < 0.4) + (1 - FULL) * (RANDOM.uniform(size=N) < 0.15)
CERTIFICATE = (FULL * (1 - BASE) + RANDOM.normal(size=N)).round(1)
LOGPROB = (BASE + RANDOM.normal(size=N)).round(1)


@pytest.fixture
def records(make_records):
    found = []
    for model, half in (("a", slice(0, 20)), ("b", slice(20, 40))):
        found += make_records(
            {"full": {1.0: FULL[half]}, "p": {0.5: BASE[half]}},
            signals={"certificate": CERTIFICATE[half], "logprob": LOGPROB[half]},
            model=model,
            task=f"task {model}",
        )
    return found


@pytest.fixture
def log(records):
    return log_from_records(records)


def table(log, **arguments):
    arguments = {"arm": "p", "signal": "certificate", "share": 0.25} | arguments
    return kv.recomputation(log, **arguments)


def figures(result):
    return {row["quantity"]: row for row in result.frame.iter_rows(named=True)}


def parts(signal, share, groups):
    """Part of each run that is re-run: the highest level first, ties in equal parts."""
    part = np.zeros(N)
    for rows in groups:
        room = share * len(rows)
        for level in sorted(set(signal[rows]), reverse=True):
            tied = [i for i in rows if signal[i] == level]
            part[tied] = min(1, room / len(tied))
            room -= part[tied].sum()
    return part


MODELS = [list(range(20)), list(range(20, 40))]


@pytest.mark.parametrize("thresholds", ["refit", "fixed"])
@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("within", ["default", None])
def test_every_quantity_by_definition(log, thresholds, share, within):
    groups = [list(range(N))] if within is None else MODELS
    chosen = {} if within == "default" else {"within": None}
    found = figures(table(log, share=share, confidence="logprob", thresholds=thresholds, **chosen))
    gain = {
        "policy": parts(CERTIFICATE, share, groups) * (FULL - BASE),
        "confidence": parts(-LOGPROB, share, groups) * (FULL - BASE),
        "random": share * (FULL - BASE),
        "oracle": parts(np.maximum(FULL - BASE, 0), share, groups) * np.maximum(FULL - BASE, 0),
    }
    base = BASE.mean()
    expected = {"base": base, "full": FULL.mean()}
    for name, values in gain.items():
        expected[name] = base + values.mean()
        expected["gain" if name == "policy" else f"{name}_gain"] = values.mean()
    expected["gain_over_random"] = (gain["policy"] - gain["random"]).mean()
    expected["gain_over_confidence"] = (gain["policy"] - gain["confidence"]).mean()
    expected["gain_ratio"] = gain["policy"].mean() / gain["random"].mean()
    expected["headroom_captured"] = gain["policy"].mean() / gain["oracle"].mean()
    assert {name: row["estimate"] for name, row in found.items()} == pytest.approx(expected, abs=1e-12)
    assert {row["n"] for row in found.values()} == {N}


def test_the_oracle_gains_what_it_may_or_what_there_is(log):
    induced = float(((FULL == 1) & (BASE == 0)).mean())
    for share in (0.1, 0.2, 0.9):
        found = figures(table(log, share=share, within=None))
        assert found["oracle_gain"]["estimate"] == pytest.approx(min(share, induced))
    assert figures(table(log, share=1.0))["oracle"]["estimate"] == pytest.approx(
        np.maximum(FULL, BASE).mean()
    )


def test_the_oracle_leaves_alone_what_it_would_lose(make_log):
    full, base = [1, 1, 0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 1, 1, 0]
    log = make_log({"full": {1.0: full}, "p": {0.5: base}}, signals={"certificate": list(range(8))})
    for share in (0.125, 0.5, 1.0):
        found = figures(table(log, share=share))
        assert found["oracle_gain"]["estimate"] == pytest.approx(min(share, 2 / 8))
    assert found["gain"]["estimate"] == pytest.approx(-1 / 8)


def test_with_fixed_limits_it_is_the_arm_of_the_policy(log):
    both = kv.random_gate(kv.recompute(log, base="p", signal="certificate", share=0.3), base="p", share=0.3)
    found = figures(table(log, share=0.3, outcome="score", thresholds="fixed"))
    for quantity, arm, baseline in (
        ("gain", "recompute", "p"),
        ("random_gain", "random", "p"),
        ("gain_over_random", "recompute", "random"),
    ):
        alone = kv.delta(both, arm=arm, baseline=baseline).frame.row(0, named=True)
        for figure in ("estimate", "low", "high", "se", "df", "n"):
            assert found[quantity][figure] == pytest.approx(alone[figure]), (quantity, figure)


def test_each_seed_and_budget_on_its_own(make_records):
    records = make_records({"full": {1.0: FULL}}, signals={"certificate": CERTIFICATE})
    for seed, values in ((0, BASE), (1, BASE[::-1])):
        records += make_records(
            {"p": {0.25: values, 0.5: FULL}}, signals={"certificate": CERTIFICATE}, seed=seed
        )
    result = table(log_from_records(records), by=["budget", "seed"]).frame
    part = parts(CERTIFICATE, 0.25, [list(range(N))])
    for seed, values in ((0, BASE), (1, BASE[::-1])):
        row = result.filter(budget=0.25, seed=seed, quantity="gain")["estimate"].item()
        assert row == pytest.approx((part * (FULL - values)).mean())
    same = result.filter(budget=0.5, seed=0).select("quantity", "estimate", "status").rows()
    shown = {name: rest for name, *rest in same}
    assert shown["gain_over_random"] == [0, "no discordant pairs"]
    assert shown["gain_ratio"] == shown["headroom_captured"] == [None, "undefined"]


def test_escalation_is_recomputation_by_a_larger_budget(make_log):
    log = make_log(
        {"full": {1.0: FULL}, "p": {0.25: BASE, 0.5: FULL[::-1]}}, signals={"certificate": CERTIFICATE}
    )
    raised = kv.escalate(log, base="p", to_budget=0.5, signal="certificate", share=1.0, name="half")
    found = figures(table(raised, baseline="half", where="budget < 0.5"))
    part = parts(CERTIFICATE, 0.25, [list(range(N))])
    assert found["gain"]["estimate"] == pytest.approx((part * (FULL[::-1] - BASE)).mean())
    random = kv.random_gate(log, base="p", share=0.25, to_budget=0.5)
    mean = kv.accuracy(random, arm="random").frame["estimate"].item()
    assert found["random"]["estimate"] == pytest.approx(mean)


def test_limits_are_stated_and_make_a_difference(log):
    results = {
        thresholds: table(log, thresholds=thresholds, design=Design(interval="percentile", n_resamples=300))
        for thresholds in ("refit", "fixed")
    }
    assert results["refit"].title.startswith("recomputation (share 0.25, limits refitted in each replicate)")
    assert results["fixed"].title.startswith("recomputation (share 0.25, limits held fixed)")
    first, second = (figures(result)["gain"] for result in results.values())
    assert first["estimate"] == pytest.approx(second["estimate"])
    assert (first["low"], first["high"]) != (second["low"], second["high"])


def test_replicates_of_differences_are_differences_of_replicates(log):
    result = table(log)
    samples = {sample.key[0]: sample for sample in result.samples}
    draw = {
        name: samples[name].resampling.replicates(samples[name].statistic, 150, 0)
        for name in (
            "policy",
            "random",
            "gain_over_random",
            "base",
            "gain",
            "oracle_gain",
            "headroom_captured",
        )
    }
    assert draw["gain_over_random"] == pytest.approx(draw["policy"] - draw["random"], abs=1e-14)
    assert draw["headroom_captured"] == pytest.approx(draw["gain"] / draw["oracle_gain"], abs=1e-12)


def test_some_quantities_only(log):
    whole = figures(table(log, design=Design(interval="percentile", n_resamples=200)))
    some = table(
        log,
        quantities=["gain", "gain_over_random"],
        design=Design(interval="percentile", n_resamples=200),
    )
    assert figures(some) == {name: whole[name] for name in ("gain", "gain_over_random")}
    assert some.null == 0
    assert table(log, quantities=["gain_ratio"]).null == 1
    assert table(log).null is None
    assert table(log, quantities=["gain", "gain_ratio"]).null is None


def test_weights_count_in_the_share(records):
    log = log_from_records(records)
    weight = RANDOM.integers(1, 4, N)
    keys = log.runs.filter(arm="p").select("model", "input_id").rows()
    numbers = {key: weight[index] for index, key in enumerate(keys)}
    heavy = log.with_runs(
        log.runs.with_columns(
            pl.Series("w", [float(numbers[row]) for row in log.runs.select("model", "input_id").rows()])
        )
    )
    found = figures(table(heavy, within=None, design=Design(weight="w")))
    copies = np.repeat(np.arange(N), [numbers[key] for key in keys])
    gain = 0.0
    room = 0.25 * copies.size
    for level in sorted(set(CERTIFICATE), reverse=True):
        tied = copies[CERTIFICATE[copies] == level]
        part = min(1, room / tied.size)
        gain += part * (FULL - BASE)[tied].sum()
        room -= part * tied.size
    assert found["gain"]["estimate"] == pytest.approx(gain / copies.size)


def test_degenerate_logs(make_log):
    one = make_log({"full": {1.0: [1]}, "p": {0.5: [0]}}, signals={"certificate": [1]})
    assert set(table(one).frame["status"]) == {"one cluster"}
    empty = table(
        make_log({"full": {1.0: [1]}, "p": {0.5: [0]}}, signals={"certificate": [1]}), where="budget > 2"
    )
    assert set(empty.frame["status"]) == {"no rows"}
    zero = figures(
        table(
            make_log({"full": {1.0: [1, 0, 1]}, "p": {0.5: [0, 0, 1]}}, signals={"certificate": [1, 1, 1]}),
            share=0.0,
        )
    )
    assert (zero["gain"]["estimate"], zero["gain"]["status"]) == (0, "no discordant pairs")
    assert zero["headroom_captured"]["status"] == "undefined"


def test_a_signal_without_levels_is_chance(log):
    flat = log.with_runs(log.runs.with_columns(pl.lit(1.0).alias("certificate")))
    found = figures(table(flat, share=0.3))
    row = found["gain_over_random"]
    assert row["estimate"] == pytest.approx(0, abs=1e-15)
    assert (row["low"], row["status"]) == (None, "no discordant pairs")
    assert found["gain_ratio"]["estimate"] == pytest.approx(1)
    assert found["gain_ratio"]["status"] == "zero variance"
    same = figures(table(log, confidence="certificate", confidence_higher="positive"))
    assert (same["gain_over_confidence"]["estimate"], same["gain_over_confidence"]["status"]) == (
        0,
        "no discordant pairs",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"share": 1.5}, "recomputation: share=1.5 is not in [0, 1]"),
        ({"signal": "certificat"}, "recomputation: signal='certificat' is not a numeric column of the pairs"),
        ({"confidence": "logpro"}, "recomputation: confidence='logpro' is not a numeric column"),
        ({"outcome": "failure"}, "recomputation: outcome='failure' is not known"),
        ({"quantities": ["gains"]}, "recomputation: quantities='gains' is not a quantity of the table"),
        ({"quantities": ["confidence"]}, "quantities='confidence' is not a quantity of the table"),
        ({"quantities": []}, "recomputation: quantities=[] names none, or one twice"),
        ({"thresholds": "none"}, "recomputation: thresholds='none' is not known"),
        ({"confidence_higher": "up"}, "recomputation: confidence_higher='up' is not known"),
        ({"within": "tsk"}, "recomputation: within='tsk' is not a column"),
        ({"baseline": "ful"}, "recomputation: baseline='ful' is not an arm"),
    ],
)
def test_bad_input(log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        table(log, **arguments)


def test_a_run_without_a_signal_is_an_error(make_log):
    log = make_log({"full": {1.0: [1, 1]}, "p": {0.5: [0, 0]}}, signals={"certificate": [1, None]})
    with pytest.raises(InputError, match="recomputation: certificate is null in 1 of 2 rows"):
        table(log)


REGISTRATION = """
study: gating
registered_at: 2026-01-01T00:00:00Z
exclusions: None.
stopping_rule: None.
data:
  runs: [log.jsonl]
policies:
  - policy: recompute
    arguments: {base: p, signal: certificate, share: 0.25, within: [model, budget], margin: whole}
  - policy: random_gate
    arguments: {base: p, share: 0.25}
  - policy: escalate
    arguments: {base: p, signal: certificate, to_budget: 0.5, tau: 1}
claims:
  - id: gating_beats_chance
    statement: Gating by the certificate beats chance at the same cost.
    estimator: recomputation
    arguments:
      {arm: p, signal: certificate, share: 0.25, quantities: [gain_over_random], within: [model, budget]}
    where: budget = 0.25
    supported: low > 0 AND p_value < 0.01
  - id: the_arm_beats_chance
    statement: So does its arm.
    estimator: delta
    arguments: {arm: recompute, baseline: random}
    where: budget = 0.25
    supported: low > 0
  - id: no_signal_but_the_certificate
    statement: No other signal sees its own induced failures as well.
    estimator: signal_panel
    arguments: {arm: p, outcomes: [induced_failure], higher: {logprob: negative}, quantities: [difference]}
    where: budget = 0.25
    supported: high < 0
  - id: terciles
    statement: The top tercile is enriched.
    estimator: recovery_by_tercile
    arguments: {arm: p, signal: certificate}
    where: budget = 0.25
    supported: quantity <> 'enrichment' OR low > 1
"""


def test_it_can_be_registered(make_records, tmp_path):
    random = np.random.default_rng(1)
    full = (random.uniform(size=200) < 0.7).astype(float)
    base = full * (random.uniform(size=200) < 0.6)
    signals = {
        "certificate": (2 * (full - base) + random.normal(size=200)).tolist(),
        "logprob": random.normal(size=200).tolist(),
    }
    scores = {"full": {1.0: full.tolist()}, "p": {0.25: base.tolist(), 0.5: full.tolist()}}
    records = make_records(scores, signals=signals)
    first = StudyRecord(
        schema_version=1, suite="s", model="m", dtype="none", attention="none", versions={}, host="none",
        settings={}, template_hash="none", started_at=datetime(2026, 2, 1, tzinfo=UTC),
    )  # fmt: skip
    lines = [msgspec.json.encode(record) + b"\n" for record in (first, *records)]
    (tmp_path / "log.jsonl").write_bytes(b"".join(lines))
    (tmp_path / "registration.yaml").write_text(REGISTRATION)
    report = kv.verify(tmp_path / "registration.yaml")
    assert report.integrity == ()
    assert [outcome.verdict for outcome in report.claims] == ["supported"] * 4
