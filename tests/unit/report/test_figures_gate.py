"""The figures of the gating study draw the numbers of the estimators."""

import re

import matplotlib
import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log import InputRecord, log_from_records

figures = kv.figures


@pytest.fixture(scope="module")
def log():
    made = kv.simulate_log(
        seed=3,
        inputs=40,
        tasks=("keys", "qa"),
        budgets=(0.125, 0.25, 0.5),
        harm={"keys": {0.125: 0.6, 0.25: 0.4, 0.5: 0.2}, "qa": 0.05},
        accuracy={"keys": 0.9, "qa": 0.6},
        recovery={"keys": 0.0, "qa": 0.2},
    ).log
    return kv.gate(made, tau=0.05, base="plain", name="gated")


def columns(frame, *names):
    return [frame[name].to_list() for name in names]


def test_accuracy_against_budget(log, line, band):
    drawn = figures.accuracy_against_budget(log, arm="gated", baseline="plain", where="task = 'keys'")
    (axes,) = drawn.axes
    for number, (arm, dashes) in enumerate((("plain", "--"), ("gated", "-"))):
        expected = kv.accuracy(log, arm=arm, where="task = 'keys'", by="budget").frame
        assert line(axes, arm) == tuple(columns(expected, "budget", "estimate"))
        assert band(axes, number) == tuple(columns(expected, "low", "high"))
        assert next(artist for artist in axes.lines if artist.get_label() == arm).get_linestyle() == dashes
    full = kv.accuracy(log, arm="full", where="task = 'keys'").frame["estimate"].item()
    assert line(axes, "full")[1] == [full, full]
    assert axes.get_ylabel() == "accuracy (mean score)"
    assert "n = 40 rows in 40 clusters" in drawn.caption
    assert "95% Korn-Graubard intervals" in drawn.caption
    assert "Rows where task = 'keys'." in drawn.caption


def test_accuracy_against_budget_without_the_full_cache(log):
    drawn = figures.accuracy_against_budget(log, arm="gated", baseline="plain", full=None)
    assert [text.get_text() for text in drawn.figure.legends[0].get_texts()] == ["plain", "gated"]


def test_budgets_of_two_kinds_have_no_common_axis(make_records):
    records = make_records(
        {"full": {1.0: [1.0] * 4}, "a": {0.5: [1.0, 0.0, 1.0, 1.0]}, "b": {0.5: [0.0] * 4}}
    )
    mixed = log_from_records(
        [*records, *make_records({"b": {0.25: [1.0] * 4}}, budget=None, budget_tokens=64)]
    )
    with pytest.raises(
        InputError, match=r"accuracy_against_budget: some runs tell .* select runs of one kind"
    ):
        figures.accuracy_against_budget(mixed, arm="a", baseline="b")
    tokens = log_from_records(
        [
            *make_records({"full": {1.0: [1.0] * 4}}),
            *make_records(
                {"a": {0.5: [1.0, 0.0, 1.0, 1.0]}, "b": {0.5: [0.0] * 4}}, budget=None, budget_tokens=64
            ),
        ]
    )
    (axes,) = figures.accuracy_against_budget(tokens, arm="a", baseline="b").axes
    assert axes.get_xlabel() == "budget (tokens kept)"


def test_drop_by_task(log, intervals):
    drawn = figures.drop_by_task(log, tau=0.05)
    (axes,) = drawn.axes
    expected = kv.mean_drop(log, by="task").frame.sort("estimate")
    assert [text.get_text() for text in axes.get_yticklabels()] == expected["task"].to_list()
    assert intervals(axes) == [
        (low, place, high, place) for place, (low, high) in enumerate(expected.select("low", "high").rows())
    ]
    clouds = [artist for artist in axes.lines if len(artist.get_xdata()) == 40]
    for task, cloud in zip(expected["task"], clouds, strict=True):
        assert sorted(cloud.get_xdata()) == sorted(log.inputs.filter(task=task)["drop"])
    assert [0.05, 0.05] in [list(artist.get_xdata()) for artist in axes.lines]
    assert "dotted: τ = 0.05" in drawn.caption


def profiles(layers, task="qa"):
    return [
        InputRecord(
            suite="s",
            model="m",
            task=task,
            input_id=str(i),
            head_agreement_per_layer=[0.6 - 0.02 * layer + 0.001 * (i % 3) for layer in range(layers)],
        )
        for i in range(12)
    ]


def test_agreement_profiles_shade_the_two_bins(line, band):
    log = log_from_records([*profiles(9), *profiles(9, task="keys")])
    drawn = figures.agreement_profiles(log)
    (axes,) = drawn.axes
    expected = kv.agreement_profile(log, by="task").frame.filter(task="qa")
    assert line(axes, "qa") == tuple(columns(expected, "layer", "estimate"))
    assert band(axes, 1) == tuple(columns(expected, "low", "high"))
    assert [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches] == [
        (-0.5, 2.5),
        (5.5, 8.5),
    ]
    assert "layers 0 to 2" in drawn.caption
    assert "(6 to 8)" in drawn.caption


