"""Figure: accuracy against the budget."""

from __future__ import annotations

from matplotlib.axes import Axes

from kvstats.estimators.rates import accuracy
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.log.frames import Log
from kvstats.report.figures.budgets import BUDGETS, budget_column
from kvstats.report.figures.captions import caption
from kvstats.report.figures.marks import interval_span, legend, line
from kvstats.report.figures.parts import refuse_empty
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.style import GREY, LOOKS, panels
from kvstats.report.plots.wording import axis_label, plain_text
from kvstats.tables import FULL

__all__ = ["accuracy_against_budget"]


def accuracy_against_budget(
    log: Log,
    *,
    arm: str,
    baseline: str,
    full: str | None = FULL,
    outcome: str = "score",
    where: str | None = None,
    design: Design = DEFAULT_DESIGN,
    ax: Axes | None = None,
) -> CaptionedFigure:
    """Draw the mean outcome of two arms over their budgets, and that of the full cache.

    The estimates are those of `kvstats.accuracy`. To judge the difference of the arms see `kvstats.delta`:
    they answer the same inputs, and bands that overlap do not say that they are equal.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm drawn solid, such as one that is gated.
    baseline : str
        The arm drawn dashed, such as the plain one.
    full : str or None, default "full"
        The arm that keeps the cache, drawn as a grey line; None for no line.
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

    Raises
    ------
    InputError
        When an outcome is null, runs of both kinds of budget are mixed, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", accuracy over budgets.

    Examples
    --------
    >>> import kvstats as kv
    >>> log = kv.simulate_log(seed=1, inputs=50, arms=("plain", "gate")).log
    >>> kv.figures.accuracy_against_budget(log, arm="gate", baseline="plain").axes[0].get_xlabel()
    'budget (share of the cache kept)'
    """
    function = "accuracy_against_budget"
    names = [baseline, arm]
    found = [
        accuracy(log, arm=name, outcome=outcome, where=where, by=BUDGETS, design=design) for name in names
    ]
    refuse_empty(function, *found)
    column = budget_column(function, [result.frame for result in found])
    whole = None if full is None else accuracy(log, arm=full, outcome=outcome, where=where, design=design)
    with panels(ax, function=function) as (figure, axes):
        if whole is not None:
            row = whole.frame.row(0, named=True)
            if row["estimate"] is not None:
                axes[0].axhline(
                    row["estimate"], color=GREY, linewidth=0.8, zorder=0.5, label=plain_text(str(full))
                )
            interval_span(axes[0], row["low"], row["high"], along="y")
        for name, result, look in zip(names, found, (LOOKS[1], LOOKS[0]), strict=True):
            line(axes[0], result.frame, column, look, name)
        axes[0].set(xlabel=axis_label(column), ylabel=f"accuracy (mean {outcome})")
        legend(figure, axes, *(result.frame for result in found), own=ax is None)
    text = caption(
        f"Mean {outcome} over budgets of {arm} (solid) and {baseline} (dashed)"
        + (f"; {full} in grey." if full is not None else "."),
        *found,
        *([] if whole is None else [whole]),
        drawn="Bands",
        where=where,
    )
    return CaptionedFigure(figure, axes, text)
