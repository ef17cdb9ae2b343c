import re

import numpy as np
import polars as pl
import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.inference import Design
from kvstats.log import log_from_records

RANDOM = np.random.default_rng(2)
N = 60
FULL = (RANDOM.uniform(size=N) < 0.7).astype(float)
ARM = FULL * (RANDOM.uniform(size=N) < 0.6) + (1 - FULL) * (RANDOM.uniform(size=N) < 0.1)
CERTIFICATE = (FULL * (1 - ARM) + RANDOM.normal(size=N)).round(1)
LOGPROB = (ARM + RANDOM.normal(size=N)).round(1)
MARGIN = [None if i % 10 == 0 else float(RANDOM.normal()) for i in range(N)]


@pytest.fixture
def log(make_records):
    records = []
    for model, half in (("a", slice(0, 30)), ("b", slice(30, 60))):
        records += make_records(
            {"full": {1.0: FULL[half]}, "p": {0.5: ARM[half]}},
            signals={"certificate": CERTIFICATE[half], "logprob": LOGPROB[half], "margin": MARGIN[half]},
            model=model,
            task=f"task {model}",
        )
    return log_from_records(records)


def cell(result, **key):
    rows = result.frame.filter(*(pl.col(name).eq_missing(pl.lit(value)) for name, value in key.items()))
    assert rows.height == 1
    return rows.row(0, named=True)


def area(score, label):
    pairs = [
        (a, b)
        for a, y in zip(score, label, strict=True)
        if y
        for b, z in zip(score, label, strict=True)
        if not z
    ]
    return sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs)


def population(outcome):
    failed, right = ARM < 1, FULL == 1
    return {
        "failure": (np.full(N, True), failed),
        "induced_failure": (right, failed),
        "attribution": (failed, right),
        "harm": (np.full(N, True), ARM < FULL),
    }[outcome]


@pytest.mark.parametrize("outcome", ["failure", "induced_failure", "attribution", "harm"])
def test_every_figure_by_definition(log, outcome):
    result = kv.signal_panel(log, arm="p", outcomes=[outcome])
    rows, label = population(outcome)
    share = cell(result, quantity="share", signal=None)
    assert (share["estimate"], share["n"]) == (pytest.approx(label[rows].mean()), rows.sum())
    known = rows & np.array([value is not None for value in MARGIN])
    for signal, values, sign, own in (
        ("certificate", CERTIFICATE, 1, rows),
        ("logprob", LOGPROB, -1, rows),
        ("margin", np.array([value or 0.0 for value in MARGIN]), -1, known),
    ):
        found = cell(result, signal=signal, quantity="auc")
        expected = area(sign * values[own], label[own])
        assert (found["estimate"], found["n"]) == (pytest.approx(expected), own.sum())
        assert found["higher"] == {1: "positive", -1: "negative"}[sign]
        missing = cell(result, signal=signal, quantity="missing")
        assert (missing["estimate"], missing["n"]) == (pytest.approx(1 - own.sum() / rows.sum()), rows.sum())
        if signal != "certificate":
            difference = cell(result, signal=signal, quantity="difference")
            reference = area(CERTIFICATE[own], label[own])
            assert (difference["estimate"], difference["n"]) == (
                pytest.approx(expected - reference),
                own.sum(),
            )
    assert result.frame.height == 1 + 3 * 2 + 2


@pytest.mark.parametrize("interval", ["auto", "percentile"])
def test_it_is_the_same_as_one_signal_at_a_time(log, interval):
    design = Design(interval=interval, n_resamples=400)
    result = kv.signal_panel(log, arm="p", by="model", within="task", design=design)
    known = "margin IS NOT NULL"
    single = kv.auc(
        log,
        arm="p",
        signal="margin",
        higher="negative",
        by="model",
        within="task",
        where=known,
        design=design,
    )
    both = kv.auc_difference(
        log,
        arm="p",
        first="margin",
        higher="negative",
        second="certificate",
        second_higher="positive",
        by="model",
        within="task",
        where=known,
        design=design,
    )
    for quantity, alone in (("auc", single), ("difference", both)):
        for row in alone.frame.iter_rows(named=True):
            found = cell(result, model=row["model"], outcome="failure", signal="margin", quantity=quantity)
            # The bootstrap draws of the panel are its own.
            tolerance = 1e-12 if interval == "auto" else 0.05
            for figure in ("estimate", "low", "high", "se"):
                assert found[figure] == pytest.approx(row[figure], abs=tolerance), figure


def test_all_signals_of_an_outcome_see_the_same_resamples(log):
    design = Design(interval="percentile", n_resamples=200)
    result = kv.signal_panel(log, arm="p", outcomes=["failure"], rows="shared", design=design)
    samples = {sample.key[1:4:2]: sample for sample in result.samples}
    draws = {
        key: samples[key].resampling.replicates(samples[key].statistic, 200, 0)
        for key in samples
        if key[1] in ("auc", "difference")
    }
    assert draws["margin", "difference"] == pytest.approx(
        draws["margin", "auc"] - draws["certificate", "auc"], abs=1e-15
    )
    row = cell(result, signal="margin", quantity="difference")
    low, high = np.sort(draws["margin", "difference"])[[4, 195]]
    assert (row["low"], row["high"]) == (low, high)


