"""Numbers read back from what is drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection, LineCollection

Numbers = list[float]


@pytest.fixture
def line() -> Callable[[Axes, str], tuple[Numbers, Numbers]]:
    """Return places and heights of the line of a label."""

    def read(axes: Axes, label: str) -> tuple[Numbers, Numbers]:
        (found,) = [artist for artist in axes.lines if artist.get_label() == label]
        return [float(x) for x in found.get_xdata()], [float(y) for y in found.get_ydata()]

    return read


@pytest.fixture
def band() -> Callable[[Axes, int], tuple[Numbers, Numbers]]:
    """Return the lower and the upper edge of a band by its number, where it is without gaps."""

    def read(axes: Axes, number: int) -> tuple[Numbers, Numbers]:
        bands = [artist for artist in axes.collections if isinstance(artist, FillBetweenPolyCollection)]
        (path,) = bands[number].get_paths()
        corners = path.vertices
        at = np.unique(corners[:, 0])
        heights = [corners[corners[:, 0] == x, 1] for x in at]
        return [float(y.min()) for y in heights], [float(y.max()) for y in heights]

    return read


@pytest.fixture
def intervals() -> Callable[[Axes], list[tuple[float, float, float, float]]]:
    """Return the ends of all bars of intervals, as x and y of one end and of the other, in drawn order."""

    def read(axes: Axes) -> list[tuple[float, float, float, float]]:
        bars = [artist for artist in axes.collections if isinstance(artist, LineCollection)]
        return [tuple(map(float, segment.ravel())) for bar in bars for segment in bar.get_segments()]

    return read
