"""Figure: accuracy against the cache that was really kept."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from kvstats.estimators.crossover import accuracy_at_kept, memory_crossover, memory_curve
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.log.frames import Log
from kvstats.report.figures.captions import caption, estimate_text
from kvstats.report.figures.marks import interval_span, legend, line
from kvstats.report.figures.parts import refuse_empty
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.intervals import draw_reference
from kvstats.report.plots.style import LOOKS, panels
from kvstats.report.plots.wording import axis_label
from kvstats.statistics.statistic import FloatArray

__all__ = ["accuracy_against_kept"]

POINTS = 25
"""Kept fractions at which the band of an arm is computed."""


def accuracy_against_kept(
    log: Log,
    *,
    arm: str,
    baseline: str,
    outcome: str = "score",
    where: str | None = None,
    design: Design = DEFAULT_DESIGN,
    ax: Axes | None = None,
) -> CaptionedFigure:
    """Draw the mean outcome of two arms against the fraction of the cache that they really kept.

    Markers are the budgets that were run, with the points of `kvstats.memory_curve`; line and band between
    them are those of `kvstats.accuracy_at_kept`, whose intervals know that points move sideways too. Where
    the curves cross is `kvstats.memory_crossover`.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm drawn solid, such as one that is gated.
    baseline : str
        The arm drawn dashed, such as the plain one.
    outcome : {"score", "success"}
        Which outcome.
    where : str, optional
        SQL expression over the runs with the columns of their input records.
    design : Design
        How to judge the estimates.
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure of one column's width.

    Returns
    -------
    CaptionedFigure
        The caption tells the crossover with its interval, or why it is undefined.

    Raises
    ------
    InputError
        When both arms are one, an outcome is null, a run does not tell what it kept, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", accuracy at the achieved cache.

    Examples
    --------
    >>> import kvstats as kv
    >>> log = kv.simulate_log(seed=1, inputs=50, arms=("plain", "gate")).log
    >>> kv.figures.accuracy_against_kept(log, arm="gate", baseline="plain").axes[0].get_xlabel()
    'cache kept (share)'
    """
    function = "accuracy_against_kept"
    crossover = memory_crossover(log, arm=arm, baseline=baseline, outcome=outcome, where=where, design=design)
    found = []
    with panels(ax, function=function) as (figure, axes):
        for name, look in ((baseline, LOOKS[1]), (arm, LOOKS[0])):
            nodes = memory_curve(log, arm=name, outcome=outcome, where=where, design=design)
            refuse_empty(function, nodes)
            kept, height = (estimates_of(nodes, quantity) for quantity in ("kept", "outcome"))
            grid = np.unique(np.r_[kept, np.linspace(kept.min(), kept.max(), POINTS)])
            between = accuracy_at_kept(
                log, arm=name, kept=grid.tolist(), outcome=outcome, where=where, design=design
            )
            found.append(between)
            line(axes[0], between.frame, "kept", look, name, markers=False)
            axes[0].plot(kept, height, look.marker, color=look.colour, zorder=3)
        row = crossover.frame.row(0, named=True)
        if row["estimate"] is not None:
            draw_reference(axes[0], row["estimate"], along="x")
        interval_span(axes[0], row["low"], row["high"], along="x")
        axes[0].set(xlabel=axis_label("kept"), ylabel=f"accuracy (mean {outcome})")
        legend(figure, axes, *(result.frame for result in found), own=ax is None)
    text = caption(
        f"Mean {outcome} of {arm} (solid) and {baseline} (dashed) against the cache really kept; a marker a "
        f"budget. Crossover (dotted): {estimate_text(row)}.",
        *found,
        drawn="Bands",
        where=where,
    )
    return CaptionedFigure(figure, axes, text)


def estimates_of(nodes: Result, quantity: str) -> FloatArray:
    """Return the estimates of one quantity of the points of a curve."""
    return nodes.frame.filter(pl.col("quantity") == quantity)["estimate"].to_numpy()