def test_shared_rows_are_those_with_every_signal(log):
    result = kv.signal_panel(log, arm="p", rows="shared")
    known = sum(value is not None for value in MARGIN)
    for signal in ("certificate", "logprob", "margin"):
        assert cell(result, outcome="failure", signal=signal, quantity="auc")["n"] == known
    assert cell(result, outcome="failure", signal="certificate", quantity="missing")["n"] == N


def test_a_signal_without_values_and_a_class_without_rows(make_log):
    log = make_log(
        {"full": {1.0: [1] * 6}, "p": {0.5: [0, 1, 0, 1, 0, 1]}},
        signals={"margin": [None] * 6, "logprob": range(6)},
    )
    result = kv.signal_panel(log, arm="p", reference="logprob", outcomes=["failure", "attribution"])
    row = cell(result, outcome="failure", signal="margin", quantity="auc")
    assert (row["estimate"], row["n"], row["status"]) == (None, 0, "no rows")
    assert cell(result, outcome="failure", signal="margin", quantity="difference")["status"] == "no rows"
    assert cell(result, outcome="failure", signal="margin", quantity="missing")["estimate"] == 1
    assert cell(result, outcome="attribution", signal="logprob", quantity="auc")["status"] == "one class"
    none = kv.signal_panel(log, arm="p", reference=None, where="baseline_success = FALSE")
    assert set(none.frame["status"]) == {"no rows"}
    assert "difference" not in none.frame["quantity"].to_list()


def test_own_orientation_and_chosen_signals(log):
    result = kv.signal_panel(
        log,
        arm="p",
        signals=["score", "margin"],
        reference="logprob",
        higher={"score": "negative", "margin": "positive"},
        outcomes=["failure"],
    )
    assert cell(result, signal="score", quantity="auc")["estimate"] == 1
    plain = kv.signal_panel(log, arm="p", signals=["margin"], reference="logprob", outcomes=["failure"])
    turned = cell(result, signal="margin", quantity="auc")["estimate"]
    assert turned == pytest.approx(1 - cell(plain, signal="margin", quantity="auc")["estimate"])
    # The reference is compared with, and has no row of its own.
    assert set(plain.frame["signal"].drop_nulls()) == {"margin"}


def test_a_difference_is_of_the_runs_that_have_both_signals(log):
    found = cell(
        kv.signal_panel(log, arm="p", reference="margin", outcomes=["failure"]),
        signal="logprob",
        quantity="difference",
    )
    both = kv.auc_difference(
        log,
        first="logprob",
        second="margin",
        higher="negative",
        arm="p",
        where="margin IS NOT NULL",
    ).frame.row(0, named=True)
    for name in ("estimate", "low", "high", "n"):
        assert found[name] == pytest.approx(both[name])
    assert found["n"] == sum(value is not None for value in MARGIN)


def test_some_quantities_only(log):
    whole = kv.signal_panel(log, arm="p")
    for quantity, null in (("auc", 0.5), ("difference", 0), ("missing", None), ("share", None)):
        some = kv.signal_panel(log, arm="p", quantities=[quantity])
        assert some.frame.rows() == whole.frame.filter(quantity=quantity).rows()
        assert some.null == null
    assert whole.null is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": "all"}, "signal_panel: rows='all' is not known; known: own, shared"),
        ({"signals": []}, "signal_panel: signals=[] names no signal, or one twice"),
        ({"signals": ["margin", "margin"]}, "names no signal, or one twice"),
        (
            {"signals": ["margi"]},
            "signals='margi' is not a numeric column of the pairs; did you mean 'margin'?",
        ),
        ({"reference": "certificat"}, "signal_panel: reference='certificat' is not a numeric column"),
        ({"signals": ["score"]}, "signals='score' is not known to be higher in one class or the other"),
        (
            {"signals": ["certificate", "score", "kept_fraction"]},
            "signals=['score', 'kept_fraction'] is not known to be higher in one class or the other; state "
            "it with higher={'score': 'positive'} or 'negative', for each of them, or leave it out with "
            "signals=['certificate']",
        ),
        ({"higher": {"margn": "negative"}}, "signal_panel: higher='margn' is not among the signals"),
        ({"higher": {"margin": "low"}}, "signal_panel: higher='low' is not known; known: negative, positive"),
        ({"outcomes": []}, "signal_panel: outcomes=[] names no outcome, or one twice"),
        (
            {"outcomes": ["failur"]},
            "outcome='failur' is not a Boolean column of the pairs; did you mean 'failure'?",
        ),
        ({"quantities": ["area"]}, "signal_panel: quantities='area' is not a quantity of the table"),
        (
            {"quantities": ["difference"], "signals": ["certificate"]},
            "signal_panel: quantities=['difference'] leaves no row without another signal to compare",
        ),
        ({"within": ["tsk"]}, "signal_panel: within='tsk' is not a column"),
        ({"by": ["modl"]}, "signal_panel: by='modl' is not a column"),
    ],
)
def test_bad_input(log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        kv.signal_panel(log, **({"arm": "p"} | arguments))


def test_a_column_of_the_panel_cannot_be_a_by_column(log):
    odd = log.with_runs(log.runs.with_columns(pl.lit("x").alias("quantity")))
    with pytest.raises(InputError, match="signal_panel: by='quantity' is a column of every such table"):
        kv.signal_panel(odd, arm="p", by="quantity")
