"""Figure: what running the most suspicious answers again gains."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes

from kvstats.estimators import recomputation
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.log.frames import Log
from kvstats.policies.top_share import DEPLOYMENT
from kvstats.report.figures.captions import caption, estimate_text
from kvstats.report.figures.marks import MANY_BARS, bars, filling, group_ticks, legend
from kvstats.report.figures.parts import groups_of, refuse_empty, rows_of
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.style import DOUBLE, GREY, LOOKS, SINGLE, Look, panels
from kvstats.report.plots.wording import axis_label, plain_text, row_text
from kvstats.tables import FULL

__all__ = ["gated_recomputation"]

BASE, WHOLE = Look(GREY, "o", "-"), Look("#BBBBBB", "o", "-")


def gated_recomputation(
    log: Log,
    *,
    arm: str,
    signal: str = "certificate",
    share: float = 0.25,
    confidence: str | None = None,
    outcome: str = "success",
    within: str | Sequence[str] | None = DEPLOYMENT,
    higher: str = "positive",
    confidence_higher: str = "negative",
    baseline: str = FULL,
    by: str | None = "budget",
    where: str | None = None,
    design: Design = DEFAULT_DESIGN,
    ax: Axes | None = None,
) -> CaptionedFigure:
    """Draw the accuracy when the share of runs with the highest signal is run again with the full cache.

    The bars are the means of `kvstats.recomputation`: as run, a random choice, by another signal, by the
    signal, by an oracle, and the full cache for all. The caption tells the paired gain over a random choice,
    which is what to judge the signal by: all bars are of the same runs.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts.
    signal : str, default "certificate"
        Numeric column of the pairs.
    share : float, default 0.25
        Share of the runs that are run again.
    confidence : str, optional
        Another signal to choose by, such as ``logprob``; default: no such bars.
    outcome : {"success", "score"}
        Which outcome; scores must be in [0, 1].
    within : str or sequence of str, or None
        The share is taken of each group of runs that agree in these columns.
    higher, confidence_higher : {"positive", "negative"}
        Whether runs of high or of low signal are run again first.
    baseline : str, default "full"
        The arm that answers again.
    by : str or None, default "budget"
        A column to draw a group of bars for each value of.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
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
        What `kvstats.recomputation` refuses.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", table 4.

    Examples
    --------
    >>> import kvstats as kv
    >>> log = kv.simulate_log(seed=1, inputs=100).log
    >>> drawn = kv.figures.gated_recomputation(log, arm="plain")
    >>> [text.get_text() for text in drawn.figure.legends[0].get_texts()]
    ['as run', 'random', 'certificate', 'oracle', 'full']
    """
    function = "gated_recomputation"
    table = recomputation(
        log,
        arm=arm,
        signal=signal,
        share=share,
        confidence=confidence,
        outcome=outcome,
        within=within,
        higher=higher,
        confidence_higher=confidence_higher,
        baseline=baseline,
        where=where,
        by=by,
        design=design,
    )
    drawn = {
        "base": ("as run", BASE, ""),
        "random": ("random", LOOKS[5], filling(1)),
        **({} if confidence is None else {"confidence": (confidence, LOOKS[1], filling(2))}),
        "policy": (signal, LOOKS[0], filling(3)),
        "oracle": ("oracle", LOOKS[2], filling(4)),
        "full": (baseline, WHOLE, ""),
    }
    refuse_empty(function, table)
    means = rows_of(table, pl.col("quantity").is_in(list(drawn)))
    groups = groups_of(function, table, by)
    width = 0.84 / len(drawn)
    wide = len(groups) * len(drawn) >= MANY_BARS
    size = (DOUBLE, 3.4) if wide else (SINGLE, 2.4)
    with panels(ax, width=size[0], height=size[1], function=function) as (figure, axes):
        for place, (quantity, (label, look, hatch)) in enumerate(drawn.items()):
            rows = means.frame.filter(quantity=quantity)
            shift = (place - (len(drawn) - 1) / 2) * width
            places = [shift + number for number in range(len(groups))]
            bars(axes[0], places, rows, look, label, width=0.92 * width, hatch=hatch)
        labels = [row_text([group]) if by else arm for group in groups]
        group_ticks(axes[0], labels, axes[0].get_window_extent().width / figure.dpi)
        if by is not None:
            axes[0].set_xlabel(plain_text(axis_label(by)))
        axes[0].set_ylabel(f"accuracy (mean {outcome})")
        axes[0].set_ylim(bottom=0)
        legend(figure, axes, means.frame, own=ax is None)
    gains = table.frame.filter(quantity="gain_over_random").iter_rows(named=True)
    told = "; ".join((f"{row_text([row[by]])}: " if by else "") + estimate_text(row) for row in gains)
    text = caption(
        f"Mean {outcome} of {arm} when {share:.3g} of the runs are answered again by {baseline}: those of "
        f"the highest suspicion by each signal, of a random choice, or of the largest gain (oracle). Gain of "
        f"{signal} over random{f' by {by}' if by else ''}: {told}.",
        means,
        drawn="Lines",
        where=where,
    )
    return CaptionedFigure(figure, axes, text)
