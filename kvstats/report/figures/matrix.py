"""Figure: what an arm gains or loses, by task and budget."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from kvstats.estimators.gating import delta
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.log.frames import Log
from kvstats.report.figures.budgets import BUDGETS, budget_column
from kvstats.report.figures.captions import caption
from kvstats.report.figures.marks import LETTER_WIDTH, NAME_WIDTH
from kvstats.report.figures.parts import refuse_empty
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.style import DOUBLE, GREY, SINGLE, panels
from kvstats.report.plots.wording import axis_label, plain_text
from kvstats.table_layout import decimals
from kvstats.tables import FULL

__all__ = ["delta_matrix"]

COLOURS = "PuOr_r"
"""Orange for gains and purple for losses: the colour-blind tell them apart, and in grey the signs do."""

LETTERS = 10
"""Letters of a status that fit into a cell side by side."""

BAR_LETTERS = 9
"""Letters of the name of the colour bar beside a task."""

CELL, AROUND = 0.45, 0.75
"""Widths that a cell needs, and what stands beside cells and names, in inches."""


def delta_matrix(
    log: Log,
    *,
    arm: str,
    baseline: str = FULL,
    outcome: str = "score",
    where: str | None = None,
    design: Design = DEFAULT_DESIGN,
    ax: Axes | None = None,
) -> CaptionedFigure:
    """Draw the mean paired difference of two arms by task and budget, each with its interval.

    The cells are `kvstats.delta` by task and budget. A cell whose interval excludes 0 is in bold, one that is
    undefined or without runs is hatched, and one without an interval says why.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm.
    baseline : str, default "full"
        The arm of the twins.
    outcome : {"score", "success"}
        Which outcome.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    design : Design
        How to judge the estimates.
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure, of one column's width where the cells fit, else two.

    Returns
    -------
    CaptionedFigure

    Raises
    ------
    InputError
        When a run has no twin, an outcome is null, runs of both kinds of budget are mixed, or a name is not
        known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 12.

    Examples
    --------
    >>> import kvstats as kv
    >>> log = kv.simulate_log(seed=1, inputs=50, tasks=("keys", "qa")).log
    >>> panel = kv.figures.delta_matrix(log, arm="plain").axes[0]
    >>> [text.get_text() for text in panel.get_yticklabels()]
    ['keys', 'qa']
    """
    function = "delta_matrix"
    found = delta(
        log,
        arm=arm,
        baseline=baseline,
        outcome=outcome,
        where=where,
        by=("task", *BUDGETS),
        design=design,
    )
    refuse_empty(function, found)
    axis = budget_column(function, [found.frame])
    tasks = found.frame["task"].unique().sort().to_list()
    budgets = found.frame[axis].unique().sort().to_list()
    grid = np.full((len(tasks), len(budgets)), np.nan)
    names = [plain_text(task, NAME_WIDTH) for task in tasks]
    longest = max(len(part) for name in names for part in name.split("\n"))
    wide = AROUND + LETTER_WIDTH * longest + CELL * len(budgets) > SINGLE
    with panels(
        ax, width=DOUBLE if wide else SINGLE, height=0.75 + 0.46 * max(len(tasks), 1), function=function
    ) as (figure, (panel,)):
        rows = {
            (tasks.index(row["task"]), budgets.index(row[axis])): row
            for row in found.frame.iter_rows(named=True)
        }
        for place, row in rows.items():
            grid[place] = np.nan if row["estimate"] is None else row["estimate"]
        limit = float(np.nanmax(np.abs(grid), initial=0.0)) or 1.0
        image = panel.imshow(grid, cmap=COLOURS, vmin=-limit, vmax=limit, aspect="auto")
        for place in np.ndindex(grid.shape):
            if np.isnan(grid[place]):
                panel.add_patch(
                    Rectangle(
                        (place[1] - 0.5, place[0] - 0.5),
                        1,
                        1,
                        facecolor="white",
                        edgecolor=GREY,
                        hatch="////",
                        linewidth=0,
                    )
                )
            write(panel, place, rows.get(place), dark=abs(np.nan_to_num(grid[place])) > 0.65 * limit)
        panel.set_xticks(range(len(budgets)), [f"{budget:g}" for budget in budgets])
        panel.set_yticks(range(len(tasks)), names)
        panel.set_xlabel(axis_label(axis))
        panel.spines[:].set_visible(False)
        panel.tick_params(length=0)
        bar = figure.colorbar(image, ax=panel, fraction=0.05, pad=0.02)
        bar.set_label(plain_text(f"difference of {outcome}", BAR_LETTERS * len(tasks)))
        bar.outline.set_visible(False)
    text = caption(
        f"Mean paired difference of {outcome}, {arm} minus {baseline}, by task and budget. Bold: the "
        "interval excludes 0, each cell for itself.",
        found,
        drawn="Brackets",
        where=where,
        hollow="Hatched or without brackets",
    )
    return CaptionedFigure(figure, (panel,), text)


def write(panel: Axes, place: tuple[int, ...], row: Mapping[str, Any] | None, *, dark: bool) -> None:
    """Write the figures of a cell into it."""
    colour = "white" if dark else "black"
    if row is None or row["estimate"] is None:
        text = "no runs" if row is None else str(row["status"])
        panel.text(
            place[1],
            place[0],
            textwrap.fill(text, LETTERS),
            ha="center",
            va="center",
            fontsize="x-small",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )
        return
    estimate, low, high = row["estimate"], row["low"], row["high"]
    places = decimals(low, high)
    if low is not None:
        above, below = signed(estimate, places), f"[{signed(low, places)},\n{signed(high, places)}]"
    else:
        above, below = (signed(estimate, places) if estimate else "0"), textwrap.fill(row["status"], LETTERS)
    apart = low is not None and (low > 0 or high < 0)
    panel.text(
        place[1],
        place[0] - 0.12,
        above,
        ha="center",
        va="bottom",
        color=colour,
        fontweight="bold" if apart else "normal",
    )
    panel.text(place[1], place[0] - 0.04, below, ha="center", va="top", color=colour, fontsize="x-small")


def signed(value: float, places: int) -> str:
    """Return a number with its sign, the minus as wide as the plus."""
    return f"{value:+.{places}f}".replace("-", "\u2212")
