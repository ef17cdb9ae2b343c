"""The figures of the certificate study draw the numbers of the estimators."""

import numpy as np
import polars as pl
import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log import RunRecord, log_from_records

figures = kv.figures


@pytest.fixture(scope="module")
def log():
    return kv.simulate_log(
        seed=5,
        inputs=60,
        arms=("poisson",),
        budgets=(0.25, 0.5, 0.75),
        harm={0.25: 0.5, 0.5: 0.3, 0.75: 0.1},
        signals={"certificate": (0.85, 0.6), "logprob": (0.6, 0.8)},
    ).log


def test_signal_panel(log, intervals):
    drawn = figures.signal_panel(log, arm="poisson", outcomes=["failure", "attribution"], within="budget")
    expected = kv.signal_panel(
        log, arm="poisson", outcomes=["failure", "attribution"], within="budget", reference=None
    ).frame.filter(quantity="auc")
    order = expected.filter(outcome="attribution").sort("estimate")["signal"].to_list()
    assert [text.get_text() for text in drawn.axes[0].get_yticklabels()] == order
    assert [axes.get_title(loc="left") for axes in drawn.axes] == ["own failure", "attribution"]
    for axes, outcome in zip(drawn.axes, ("failure", "attribution"), strict=True):
        rows = [expected.filter(outcome=outcome, signal=signal).row(0, named=True) for signal in order]
        assert intervals(axes) == [(row["low"], place, row["high"], place) for place, row in enumerate(rows)]
        assert [0.5, 0.5] in [list(artist.get_xdata()) for artist in axes.lines]
    assert "compared within budget." in drawn.caption
    share = kv.signal_panel(log, arm="poisson", outcomes=["failure"]).frame.filter(quantity="share")
    assert f"own failure in {share['estimate'].item():.1%} of 180 runs" in drawn.caption.lower()


def test_a_signal_without_values_is_shown_as_undefined(make_log):
    scores = {"full": {1.0: [1.0] * 12}, "a": {0.5: [1.0, 0.0, 0.0] * 4}}
    log = make_log(scores, signals={"certificate": [float(i) for i in range(12)], "margin": [None] * 12})
    drawn = figures.signal_panel(log, arm="a", outcomes=["failure"])
    assert "no rows" in [text.get_text() for text in drawn.axes[0].texts]
    assert "undefined (no rows: 1)" in drawn.caption


def test_three_questions(log, intervals):
    drawn = figures.three_questions(log, arm="poisson")
    (axes,) = drawn.axes
    expected = [
        kv.auc(log, arm="poisson", signal=signal, outcome=outcome, higher=higher).frame.row(0, named=True)
        for signal, higher in (("certificate", "positive"), ("logprob", "negative"))
        for outcome in ("failure", "induced_failure", "attribution")
    ]
    found = intervals(axes)
    assert [(low, high) for _, low, _, high in found] == [(row["low"], row["high"]) for row in expected]
    assert [round(x) for x, *_ in found] == [0, 1, 2, 0, 1, 2]
    assert "for three questions, all runs compared. " in drawn.caption
    within = figures.three_questions(log, arm="poisson", within="task").caption
    assert "for three questions, compared within task. " in within


def test_gated_recomputation(log, intervals):
    drawn = figures.gated_recomputation(log, arm="poisson", confidence="logprob", share=0.2)
    (axes,) = drawn.axes
    expected = kv.recomputation(
        log, arm="poisson", signal="certificate", confidence="logprob", share=0.2, by="budget"
    ).frame
    quantities = ("base", "random", "confidence", "policy", "oracle", "full")
    for quantity, container in zip(quantities, axes.containers, strict=True):
        rows = expected.filter(quantity=quantity)
        assert [bar.get_height() for bar in container] == rows["estimate"].to_list()
    judged = expected.filter(pl.col("quantity").is_in(quantities)).drop_nulls("low")
    assert {(low, high) for _, low, _, high in intervals(axes)} == set(judged.select("low", "high").rows())
    gain = expected.filter(quantity="gain_over_random", budget=0.25)["estimate"].item()
    assert f"0.25: {gain:.3f} [" in drawn.caption
    whole = figures.gated_recomputation(log, arm="poisson", by=None)
    assert [text.get_text() for text in whole.axes[0].get_xticklabels()] == ["poisson"]
    assert len(whole.axes[0].containers) == 5


def test_operating_curve(log, line, band, intervals):
    drawn = figures.operating_curve(log, arm="poisson", tau=2.0)
    (axes,) = drawn.axes
    rates, heights = line(axes, "certificate")
    assert (rates[0], rates[-1]) == (0.001, 0.999)
    middle = rates.index(0.2)
    expected = kv.operating_point(log, arm="poisson", signal="certificate", false_alarm_rate=0.2).frame
    assert heights[middle] == expected["estimate"].item()
    low, high = (edge[middle] for edge in band(axes, 0))
    assert (low, high) == expected.select("low", "high").row(0)
    flag = kv.red_flag(log, arm="poisson", tau=2.0).frame
    alarm, hit = (flag.filter(quantity=name).row(0, named=True) for name in ("false_alarm_rate", "hit_rate"))
    across, upwards = intervals(axes)[-2:]
    assert across == (alarm["low"], hit["estimate"], alarm["high"], hit["estimate"])
    assert upwards == (alarm["estimate"], hit["low"], alarm["estimate"], hit["high"])
    area = kv.auc(log, arm="poisson", signal="certificate").frame["estimate"].item()
    assert f"area {area:.2f} [" in drawn.caption
    assert "certificate ≥ 2: hits" in drawn.caption


