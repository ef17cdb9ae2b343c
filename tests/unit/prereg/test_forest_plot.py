"""The drawing of estimates: everything lies where the axis says."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from kvstats.prereg.forest_plot import forest_plot, plot_axis
from kvstats.prereg.thresholds import Threshold, thresholds

SVG = "{http://www.w3.org/2000/svg}"


def row(estimate, low, high, status="ok", verdict="supported", **by):
    figures = {"estimate": estimate, "low": low, "high": high, "se": 0.1, "df": 9.0, "n": 10, "clusters": 10}
    return {**by, **figures, "status": status, "verdict": verdict}


def drawn(rows, **rules):
    found = {role: thresholds(rule, rows) for role, rule in rules.items()}
    axis = plot_axis(rows, found)
    return ElementTree.fromstring(forest_plot("plot", "A title", rows, found, axis))


def texts(svg):
    return [element.text or "" for element in svg.iter(f"{SVG}text")]


def scale(svg):
    """Return the function from pixels to values that the labels of the ticks imply."""
    labels = [
        e for e in svg.iter(f"{SVG}text") if e.get("text-anchor") == "middle" and float(e.get("y")) > 40
    ]
    points = [(float(e.get("x")), float(e.text.replace("−", "-"))) for e in labels]
    (x0, v0), (x1, v1) = points[0], points[-1]
    for x, value in points:
        assert v0 + (x - x0) * (v1 - v0) / (x1 - x0) == pytest.approx(value, abs=(v1 - v0) / 1000)
    return lambda x: v0 + (float(x) - x0) * (v1 - v0) / (x1 - x0)


def strokes(svg, colour):
    return [e for e in svg.iter(f"{SVG}line") if e.get("stroke") == colour]


@pytest.mark.parametrize("factor", [1.0, -40.0, 3e-5, 2e6])
def test_marks_lie_where_the_ticks_say(factor):
    ends = sorted([0.1 * factor, 0.5 * factor])
    svg = drawn(
        [row(0.3 * factor, *ends)],
        supported=f"low > {0.2 * factor:.9f}",
        killed=f"high < {-0.1 * factor:.9f}",
    )
    value = scale(svg)
    near = {"abs": abs(factor) * 0.002}
    assert value(svg.find(f"{SVG}circle").get("cx")) == pytest.approx(0.3 * factor, **near)
    bar = next(e for e in strokes(svg, "#1a1a1a") if e.get("y1") == e.get("y2"))
    assert [value(bar.get("x1")), value(bar.get("x2"))] == pytest.approx(ends, **near)
    (supported,), (killed,) = strokes(svg, "#0072b2"), strokes(svg, "#d55e00")
    assert value(supported.get("x1")) == pytest.approx(0.2 * factor, **near)
    assert value(killed.get("x1")) == pytest.approx(-0.1 * factor, **near)
    assert killed.get("stroke-dasharray")
    assert supported.get("stroke-dasharray") is None


def test_labels_figures_and_thresholds_are_written():
    svg = drawn([row(0.3, 0.1, 0.5, task="qa"), row(-0.2, -0.3, -0.1, task="code")], supported="low > -0.05")
    assert {"task=qa", "task=code", "0.30, 0.10 to 0.50", "−0.05"} <= set(texts(svg))
    assert svg.find(f"{SVG}title").text == "A title"
    assert "task=qa: estimate 0.30, interval 0.10 to 0.50" in svg.find(f"{SVG}desc").text
    assert svg.get("role") == "img"
    assert svg.get("aria-labelledby") == "plot-title plot-desc"


def test_the_mark_tells_the_verdict_of_the_row_without_colour():
    svg = drawn([row(0.1, 0, 0.2, verdict=name) for name in ("supported", "not met", "killed")])
    assert [e.get("fill") for e in svg.iter(f"{SVG}circle")] == ["#1a1a1a", "#fff"]
    assert len(list(svg.iter(f"{SVG}path"))) == 1


def test_what_is_undefined_is_said_in_words():
    svg = drawn(
        [row(0.1, 0.0, 0.2), row(None, None, None, status="one <class>"), row(0.1, None, None, "few")]
    )
    assert "undefined: one <class>" in texts(svg)
    assert len(list(svg.iter(f"{SVG}circle"))) == 2
    assert any(text.endswith(", few") for text in texts(svg))


def test_an_infinite_end_is_an_arrow():
    svg = drawn([row(0.1, 0.0, float("inf"))])
    (arrow,) = svg.iter(f"{SVG}path")
    assert re.match(r"M580\.0 \d+ L586\.0", arrow.get("d"))
    numbers = [value for element in svg.iter() for value in element.attrib.values()]
    assert not any("inf" in value or "nan" in value for value in numbers)


def test_thresholds_of_single_rows_are_marks_in_their_rows():
    rows = [
        row(0.3, 0.1, 0.5, predicted=0.2),
        row(0.3, 0.1, 0.5, predicted=0.4),
        row(0.3, 0.1, 0.5, predicted=None),
    ]
    svg = drawn(rows, supported="estimate >= predicted")
    marks = strokes(svg, "#0072b2")
    value = scale(svg)
    assert [value(mark.get("x1")) for mark in marks] == pytest.approx([0.2, 0.4], abs=0.002)
    assert [float(mark.get("y1")) for mark in marks] == [25.0, 47.0]


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((0.0, 0.0, 0.0), (-0.1, 0.1)),
        ((2.0, 2.0, 2.0), (1.8, 2.2)),
        ((0.12, 0.3, 0.49), (0.1, 0.5)),
        ((-250.0, 0.0, 999.0), (-500.0, 1000.0)),
    ],
)
def test_axes_end_at_round_numbers_around_everything(values, ticks):
    axis = plot_axis([row(values[1], values[0], values[2])], {})
    assert (axis.ticks[0], axis.ticks[-1]) == ticks
    assert 3 <= len(axis.ticks) <= 8


def test_the_axis_has_room_for_thresholds():
    axis = plot_axis([row(0.5, 0.4, 0.6)], {"supported": (Threshold("low", (0.95,)),)})
    assert axis.high >= 0.95


def test_without_any_estimate_there_is_no_axis():
    assert plot_axis([row(None, None, None, "no rows")], {}) is None


def test_long_and_hostile_labels_are_cut_and_escaped():
    svg = drawn([row(0.1, 0.0, 0.2, task="<script>alert(1)</script>" + "x" * 100)])
    assert texts(svg)[-2].startswith("task=<script>")
    assert len(texts(svg)[-2]) == 38
    assert not list(svg.iter(f"{SVG}script"))
