"""Figure: what a signal catches at each rate of false alarms, and where the red flag stands."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from kvstats.estimators import auc, operating_point, red_flag
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.log.frames import Log
from kvstats.report.figures.captions import OUTCOMES, caption, estimate_text
from kvstats.report.figures.marks import key, legend, line
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.intervals import draw_interval, draw_points, estimates
from kvstats.report.plots.style import GREY, LOOKS, panels
from kvstats.report.plots.wording import plain_text
from kvstats.tables import FULL

__all__ = ["operating_curve"]

RATES = (0.001, 0.01, *np.linspace(0.05, 0.95, 19).round(2).tolist(), 0.99, 0.999)
"""False-alarm rates at which the curve is read."""

FLAG = LOOKS[4]


def operating_curve(
    log: Log,
    *,
    arm: str,
    signal: str = "certificate",
    tau: float = 1.0,
    outcome: str = "failure",
    higher: str = "positive",
    baseline: str = FULL,
    where: str | None = None,
    design: Design = DEFAULT_DESIGN,
    ax: Axes | None = None,
) -> CaptionedFigure:
    """Draw the true-positive rate of a signal over the false-alarm rate, and the red flag at a threshold.

    Curve and band are `kvstats.operating_point` at rates from 0.001 to 0.999, the mark is ``hit_rate`` over
    ``false_alarm_rate`` of `kvstats.red_flag`, each with its interval, and the caption tells `kvstats.auc`.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm.
    signal : str, default "certificate"
        Numeric column of the pairs.
    tau : float, default 1.0
        Threshold of the red flag, fixed beforehand.
    outcome : str, default "failure"
        Boolean column of the pairs, or ``attribution``.
    higher : {"positive", "negative"}
        Whether runs with the outcome are expected to have the higher signal, or the others.
    baseline : str, default "full"
        The arm of the twins.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    design : Design
        How to judge the rates.
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure of one column's width.

    Returns
    -------
    CaptionedFigure

    Raises
    ------
    InputError
        When a run has no twin, a signal or outcome is null, or a name is not known.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", the red flag at tau = 1.

    Examples
    --------
    >>> import kvstats as kv
    >>> log = kv.simulate_log(seed=1, inputs=100).log
    >>> kv.figures.operating_curve(log, arm="plain").axes[0].get_ylabel()
    'true positives (share of own failure)'
    """
    function = "operating_curve"
    found = [
        operating_point(
            log,
            signal=signal,
            false_alarm_rate=rate,
            outcome=outcome,
            arm=arm,
            baseline=baseline,
            higher=higher,
            where=where,
            design=design,
        )
        for rate in RATES
    ]
    curve = pl.concat(result.frame for result in found).with_columns(rate=pl.Series(RATES))
    flag = red_flag(
        log,
        arm=arm,
        signal=signal,
        tau=tau,
        outcome=outcome,
        higher=higher,
        quantities=["hit_rate", "false_alarm_rate"],
        baseline=baseline,
        where=where,
        design=design,
    )
    area = auc(
        log,
        signal=signal,
        outcome=outcome,
        arm=arm,
        baseline=baseline,
        higher=higher,
        where=where,
        design=design,
    ).frame.row(0, named=True)
    hits, alarms = (flag.frame.filter(quantity=name) for name in ("hit_rate", "false_alarm_rate"))
    what = OUTCOMES.get(outcome, outcome)
    with panels(ax, height=3.0, function=function) as (figure, axes):
        axes[0].plot([0, 1], [0, 1], ":", color=GREY, linewidth=0.8, label="of no use")
        line(axes[0], curve, "rate", LOOKS[0], signal, markers=False)
        if (first := curve["estimate"][0]) is not None:
            # Where nothing is flagged there is no alarm either: the curve begins at the origin.
            axes[0].plot([0, 0, RATES[0]], [0, first, first], color=LOOKS[0].colour, linewidth=0.6)
        (hit,), (alarm,) = estimates(hits), estimates(alarms)
        sign = "\u2265" if higher == "positive" else "\u2264"
        if hit.value == hit.value and alarm.value == alarm.value:
            draw_interval(axes[0], hit.value, alarm, FLAG.colour, "x")
            draw_points(axes[0], [alarm.value], [hit], FLAG, along="y")
            key(axes[0], FLAG, f"red flag: {signal} {sign} {tau:g}")
        axes[0].set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="false alarms (share of other runs)")
        axes[0].set_ylabel(plain_text(f"true positives (share of {what})"))
        legend(figure, axes, curve, own=ax is None)
    text = caption(
        f"What {signal} of {arm} catches ({what}) over the rate of false alarms; area {estimate_text(area)}. "
        f"Red flag at {signal} {sign} {tau:g}: hits {estimate_text(hits.row(0, named=True))}, false alarms "
        f"{estimate_text(alarms.row(0, named=True))}.",
        *found,
        flag,
        drawn="Band and lines",
        where=where,
    )
    return CaptionedFigure(figure, axes, text)