def test_a_red_flag_of_low_values_says_so(log):
    drawn = figures.operating_curve(log, arm="poisson", signal="logprob", tau=-1.0, higher="negative")
    assert "red flag: logprob ≤ -1" in [text.get_text() for text in drawn.figure.legends[0].get_texts()]


def test_budget_sweep(log, line, band):
    drawn = figures.budget_sweep(log, arm="poisson", tau=2.0)
    left, middle, right = drawn.axes
    answered = kv.retrieve(log, base="poisson", tau=2.0)
    for label, arm in (("as run", "poisson"), ("flagged run again", "retrieve")):
        expected = kv.accuracy(answered, arm=arm, outcome="success", by="budget").frame
        assert line(left, label) == (expected["budget"].to_list(), expected["estimate"].to_list())
    flags = kv.red_flag(log, arm="poisson", tau=2.0, by="budget").frame
    for label, name in (
        ("flagged", "flag_rate"),
        ("wrong", "error_rate"),
        ("wrong, no flag", "silent_error_rate"),
    ):
        assert line(middle, label)[1] == flags.filter(quantity=name)["estimate"].to_list()
    medians = flags.filter(quantity="median_when_wrong")
    assert line(right, "median certificate")[1] == medians["estimate"].to_list()
    assert band(right, 0) == (medians["low"].to_list(), medians["high"].to_list())
    assert [2.0, 2.0] in [list(artist.get_ydata()) for artist in right.lines]


def test_budget_sweep_draws_the_budget_of_the_crossing(make_log):
    records = {"full": {1.0: [1.0] * 40}, "poisson": {b: [0.0] * 40 for b in (0.25, 0.5, 0.75)}}
    log = make_log(records, signals={"certificate": [1.0] * 40})
    runs = log.runs.with_columns(
        certificate=1.4 - pl.col("budget") + pl.col("input_id").str.tail(2).cast(pl.Float64) % 7 / 20
    )
    log = log.with_runs(runs)
    drawn = figures.budget_sweep(log, arm="poisson")
    crossing = kv.crossing_budget(log, signal="certificate", arm="poisson", where="failure").frame
    right = drawn.axes[2]
    assert [crossing["estimate"].item()] * 2 in [list(artist.get_xdata()) for artist in right.lines]
    (span,) = right.patches
    assert (span.get_x(), span.get_x() + span.get_width()) == pytest.approx(
        crossing.select("low", "high").row(0)
    )


def units(*, failing):
    records = []
    for i in range(40):
        key = {"suite": "s", "model": "m", "task": "qa", "input_id": f"{i:02}"}
        success = not failing or i % 5 > i % 7
        matrix = [[float(i % 7), float(i * i % 5)], [float(i % 3), 1.0], [float(i % 11), float(i % 2)]]
        records += [
            RunRecord(**key, arm="full", budget=1.0, score=1.0, success=True),
            RunRecord(
                **key, arm="poisson", budget=0.5, score=success, success=success, certificate_per_head=matrix
            ),
        ]
    return log_from_records(records)


def test_layer_head_map(line, band, intervals):
    log = units(failing=True)
    drawn = figures.layer_head_map(log, arm="poisson")
    left, right = drawn.axes
    result = kv.unit_auc(log, arm="poisson")
    grid = left.images[0].get_array()
    assert grid.shape == (2, 3)
    assert [
        float(grid[head, layer]) for layer, head in result.frame.select("layer", "head").rows()
    ] == result.frame["estimate"].to_list()
    significant = result.frame.filter(pl.Series(kv.adjust(result.p_value()["p_value"]) <= 0.05))
    dots = [artist for artist in left.lines if artist.get_marker() == "."]
    assert [list(artist.get_xdata()) for artist in dots] == [significant["layer"].to_list()]
    assert significant.height == 1
    ordered = result.frame.sort("estimate")
    assert line(right, "units")[1] == ordered["estimate"].to_list()
    best = kv.best_unit_auc(log, arm="poisson").frame.filter(quantity="cross_fitted").row(0, named=True)
    _, low, _, high = intervals(right)[-1]
    assert (low, high) == (best["low"], best["high"])
    assert "Dots: 1 of 6 units" in drawn.caption


def test_a_map_without_failures_is_hatched():
    drawn = figures.layer_head_map(units(failing=False), arm="poisson")
    assert np.isnan(drawn.axes[0].images[0].get_array().filled(np.nan)).all()
    assert len(drawn.axes[0].patches) == 6
    assert "undefined (one class: 6)" in drawn.caption


@pytest.mark.parametrize(
    "name", ["budget_sweep", "gated_recomputation", "layer_head_map", "recovery_histogram"]
)
def test_nothing_left_is_an_error(log, name):
    with pytest.raises(InputError, match=rf"{name}: .* has nothing to draw; check `where`"):
        getattr(figures, name)(
            log, arm="poisson", **{"by": "task"} if name[0] == "r" else {}, where="task = 'none'"
        )
