import re
import subprocess
import sys
from dataclasses import replace

import matplotlib
import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from kvstats.errors import InputError
from kvstats.inference import Design, infer, samples_by
from kvstats.report.plots import SINGLE, CaptionedFigure, style
from kvstats.statistics import Mean

DESIGN = Design(cluster="id")


def frame_of(tasks=("qa", "code"), budgets=(0.25, 0.5, 0.75), inputs=6):
    return pl.DataFrame(
        [
            {"task": task, "budget": budget, "layer": 1, "id": str(i), "y": (i + budget) / 8 + 0.1 * number}
            for number, task in enumerate(tasks)
            for budget in budgets
            for i in range(inputs)
        ]
    )


def result_of(by=(), frame=None, kind="mean", null=None, estimator="accuracy", design=DESIGN):
    rows = frame_of() if frame is None else frame
    samples = samples_by(estimator, rows, by, design, lambda part: (Mean(part["y"].to_numpy()), kind))
    return infer(estimator, samples, design, {name: rows.schema[name] for name in by}, null)


def rates(by=("task",)):
    frame = frame_of().with_columns(pl.col("id").cast(pl.Int64).lt(3).cast(pl.Float64).alias("y"))
    return result_of(by, frame, kind="rate", estimator="harm_rate")


def markers(axes, face=None):
    """Return the places of marks, of those of one filling where asked for."""
    lines = [line for line in axes.lines if line.get_marker() != "None" and len(line.get_xdata())]
    chosen = [line for line in lines if face is None or line.get_markerfacecolor() == face]
    return [point for line in chosen for point in line.get_xydata().tolist()]


def labels(axes):
    return [text.get_text() for text in axes.get_yticklabels()]


def texts(figure):
    return [text for text in figure.findobj(Text) if text.get_text()]


def test_a_forest_has_every_row_with_its_interval_from_top_to_bottom():
    result = result_of(["task"])
    drawn = result.plot()
    (axes,) = drawn.axes
    assert isinstance(drawn, CaptionedFigure)
    assert labels(axes) == ["code", "qa"]
    assert axes.yaxis.get_majorticklocs()[0] > axes.yaxis.get_majorticklocs()[1]
    segments = [collection.get_segments()[0] for collection in axes.collections]
    for row, segment, point in zip(result.frame.iter_rows(named=True), segments, markers(axes), strict=True):
        assert segment[:, 0].tolist() == [row["low"], row["high"]]
        assert point[0] == row["estimate"]
        assert point[1] == segment[0, 1]
    assert axes.get_xlabel() == "accuracy (mean)"
    assert axes.get_ylabel() == "task"
    assert drawn.figure.get_size_inches()[0] == SINGLE


def test_lines_go_along_a_column_of_numbers():
    result = result_of(["budget", "task"])
    (axes,) = result.plot().axes
    named = {line.get_label(): line for line in axes.lines if line.get_label() in ("qa", "code")}
    for task, line in named.items():
        rows = result.frame.filter(task=task).sort("budget")
        assert line.get_xdata().tolist() == rows["budget"].to_list()
        assert line.get_ydata().tolist() == rows["estimate"].to_list()
    assert len({(line.get_marker(), line.get_color()) for line in named.values()}) == 2
    assert len(named) == len(axes.collections) == 2
    assert axes.get_xlabel() == "budget (share of the cache kept)"


def test_which_kind_is_the_default():
    def drawn_as(result):
        return result.plot().caption.split(". ")[1].split()[0]

    assert drawn_as(result_of(["budget"])) == "Lines"
    assert drawn_as(result_of(["task"])) == "Points"
    assert drawn_as(result_of()) == "Points"
    assert drawn_as(result_of(["budget"], frame_of(budgets=(0.5, 1.0)))) == "Points"
    assert drawn_as(result_of(["budget", "task"], frame_of(tasks=[f"t{i}" for i in range(8)]))) == "Points"
    nothing = frame_of().with_columns(pl.when(pl.col("budget") > 0.25).then("budget").alias("budget"))
    assert drawn_as(result_of(["budget"], nothing)) == "Points"
    assert drawn_as(rates()) == "Points"
    shares = [replace(sample, kind="discordant") for sample in rates().samples]
    assert drawn_as(infer("share", shares, DESIGN, {"task": pl.String()})) == "Bars"


def test_the_column_with_the_most_values_unless_another_is_asked_for():
    frame = frame_of().with_columns(pl.col("id").cast(pl.Int64).mod(4).alias("layer"))
    result = result_of(["budget", "layer"], frame)
    assert result.plot().axes[0].get_xlabel() == "layer"
    assert result.plot(along="budget").axes[0].get_xlabel() == "budget (share of the cache kept)"


