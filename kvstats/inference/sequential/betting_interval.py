"""The interval of means that no bet has refuted, advanced outcome by outcome."""

from __future__ import annotations

import numpy as np

from kvstats.inference.sequential.capital import ROWS, Bets, BettingCapital
from kvstats.statistics.statistic import FloatArray

__all__ = ["BettingInterval", "candidate_means"]


class BettingInterval:
    """Bounds of a mean from `BettingCapital` on a grid of means.

    The capital of each direction is monotone in the hypothetical mean, so the means of which it has reached
    1 / delta are those below one point, or those above one. Bounds are rounded outwards to the grid.

    Parameters
    ----------
    delta : float
        Failure probability of each of the two bounds, over all times together.
    bets, population
        As in `BettingCapital`.
    running : bool, default True
        Whether a mean that was refuted once stays out. It is then not followed any longer.
    candidates : int, default 2000
        Number of means in the grid.

    Examples
    --------
    >>> interval = BettingInterval(0.025, bets="mixture")
    >>> low, high = interval.advance(np.ones(100))
    >>> low[[0, 9, 99]].round(3).tolist(), high[-1].tolist()
    ([0.007, 0.552, 0.94], 1.0)
    """

    def __init__(
        self,
        delta: float,
        *,
        bets: Bets,
        population: int | None = None,
        running: bool = True,
        candidates: int = 2000,
    ) -> None:
        grid = candidate_means(candidates)
        self.capital = BettingCapital(grid, bets=bets, delta=delta, population=population)
        self.edges = np.concatenate([[0.0], grid, [1.0]])
        self.threshold = float(np.log(1 / delta))
        self.running = running
        self.below = self.above = 0

    def advance(self, outcomes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the bounds after each of the next outcomes, of shape (n,).

        Where no mean is left the lower bound is 1 and the upper one 0.
        """
        pieces = [self.step(outcomes[at : at + ROWS]) for at in range(0, outcomes.size, ROWS)]
        return np.concatenate([low for low, _ in pieces]), np.concatenate([high for _, high in pieces])

    def step(self, outcomes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds after each of a few outcomes."""
        higher, lower = self.capital.advance(outcomes)
        below = (higher >= self.threshold).sum(axis=1)
        above = (lower >= self.threshold).sum(axis=1)
        if self.running:
            below = np.maximum(np.maximum.accumulate(below), self.below)
            above = np.maximum(np.maximum.accumulate(above), self.above)
        empty = below + above > self.capital.candidates.size
        low, high = np.where(empty, 1.0, self.edges[below]), np.where(empty, 0.0, self.edges[-1 - above])
        if self.running:
            self.narrow(int(below[-1]), int(above[-1]))
        return low, high

    def narrow(self, below: int, above: int) -> None:
        """Follow the means that are left, and on each side the first one out.

        If the other side refutes that one too, no mean is left.
        """
        size = self.capital.candidates.size
        first, last = max(below - 1, 0), min(size - above + 1, size)
        self.below, self.above = below, above
        if below + above <= size:
            self.capital.narrow(slice(first, last))
            self.edges = np.concatenate([self.edges[:1], self.capital.candidates, self.edges[-1:]])
            self.below, self.above = min(below, 1), min(above, 1)


def candidate_means(size: int) -> FloatArray:
    """Return a grid of means inside (0, 1), finest at both ends.

    Examples
    --------
    >>> candidate_means(3).round(3).tolist()
    [0.146, 0.5, 0.854]
    """
    return np.asarray(np.sin(np.arange(1, size + 1) * np.pi / (2 * (size + 1))) ** 2)
