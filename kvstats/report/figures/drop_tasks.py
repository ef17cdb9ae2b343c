"""Figure: the drop of head agreement by task."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from kvstats.estimators.gating import mean_drop
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.log.frames import Log
from kvstats.policies.threshold import DROP
from kvstats.policies.top_share import check_tau
from kvstats.report.figures.captions import caption
from kvstats.report.figures.marks import NAME_WIDTH, points
from kvstats.report.figures.parts import refuse_empty
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.intervals import draw_reference
from kvstats.report.plots.style import BLACK, GREY, Look, panels
from kvstats.report.plots.wording import axis_label, plain_text
from kvstats.selection import select
from kvstats.tables import unique_inputs

__all__ = ["drop_by_task"]

SPREAD = 0.32
"""How far the points of a task may lie from its line."""

MEAN = Look(BLACK, "D", "-")


def drop_by_task(
    log: Log,
    *,
    column: str = DROP,
    tau: float | None = None,
    where: str | None = None,
    design: Design = DEFAULT_DESIGN,
    ax: Axes | None = None,
) -> CaptionedFigure:
    """Draw the prefill signal D of every input, and its mean by task.

    One point is an input record; the means are those of `kvstats.mean_drop`. Tasks stand in the order of
    their means, the lowest at the bottom.

    Parameters
    ----------
    log : Log
        The log.
    column : str, default "drop"
        Numeric column of `log.inputs`.
    tau : float, optional
        A threshold to be drawn as a line.
    where : str, optional
        SQL expression over `log.inputs`.
    design : Design
        How to judge the means.
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure of one column's width.

    Returns
    -------
    CaptionedFigure

    Raises
    ------
    InputError
        When a value is null, two input records have the same key, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 24.

    Examples
    --------
    >>> import kvstats as kv
    >>> log = kv.simulate_log(seed=1, inputs=50, tasks=("keys", "qa")).log
    >>> [text.get_text() for text in kv.figures.drop_by_task(log).axes[0].get_yticklabels()]
    ['qa', 'keys']
    """
    function = "drop_by_task"
    if tau is not None:
        check_tau(function, tau)
    means = mean_drop(log, column=column, where=where, by="task", design=design)
    refuse_empty(function, means)
    inputs = select(unique_inputs(log, function), where, function)
    rows = means.frame.sort("estimate", "task")
    with panels(ax, height=0.8 + 0.4 * max(rows.height, 1), function=function) as (figure, (panel,)):
        for place, task in enumerate(rows["task"]):
            values = inputs.filter(pl.col("task") == task)[column].sort().to_numpy()
            # Neighbours in value lie on different heights, the same at every drawing.
            heights = place + SPREAD * (np.arange(values.size) * 0.618 % 1 * 2 - 1)
            panel.plot(
                values, heights, ".", color=GREY, alpha=0.6, markersize=3.5, markeredgewidth=0, zorder=1
            )
        points(panel, range(rows.height), rows, MEAN, along="x")
        if tau is not None:
            draw_reference(panel, tau, along="x")
            panel.annotate(
                f"τ = {tau:g}",
                (tau, 1),
                xycoords=("data", "axes fraction"),
                va="bottom",
                ha="center",
                color=GREY,
            )
        panel.set_yticks(np.arange(rows.height), [plain_text(task, NAME_WIDTH) for task in rows["task"]])
        panel.set_ylim(-0.6, rows.height - 0.4)
        panel.set_xlabel(
            "drop D\n(early minus late head agreement)"
            if column == DROP
            else plain_text(axis_label(column), 34)
        )
    text = caption(
        f"{column} by task: a point an input, a diamond the mean"
        + (f"; dotted: τ = {tau:g}." if tau is not None else "."),
        means,
        drawn="Lines",
        where=where,
    )
    return CaptionedFigure(figure, (panel,), text)
