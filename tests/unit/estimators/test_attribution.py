import re

import numpy as np
import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.inference.intervals import logit_interval
from kvstats.log import log_from_records
from kvstats.statistics import BandMean, Ratio
from kvstats.statistics.same_rows import atoms

RANDOM = np.random.default_rng(4)
N = 40
FULL = (RANDOM.uniform(size=N) < 0.6).astype(float)
ARM = FULL * (RANDOM.uniform(size=N) < 0.3)
CERTIFICATE = (0.7 * FULL + RANDOM.normal(size=N)).round(1)


@pytest.fixture
def log(make_records):
    records = []
    for task, half in (("a", slice(0, 20)), ("b", slice(20, 40))):
        records += make_records(
            {"full": {1.0: FULL[half]}, "p": {0.5: ARM[half]}},
            signals={"certificate": CERTIFICATE[half], "calm": -CERTIFICATE[half]},
            task=task,
        )
    return log_from_records(records)


def cell(result, quantity, tercile):
    rows = result.frame.filter(quantity=quantity)
    rows = rows.filter(rows["tercile"].eq_missing(tercile) if tercile is None else rows["tercile"] == tercile)
    assert rows.height == 1
    return rows.row(0, named=True)


def shares(rows):
    """Recovered share of each third of some failures, row by row by the signal; ties in equal parts."""
    signal, recovered = CERTIFICATE[rows], FULL[rows]
    order = np.lexsort((recovered, signal))
    size = rows.size
    # Each level of equal signals has its mean.
    smooth = [recovered[signal == signal[i]].mean() for i in order]
    mass = np.zeros(3)
    total = np.zeros(3)
    for place, value in enumerate(smooth):
        for tercile in range(3):
            inside = max(0, min(place + 1, (tercile + 1) * size / 3) - max(place, tercile * size / 3))
            mass[tercile] += inside
            total[tercile] += inside * value
    return total, mass


@pytest.mark.parametrize("thresholds", ["refit", "fixed"])
@pytest.mark.parametrize("within", [None, "task", ["model", "task", "budget"]])
@pytest.mark.parametrize(("signal", "higher"), [("certificate", "positive"), ("calm", "negative")])
def test_terciles_by_definition(log, thresholds, within, signal, higher):
    result = kv.recovery_by_tercile(
        log, arm="p", signal=signal, higher=higher, within=within, thresholds=thresholds
    )
    failed = np.flatnonzero(ARM < 1)
    groups = [failed] if within is None else [failed[failed < 20], failed[failed >= 20]]
    totals, masses = map(sum, zip(*map(shares, groups), strict=True))
    expected = totals / masses
    for tercile in (1, 2, 3):
        row = cell(result, "recovery", tercile)
        assert row["estimate"] == pytest.approx(expected[tercile - 1])
        assert 0 <= row["low"] < row["high"] <= 1
    assert cell(result, "recovery", None)["estimate"] == pytest.approx(FULL[failed].mean())
    enrichment = cell(result, "enrichment", None)
    assert enrichment["estimate"] == pytest.approx(expected[2] / expected[0])
    assert 0 < enrichment["low"] < enrichment["estimate"] < enrichment["high"]


def test_shares_of_refitted_terciles_are_judged_on_the_logit_scale(log):
    result = kv.recovery_by_tercile(log, arm="p", signal="certificate")
    row = cell(result, "recovery", 2)
    bounds = logit_interval(row["estimate"], row["se"], row["df"], 0.95)
    assert (row["low"], row["high"]) == pytest.approx(bounds)


def test_the_title_states_what_happens_to_the_limits(log):
    for thresholds, words in (("refit", "refitted in each replicate"), ("fixed", "held fixed")):
        result = kv.recovery_by_tercile(log, arm="p", signal="certificate", thresholds=thresholds)
        assert result.title == f"recovery_by_tercile (limits {words}), 95% interval"


@pytest.mark.parametrize(("thresholds", "kind"), [("refit", BandMean), ("fixed", Ratio)])
def test_limits_are_refitted_or_not(log, thresholds, kind):
    result = kv.recovery_by_tercile(log, arm="p", signal="certificate", thresholds=thresholds)
    (enrichment,) = [sample for sample in result.samples if sample.key[0] == "enrichment"]
    assert [type(part) for part in atoms(enrichment.statistic)] == [kind, kind]


@pytest.mark.parametrize("thresholds", ["refit", "fixed"])
def test_all_or_nothing_has_an_interval_of_a_rate(make_log, thresholds):
    log = make_log(
        {"full": {1.0: [0] * 12 + [1] * 18}, "p": {0.5: [0] * 30}}, signals={"certificate": range(30)}
    )
    result = kv.recovery_by_tercile(log, arm="p", signal="certificate", thresholds=thresholds)
    low, top = cell(result, "recovery", 1), cell(result, "recovery", 3)
    assert (low["estimate"], low["low"], low["n"]) == (0, 0, 10)
    assert (top["estimate"], top["high"], top["n"]) == (pytest.approx(1), 1, 10)
    assert low["high"] == pytest.approx(1 - top["low"]) == pytest.approx(0.3085, abs=1e-4)
    row = cell(result, "enrichment", None)
    assert (row["estimate"], row["status"]) == (None, "undefined")


def test_some_quantities_only(log):
    whole = kv.recovery_by_tercile(log, arm="p", signal="certificate")
    some = kv.recovery_by_tercile(log, arm="p", signal="certificate", quantities=["enrichment"])
    assert some.frame.rows() == whole.frame.filter(quantity="enrichment").rows()
    assert (some.null, whole.null) == (1, None)


def test_degenerate_logs(make_log):
    none = make_log({"full": {1.0: [1, 1]}, "p": {0.5: [1, 1]}}, signals={"certificate": [1, 2]})
    assert set(kv.recovery_by_tercile(none, arm="p", signal="certificate").frame["status"]) == {"no rows"}
    one = make_log({"full": {1.0: [1]}, "p": {0.5: [0]}}, signals={"certificate": [1]})
    assert set(kv.recovery_by_tercile(one, arm="p", signal="certificate").frame["status"]) == {"one cluster"}
    tied = make_log({"full": {1.0: [1, 0] * 10}, "p": {0.5: [0] * 20}}, signals={"certificate": [1] * 20})
    result = kv.recovery_by_tercile(tied, arm="p", signal="certificate")
    assert [cell(result, "recovery", tercile)["estimate"] for tercile in (1, 2, 3)] == pytest.approx(
        [0.5] * 3
    )
    assert cell(result, "enrichment", None)["estimate"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"thresholds": "free"}, "recovery_by_tercile: thresholds='free' is not known; known: fixed, refit"),
        ({"higher": "up"}, "recovery_by_tercile: higher='up' is not known"),
        ({"signal": "certificat"}, "is not a numeric column of the pairs; did you mean 'certificate'?"),
        ({"within": "tsk"}, "recovery_by_tercile: within='tsk' is not a column"),
        ({"by": "budgets"}, "recovery_by_tercile: by='budgets' is not a column"),
    ],
)
def test_bad_input(log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        kv.recovery_by_tercile(log, **({"arm": "p", "signal": "certificate"} | arguments))


def test_a_failure_without_a_signal_is_an_error(make_log):
    log = make_log({"full": {1.0: [1, 1]}, "p": {0.5: [0, 0]}}, signals={"certificate": [1, None]})
    with pytest.raises(InputError, match="recovery_by_tercile: certificate is null in 1 of 2 rows"):
        kv.recovery_by_tercile(log, arm="p", signal="certificate")
