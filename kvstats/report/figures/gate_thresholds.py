"""Figure: what a gate gains over its thresholds, and how often it is open."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes

from kvstats.estimators.gate_plateau import gate_plateau
from kvstats.estimators.gate_sweep import gate_sweep
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.log.frames import Log
from kvstats.policies.threshold import DROP, Threshold
from kvstats.report.figures.captions import caption
from kvstats.report.figures.marks import legend, line
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.intervals import draw_reference
from kvstats.report.plots.style import GREY, LOOKS, panels
from kvstats.report.plots.wording import axis_label
from kvstats.tables import FULL

__all__ = ["tau_sensitivity"]


def tau_sensitivity(
    log: Log,
    *,
    base: str,
    taus: Sequence[float | Threshold] | None = None,
    signal: str = DROP,
    full: str = FULL,
    where: str | None = None,
    design: Design = DEFAULT_DESIGN,
    ax: Sequence[Axes] | None = None,
) -> CaptionedFigure:
    """Draw the gain of a gate over its threshold, the plateau of good ones, and how often the gate is open.

    The upper panel is the ``delta`` of `kvstats.gate_sweep`, the lower one its ``gate_open`` and
    ``kept_fraction``; the plateau of `kvstats.gate_plateau` is shaded. A delta where the gate is open, or
    closed, for under 5% of pairs is marked by a ring: it is what the fallback gains, not the gate.

    Parameters
    ----------
    log : Log
        The log.
    base : str
        Name of the arm that evicts.
    taus : sequence of float or Threshold, optional
        The thresholds; default: those of `kvstats.gate_sweep`.
    signal : str, default "drop"
        Column of `log.inputs`.
    full : str, default "full"
        Name of the arm that keeps the cache.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the evicted run's.
    design : Design
        How to judge the estimates.
    ax : sequence of two matplotlib.axes.Axes, optional
        Where to draw; default: a new figure of one column's width.

    Returns
    -------
    CaptionedFigure

    Raises
    ------
    InputError
        What `kvstats.gate_sweep` refuses.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", sensitivity to tau.

    Examples
    --------
    >>> import kvstats as kv
    >>> log = kv.simulate_log(seed=1, inputs=50).log
    >>> [panel.get_ylabel() for panel in kv.figures.tau_sensitivity(log, base="plain").axes]
    ['gain (mean score)', 'share']
    """
    function = "tau_sensitivity"
    shown = ("delta", "gate_open", "kept_fraction")
    sweep = gate_sweep(
        log,
        base=base,
        taus=taus,
        signal=signal,
        full=full,
        quantities=shown,
        where=where,
        design=design,
    )
    plateau = gate_plateau(sweep).frame.row(0, named=True)
    delta, is_open, kept = (sweep.frame.filter(pl.col("quantity") == name) for name in shown)
    fallback = delta.filter(pl.col("status").str.starts_with("gate open on"))
    with panels(ax, rows=2, height=3.4, function=function) as (figure, axes):
        upper, lower = axes
        for panel in axes:
            panel.axvspan(
                plateau["low_tau"], plateau["high_tau"], color=GREY, alpha=0.15, linewidth=0, label="plateau"
            )
        draw_reference(upper, 0.0, along="y")
        line(upper, delta, "tau", LOOKS[0], f"gated minus {base}")
        upper.plot(
            fallback["tau"].to_list(),
            fallback["estimate"].to_list(),
            "o",
            color=GREY,
            markerfacecolor="none",
            markersize=7,
            label="open on <5% or >95%",
        )
        line(lower, is_open, "tau", LOOKS[2], "gate open")
        line(lower, kept, "tau", LOOKS[1], "cache kept")
        upper.set(ylabel="gain (mean score)", xlim=lower.get_xlim())
        name = "D" if signal == DROP else axis_label(signal)
        lower.set(xlabel=f"threshold τ of {name}", ylabel="share", ylim=(-0.04, 1.04))
        legend(figure, axes, own=ax is None)
    text = caption(
        f"Gate on {signal} over thresholds: gain over {base}, share of pairs with an open gate, cache kept. "
        f"Shaded: thresholds as good as the best, {plateau['low_tau']:.3g} to {plateau['high_tau']:.3g}; "
        f"the best, {plateau['best_tau']:.3g}, was chosen on the same inputs.",
        sweep,
        drawn="Bands",
        where=where,
    )
    return CaptionedFigure(figure, axes, text)
