"""Rows ranked by a signal within strata, and which of them are among the top share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.auc_columns import as_strata, level_codes
from kvstats.statistics.auc_curve import smoothing_width
from kvstats.statistics.statistic import FloatArray, IntArray, Statistic, as_column, group_sums

__all__ = ["RankedRows"]

CELLS = 50_000
"""Weights that are held at once: they fit a cache."""


class RankedRows(Statistic):
    """Rows in descending order of a signal, within strata.

    The top share c of a stratum is the rows of the highest signal that together have the share c of its
    weight. Where the limit falls within a level of equal signals, each row of the level belongs in part: the
    exact expectation of breaking ties at random.
    """

    def __init__(self, signal: npt.ArrayLike, stratum: npt.ArrayLike | None) -> None:
        name = type(self).__name__
        column = as_column(name, "signal", signal)
        self.n = column.size
        strata = np.zeros(self.n, dtype=np.int64)
        self.n_strata = 1
        if stratum is not None:
            strata, self.n_strata = as_strata(name, "stratum", stratum, self.n)
        self._order, self._codes = level_codes(-column, strata)
        self._n_levels = int(self._codes.max(initial=-1)) + 1
        self._stratum = np.zeros(self._n_levels, dtype=np.int64)
        self._stratum[self._codes] = strata
        self._row_stratum = strata
        # Where the levels of each stratum begin, and in sorted order the rows of each level.
        self._first = np.flatnonzero(np.diff(self._stratum, prepend=-1))
        self._begins = np.flatnonzero(np.diff(self._codes[self._order], prepend=-1))

    def _column(self, argument: str, values: npt.ArrayLike) -> FloatArray:
        """Return a column with one value a row."""
        column = as_column(type(self).__name__, argument, values)
        if column.size != self.n:
            raise InputError.argument(
                type(self).__name__,
                argument,
                f"array of shape {column.shape}",
                f"does not fit a signal of {self.n} rows",
                "pass columns of the same length",
            )
        return column

    def _level_parts(self, masses: FloatArray, shares: FloatArray) -> FloatArray:
        """Return the part of each level that belongs to the top share of its stratum, shape [B, L].

        Takes the weight of each level, shape [B, L], and one share for each stratum.
        """
        if not self._n_levels:
            return masses
        ends = np.cumsum(masses, axis=1)
        starts = ends - masses
        before = starts[:, self._first]
        totals = ends[:, np.append(self._first[1:], self._n_levels) - 1] - before
        room = (shares * totals + before)[:, self._stratum] - starts
        # A level without weight is inside where there is room.
        inside = (room > 0).astype(np.float64)
        np.divide(room, masses, out=inside, where=masses > 0)
        return np.clip(inside, 0.0, 1.0, out=inside)

    def _parts(self, weights: FloatArray, shares: FloatArray) -> FloatArray:
        """Return the part of each level under one vector of weights, shape [L]."""
        masses = group_sums(self._codes, weights, self._n_levels)
        return np.asarray(self._level_parts(masses[None], shares)[0])

    def _resampled_sums(
        self, counts: FloatArray, codes: IntArray, weights: FloatArray, y: FloatArray, *limits: float
    ) -> FloatArray:
        """Return the weighted sum of y over the top shares of resampled clusters, shape [B, limits + 1].

        The last column is the sum over all rows of their weights.
        """
        ranked, cells = y[self._order], codes[self._order]
        base = weights[self._order]
        step = max(1, CELLS // max(self.n, 1))
        found = []
        for begin in range(0, len(counts), step):
            masses = counts[begin : begin + step].take(cells, axis=1) * base
            sums = masses * ranked
            if self._n_levels < self.n:
                masses, sums = (np.add.reduceat(part, self._begins, axis=1) for part in (masses, sums))
            columns = [
                np.sum(self._level_parts(masses, np.full(self.n_strata, limit)) * sums, axis=1)
                for limit in limits
            ]
            found.append(np.stack([*columns, masses.sum(axis=1)], axis=1))
        return np.concatenate(found)

    def _selected(self, weights: FloatArray, share: float) -> FloatArray:
        """Return the part of each row that belongs to the top share of its stratum, shape [n]."""
        return self._parts(weights, np.full(self.n_strata, share))[self._codes]

    def _total_influence(self, weights: FloatArray, y: FloatArray, share: float) -> FloatArray:
        r"""Return the derivative of the weighted sum of y over the top shares, shape [n].

        A row that is added takes its part :math:`a_i` at the cost of the row at the limit, and widens its
        stratum's room by the share: :math:`a_i (y_i - m) + c\, m`, with m the mean of y at the limit. Where
        the limit lies in a level of equal signals of some weight, that is the mean of the level. Elsewhere no
        single row estimates it, and m is the mean over the shares :math:`c \pm h`, with h of
        `kvstats.statistics.auc_curve.smoothing_width`.
        """
        inside = self._selected(weights, share)
        if share in (0.0, 1.0):
            return inside * y
        totals = group_sums(self._row_stratum, weights, self.n_strata)
        squares = group_sums(self._row_stratum, weights**2, self.n_strata)
        effective = np.divide(totals**2, squares, out=np.ones_like(totals), where=squares > 0)
        widths = smoothing_width(share, np.ones(1)) * effective ** (-1 / 3)
        low, high = np.maximum(share - widths, 0.0), np.minimum(share + widths, 1.0)
        between = (self._parts(weights, high) - self._parts(weights, low))[self._codes]
        sums = group_sums(self._row_stratum, weights * between * y, self.n_strata)
        rooms = (high - low) * totals
        marginal = np.divide(sums, rooms, out=np.zeros_like(sums), where=rooms > 0)
        masses = group_sums(self._codes, weights, self._n_levels)
        parts = self._parts(weights, np.full(self.n_strata, share))
        split = (parts > 0) & (parts < 1) & (masses > (widths * totals)[self._stratum])
        levels = np.flatnonzero(split)
        marginal[self._stratum[levels]] = (
            group_sums(self._codes, weights * y, self._n_levels)[levels] / (masses[levels])
        )
        at_limit = marginal[self._row_stratum]
        return np.asarray(inside * (y - at_limit) + share * at_limit)
