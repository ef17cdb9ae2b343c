"""Figure: which layers and heads foretell a failure."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from kvstats.estimators import best_unit_auc, unit_auc
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.multiplicity import adjust
from kvstats.log.frames import Log
from kvstats.report.figures.captions import OUTCOMES, caption, estimate_text
from kvstats.report.figures.marks import key, line
from kvstats.report.figures.parts import refuse_empty
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.intervals import draw_points, draw_reference, estimates
from kvstats.report.plots.style import DOUBLE, GREY, LOOKS, Look, panels
from kvstats.tables import FULL

__all__ = ["layer_head_map"]

BEST = Look(LOOKS[4].colour, "D", "-")


def layer_head_map(
    log: Log,
    *,
    arm: str,
    outcome: str = "failure",
    baseline: str = FULL,
    where: str | None = None,
    design: Design = DEFAULT_DESIGN,
    ax: tuple[Axes, Axes] | None = None,
) -> CaptionedFigure:
    """Draw the area under the curve of the certificate of each layer and head, as a map and with intervals.

    The map shows `kvstats.unit_auc`; a dot marks a unit of which no use is rejected at a false discovery rate
    of 1 minus the level (Benjamini and Hochberg), and a hatched one is undefined. The right panel shows all
    units in the order of their areas, with their intervals; those at its end are high by chance too, and the
    diamond is what the best unit is worth when it is chosen on other inputs (`kvstats.best_unit_auc`).

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm, whose runs carry ``certificate_per_head`` of one shape.
    outcome : str, default "failure"
        Boolean column of the pairs, or ``attribution``.
    baseline : str, default "full"
        The arm of the twins.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    design : Design
        How to judge the areas.
    ax : sequence of two matplotlib.axes.Axes, optional
        Where to draw; default: a new figure of two columns' width.

    Returns
    -------
    CaptionedFigure

    Raises
    ------
    InputError
        When no pair is left, and what `kvstats.unit_auc` and `kvstats.best_unit_auc` refuse.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", layers and heads.

    Examples
    --------
    >>> import kvstats as kv
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(success), success=success,
    ...               certificate_per_head=[[i % 7, i * i % 5]] if arm == "poisson" else None)
    ...     for i in range(40)
    ...     for arm, budget, success in (("full", 1.0, True), ("poisson", 0.5, i % 5 > i % 7))
    ... ])
    >>> kv.figures.layer_head_map(log, arm="poisson").axes[0].get_xlabel()
    'layer'
    """
    function = "layer_head_map"
    found = unit_auc(log, arm=arm, outcome=outcome, baseline=baseline, where=where, design=design)
    refuse_empty(function, found)
    best = best_unit_auc(log, arm=arm, outcome=outcome, baseline=baseline, where=where, design=design)
    honest = best.frame.filter(quantity="cross_fitted")
    layers, heads = (found.frame[name].to_numpy() for name in ("layer", "head"))
    areas = np.full((int(heads.max()) + 1, int(layers.max()) + 1), np.nan)
    areas[heads, layers] = found.frame["estimate"].to_numpy()
    apart = found.frame.filter(pl.Series(adjust(found.p_value()["p_value"].to_list()) <= 1 - design.level))
    limit = max(0.05, float(np.nanmax(np.abs(areas - 0.5), initial=0.0)))
    with panels(ax, columns=2, width=DOUBLE, height=2.3, function=function) as (figure, axes):
        left, right = axes
        image = left.imshow(
            areas, vmin=0.5 - limit, vmax=0.5 + limit, cmap="cividis", aspect="auto", origin="lower"
        )
        for head, layer in np.argwhere(np.isnan(areas)):
            left.add_patch(
                Rectangle(
                    (layer - 0.5, head - 0.5),
                    1,
                    1,
                    facecolor="white",
                    edgecolor=GREY,
                    hatch="////",
                    linewidth=0,
                )
            )
        left.plot(
            apart["layer"], apart["head"], ".", color="black", markeredgecolor="white", markeredgewidth=0.4
        )
        left.set(xlabel="layer", ylabel="head")
        for set_ticks, count in ((left.set_yticks, areas.shape[0]), (left.set_xticks, areas.shape[1])):
            set_ticks(range(0, count, 1 + count // 10))
        left.spines[:].set_visible(False)
        figure.colorbar(image, ax=left, label="area under the curve").outline.set_visible(False)
        ordered = found.frame.sort("estimate", nulls_last=True)
        draw_reference(right, 0.5, along="y")
        line(right, ordered.with_row_index("place"), "place", LOOKS[0], "units", markers=False)
        draw_points(right, [1.04 * ordered.height], estimates(honest), BEST, along="y")
        key(right, BEST, "best, on other inputs")
        right.set(xlabel="units in the order of their areas", ylabel="area under the curve", xticks=[])
        right.legend(loc="upper left")
    text = caption(
        f"Area under the curve of the certificate of each layer and head of {arm} for "
        f"{OUTCOMES.get(outcome, outcome)}. Dots: {apart.height} of {found.frame.height} units differ from "
        f"0.5 at a false discovery rate of {1 - design.level:.2g}. The best unit, chosen on other inputs "
        f"than it is judged on: {estimate_text(honest.row(0, named=True))}; on the same ones: "
        f"{estimate_text(best.frame.filter(quantity='apparent').row(0, named=True))}.",
        found,
        drawn="Band",
        where=where,
        hollow="Hatched and hollow",
    )
    return CaptionedFigure(figure, axes, text)