def test_bars_begin_at_zero_and_have_intervals():
    result = rates()
    (axes,) = result.plot(kind="bars").axes
    assert [patch.get_width() for patch in axes.patches] == result.frame["estimate"].to_list()
    assert {patch.get_x() for patch in axes.patches} == {0}
    assert len(axes.collections) == 2
    assert axes.get_xlim()[0] == 0


def test_the_reference_is_the_null_value_unless_told_otherwise():
    def reference(result, **arguments):
        (axes,) = result.plot(**arguments).axes
        return [
            line.get_xdata()[0]
            for line in axes.lines
            if line.get_linestyle() == ":" or len(set(line.get_ydata())) > 1
        ]

    assert reference(result_of(["task"])) == []
    assert reference(result_of(["task"], null=0.0)) == [0]
    assert reference(result_of(["task"], null=0.0), reference=0.5) == [0.5]
    assert reference(result_of(["task"], null=0.0), reference=None) == []
    assert "Dotted: 0.5." in result_of(["task"]).plot(reference=0.5).caption


@pytest.mark.parametrize("kind", ["forest", "lines", "bars"])
def test_undefined_is_a_hollow_mark_at_the_edge_and_never_a_value(kind):
    result = rates(["budget"])
    frame = result.frame.with_columns(
        pl.Series("estimate", [None, 0.4, 0.6]),
        pl.Series("low", [None, None, 0.5]),
        pl.Series("high", [None, None, 0.7]),
        pl.Series("status", ["no rows", "one cluster", "ok"]),
    )
    drawn = replace(result, frame=frame).plot(kind=kind)
    (axes,) = drawn.axes
    value = 1 if kind == "lines" else 0
    edge, without = sorted(markers(axes, "white"), key=lambda point: point[value])
    assert edge[value] == 0.02
    assert without[value] == 0.4
    on_edge = next(line for line in axes.lines if edge in line.get_xydata().tolist())
    assert on_edge.get_transform() != axes.transData
    shown = " ".join(text.get_text() for text in texts(drawn.figure))
    assert "no rows" in shown
    assert "one cluster" in shown
    assert "Hollow marks: undefined (no rows: 1), or without interval (one cluster: 1)." in drawn.caption


def test_an_interval_without_an_end_reaches_the_edge():
    result = result_of(["task"])
    frame = result.frame.with_columns(pl.Series("low", [-np.inf, 0.1]), pl.Series("estimate", [0.5, np.inf]))
    drawn = replace(result, frame=frame).plot()
    arrows = [text for text in drawn.axes[0].texts if getattr(text, "arrow_patch", None) is not None]
    assert [arrow.xy[0] for arrow in arrows] == [0.0]
    assert "infinite" in [text.get_text() for text in drawn.axes[0].texts]
    assert np.isfinite(drawn.axes[0].get_xlim()).all()


def test_an_interval_that_leaves_its_estimate_out_is_drawn_as_it_is():
    result = result_of(["task"])
    frame = result.frame.with_columns(pl.col("estimate") + 1)
    (axes,) = replace(result, frame=frame).plot().axes
    assert axes.collections[0].get_segments()[0][1, 0] < markers(axes)[0][0]


def test_quantities_of_different_units_get_a_panel_each():
    samples = [
        replace(sample, key=(quantity, *sample.key), kind=kind)
        for quantity, kind in (("delta", "paired"), ("gate_open", "rate"))
        for sample in rates(["budget"]).samples
    ]
    result = infer("gate_sweep", samples, DESIGN, {"quantity": pl.String(), "budget": pl.Float64()})
    drawn = result.plot()
    assert [axes.get_ylabel() for axes in drawn.axes] == [
        "Δ (mean difference\nof scores)",
        "gate open (share)",
    ]
    assert len(result.part(quantity="delta").plot().axes) == 1
    figure = Figure()
    upper, lower = figure.subplots(2)
    assert result.plot([upper, lower]).axes == (upper, lower)
    with pytest.raises(
        InputError, match=re.escape("is not 2 axes of matplotlib; pass a list of them, row by row")
    ):
        result.plot(upper)


def test_the_caption_says_how_many_of_what():
    assert result_of(["task"]).plot().caption == (
        "accuracy by task. Points are estimates, lines 95% linearised intervals. "
        "n = 18 rows in 6 clusters (same id) for each estimate."
    )
    one = result_of(["layer"], design=Design(cluster="id", level=0.9, interval="bca", n_resamples=200))
    assert one.plot().caption.startswith(
        "accuracy, layer 1. Points are estimates, lines 90% BCa bootstrap intervals. n = 36 rows"
    )


