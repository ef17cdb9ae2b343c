"""Every figure stays within its edges and leaves its panels room: one task, twelve, and long names."""

import re

import pytest

import kvstats as kv
from kvstats.log import InputRecord, log_from_records
from kvstats.report.figures.marks import filling
from kvstats.report.plots import DOUBLE, SINGLE, style
from kvstats.report.plots.style import LOOKS, look
from kvstats.report.plots.wording import plain_text

figures = kv.figures

LONG = (
    "a&b_100%_$x$ ^~\\ {z}",
    "multi_field_question_answering_third_every_2",
    *(f"longbench_multifieldqa_en_e_part_{number}" for number in range(10)),
)


BUDGETS = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75)


def log_of(tasks):
    made = kv.simulate_log(
        seed=1, inputs=12, tasks=tasks, arms=("plain", "evict"), budgets=(0.25, 0.5, 0.75), harm=0.4
    )
    return kv.gate(made.log, tau=0.05, base="plain", name="gated")


LOGS = {"one": log_of(("qa",)), "twelve": log_of(LONG)}

FIGURES = {
    "accuracy_against_budget": {"arm": "gated", "baseline": "plain"},
    "accuracy_against_kept": {"arm": "gated", "baseline": "plain"},
    "drop_by_task": {"tau": 0.05},
    "tau_sensitivity": {"base": "plain"},
    "recovery_against_headroom": {"arm": "plain"},
    "delta_matrix": {"arm": "plain"},
    "recovery_histogram": {"arm": "plain", "by": "task"},
    "signal_panel": {"arm": "plain"},
    "three_questions": {"arm": "plain"},
    "gated_recomputation": {"arm": "plain", "by": "task"},
    "operating_curve": {"arm": "plain"},
    "budget_sweep": {"arm": "plain"},
}


def check_layout(drawn):
    """Hold the figure within its edges, and its panels to a share of it that can be read."""
    with style():
        drawn.figure.draw_without_rendering()
        box = drawn.figure.get_tightbbox()
    width, height = drawn.figure.get_size_inches()
    assert width in (SINGLE, DOUBLE)
    assert min(box.x0, box.y0) >= 0
    assert box.x1 <= width
    assert box.y1 <= height
    for panel in drawn.axes:
        place = panel.get_position()
        assert place.width * width >= 1.35
        assert place.height * height >= 0.35


@pytest.mark.parametrize("tasks", LOGS)
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_room(name, tasks):
    check_layout(getattr(figures, name)(LOGS[tasks], **FIGURES[name]))


@pytest.mark.parametrize("tasks", LOGS)
def test_results_have_room(tasks):
    check_layout(kv.harm_rate(LOGS[tasks], arm="plain", by=["budget", "task"]).plot(kind="forest"))
    check_layout(kv.accuracy(LOGS[tasks], by=["arm", "budget"]).plot())


@pytest.mark.parametrize("tasks", [("qa",), LONG])
def test_profiles_have_room(tasks):
    records = [
        InputRecord(
            suite="s", model="m", task=task, input_id=str(i), head_agreement_per_layer=[0.6, i / 9, 0.4]
        )
        for task in tasks
        for i in range(4)
    ]
    check_layout(figures.agreement_profiles(log_from_records(records)))


def test_names_break_after_underscores_and_slashes_only():
    assert plain_text("multi_field_question_answering", 12) == "multi_field_\nquestion_\nanswering"
    assert plain_text("meta-llama/Llama-3.1-8B", 12) == "meta-llama/\nLlama-3.1-8B"
    assert plain_text("aware, long_name_of_a_task", 12) == "aware,\nlong_name_\nof_a_task"
    assert plain_text("unbreakable", 4) == "unbreakable"
    assert plain_text("_a\n b", 10) == " _a b"


@pytest.mark.parametrize(("tasks", "fit"), [(("qa",), 5), (LONG[1:3], 3)])
def test_a_matrix_is_as_wide_as_its_cells_need(tasks, fit):
    log = kv.simulate_log(seed=1, inputs=6, tasks=tasks, budgets=BUDGETS).log
    limits = [BUDGETS[fit - 1], BUDGETS[fit]]
    drawn = [figures.delta_matrix(log, arm="plain", where=f"budget <= {limit}") for limit in limits]
    assert [one.figure.get_figwidth() for one in drawn] == [SINGLE, DOUBLE]


def test_captions_are_told_in_the_right_number_and_case():
    one = figures.recovery_against_headroom(LOGS["one"], arm="plain").caption
    assert "over 1 cell: slope" in one
    assert "over 12 cells: slope" in figures.recovery_against_headroom(LOGS["twelve"], arm="plain").caption
    log = LOGS["one"]
    named = log.with_runs(log.runs.with_columns(was_LOST=log.runs["success"].not_()))
    caption = figures.signal_panel(named, arm="plain", outcomes=["failure", "was_LOST"]).caption
    assert re.search(r"all runs compared. Own failure in [\d.]+% of 36 runs; was_LOST in", caption)


def test_captions_tell_every_interval_that_is_drawn_and_no_column_without_value():
    assert (
        "Band and lines: 95% linearised or Korn-Graubard"
        in figures.operating_curve(LOGS["twelve"], arm="plain").caption
    )
    found = kv.harm_rate(LOGS["one"], arm="plain", by=["condition", "task"])
    assert found.plot().caption.startswith("harm_rate, task qa. Points")


def test_a_share_outside_the_figure_is_told_in_the_caption():
    log, common = LOGS["twelve"], {"arm": "plain", "tasks": [LONG[2]]}
    assert ", outside the figure. Band" in figures.mixture_curve(log, **common, level=-5.0).caption
    undefined = figures.mixture_curve(LOGS["one"], arm="plain", tasks=["qa"]).caption
    assert "The share at which it is 0 is undefined. Band" in undefined


def test_bars_of_one_colour_differ_in_their_filling():
    bars = [(look(number).colour, filling(number)) for number in range(3 * len(LOOKS))]
    assert len(set(bars)) == len(bars)


def test_groups_of_short_names_are_level_and_of_long_ones_upright():
    drawn = {
        tasks: figures.gated_recomputation(LOGS[tasks], arm="plain", by="task").axes[0] for tasks in LOGS
    }
    turned = {
        tasks: {tick.get_rotation() for tick in axes.get_xticklabels()} for tasks, axes in drawn.items()
    }
    assert turned == {"one": {0.0}, "twelve": {90.0}}


@pytest.mark.parametrize("name", ["gated_recomputation", "recovery_histogram"])
def test_many_bars_take_two_columns(name):
    drawn = [getattr(figures, name)(log, arm="plain", by="task") for log in LOGS.values()]
    assert [one.figure.get_figwidth() for one in drawn] == [SINGLE, DOUBLE]


def test_a_legend_takes_the_width_that_there_is():
    wide = figures.budget_sweep(LOGS["one"], arm="plain").figure.legends[0]
    narrow = figures.accuracy_against_budget(LOGS["one"], arm="gated", baseline="plain").figure.legends[0]
    assert (wide._ncols, narrow._ncols) == (4, 3)


def test_what_no_band_reaches_has_a_mark():
    axes = figures.mixture_curve(LOGS["one"], arm="gated", baseline="plain", tasks=["qa"]).axes[0]
    marked = [line.get_xydata().tolist() for line in axes.lines if line.get_marker() == LOOKS[0].marker]
    expected = kv.delta(LOGS["one"], arm="gated", baseline="plain").value
    assert [[1.0, pytest.approx(expected)]] in [points for points in marked if len(points) == 1]
