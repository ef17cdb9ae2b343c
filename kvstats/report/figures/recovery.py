"""Figure: how many runs eviction made worse, left alike, and made better."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes

from kvstats.estimators.recovery import recovery_indicator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.log.frames import Log
from kvstats.report.figures.captions import caption
from kvstats.report.figures.marks import MANY_BARS, bars, filling, legend
from kvstats.report.figures.parts import groups_of, refuse_empty, rows_of
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.style import DOUBLE, SINGLE, look, panels
from kvstats.report.plots.wording import row_text
from kvstats.tables import FULL

__all__ = ["recovery_histogram"]

SHARES = {"lost": "worse\n(r = −1)", "same": "alike\n(r = 0)", "gained": "better\n(r = 1)"}
"""The quantities that are drawn, and what they are called."""


def recovery_histogram(
    log: Log,
    *,
    arm: str,
    baseline: str = FULL,
    by: str | None = None,
    where: str | None = None,
    design: Design = DEFAULT_DESIGN,
    ax: Axes | None = None,
) -> CaptionedFigure:
    """Draw the shares of pairs in which eviction lost, changed nothing, and gained.

    The bars are the shares of `kvstats.recovery_indicator`, over the pairs at budgets below 1.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts.
    baseline : str, default "full"
        The arm of the twins.
    by : str, optional
        A column to draw a bar for each value of, such as ``task``, or ``gate_open`` on the arm of a gate.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    design : Design
        How to judge the shares.
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure of one column's width.

    Returns
    -------
    CaptionedFigure
        Its caption says so where runs at budget 1 differ from their twins: then no figure at other budgets
        means what it says.

    Raises
    ------
    InputError
        When a run has no twin, a score is null, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", the recovery indicator.

    Examples
    --------
    >>> import kvstats as kv
    >>> log = kv.simulate_log(seed=1, inputs=50).log
    >>> kv.figures.recovery_histogram(log, arm="plain").axes[0].get_ylabel()
    'share of pairs'
    """
    function = "recovery_histogram"
    found = recovery_indicator(log, arm=arm, baseline=baseline, where=where, by=by, design=design)
    refuse_empty(function, found)
    shares = rows_of(found, pl.col("quantity").is_in(list(SHARES)))
    groups = groups_of(function, found, by)
    width = 0.8 / len(groups)
    wide = len(groups) * len(SHARES) >= MANY_BARS
    with panels(ax, width=DOUBLE if wide else SINGLE, function=function) as (figure, axes):
        for place, group in enumerate(groups):
            rows = shares.frame if by is None else shares.frame.filter(pl.col(by).eq_missing(group))
            ordered = pl.concat([rows.filter(quantity=quantity) for quantity in SHARES])
            shift = (place - (len(groups) - 1) / 2) * width
            bars(
                axes[0],
                [shift + number for number in range(len(SHARES))],
                ordered,
                look(place),
                arm if by is None else row_text([group]),
                width=0.92 * width,
                hatch=filling(place),
            )
        axes[0].set_xticks(range(len(SHARES)), list(SHARES.values()))
        axes[0].set_ylabel("share of pairs")
        axes[0].set_ylim(0, 1.0)
        if by is not None:
            legend(figure, axes, shares.frame, own=ax is None, names=[by])
    broken = found.frame.filter(pl.col("status").str.starts_with("not the identity"))
    text = caption(
        f"Recovery indicator r: score of {arm} against {baseline}, over budgets below 1"
        + ("." if by is None else f", by {by}.")
        + (
            f" NOT the identity at budget 1 in {broken.height} of {len(groups)} parts."
            if broken.height
            else ""
        ),
        shares,
        drawn="Lines",
        where=where,
    )
    return CaptionedFigure(figure, axes, text)
