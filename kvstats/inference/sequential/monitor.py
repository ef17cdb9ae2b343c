"""Monitoring a rate while outcomes arrive."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.inference.sequential.betting_interval import BettingInterval
from kvstats.inference.sequential.capital import Bets, BettingCapital
from kvstats.inference.sequential.e_values import ville_threshold
from kvstats.inference.sequential.outcomes import (
    Alternative,
    checked_alternative,
    checked_level,
    checked_mean,
    checked_outcomes,
    checked_population,
)

__all__ = ["MonitorReading", "RateMonitor"]


class MonitorReading(NamedTuple):
    """What a `RateMonitor` knows now.

    Attributes
    ----------
    n : int
        Number of outcomes, a block counting as one.
    estimate : float or None
        Their mean; None before the first.
    low, high : float or None
        Interval for the mean that holds at all times together; None if no mean is left, which happens only
        when the mean was not constant or with probability 1 - level.
    e_value : float
        Evidence against the hypothesis now; 1 at the start.
    largest_e_value : float
        The largest so far.
    stop : bool
        Whether the largest has reached 1 / (1 - level): the hypothesis is rejected.
    """

    n: int
    estimate: float | None
    low: float | None
    high: float | None
    e_value: float
    largest_e_value: float
    stop: bool


class RateMonitor:
    """Watch a rate online: an interval, an e-value and a decision to stop, valid at every look.

    Parameters
    ----------
    threshold : float
        The rate in [0, 1] that is to be exceeded or undercut.
    alternative : {"greater", "less"}
        ``greater`` stops when the rate is above the threshold: H0 is rate <= threshold. ``less`` stops when
        it is below.
    level : float, default 0.95
        In (0, 1). Under H0 the monitor ever stops with probability at most 1 - level; the intervals all hold
        the rate with probability at least level.
    population : int, optional
        Number of units when outcomes come without replacement in random order.
    bets : {"mixture", "plug_in"}, default "mixture"
        As in `BettingCapital`.

    Raises
    ------
    InputError
        An argument is outside its range.

    Notes
    -----
    Interval and e-value come from the same bets: the interval, which spends half of 1 - level on each side,
    leaves the threshold out once the e-value has reached 2 / (1 - level), up to the rounding of its bounds
    outwards to a grid. The one-sided decision at 1 / (1 - level) comes no later.

    Outcomes given at once are taken one after the other, exactly as if given singly. They need be neither
    independent nor identically distributed: what is tested is that the conditional mean given the past stays
    at or below the threshold.

    Examples
    --------
    >>> monitor = RateMonitor(0.01)
    >>> reading = monitor.update([0] * 50)
    >>> reading.stop, round(reading.e_value, 3)
    (False, 0.305)
    >>> monitor.update([1, 1, 1, 1, 1]).stop
    True
    """

    def __init__(
        self,
        threshold: float,
        *,
        alternative: Alternative = "greater",
        level: float = 0.95,
        population: int | None = None,
        bets: Bets = "mixture",
    ) -> None:
        name = "RateMonitor"
        checked_mean(name, "threshold", threshold)
        checked_alternative(name, alternative)
        checked_level(name, level)
        checked_population(name, population)
        self.threshold = float(threshold)
        self.alternative = alternative
        self.level = level
        self.population = population
        delta = (1 - level) / 2
        self.interval = BettingInterval(delta, bets=bets, population=population)
        self.capital = BettingCapital(
            np.array([self.threshold]), bets=bets, delta=delta, population=population
        )
        self.bounds = (0.0, 1.0)
        self.log_e_value = 0.0
        self.largest_log_e_value = 0.0

    def update(self, outcomes: npt.ArrayLike) -> MonitorReading:
        """Take one outcome or several, in order, and return the reading after the last.

        Parameters
        ----------
        outcomes : float or array-like of float, shape (n,)
            In [0, 1], n at least 1.

        Raises
        ------
        InputError
            There is no outcome, one is outside [0, 1] or NaN, or more than the population have been seen;
            the monitor is left as it was.
        """
        values = checked_outcomes("RateMonitor.update", outcomes, self.population, self.capital.seen)
        low, high = self.interval.advance(values)
        self.bounds = float(low[-1]), float(high[-1])
        path = self.capital.advance(values)[0 if self.alternative == "greater" else 1][:, 0]
        self.log_e_value = float(path[-1])
        self.largest_log_e_value = max(self.largest_log_e_value, float(path.max()))
        return self.reading

    def update_block(self, outcomes: npt.ArrayLike) -> MonitorReading:
        """Take outcomes that share their random draws as one: their mean.

        Parameters
        ----------
        outcomes : array-like of float, shape (n,)
            In [0, 1], n at least 1; dependent in any way.

        Raises
        ------
        InputError
            As for `update`, and when the monitor has a population: a mean of several units is not a unit.
        """
        name = "RateMonitor.update_block"
        if self.population is not None:
            raise InputError.argument(
                name, "population", self.population, "does not go with blocks", "make a monitor without one"
            )
        return self.update(checked_outcomes(name, outcomes).mean())

    @property
    def reading(self) -> MonitorReading:
        """What is known now."""
        seen, total = self.capital.seen, self.capital.total
        low, high = self.bounds
        if self.population is not None:
            low = max(low, total / self.population)
            high = min(high, (total + self.population - seen) / self.population)
        empty = low > high + 1e-12
        with np.errstate(over="ignore"):
            now, largest = np.exp([self.log_e_value, self.largest_log_e_value]).tolist()
        return MonitorReading(
            n=seen,
            estimate=total / seen if seen else None,
            low=None if empty else low,
            high=None if empty else max(low, high),
            e_value=now,
            largest_e_value=largest,
            stop=largest >= ville_threshold(1 - self.level),
        )
