import itertools
import re

import matplotlib
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from kvstats.errors import InputError
from kvstats.report.plots import DOUBLE, CaptionedFigure, panels, style
from kvstats.report.plots.style import LOOKS, look


def grey(colour):
    """Return the lightness of a colour in a grey print, in [0, 1]."""
    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_series_differ_in_colour_in_marker_and_in_dashes():
    for part in ("colour", "marker", "dashes"):
        assert len({str(getattr(own, part)) for own in LOOKS}) == len(LOOKS)
    assert all(grey(own.colour) < 0.7 for own in LOOKS)
    assert all(abs(grey(a.colour) - grey(b.colour)) > 0.1 for a, b in itertools.pairwise(LOOKS))
    assert len({(own.colour, own.marker) for own in map(look, range(49))}) == 49


def test_the_colours_of_the_sheet_are_those_of_the_series():
    with style():
        cycle = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    assert cycle == [own.colour for own in LOOKS]


def test_the_style_is_left_when_something_fails():
    before = dict(matplotlib.rcParams)
    with pytest.raises(ZeroDivisionError), style():
        raise ZeroDivisionError
    assert dict(matplotlib.rcParams) == before


def test_panels_are_new_or_those_of_the_caller():
    with panels(rows=2, columns=2, width=DOUBLE, height=3, height_ratios=[1, 2]) as (figure, axes):
        assert len(axes) == 4
    assert figure.get_size_inches().tolist() == [DOUBLE, 3]
    own = Figure().add_subplot()
    with panels([own]) as (figure, axes):
        assert axes == (own,)
        assert figure is own.get_figure()
    with (
        pytest.raises(InputError, match=re.escape("is not 2 axes of matplotlib; pass a list of them")),
        panels(own, rows=2),
    ):
        raise AssertionError


@pytest.fixture
def figure():
    with panels() as (figure, axes):
        axes[0].plot([0, 1], [0, 1])
    return CaptionedFigure(figure, axes, "A < line.")


@pytest.mark.parametrize("ending", ["png", "pdf", "svg", "PNG"])
def test_a_figure_is_saved_as_the_same_bytes(figure, tmp_path, ending):
    first, again = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    figure.save(first)
    figure.save(again)
    assert first.read_bytes() == again.read_bytes()
    assert len(first.read_bytes()) > 1000


def test_another_format_is_refused(figure, tmp_path):
    with pytest.raises(
        InputError, match=re.escape("does not say which format; end it in .pdf, .png or .svg")
    ):
        figure.save(tmp_path / "a.jpg")


def test_a_notebook_shows_the_figure_and_its_caption(figure, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, **rest: shown.append(data))
    figure._ipython_display_()
    assert set(shown[0]) == {"image/png", "text/plain"}
    assert shown[1]["text/html"] == "<p><small>A &lt; line.</small></p>"
    assert repr(figure) == "CaptionedFigure: A < line."
