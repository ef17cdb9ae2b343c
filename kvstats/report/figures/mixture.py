"""Figure: what an arm gains in workloads that mix tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from kvstats.estimators.mixture import mixture_crossing, mixture_delta
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.log.frames import Log
from kvstats.report.figures.captions import caption, estimate_text
from kvstats.report.figures.marks import legend, line, points
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.intervals import draw_reference
from kvstats.report.plots.style import BLACK, LOOKS, Look, panels
from kvstats.report.plots.wording import plain_text
from kvstats.tables import FULL

__all__ = ["mixture_curve"]

SHARES = tuple(np.linspace(0, 1, 21).round(2).tolist())

CROSSING = Look(BLACK, "D", "-")


def mixture_curve(
    log: Log,
    *,
    arm: str,
    baseline: str = FULL,
    tasks: Sequence[str],
    level: float = 0.0,
    outcome: str = "score",
    where: str | None = None,
    design: Design = DEFAULT_DESIGN,
    ax: Axes | None = None,
) -> CaptionedFigure:
    """Draw the mean paired difference against the share of the workload that is of given tasks.

    The curve is `kvstats.mixture_delta`, the diamond `kvstats.mixture_crossing`.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm.
    baseline : str, default "full"
        The arm of the twins.
    tasks : sequence of str
        The tasks whose share is on the axis, such as those that are bound by capacity.
    level : float, default 0.0
        The difference at which the crossing is sought.
    outcome : {"score", "success"}
        Which outcome.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    design : Design
        How to judge the estimates.
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure of one column's width.

    Returns
    -------
    CaptionedFigure
        The caption tells the crossing with its interval; one outside [0, 1] is told only there.

    Raises
    ------
    InputError
        When a task is not known, a run has no twin, an outcome is null, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", on mixtures of tasks.

    Examples
    --------
    >>> import kvstats as kv
    >>> log = kv.simulate_log(seed=1, inputs=50, tasks=("keys", "qa")).log
    >>> kv.figures.mixture_curve(log, arm="plain", tasks=["keys"]).axes[0].get_xlabel()
    'share of the workload that is keys'
    """
    function = "mixture_curve"
    found = mixture_delta(
        log,
        arm=arm,
        baseline=baseline,
        tasks=tasks,
        shares=SHARES,
        outcome=outcome,
        where=where,
        design=design,
    )
    crossing = mixture_crossing(
        log, arm=arm, baseline=baseline, tasks=tasks, level=level, outcome=outcome, where=where, design=design
    )
    row = crossing.frame.row(0, named=True)
    inside = row["estimate"] is not None and 0 <= row["estimate"] <= 1
    names = ", ".join(tasks)
    with panels(ax, function=function) as (figure, axes):
        draw_reference(axes[0], level, along="y")
        line(axes[0], found.frame, "share", LOOKS[0], f"{arm} minus {baseline}", markers=False)
        if inside:
            points(axes[0], [level], crossing.frame, CROSSING, f"crossing at {level:g}", along="x")
        axes[0].set_xlabel(plain_text(f"share of the workload that is {names}", 50))
        axes[0].set_ylabel(f"difference (mean {outcome})")
        axes[0].set_xlim(-0.02, 1.02)
        legend(figure, axes, found.frame, own=ax is None)
    text = caption(
        f"Mean difference of {outcome}, {arm} minus {baseline}, in a workload with a given share of {names}. "
        f"The share at which it is {level:g} is {estimate_text(row)}"
        + ("." if inside or row["estimate"] is None else ", outside the figure."),
        found,
        drawn="Band",
        where=where,
    )
    return CaptionedFigure(figure, axes, text)
