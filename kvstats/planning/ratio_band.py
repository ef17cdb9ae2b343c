"""Predictions of recovery where a cell was not yet run, from the ratios of the cells that were."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.estimators.origin_fit import Table, cell_table

__all__ = ["PredictedInterval", "RatioBand", "ratio_bands"]


@dataclass(frozen=True)
class PredictedInterval:
    """Where a recovery rate was predicted to lie.

    Attributes
    ----------
    low, high : float
        The bounds, both included.
    """

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, Real) and self.low <= float(value) <= self.high

    def rule(self, column: str = "estimate") -> str:
        """Return the prediction as a rule on a column of a result.

        Examples
        --------
        >>> PredictedInterval(0.05, 0.11).rule()
        'estimate >= 0.05 AND estimate <= 0.11'
        """
        return f"{column} >= {self.low!r} AND {column} <= {self.high!r}"


@dataclass(frozen=True)
class RatioBand:
    """The ratios of recovery rate to headroom that a group of cells has shown.

    Attributes
    ----------
    group : str
        Such as the task.
    low, high : float
        The smallest and the largest ratio.
    cells : int
        Number of cells with headroom, which have a ratio.
    """

    group: str
    low: float
    high: float
    cells: int

    def predict(self, headroom: float) -> PredictedInterval:
        """Return the interval of recovery rates that the band predicts for a headroom in [0, 1].

        Examples
        --------
        >>> RatioBand("VT", 0.25, 0.5, 3).predict(0.2)
        PredictedInterval(low=0.05, high=0.1)
        """
        if isinstance(headroom, bool) or not isinstance(headroom, Real) or not 0 <= headroom <= 1:
            raise InputError.argument(
                "RatioBand.predict",
                "headroom",
                headroom,
                "is not a share in [0, 1]",
                "pass 1 minus the accuracy",
            )
        return PredictedInterval(self.low * float(headroom), self.high * float(headroom))

    def claim(
        self,
        identifier: str,
        *,
        arm: str,
        baseline: str = "full",
        column: str = "task",
        where: str | None = None,
    ) -> dict[str, Any]:
        """Return the prediction as a claim for a registration, written before the new cell is run.

        The new headroom is not known then. That the recovery rate lies between both ratios times the
        headroom that will be measured is the same as that their ratio lies in the band, which is what the
        claim says. It is supported where the measured ratio lies in the band, and killed where its whole
        interval lies outside.

        Parameters
        ----------
        identifier : str
            The claim's id.
        arm, baseline : str
            The arms, as of `kvstats.recovery_headroom_ratio`.
        column : str, default "task"
            Column that holds the group.
        where : str, optional
            A further condition, such as of the new context length.

        Returns
        -------
        dict
            A claim, to be written into the registration's ``claims``.

        Examples
        --------
        >>> band = RatioBand("VT", 0.25, 0.5, 3)
        >>> claim = band.claim("vt-32k", arm="snapkv", where="context_tokens > 9000")
        >>> claim["where"], claim["supported"]
        ("task = 'VT' AND (context_tokens > 9000)", 'estimate >= 0.25 AND estimate <= 0.5')
        """
        band = PredictedInterval(self.low, self.high)
        quoted = self.group.replace("'", "''")
        condition = f"{column} = '{quoted}'" + (f" AND ({where})" if where else "")
        return {
            "id": identifier,
            "statement": f"On {self.group} the recovery rate is between {self.low:.3g} and {self.high:.3g} "
            f"times the headroom, as in the {self.cells} cells before.",
            "estimator": "recovery_headroom_ratio",
            "arguments": {"arm": arm, "baseline": baseline},
            "where": condition,
            "supported": band.rule(),
            "killed": f"low > {self.high!r} OR high < {self.low!r}",
        }


def ratio_bands(
    cells: Table, *, group: str = "task", headroom: str = "headroom", rho: str = "rho"
) -> tuple[RatioBand, ...]:
    """Return the smallest and largest ratio of recovery rate to headroom in each group of cells.

    Parameters
    ----------
    cells : polars.DataFrame or mapping of str to sequence
        One row a cell, such as from `kvstats.scaling_cells` or a printed table.
    group : str, default "task"
        Column of the group.
    headroom, rho : str
        Columns of numbers. A cell without headroom has no ratio, and is left out.

    Returns
    -------
    tuple of RatioBand
        Sorted by group; groups of which no cell has headroom have none.

    Raises
    ------
    InputError
        When a column is not known, not of numbers, has a null or a number below 0.

    Notes
    -----
    A band is the range of what few cells have shown, and no interval with a level: the next of k + 1
    exchangeable cells lies within the range of the k before with probability (k - 1) / (k + 1), one in two
    for three cells.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", tables 21 and 25.

    Examples
    --------
    >>> ratio_bands({"task": ["VT", "VT", "FWE"], "headroom": [0.2, 0.8, 0.0], "rho": [0.05, 0.4, 0.0]})
    (RatioBand(group='VT', low=0.25, high=0.5, cells=2),)
    """
    function = "ratio_bands"
    table = cell_table(function, cells, (headroom, rho))
    if group not in table.columns:
        raise InputError.argument(
            function, "group", group, "is not a column", nearest_name(str(group), table.columns)
        )
    for name in (headroom, rho):
        if table.filter(pl.col(name) < 0).height:
            raise InputError.argument(
                function, "cells", name, "has a number below 0", "pass headrooms and rates"
            )
    ratios = (
        table.filter(pl.col(headroom) > 0)
        .with_columns((pl.col(rho) / pl.col(headroom)).alias("__ratio__"))
        .group_by(group)
        .agg(pl.col("__ratio__").min().alias("low"), pl.col("__ratio__").max().alias("high"), pl.len())
        .sort(group)
    )
    return tuple(RatioBand(str(name), low, high, int(count)) for name, low, high, count in ratios.rows())
