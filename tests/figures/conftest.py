"""Figures against images that were looked at."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.testing.compare import compare_images

from kvstats.report.plots import CaptionedFigure
from kvstats.report.plots.style import style

BASELINES = Path(__file__).parent / "baseline"

TOLERANCE = 6.0
"""Root mean square of differences of pixels, in [0, 255]: letters that another version of a font library
draws differ by less, a missing interval by more."""

DPI = 100


@pytest.fixture
def same_image(tmp_path) -> Callable[[CaptionedFigure, str], None]:
    """Compare a figure with its image in ``baseline``; KVSTATS_NEW_BASELINES=1 writes that anew."""

    def compare(drawn: CaptionedFigure, name: str) -> None:
        expected, actual = BASELINES / f"{name}.png", tmp_path / f"{name}.png"
        with style():
            drawn.figure.savefig(actual, dpi=DPI, metadata={"Software": None})
        if os.environ.get("KVSTATS_NEW_BASELINES"):
            shutil.copy(actual, expected)
        else:
            shutil.copy(expected, tmp_path / "expected.png")
            difference = compare_images(str(tmp_path / "expected.png"), str(actual), tol=TOLERANCE)
            assert difference is None, difference

    return compare
