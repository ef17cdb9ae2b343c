"""Figure: how much eviction recovers, against how much the full cache leaves to recover."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from kvstats.errors import InputError
from kvstats.estimators.origin_fit import fit_through_origin, scaling_cells
from kvstats.estimators.rates import recovery_rate
from kvstats.estimators.scaling import CELLS
from kvstats.estimators.scaling import headroom as headroom_of
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.log.frames import Log
from kvstats.report.figures.captions import caption, estimate_text
from kvstats.report.figures.marks import key, legend
from kvstats.report.figures.parts import refuse_empty
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.intervals import Estimate, draw_interval, draw_points, estimates
from kvstats.report.plots.style import BLACK, GREY, look, panels
from kvstats.report.plots.wording import plain_text
from kvstats.tables import FULL

__all__ = ["recovery_against_headroom"]


def recovery_against_headroom(
    log: Log,
    *,
    arm: str,
    baseline: str = FULL,
    cells: str | Sequence[str] = CELLS,
    where: str | None = None,
    design: Design = DEFAULT_DESIGN,
    ax: Axes | None = None,
) -> CaptionedFigure:
    """Draw the recovery rate of cells against their headroom, with a straight line through the origin.

    A marker is a cell, with the intervals of `kvstats.recovery_rate` upwards and of `kvstats.headroom`
    sideways; line and fan are the slope of `kvstats.fit_through_origin`, each cell counting once. On the
    dotted diagonal everything would be recovered.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts.
    baseline : str, default "full"
        The arm of the twins, with one outcome for each input.
    cells : str or sequence of str
        Columns that make a cell. Default: suite, model, task and condition. Colours and markers tell the
        tasks apart where ``task`` is among them.
    where : str, optional
        SQL expression over the runs of either arm with the columns of their input records. It must leave the
        baseline's runs: fewer budgets are ``budget < 0.5 OR arm = 'full'``.
    design : Design
        How to judge the estimates.
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure of one column's width.

    Returns
    -------
    CaptionedFigure

    Raises
    ------
    InputError
        When a run has no twin, a score is null or outside [0, 1], a cell has other inputs for the baseline
        than for the arm, no cell is left, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 25.

    Examples
    --------
    >>> import kvstats as kv
    >>> log = kv.simulate_log(seed=1, inputs=50, tasks=("keys", "qa")).log
    >>> kv.figures.recovery_against_headroom(log, arm="plain").axes[0].get_ylabel()
    'recovery rate ρ (share of inputs)'
    """
    function = "recovery_against_headroom"
    names = [cells] if isinstance(cells, str) else list(cells)
    table = scaling_cells(log, arm=arm, baseline=baseline, where=where, by=names)
    across = headroom_of(log, arm=baseline, where=where, by=names, design=design)
    upwards = recovery_rate(log, arm=arm, baseline=baseline, where=where, by=names, design=design)
    refuse_empty(function, upwards)
    x, y = (
        table.select(names).join(found.frame, on=names, how="left", nulls_equal=True, maintain_order="left")
        for found in (across, upwards)
    )
    if not np.allclose(x["estimate"].to_numpy(), table["headroom"].to_numpy()):
        raise InputError.argument(
            function,
            "where",
            where,
            f"leaves other inputs of {baseline!r} than of {arm!r} in some cell",
            f"keep both arms, as in \"budget < 0.5 OR arm = '{baseline}'\"",
        )
    slope = fit_through_origin(table, design=design).slope.frame.row(0, named=True)
    tasks = table["task"].unique().sort().to_list() if "task" in names else []
    with panels(ax, function=function) as (figure, axes):
        rows_x, rows_y = estimates(x), estimates(y)
        end, top = (1.05 * largest(rows) for rows in (rows_x, rows_y))
        axes[0].axline((0, 0), slope=1, color=GREY, linewidth=0.8, linestyle=":", label="all recovered")
        if slope["estimate"] is not None:
            axes[0].plot([0, end], [0, slope["estimate"] * end], color=BLACK, linewidth=0.9, label="fit")
        if slope["low"] is not None:
            low, high = slope["low"] * end, slope["high"] * end
            axes[0].fill_between([0, end], [0, low], [0, high], color=GREY, alpha=0.15, linewidth=0)
        for number, (across_row, up_row) in enumerate(zip(rows_x, rows_y, strict=True)):
            series = look(tasks.index(table["task"][number]) if tasks else 0)
            draw_interval(axes[0], up_row.value, across_row, series.colour, "x")
            draw_points(axes[0], [across_row.value], [up_row], series, along="y")
        for place, task in enumerate(tasks):
            key(axes[0], look(place), task)
        axes[0].set_xlabel(plain_text(f"headroom (1 minus mean score of {baseline})"))
        axes[0].set_ylabel("recovery rate ρ (share of inputs)")
        axes[0].set(xlim=(-0.02 * end, end), ylim=(-0.03 * top, top))
        legend(figure, axes, own=ax is None)
    text = caption(
        f"Recovery rate of {arm} against headroom, a marker a cell of {', '.join(names)}. Line through the "
        f"origin over {table.height} cell{'s' if table.height > 1 else ''}: slope {estimate_text(slope)}.",
        upwards,
        across,
        drawn="Lines",
        where=where,
    )
    return CaptionedFigure(figure, axes, text)


def largest(rows: Sequence[Estimate]) -> float:
    """Return the largest estimate or bound; 1 where all are 0."""
    return max((value for row in rows for value in (row.value, row.high) if value > 0), default=1.0)
