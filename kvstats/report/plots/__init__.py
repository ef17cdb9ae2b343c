"""Figures: of results, of reports, and those of the two studies."""

try:
    import matplotlib  # noqa: F401  Not used here: to name what is missing, once for all figures.
except ImportError as error:
    raise ImportError(
        "kvstats.report.plots: figures need matplotlib; install it with pip install 'kvstats[plot]'"
    ) from error

from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.style import DOUBLE, SINGLE, panels, style

__all__ = ["DOUBLE", "SINGLE", "CaptionedFigure", "panels", "style"]