def test_layers_of_different_models_are_not_drawn_over_each_other():
    with pytest.raises(InputError, match=r"agreement_profiles: tasks have 6 and 9 layers"):
        figures.agreement_profiles(log_from_records([*profiles(9), *profiles(6, task="keys")]))


def test_accuracy_against_kept_with_its_crossover(make_log, line):
    scores = {
        "full": {1.0: [1.0] * 40},
        "a": {0.2: [float(i % 10 < 1) for i in range(40)], 0.8: [float(i % 10 < 9) for i in range(40)]},
        "b": {0.2: [float(i % 10 < 5) for i in range(40)], 0.8: [float(i % 10 < 7) for i in range(40)]},
    }
    log = make_log(scores)
    drawn = figures.accuracy_against_kept(log, arm="a", baseline="b")
    (axes,) = drawn.axes
    kept, heights = line(axes, "a")
    expected = kv.accuracy_at_kept(log, arm="a", kept=kept).frame
    assert heights == expected["estimate"].to_list()
    assert (kept[0], kept[-1]) == (0.2, 0.8)
    crossover = kv.memory_crossover(log, arm="a", baseline="b").frame.row(0, named=True)
    assert [crossover["estimate"]] * 2 in [list(artist.get_xdata()) for artist in axes.lines]
    (span,) = axes.patches
    assert (span.get_x(), span.get_x() + span.get_width()) == pytest.approx(
        (crossover["low"], crossover["high"])
    )
    assert "Crossover (dotted): 0.60 [" in drawn.caption


def test_curves_that_do_not_cross_say_so(log):
    drawn = figures.accuracy_against_kept(log, arm="gated", baseline="plain", where="task = 'keys'")
    assert "Crossover (dotted): undefined." in drawn.caption
    assert not drawn.axes[0].patches


def test_mixture_curve(log, line, band, intervals):
    common = {"arm": "gated", "baseline": "plain", "tasks": ["keys"]}
    drawn = figures.mixture_curve(log, **common, level=0.1)
    (axes,) = drawn.axes
    shares, heights = line(axes, "gated minus plain")
    expected = kv.mixture_delta(log, **common, shares=shares).frame
    assert heights == expected["estimate"].to_list()
    assert band(axes, 0) == tuple(columns(expected, "low", "high"))
    low, high = kv.mixture_crossing(log, **common, level=0.1).frame.select("low", "high").row(0)
    assert intervals(axes) == [(low, 0.1, high, 0.1)]
    assert [0.1, 0.1] in [list(artist.get_ydata()) for artist in axes.lines if len(artist.get_xdata()) == 2]
    outside = figures.mixture_curve(log, **common, level=2.0)
    assert not intervals(outside.axes[0])
    assert "outside the figure" in outside.caption


def test_tau_sensitivity(log, line, band):
    taus = [0.0, 0.03, 0.05, 0.07, 0.2]
    drawn = figures.tau_sensitivity(log, base="plain", taus=taus)
    upper, lower = drawn.axes
    sweep = kv.gate_sweep(log, base="plain", taus=taus, quantities=["delta", "gate_open", "kept_fraction"])
    rows = {name: sweep.frame.filter(quantity=name) for name in ("delta", "gate_open", "kept_fraction")}
    assert line(upper, "gated minus plain") == (taus, rows["delta"]["estimate"].to_list())
    assert line(lower, "gate open") == (taus, rows["gate_open"]["estimate"].to_list())
    assert line(lower, "cache kept") == (taus, rows["kept_fraction"]["estimate"].to_list())
    assert band(lower, 0) == tuple(columns(rows["gate_open"], "low", "high"))
    assert line(upper, "open on <5% or >95%")[0] == [0.0, 0.2]
    plateau = kv.gate_plateau(sweep).frame.row(0, named=True)
    for panel in drawn.axes:
        (span,) = panel.patches
        assert span.get_x() == plateau["low_tau"]
        assert span.get_x() + span.get_width() == pytest.approx(plateau["high_tau"])


def test_delta_matrix_shows_what_is_undefined(log):
    where = "NOT (task = 'qa' AND budget < 0.2)"
    drawn = figures.delta_matrix(log, arm="plain", where=where)
    axes = drawn.axes[0]
    expected = kv.delta(log, arm="plain", where=where, by=["task", "budget"]).frame
    grid = axes.images[0].get_array().filled(np.nan)
    assert grid[0].tolist() == expected.filter(task="keys")["estimate"].to_list()
    assert np.isnan(grid[1, 0])
    assert grid[1, 1:].tolist() == expected.filter(task="qa")["estimate"].to_list()
    (hatched,) = axes.patches
    assert (hatched.get_x(), hatched.get_y(), hatched.get_hatch()) == (-0.5, 0.5, "////")
    texts = [text.get_text() for text in axes.texts]
    assert "no runs" in texts
    low, high = expected.filter(task="keys").select("low", "high").row(0)
    assert f"[{low:+.2f},\n{high:+.2f}]".replace("-", "−") in texts


