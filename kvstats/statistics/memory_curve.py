"""Curves of an outcome against the fraction of the cache that was really kept, and where two cross."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.statistic import FloatArray, IntArray, as_column, as_numbers
from kvstats.statistics.totals import TotalsFunction, in_groups, quotient

__all__ = ["CurveCrossing", "InterpolatedMean"]

TIE = 1e-9
"""Kept fractions, and outcomes, that differ by no more are equal: their means are rounded."""


class Curve(NamedTuple):
    """Nodes of curves in ascending order of kept fraction, each of shape [..., K]."""

    kept: FloatArray
    y: FloatArray
    order: IntArray
    """Numbers of the nodes in that order."""


class Place(NamedTuple):
    """Where a curve is read: between the sorted nodes `left` and `left + 1`, the share t of the way."""

    left: IntArray
    t: FloatArray
    y: FloatArray
    """NaN outside the range of the nodes."""


class MeansAtNodes(TotalsFunction):
    """A function of the mean outcome and the mean kept fraction at each of some nodes."""

    def __init__(self, y: npt.ArrayLike, kept: npt.ArrayLike, node: npt.ArrayLike, n_nodes: int) -> None:
        name = type(self).__name__
        outcome, fraction = as_column(name, "y", y), as_column(name, "kept", kept)
        codes = as_numbers(name, "node", node)
        for argument, column in (("kept", fraction), ("node", codes)):
            if column.shape != outcome.shape:
                raise InputError.argument(
                    name,
                    argument,
                    f"array of shape {column.shape}",
                    f"does not fit {outcome.size} rows",
                    "pass columns of the same length",
                )
        if codes.size and not (np.isin(codes, np.arange(n_nodes)).all()):
            raise InputError.argument(
                name,
                "node",
                float(codes.max()),
                f"is not the number of one of {n_nodes} nodes",
                "number them from 0",
            )
        self.n_nodes = n_nodes
        ones = np.ones(outcome.size)
        super().__init__(in_groups(codes.astype(np.int64), n_nodes, ones, outcome, fraction))

    def curve(self, totals: FloatArray, first: int, last: int) -> Curve:
        """Return the curve through the nodes from `first` to before `last`."""
        sums = totals.reshape(*totals.shape[:-1], self.n_nodes, 3)[..., first:last, :]
        kept, y = quotient(sums[..., 2], sums[..., 0]), quotient(sums[..., 1], sums[..., 0])
        order = np.argsort(kept, axis=-1, kind="stable")
        sorted_kept, sorted_y = (np.take_along_axis(column, order, axis=-1) for column in (kept, y))
        return Curve(sorted_kept, sorted_y, order + first)

    def node_gradient(self, totals: FloatArray, curve: Curve, place: Place) -> FloatArray:
        """Return the derivatives of the curve at a fixed kept fraction with respect to the totals."""
        gradient = np.zeros((self.n_nodes, 3))
        sums = totals.reshape(self.n_nodes, 3)
        slope = slope_at(curve, place)
        t = float(place.t)
        for index, share in ((int(place.left), 1 - t), (min(int(place.left) + 1, curve.kept.size - 1), t)):
            node = curve.order[index]
            size = sums[node, 0]
            centre = curve.y[index] - slope * curve.kept[index]
            gradient[node] += share * np.array([-centre, 1.0, -slope]) / size
        return gradient.ravel()


def read(curve: Curve, at: FloatArray) -> Place:
    """Read curves of shape [..., K] at kept fractions of shape [..., X]."""
    kept = curve.kept
    last = kept.shape[-1] - 1
    left = (kept[..., None, :] <= at[..., :, None]).sum(axis=-1) - 1
    left = np.clip(left, 0, max(last - 1, 0))
    right = np.minimum(left + 1, last)
    low, high = (np.take_along_axis(kept, index, axis=-1) for index in (left, right))
    # Nodes with the same kept fraction stand above each other: there the last one is read.
    t = np.clip(np.nan_to_num(quotient(at - low, high - low), nan=1.0), 0.0, 1.0)
    first, second = (np.take_along_axis(curve.y, index, axis=-1) for index in (left, right))
    inside = (at >= kept[..., :1] - TIE) & (at <= kept[..., -1:] + TIE)
    return Place(left, t, np.where(inside, first + t * (second - first), np.nan))


def slope_at(curve: Curve, place: Place) -> float:
    """Return the slope of one curve where it was read, 0 between nodes of the same kept fraction."""
    left = int(place.left)
    right = min(left + 1, curve.kept.size - 1)
    width = float(curve.kept[right] - curve.kept[left])
    return float(curve.y[right] - curve.y[left]) / width if width > 0 else 0.0


def at_one(curve: Curve, x: float) -> Place:
    """Read one curve at one kept fraction."""
    place = read(curve, np.array([x]))
    return Place(place.left[0], place.t[0], place.y[0])


class InterpolatedMean(MeansAtNodes):
    """Mean outcome at a given kept fraction, interpolated linearly between nodes such as budgets.

    Each node lies at its own mean kept fraction and mean outcome. Undefined (NaN) outside the range of the
    nodes, where nothing was measured, and where a node has no weight.

    Parameters
    ----------
    y, kept : array-like of float, shape [n]
        Outcome and kept fraction of each row.
    node : array-like of int, shape [n]
        Number of each row's node, from 0.
    n_nodes : int
        Number of nodes.
    at : float
        The kept fraction to read the curve at.

    Raises
    ------
    InputError
        When columns differ in length, or a value is not finite or out of its range.

    Examples
    --------
    >>> curve = InterpolatedMean([0.2, 0.4, 0.8], [0.25, 0.25, 0.75], [0, 0, 1], 2, at=0.5)
    >>> round(curve.value([1, 1, 1]), 6), round(curve.value([1, 0, 1]), 6)
    (0.55, 0.5)
    """

    def __init__(
        self, y: npt.ArrayLike, kept: npt.ArrayLike, node: npt.ArrayLike, n_nodes: int, at: float
    ) -> None:
        if not np.isfinite(at):
            raise InputError.argument(
                "InterpolatedMean", "at", at, "is not a finite number", "pass a fraction such as 0.5"
            )
        super().__init__(y, kept, node, n_nodes)
        self.at = float(at)

    def of_totals(self, totals: FloatArray) -> FloatArray:
        """Return the outcome for totals of shape [..., 3 K]."""
        if self.n_nodes == 0:
            return np.full(totals.shape[:-1], np.nan)
        curve = self.curve(totals, 0, self.n_nodes)
        return read(curve, np.full((*totals.shape[:-1], 1), self.at)).y[..., 0]

    def gradient(self, totals: FloatArray) -> FloatArray:
        """Return its derivatives with respect to the totals."""
        curve = self.curve(totals, 0, self.n_nodes)
        return self.node_gradient(totals, curve, at_one(curve, self.at))


class CurveCrossing(MeansAtNodes):
    """The lowest kept fraction at which one curve of outcome against kept fraction crosses another.

    Both curves are straight between their nodes and compared where both are measured. A crossing is a change
    of sign of their difference; touching, as at a cache kept whole, is none. Where they agree on a stretch
    between two signs the crossing is where a straight line between both ends of it would be, within the
    stretch. Undefined (NaN) where they do not cross, or a node has no weight.

    Parameters
    ----------
    y, kept : array-like of float, shape [n]
        Outcome and kept fraction of each row.
    node : array-like of int, shape [n]
        Number of each row's node, from 0: those of the first curve, then those of the second.
    n_first, n_second : int
        Number of nodes of either curve.

    Raises
    ------
    InputError
        When columns differ in length, or a value is not finite or out of its range.

    Examples
    --------
    >>> first, second = [0.1, 0.9], [0.5, 0.7]
    >>> crossing = CurveCrossing([*first, *second], [0.2, 0.8, 0.2, 0.8], [0, 1, 2, 3], 2, 2)
    >>> round(crossing.value(np.ones(4)), 6)
    0.6
    """

    def __init__(
        self, y: npt.ArrayLike, kept: npt.ArrayLike, node: npt.ArrayLike, n_first: int, n_second: int
    ) -> None:
        super().__init__(y, kept, node, n_first + n_second)
        self.n_first = n_first

    def of_totals(self, totals: FloatArray) -> FloatArray:
        """Return the crossing for totals of shape [..., 3 K]."""
        if not 0 < self.n_first < self.n_nodes:
            return np.full(totals.shape[:-1], np.nan)
        return crossing_of(*self._curves(totals))

    def gradient(self, totals: FloatArray) -> FloatArray:
        """Return its derivatives with respect to the totals, from those of both curves at the crossing."""
        first, second = self._curves(totals)
        x = float(crossing_of(first, second))
        here = at_one(first, x), at_one(second, x)
        steepness = slope_at(first, here[0]) - slope_at(second, here[1])
        if abs(steepness) <= TIE:
            # The curves agree on a stretch: the straight line over it stands for their difference.
            grid = joint_nodes(first, second)
            gaps = read(first, grid).y - read(second, grid).y
            before = np.flatnonzero((grid < x) & (np.abs(gaps) > TIE))[-1]
            after = np.flatnonzero((grid > x) & (np.abs(gaps) > TIE))[0]
            steepness = float((gaps[after] - gaps[before]) / (grid[after] - grid[before]))
        change = self.node_gradient(totals, first, here[0]) - self.node_gradient(totals, second, here[1])
        return -change / steepness

    def _curves(self, totals: FloatArray) -> tuple[Curve, Curve]:
        return self.curve(totals, 0, self.n_first), self.curve(totals, self.n_first, self.n_nodes)


def joint_nodes(first: Curve, second: Curve) -> FloatArray:
    """Return the nodes of both curves, ascending, moved into the range that both cover, shape [..., K]."""
    low = np.maximum(first.kept[..., :1], second.kept[..., :1])
    high = np.minimum(first.kept[..., -1:], second.kept[..., -1:])
    grid = np.sort(np.concatenate([first.kept, second.kept], axis=-1), axis=-1)
    return np.where(low <= high, np.clip(grid, low, np.maximum(low, high)), np.nan)


def crossing_of(first: Curve, second: Curve) -> FloatArray:
    """Return the lowest crossing of curves of shape [..., K], shape [...]; NaN where there is none."""
    grid = joint_nodes(first, second)
    gaps = read(first, grid).y - read(second, grid).y
    gaps = np.where(np.abs(gaps) <= TIE, 0.0, gaps)
    unknown = np.isnan(gaps).any(axis=-1)
    sign = np.nan_to_num(np.sign(gaps)).astype(np.int64)
    position = np.broadcast_to(np.arange(sign.shape[-1]), sign.shape)
    # For each node the last one before it with a sign; where that is another one, the curves have crossed.
    last = np.maximum.accumulate(np.where(sign != 0, position, -1), axis=-1)[..., :-1]
    before = np.take_along_axis(sign, np.maximum(last, 0), axis=-1)
    crossed = (sign[..., 1:] * before < 0) & (last >= 0)
    found = np.argmax(crossed, axis=-1)[..., None]
    start, end = np.take_along_axis(last, found, axis=-1), found + 1
    start = np.maximum(start, 0)
    at = [
        np.take_along_axis(array, place, axis=-1)[..., 0] for array in (grid, gaps) for place in (start, end)
    ]
    low, high, before_gap, after_gap = at
    share = quotient(before_gap, before_gap - after_gap)
    x = low + share * (high - low)
    inner = [np.take_along_axis(grid, place, axis=-1)[..., 0] for place in (start + 1, end - 1)]
    straight = inner[0] > inner[1]
    x = np.where(straight, x, np.clip(x, np.minimum(*inner), np.maximum(*inner)))
    return np.where(crossed.any(axis=-1) & ~unknown, x, np.nan)
