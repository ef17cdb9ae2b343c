"""Figure: three questions to the same signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
from matplotlib.axes import Axes

from kvstats.estimators import signal_panel
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.log.frames import Log
from kvstats.report.figures.captions import caption, classes_text, compared_text
from kvstats.report.figures.marks import legend, points
from kvstats.report.figures.parts import rows_of
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.intervals import draw_reference
from kvstats.report.plots.style import look, panels
from kvstats.tables import FULL

__all__ = ["three_questions"]

QUESTIONS = {
    "failure": "Will it fail?\n(own failure)",
    "induced_failure": "Did eviction\nbreak it? (induced)",
    "attribution": "Whose fault is\na failure?",
}
"""The outcomes of the three questions, and how they are put."""


def three_questions(
    log: Log,
    *,
    arm: str,
    signals: Sequence[str] = ("certificate", "logprob"),
    higher: Mapping[str, str] | None = None,
    within: str | Sequence[str] | None = None,
    baseline: str = FULL,
    where: str | None = None,
    design: Design = DEFAULT_DESIGN,
    ax: Axes | None = None,
) -> CaptionedFigure:
    """Draw how well signals answer three questions: will it fail, did eviction break it, whose fault is it.

    The areas are those of `kvstats.signal_panel` for the outcomes ``failure`` (over all runs),
    ``induced_failure`` (over runs whose twin succeeded) and ``attribution`` (over failures: induced against
    inherent ones), 0.5 for a signal of no use.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm.
    signals : sequence of str, default ("certificate", "logprob")
        Numeric columns of the pairs.
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
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure of one column's width.

    Returns
    -------
    CaptionedFigure

    Raises
    ------
    InputError
        What `kvstats.signal_panel` refuses.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", prediction and attribution.

    Examples
    --------
    >>> import kvstats as kv
    >>> log = kv.simulate_log(seed=1, inputs=100).log
    >>> drawn = kv.figures.three_questions(log, arm="plain")
    >>> [text.get_text() for text in drawn.figure.legends[0].get_texts()]
    ['certificate', 'logprob']
    """
    function = "three_questions"
    table = signal_panel(
        log,
        arm=arm,
        signals=signals,
        outcomes=list(QUESTIONS),
        reference=None,
        higher=higher,
        within=within,
        quantities=["share", "auc"],
        baseline=baseline,
        where=where,
        design=design,
    )
    areas = rows_of(table, pl.col("quantity") == "auc")
    with panels(ax, function=function) as (figure, axes):
        draw_reference(axes[0], 0.5, along="y")
        for place, signal in enumerate(signals):
            rows = areas.frame.filter(signal=signal)
            ordered = pl.concat([rows.filter(outcome=outcome) for outcome in QUESTIONS])
            shift = 0.16 * (place - (len(signals) - 1) / 2)
            points(axes[0], [shift + number for number in range(3)], ordered, look(place), signal, along="y")
        axes[0].set_xticks(range(3), list(QUESTIONS.values()))
        axes[0].set_xlim(-0.5, 2.5)
        axes[0].set_ylabel("area under the curve")
        legend(figure, axes, own=ax is None)
    text = caption(
        f"Areas of the signals of {arm} for three questions, {compared_text(within)}. "
        f"{classes_text(table)} Dotted: of no use.",
        areas,
        drawn="Lines",
        where=where,
    )
    return CaptionedFigure(figure, axes, text)
