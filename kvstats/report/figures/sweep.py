"""Figure: the red flag over budgets: accuracy with retrieval, silent errors, and the median signal."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes

from kvstats.estimators import accuracy, crossing_budget, red_flag
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.log.frames import Log
from kvstats.policies.retrieve import retrieve
from kvstats.report.figures.captions import OUTCOMES, caption, estimate_text
from kvstats.report.figures.marks import interval_span, legend, line
from kvstats.report.figures.parts import refuse_empty, rows_of
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.intervals import draw_reference
from kvstats.report.plots.style import DOUBLE, LOOKS, panels
from kvstats.report.plots.wording import axis_label, plain_text
from kvstats.tables import FULL

__all__ = ["budget_sweep"]

RETRIEVED = "__retrieved__"

RATES = {"flag_rate": "flagged", "error_rate": "wrong", "silent_error_rate": "wrong, no flag"}
"""The shares of the middle panel, and what they are called."""

MEDIAN = "median_when_wrong"


def budget_sweep(
    log: Log,
    *,
    arm: str,
    signal: str = "certificate",
    tau: float = 1.0,
    outcome: str = "failure",
    higher: str = "positive",
    full: str = FULL,
    where: str | None = None,
    design: Design = DEFAULT_DESIGN,
    ax: Sequence[Axes] | None = None,
) -> CaptionedFigure:
    """Draw what a red flag does over budgets, in three panels.

    Left, `kvstats.accuracy` as run and where flagged runs are answered again (`kvstats.retrieve`). In the
    middle, the shares of `kvstats.red_flag`: runs flagged, wrong, and wrong without a flag. Right, its median
    signal among wrong runs against the threshold, with the budget at which it crosses
    (`kvstats.crossing_budget`).

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm, run at several budgets.
    signal : str, default "certificate"
        Numeric column of the runs, never null for the arm.
    tau : float, default 1.0
        Threshold of the red flag, fixed beforehand.
    outcome : str, default "failure"
        Boolean column of the pairs that says which runs are wrong.
    higher : {"positive", "negative"}
        Whether high or low signals raise the flag.
    full : str, default "full"
        The arm that answers flagged runs.
    where : str, optional
        SQL expression over the runs of the arm with the columns of their input records.
    design : Design
        How to judge the estimates.
    ax : sequence of three matplotlib.axes.Axes, optional
        Where to draw; default: a new figure of two columns' width.

    Returns
    -------
    CaptionedFigure

    Raises
    ------
    InputError
        When the arm has one budget only or some in tokens, a run has no twin, a signal or outcome is null, or
        a name is not known.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", table 6.

    Examples
    --------
    >>> import kvstats as kv
    >>> log = kv.simulate_log(seed=1, inputs=100).log
    >>> [panel.get_ylabel() for panel in kv.figures.budget_sweep(log, arm="plain").axes]
    ['accuracy (mean success)', 'share of runs', 'median certificate when wrong']
    """
    function = "budget_sweep"
    retrieved = retrieve(log, base=arm, signal=signal, tau=tau, higher=higher, full=full, name=RETRIEVED)
    found = [
        accuracy(retrieved, arm=name, outcome="success", where=where, by="budget", design=design)
        for name in (arm, RETRIEVED)
    ]
    flags = red_flag(
        log,
        arm=arm,
        signal=signal,
        tau=tau,
        outcome=outcome,
        higher=higher,
        quantities=[*RATES, MEDIAN],
        baseline=full,
        where=where,
        by="budget",
        design=design,
    )
    refuse_empty(function, *found, flags)
    wrong = outcome if where is None else f"({where}) AND {outcome}"
    crossing = crossing_budget(
        log, signal=signal, arm=arm, level=tau, baseline=full, where=wrong, design=design
    ).frame.row(0, named=True)
    shares, median = (rows_of(flags, pl.col("quantity").is_in(names)) for names in (list(RATES), [MEDIAN]))
    with panels(ax, columns=3, width=DOUBLE, height=2.3, function=function) as (figure, axes):
        left, middle, right = axes
        for result, look, label in zip(
            found, (LOOKS[1], LOOKS[0]), ("as run", "flagged run again"), strict=True
        ):
            line(left, result.frame, "budget", look, label)
        for number, (quantity, label) in enumerate(RATES.items()):
            line(middle, shares.frame.filter(quantity=quantity), "budget", LOOKS[2 + number], label)
        line(right, median.frame, "budget", LOOKS[6], f"median {signal}")
        draw_reference(right, tau, along="y")
        if crossing["estimate"] is not None:
            draw_reference(right, crossing["estimate"], along="x")
        interval_span(right, crossing["low"], crossing["high"], along="x")
        left.set_ylabel("accuracy (mean success)")
        middle.set_ylabel("share of runs")
        right.set_ylabel(plain_text(f"median {signal} when wrong"))
        for panel in axes:
            panel.set_xlabel(axis_label("budget") if ax is not None else "")
        for panel in (left, middle):
            panel.set_ylim(-0.03, 1.03)
        legend(figure, (left, middle), shares.frame, median.frame, own=ax is None)
        if ax is None:
            figure.supxlabel(axis_label("budget"), fontsize="medium")
    text = caption(
        f"Red flag at {signal} {tau:g} on {arm}, over budgets. Left: accuracy as run, and with flagged runs "
        f"answered by {full}. Middle: shares flagged, wrong ({OUTCOMES.get(outcome, outcome)}), and wrong "
        f"without a flag. Right: median {signal} of wrong runs; the budget at which it "
        f"crosses {tau:g} (dotted): {estimate_text(crossing)}.",
        *found,
        shares,
        median,
        drawn="Bands",
        where=where,
    )
    return CaptionedFigure(figure, axes, text)
