"""The capital of bets against hypothetical means, advanced outcome by outcome."""

from __future__ import annotations

from typing import Literal

import numpy as np

from kvstats.errors import InputError, nearest_name
from kvstats.statistics.statistic import FloatArray, IntArray

__all__ = ["FRACTIONS", "Bets", "BettingCapital"]

Bets = Literal["mixture", "plug_in"]

FRACTIONS = (8 / 9, 2 / 3, 1 / 3, 1 / 9, 1 / 27, 1 / 81, 1 / 243, 1 / 729)
"""Fixed bets of the mixture, as fractions of the capital that can be lost in one step.

Small ones find that a rare rate is higher than thought, large ones that it is lower.
"""

TRUNCATION = 0.5
ROWS = 64
SLACK = 1e-9
"""A conditional mean this far outside [0, 1] is rounding, not a contradiction."""


class BettingCapital:
    r"""Log capital of players who bet against each of several hypothetical means, in both directions.

    Against the mean m the player who bets that the mean is higher multiplies their capital, 1 at the start,
    at each outcome x by

    .. math:: 1 + f_t \Bigl(\frac{x_t}{m_t} - 1\Bigr), \qquad f_t \in [0, 1)

    where :math:`m_t` is the mean of the next outcome if m is true: m itself, or
    :math:`(N m - \sum_{i<t} x_i) / (N - t + 1)` when sampling without replacement from N. The player who bets
    that it is lower does the same with 1 - x and 1 - m. If the conditional mean is at most (at least) m, the
    expected factor is at most 1: each capital is an e-process.

    Parameters
    ----------
    candidates : array of float, shape (g,)
        The hypothetical means, in [0, 1], increasing.
    bets : {"mixture", "plug_in"}
        - ``mixture``: the average of eight players with constant fractions 8/9, 2/3, 1/3, 1/9, ..., 1/729.
        - ``plug_in``: :math:`f_t = \min(1/2, m_t \dot\lambda_t)` with :math:`\dot\lambda_t =
          \sqrt{2\log(1/\delta) / (\hat\sigma^2_{t-1} t \log(1 + t))}`, as for the hedged capital of [1]_.
    delta : float
        Failure probability of one direction for which the plug-in bets are tuned.
    population : int, optional
        N, when sampling without replacement.

    Attributes
    ----------
    seen : int
        Number of outcomes so far.
    total : float
        Their sum.

    References
    ----------
    .. [1] Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting, Journal of
       the Royal Statistical Society B 86.

    Examples
    --------
    >>> capital = BettingCapital(np.array([0.5]), bets="plug_in", delta=0.025)
    >>> higher, lower = capital.advance(np.array([1.0, 1.0]))
    >>> np.exp(higher[:, 0]).round(4).tolist(), np.exp(lower[:, 0]).round(4).tolist()
    ([1.5, 2.25], [0.5, 0.25])
    """

    def __init__(
        self, candidates: FloatArray, *, bets: Bets, delta: float, population: int | None = None
    ) -> None:
        if bets not in ("mixture", "plug_in"):
            raise InputError.argument(
                "BettingCapital", "bets", bets, "is unknown", nearest_name(bets, ["mixture", "plug_in"])
            )
        self.candidates = candidates
        self.bets = bets
        self.log_term = float(np.log(1 / delta))
        self.population = population
        self.seen = 0
        self.total = 0.0
        self.squares = 0.0
        players = len(FRACTIONS) if bets == "mixture" else 1
        self.log_capital = np.zeros((2, players, candidates.size))

    def advance(self, outcomes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Play on the next outcomes.

        Parameters
        ----------
        outcomes : array of float, shape (n,)
            In [0, 1], in order.

        Returns
        -------
        higher, lower : array of float, shape (n, g)
            Log capital of both directions after each outcome, averaged over the players. Infinite where
            the outcomes cannot come from a population of that mean.
        """
        pieces = [self.step(outcomes[at : at + ROWS]) for at in range(0, outcomes.size, ROWS)]
        return np.concatenate([high for high, _ in pieces]), np.concatenate([low for _, low in pieces])

    def narrow(self, kept: slice) -> None:
        """Play on against some of the hypothetical means only."""
        self.candidates = self.candidates[kept]
        self.log_capital = self.log_capital[:, :, kept]

    def step(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Play on a few outcomes at once."""
        time = self.seen + np.arange(1, x.size + 1)
        totals = self.total + np.cumsum(x)
        before = totals - x
        mean = np.broadcast_to(self.candidates, (x.size, self.candidates.size))
        if self.population is not None:
            mean = (self.population * mean - before[:, None]) / (self.population - time + 1)[:, None]
        bet = self.plug_in_bets(x, time, totals) if self.bets == "plug_in" else None
        higher = self.play(0, x[:, None], mean, bet)
        lower = self.play(1, 1 - x[:, None], 1 - mean, bet)
        self.seen, self.total = int(time[-1]), float(totals[-1])
        return higher, lower

    def plug_in_bets(self, x: FloatArray, time: IntArray, totals: FloatArray) -> FloatArray:
        """Bets from the regularised mean and variance of the outcomes before each one."""
        deviations = (x - (0.5 + totals) / (time + 1)) ** 2
        squares = self.squares + np.cumsum(deviations)
        variance_before = (0.25 + squares - deviations) / time
        self.squares = float(squares[-1])
        return np.asarray(np.sqrt(2 * self.log_term / (variance_before * time * np.log1p(time))))

    def play(self, side: int, x: FloatArray, mean: FloatArray, bet: FloatArray | None) -> FloatArray:
        """Multiply the capital of one direction, and return its path averaged over the players."""
        inside = mean > 0
        ratio = np.divide(x, mean, out=np.ones(mean.shape), where=inside)
        impossible = (mean < -SLACK) | (~inside & (x > SLACK))
        fractions = FRACTIONS if bet is None else (np.clip(bet[:, None] * mean, 0, TRUNCATION),)
        paths: FloatArray = np.empty((len(fractions), *mean.shape))
        for player, fraction in enumerate(fractions):
            gain = np.where(impossible, np.inf, np.log1p(fraction * (ratio - 1)))
            np.cumsum(gain, axis=0, out=paths[player])
            paths[player] += self.log_capital[side, player]
            self.log_capital[side, player] = paths[player, -1]
        if len(fractions) == 1:
            return np.asarray(paths[0])
        top = paths.max(axis=0)
        finite = np.isfinite(top)
        shift = np.where(finite, top, 0.0)
        # The capital of a player who cannot lose is infinite for all players at once.
        total = np.exp(np.where(finite, paths - shift, 0.0)).mean(axis=0)
        return np.asarray(np.where(finite, shift + np.log(total), np.inf))
