"""A figure with the text that belongs below it."""

from __future__ import annotations

import base64
import importlib
import io
import os
from dataclasses import dataclass
from html import escape
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvstats.errors import InputError
from kvstats.report.plots.style import style

__all__ = ["CaptionedFigure"]

FORMATS = ("pdf", "png", "svg")
"""What a figure is saved as."""

SCREEN_DPI = 200
"""Dots an inch of what a notebook shows."""


@dataclass(frozen=True, eq=False, repr=False)
class CaptionedFigure:
    """What every figure function returns; a notebook shows the figure with its caption below.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
        The figure; of axes that were passed in, the one that they are in.
    axes : tuple of matplotlib.axes.Axes
        Its panels, in reading order; axes that were passed in, as they were passed.
    caption : str
        What is drawn, of how many rows in how many clusters, and the kind and level of the intervals.

    Examples
    --------
    >>> import io
    >>> from kvstats.report.plots.style import panels
    >>> with panels() as (figure, axes):
    ...     lines = axes[0].plot([0, 1], [0, 1])
    >>> CaptionedFigure(figure, axes, "A line.")
    CaptionedFigure: A line.
    """

    figure: Figure
    axes: tuple[Axes, ...]
    caption: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the figure, without the caption, as PDF, PNG or SVG: the same bytes for the same figure.

        Parameters
        ----------
        path : path
            Where to; its ending says as what.

        Raises
        ------
        InputError
            When the ending is another.
        """
        ending = Path(path).suffix.lower().removeprefix(".")
        if ending not in FORMATS:
            raise InputError.argument(
                "CaptionedFigure.save",
                "path",
                os.fspath(path),
                "does not say which format",
                f"end it in .{', .'.join(FORMATS[:-1])} or .{FORMATS[-1]}",
            )
        # Files with a date or a version in them differ each time.
        metadata = {"pdf": {"CreationDate": None}, "png": {"Software": None}, "svg": {"Date": None}}[ending]
        with style():
            self.figure.savefig(path, format=ending, metadata=metadata)

    def to_png(self) -> bytes:
        """Return the figure as PNG, as a notebook shows it."""
        buffer = io.BytesIO()
        with style():
            self.figure.savefig(buffer, format="png", dpi=SCREEN_DPI, metadata={"Software": None})
        return buffer.getvalue()

    def __repr__(self) -> str:
        return f"CaptionedFigure: {self.caption}"

    def _ipython_display_(self) -> None:
        """Show the image, and below it the caption: two outputs, since no kind of output has both."""
        display = importlib.import_module("IPython.display").display
        width, height = (round(96 * inches) for inches in self.figure.get_size_inches())
        display(
            {"image/png": base64.b64encode(self.to_png()).decode(), "text/plain": repr(self)},
            metadata={"image/png": {"width": 1.5 * width, "height": 1.5 * height}},
            raw=True,
        )
        display(
            {"text/html": f"<p><small>{escape(self.caption)}</small></p>", "text/plain": self.caption},
            raw=True,
        )
