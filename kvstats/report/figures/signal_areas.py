"""Figure: what each self-signal knows of each kind of failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
from matplotlib.axes import Axes

from kvstats.estimators import signal_panel as areas_of
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.log.frames import Log
from kvstats.report.figures.captions import OUTCOMES, caption, classes_text, compared_text
from kvstats.report.figures.marks import points
from kvstats.report.figures.parts import rows_of
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.intervals import draw_reference
from kvstats.report.plots.style import DOUBLE, LOOKS, panels
from kvstats.report.plots.wording import plain_text
from kvstats.tables import FULL

__all__ = ["signal_panel"]


def signal_panel(
    log: Log,
    *,
    arm: str,
    signals: Sequence[str] | None = None,
    outcomes: Sequence[str] = ("failure", "induced_failure"),
    higher: Mapping[str, str] | None = None,
    within: str | Sequence[str] | None = None,
    baseline: str = FULL,
    where: str | None = None,
    design: Design = DEFAULT_DESIGN,
    ax: Sequence[Axes] | None = None,
) -> CaptionedFigure:
    """Draw the area under the curve of every signal, a panel for each kind of failure.

    The areas are those of `kvstats.signal_panel`, 0.5 for a signal of no use. Signals stand in the order of
    their area in the last panel. Which of two is better is told by the ``difference`` of that table, not by
    comparing intervals.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm.
    signals : sequence of str, optional
        Numeric columns of the pairs; default: every signal of runs in the log.
    outcomes : sequence of str, default ("failure", "induced_failure")
        Boolean columns of the pairs, or ``attribution``.
    higher : mapping of str to {"positive", "negative"}, optional
        Which class is expected to have the higher signal, where `kvstats.signal_panel` does not know it.
    within : str or sequence of str, optional
        Columns that runs must agree in to be compared. Default: all runs are compared.
    baseline : str, default "full"
        The arm of the twins.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    design : Design
        How to judge the areas.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one for each outcome; default: a new figure of two columns' width.

    Returns
    -------
    CaptionedFigure

    Raises
    ------
    InputError
        What `kvstats.signal_panel` refuses.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", table 2.

    Examples
    --------
    >>> import kvstats as kv
    >>> log = kv.simulate_log(seed=1, inputs=100).log
    >>> drawn = kv.figures.signal_panel(log, arm="plain")
    >>> [panel.get_title(loc="left") for panel in drawn.axes]
    ['own failure', 'induced failure']
    """
    function = "signal_panel"
    table = areas_of(
        log,
        arm=arm,
        signals=signals,
        outcomes=outcomes,
        reference=None,
        higher=higher,
        within=within,
        quantities=["share", "auc"],
        baseline=baseline,
        where=where,
        design=design,
    )
    found = rows_of(table, pl.col("quantity") == "auc")
    order = found.frame.filter(outcome=outcomes[-1]).sort("estimate", "signal")["signal"].to_list()
    places = list(range(len(order)))
    with panels(
        ax, columns=len(outcomes), width=DOUBLE, height=0.8 + 0.24 * len(order), function=function
    ) as (figure, axes):
        for number, (panel, outcome) in enumerate(zip(axes, outcomes, strict=True)):
            rows = found.frame.filter(outcome=outcome)
            ordered = pl.concat([rows.filter(signal=signal) for signal in order])
            draw_reference(panel, 0.5, along="x")
            points(panel, places, ordered, LOOKS[0], along="x")
            panel.set_yticks(places, [plain_text(signal) for signal in order] if number == 0 else [])
            panel.set_ylim(-0.6, len(order) - 0.4)
            panel.set_title(OUTCOMES.get(outcome, outcome), loc="left")
            panel.set_xlabel("area under the curve")
        if ax is None:
            limits = [bound for panel in axes for bound in panel.get_xlim()]
            for panel in axes:
                panel.set_xlim(min(limits), max(limits))
    text = caption(
        f"Area under the curve of the signals of {arm}, {compared_text(within)}. "
        f"{classes_text(table)} Dotted: of no use.",
        found,
        drawn="Lines",
        where=where,
    )
    return CaptionedFigure(figure, axes, text)