def test_names_are_drawn_letter_by_letter():
    result = result_of(["task"], frame_of(tasks=("a$b$", "_x", "a very long name of a task that goes on")))
    drawn = result.plot()
    assert labels(drawn.axes[0])[1:] == ["a very long name of a\ntask that goes on", "a\\$b\\$"]
    result_of(["task", "budget"], frame_of(tasks=("a$b$", "_x"))).plot().to_png()
    drawn.to_png()


@pytest.mark.parametrize("by", [["task"], ["task", "budget"], ["budget"]])
def test_no_text_is_smaller_than_seven_points(by):
    figure = result_of(by).plot(reference=0.5).figure
    assert min(text.get_fontsize() for text in texts(figure)) >= 7


@pytest.mark.parametrize("by", [["task"], ["task", "budget"], ["budget", "layer"]])
def test_nothing_reaches_over_the_edge_of_the_figure(by):
    frame = frame_of(tasks=("a task of a long name", "qa", "another of a long name"))
    figure = result_of(by, frame, null=0.0).plot().figure
    with style():
        figure.draw_without_rendering()
        box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert box.x0 >= 0
    assert box.y0 >= 0
    assert box.x1 <= width
    assert box.y1 <= height


def test_settings_of_the_caller_are_neither_changed_nor_followed(tmp_path):
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "lines.linewidth": 9}):
        before = dict(matplotlib.rcParams)
        drawn = result_of(["budget", "task"]).plot()
        drawn.save(tmp_path / "a.png")
        assert dict(matplotlib.rcParams) == before
        assert drawn.axes[0].xaxis.label.get_fontsize() == 7.5
    result_of(["budget", "task"]).plot().save(tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_axes_of_the_caller_keep_their_size_and_style():
    figure = Figure(figsize=(5, 4))
    axes = figure.add_subplot(title="mine")
    drawn = result_of(["task"]).plot(axes)
    assert drawn.figure is figure
    assert drawn.axes == (axes,)
    assert figure.get_size_inches().tolist() == [5, 4]
    assert axes.get_title() == "mine"
    assert axes.xaxis.label.get_fontsize() == matplotlib.rcParams["font.size"]
    assert axes.spines["top"].get_visible()


@pytest.mark.parametrize(
    ("by", "arguments", "message"),
    [
        (["task"], {"kind": "bar"}, "Result.plot: kind='bar' is not known; did you mean 'bars'?"),
        (["task"], {"kind": "lines"}, "kind='lines' needs a by-column of numbers without null; use"),
        (["task"], {"kind": "bars"}, "kind='bars' is for shares, and accuracy is no share (mean)"),
        (["task"], {"along": "task"}, "along='task' is no by-column of numbers"),
        (["budget"], {"along": "budgets"}, "is no by-column of numbers; did you mean 'budget'?"),
        (["budget"], {"along": "budget", "kind": "forest"}, "is not for kind='forest'; use kind='lines'"),
        (["task"], {"reference": "zero"}, "reference='zero' is not a finite number"),
        (["task"], {"reference": np.nan}, "is not a finite number; pass one, 'null' or None"),
        (["task"], {"ax": "axes"}, "is not an axes of matplotlib; pass ax=figure.add_subplot()"),
    ],
)
def test_what_cannot_be_drawn_is_refused(by, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        result_of(by).plot(**arguments)


def test_nothing_and_too_much_are_refused():
    with pytest.raises(InputError, match=re.escape("Result.plot: the result has no rows; select some")):
        result_of(["task"], frame_of().clear()).plot()
    many = result_of(["task"], frame_of(tasks=[f"t{i}" for i in range(151)], budgets=(0.5,), inputs=2))
    with pytest.raises(InputError, match=re.escape("Result.plot: 151 rows are too many to read; take fewer")):
        many.plot()
    assert len(labels(many.sort("estimate").head(9).plot().axes[0])) == 9
    nothing = frame_of().with_columns(pl.when(pl.col("budget") > 0.25).then("budget").alias("budget"))
    with pytest.raises(InputError, match=re.escape("along='budget' is null in some rows; leave them out")):
        result_of(["budget"], nothing).plot(along="budget")


def test_figures_need_neither_pyplot_nor_a_window():
    code = """
import sys
import kvstats
from kvstats.inference import Design, infer
assert "matplotlib" not in sys.modules
sys.modules["matplotlib"] = None
try:
    infer("mean", [], Design(), {}).head()
except kvstats.InputError:
    pass
try:
    infer("mean", [], Design(), {}).plot()
except ImportError as error:
    print(error)
try:
    kvstats.figures
except ImportError as error:
    print(error)
del sys.modules["matplotlib"]
import kvstats.report.plots.report_plot, kvstats.report.plots.result_plot
print("matplotlib.pyplot" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    missing = "kvstats.report.plots: figures need matplotlib; install it with pip install 'kvstats[plot]'"
    assert done.stdout.splitlines() == [missing, missing, "False"]