def test_delta_matrix_of_arms_that_never_differ(make_log):
    log = make_log({"full": {1.0: [1.0, 0.0] * 5}, "same": {0.5: [1.0, 0.0] * 5}})
    drawn = figures.delta_matrix(log, arm="same")
    assert [text.get_text() for text in drawn.axes[0].texts] == ["0", "no\ndiscordant\npairs"]
    assert "Hatched or without brackets: without interval (no discordant pairs: 1)" in drawn.caption


def test_recovery_against_headroom(log, line, intervals):
    drawn = figures.recovery_against_headroom(log, arm="plain", cells=["task"])
    (axes,) = drawn.axes
    x = kv.headroom(log, by="task").frame
    y = kv.recovery_rate(log, arm="plain", by="task").frame
    found = intervals(axes)
    for number in range(2):
        across, upwards = found[2 * number : 2 * number + 2]
        assert across == (x["low"][number], y["estimate"][number], x["high"][number], y["estimate"][number])
        assert upwards == (x["estimate"][number], y["low"][number], x["estimate"][number], y["high"][number])
    fit = kv.fit_through_origin(kv.scaling_cells(log, arm="plain", by="task")).slope.frame
    ends, heights = line(axes, "fit")
    assert heights[1] / ends[1] == pytest.approx(fit["estimate"].item())
    assert "over 2 cells: slope" in drawn.caption


def test_recovery_against_headroom_refuses_to_lose_the_baseline(log):
    with pytest.raises(InputError, match=re.escape("leaves other inputs of 'full' than of 'plain'")):
        figures.recovery_against_headroom(log, arm="plain", where="budget < 0.5 OR task = 'qa'")
    kept = figures.recovery_against_headroom(log, arm="plain", where="budget < 0.5 OR arm = 'full'")
    assert "over 2 cells" in kept.caption


def test_recovery_histogram(log, intervals):
    drawn = figures.recovery_histogram(log, arm="plain", by="task")
    (axes,) = drawn.axes
    expected = kv.recovery_indicator(log, arm="plain", by="task").frame
    for task, container in zip(("keys", "qa"), axes.containers, strict=True):
        rows = [
            expected.filter(task=task, quantity=name).row(0, named=True)
            for name in ("lost", "same", "gained")
        ]
        assert [bar.get_height() for bar in container] == [row["estimate"] for row in rows]
    low_high = expected.filter(pl.col("quantity").is_in(["lost", "same", "gained"])).select("low", "high")
    assert {(low, high) for _, low, _, high in intervals(axes)} == set(low_high.rows())
    with pytest.raises(InputError, match=r"recovery_histogram: by=\['task', 'model'\] is not one column"):
        figures.recovery_histogram(log, arm="plain", by=["task", "model"])


def test_recovery_histogram_says_where_keeping_everything_changed_an_answer(make_log):
    log = make_log({"full": {1.0: [1.0] * 8}, "a": {0.5: [1.0, 0.0] * 4, 1.0: [1.0] * 7 + [0.0]}})
    assert "NOT the identity at budget 1 in 1 of 1 parts" in figures.recovery_histogram(log, arm="a").caption


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("accuracy_against_budget", {"arm": "gated", "baseline": "plain"}),
        ("agreement_profiles", {}),
        ("delta_matrix", {"arm": "plain"}),
        ("drop_by_task", {}),
        ("recovery_against_headroom", {"arm": "plain"}),
    ],
)
def test_nothing_left_is_an_error(log, name, arguments):
    with pytest.raises(InputError, match=f"{name}: .* has nothing to draw; check `where`"):
        getattr(figures, name)(log, **arguments, where="task = 'none'")


def test_axes_of_the_caller_are_drawn_on_and_nothing_else_changes(log):
    before = dict(matplotlib.rcParams)
    figure = Figure(figsize=(5, 2))
    axes = figure.subplots(1, 2)
    drawn = figures.tau_sensitivity(log, base="plain", ax=axes)
    assert drawn.figure is figure
    assert drawn.axes == tuple(axes)
    assert figure.get_size_inches().tolist() == [5, 2]
    assert not figure.legends
    assert dict(matplotlib.rcParams) == before
    with pytest.raises(InputError, match="tau_sensitivity: ax="):
        figures.tau_sensitivity(log, base="plain", ax=axes[0])
