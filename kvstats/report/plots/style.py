"""How every figure looks: the style sheet, sizes, and a colour, a marker and a dash for each series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Literal, cast

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvstats.errors import InputError

__all__ = ["BLACK", "DOUBLE", "GREY", "LOOKS", "SINGLE", "Look", "look", "panels", "style"]

SINGLE = 3.35
"""Width of one column of a paper, in inches."""

DOUBLE = 6.9
"""Width of both columns, in inches."""

GREY = "#666666"
"""Colour of reference lines, and of what is no data."""

BLACK = "#000000"
"""Colour of a single series."""


@dataclass(frozen=True)
class Look:
    """How a series is drawn: told apart by marker and dashes too, not by colour alone."""

    colour: str
    marker: str
    dashes: Literal["-", "--"] | tuple[float, Sequence[float]]


LOOKS = (
    Look("#0072B2", "o", "-"),
    Look("#E69F00", "s", "--"),
    Look("#009E73", "^", (0, (4, 1.2, 1, 1.2))),
    Look("#CC79A7", "D", (0, (1, 1.2))),
    Look("#D55E00", "v", (0, (6, 1.5))),
    Look("#56B4E9", "P", (0, (4, 1.2, 1, 1.2, 1, 1.2))),
    Look("#000000", "X", (0, (2, 1.5))),
)
"""Okabe and Ito's colours but yellow, which is faint on white; neighbours differ in grey as well."""


def look(index: int) -> Look:
    """Return the look of a series by its number; an eighth one has the colour of the first, dashed otherwise.

    Examples
    --------
    >>> look(0).colour, look(7).colour, look(0) == look(7)
    ('#0072B2', '#0072B2', False)
    """
    round_, place = divmod(index, len(LOOKS))
    shifted = LOOKS[(place + round_) % len(LOOKS)]
    return Look(LOOKS[place].colour, shifted.marker, shifted.dashes)


def style() -> AbstractContextManager[None]:
    """Return a context in which matplotlib has this project's style, whatever the user's settings.

    Nothing outside it changes. Figures of this project need no such context: they have the style of their
    own accord, when drawn and when saved.

    Examples
    --------
    >>> import matplotlib
    >>> before = matplotlib.rcParams["font.size"]
    >>> with style():
    ...     matplotlib.rcParams["font.size"]
    7.5
    >>> matplotlib.rcParams["font.size"] == before
    True
    """
    return cast(
        AbstractContextManager[None],
        matplotlib.style.context("kvstats.report.plots.kvstats", after_reset=True),
    )


@contextmanager
def panels(
    axes: Axes | Sequence[Axes] | None = None,
    *,
    rows: int = 1,
    columns: int = 1,
    width: float = SINGLE,
    height: float = 2.4,
    height_ratios: Sequence[float] | None = None,
    function: str = "panels",
) -> Iterator[tuple[Figure, tuple[Axes, ...]]]:
    """Open the panels to draw on: new ones in this project's style, or those that were passed in.

    Parameters
    ----------
    axes : Axes or sequence of Axes, optional
        Panels of the caller: neither their figure's size nor the style around the call is changed.
    rows, columns : int
        Panels below and beside each other.
    width, height : float
        Size of a new figure in inches; `SINGLE` or `DOUBLE` wide.
    height_ratios : sequence of float, optional
        Heights of the rows of panels to each other; default: equal.
    function : str
        Who asks, for messages.

    Yields
    ------
    (Figure, tuple of Axes)
        The figure and its panels, row by row.

    Raises
    ------
    InputError
        When the number of axes passed in is not that of the panels, or something is no axes.

    Examples
    --------
    >>> with panels(columns=2, width=DOUBLE) as (figure, (left, right)):
    ...     title = left.set_title("left")
    >>> figure.get_size_inches().tolist()
    [6.9, 2.4]
    """
    if axes is None:
        with style():
            # Not pyplot's, which would keep the figure and choose a window for it.
            figure = Figure(figsize=(width, height))
            drawn = figure.subplots(rows, columns, squeeze=False, height_ratios=height_ratios)
            yield figure, tuple(drawn.flat)
        return
    given = (axes,) if isinstance(axes, Axes) else tuple(axes)
    if len(given) != rows * columns or not all(isinstance(panel, Axes) for panel in given):
        number = rows * columns
        raise InputError.argument(
            function,
            "ax",
            axes,
            f"is not {'an axes' if number == 1 else f'{number} axes'} of matplotlib",
            "pass ax=figure.add_subplot()" if number == 1 else "pass a list of them, row by row",
        )
    yield cast(Figure, given[0].get_figure(root=True)), given
