"""Figure: head agreement over the layers, by task."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from kvstats.errors import InputError
from kvstats.estimators.agreement import agreement_profile
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.log.frames import Log
from kvstats.report.figures.captions import caption
from kvstats.report.figures.marks import legend, line
from kvstats.report.figures.parts import refuse_empty
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.style import GREY, look, panels
from kvstats.statistics.drop import layer_bins

__all__ = ["agreement_profiles"]


def agreement_profiles(
    log: Log,
    *,
    profile: str = "head_agreement_per_layer",
    bins: str = "first_last",
    share: float = 1 / 3,
    where: str | None = None,
    design: Design = DEFAULT_DESIGN,
    ax: Axes | None = None,
) -> CaptionedFigure:
    """Draw the mean head agreement over the layers, a line a task, with the two bins of D shaded.

    The estimates are those of `kvstats.agreement_profile`; D is the mean in the early bin minus that in the
    late one.

    Parameters
    ----------
    log : Log
        The log.
    profile : {"head_agreement_per_layer", "head_agreement_interior_per_layer"}
        Column of agreement by layer.
    bins : {"first_last", "strict_thirds"}
        Which bins are shaded; see `kvstats.with_drop`.
    share : float, default 1/3
        Share of the layers in each bin of ``first_last``.
    where : str, optional
        SQL expression over `log.inputs`; the models that are left must have as many layers.
    design : Design
        How to judge the means, each layer alone.
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure of one column's width.

    Returns
    -------
    CaptionedFigure

    Raises
    ------
    InputError
        When an input has no profile, none is left, models of different depth would be pooled or drawn over
        each other, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", head agreement over depth.

    Examples
    --------
    >>> import kvstats as kv
    >>> from kvstats.log import InputRecord, log_from_records
    >>> log = log_from_records([
    ...     InputRecord(suite="s", model="m", task=task, input_id=str(i),
    ...                 head_agreement_per_layer=[level + 0.01 * (i % 3) for level in (0.6, 0.5, 0.4)])
    ...     for task in ("keys", "qa") for i in range(30)
    ... ])
    >>> drawn = kv.figures.agreement_profiles(log)
    >>> [text.get_text() for text in drawn.figure.legends[0].get_texts()]
    ['keys', 'qa']
    """
    function = "agreement_profiles"
    found = agreement_profile(log, profile=profile, where=where, by="task", design=design)
    refuse_empty(function, found)
    depths = found.frame.group_by("task").agg(pl.len())["len"].unique().to_list()
    if len(depths) != 1:
        raise InputError(
            f"{function}: tasks have {' and '.join(map(str, sorted(depths)))} layers, and one axis "
            "of layers is for models of one depth; select one through `where`"
        )
    early, late = layer_bins(depths[0], bins, share)
    with panels(ax, function=function) as (figure, (panel,)):
        for name, layers in (("early", early), ("late", late)):
            panel.axvspan(layers[0] - 0.5, layers[-1] + 0.5, color=GREY, alpha=0.13, linewidth=0, zorder=0)
            panel.annotate(
                f"{name} bin",
                (float(np.mean(layers)), 1),
                xycoords=("data", "axes fraction"),
                va="bottom",
                ha="center",
                color=GREY,
            )
        for place, rows in enumerate(found.frame.partition_by("task", maintain_order=True)):
            # Layers are many, so that markers would hide the lines: the dashes tell them apart.
            line(panel, rows, "layer", look(place), rows["task"][0], markers=False)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.set(xlabel="layer", ylabel="mean head agreement (Jaccard)")
        legend(figure, (panel,), found.frame, own=ax is None)
    text = caption(
        f"Mean {profile} by task; D is the mean in the early bin (layers {early[0]} to {early[-1]}) minus "
        f"that in the late one ({late[0]} to {late[-1]}).",
        found,
        drawn="Bands",
        where=where,
    )
    return CaptionedFigure(figure, (panel,), text)
