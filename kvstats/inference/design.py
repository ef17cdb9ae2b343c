"""How an estimate is to be judged: clusters, strata, weights, level, kind of interval, resamples, seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real

from kvstats.errors import InputError, nearest_name

__all__ = ["BOOTSTRAPS", "DEFAULT_DESIGN", "INTERVALS", "RATE_INTERVALS", "Design"]

RATE_INTERVALS = ("korn_graubard", "wilson", "clopper_pearson")
"""Intervals for shares of rows that are all 0 or 1."""

BOOTSTRAPS = ("percentile", "basic", "bca", "studentized")
"""Intervals from resampled clusters."""

INTERVALS = ("auto", "linear", "jackknife", *RATE_INTERVALS, *BOOTSTRAPS)
"""Names of the kinds of interval."""


@dataclass(frozen=True)
class Design:
    """How an estimate is to be judged.

    Parameters
    ----------
    cluster : sequence of str, default ("suite", "task", "input_id")
        Columns that say which rows are dependent: rows that agree in all of them are one cluster. The
        model and the condition are left out on purpose: one input run on two models, or with the question
        before and after eviction, is one draw from the population of inputs.
    weight : str, optional
        Column of row weights, finite and at least 0. A row of weight 0 counts as absent. Default: all 1.
    level : float, default 0.95
        Confidence level, between 0 and 1.
    interval : str, default "auto"
        - ``linear``: estimate plus and minus a t quantile times the cluster-robust linearised standard
          error; on the scale of the log odds for an area, and of the logarithm for a ratio.
        - ``jackknife``: the same with the standard error of the delete-one-cluster jackknife; for quantiles,
          which it does not fit, ``percentile``.
        - ``korn_graubard``: Clopper-Pearson interval on the effective sample size; rates only.
        - ``wilson``: Wilson interval on the effective sample size; rates only.
        - ``clopper_pearson``: exact binomial interval; only for rates of rows that are each a cluster, of
          equal weight, without strata.
        - ``percentile``, ``basic``, ``bca``, ``studentized``: from a bootstrap of whole clusters.
        - ``auto``: ``korn_graubard`` for rates, ``percentile`` for quantiles, ``linear`` for everything
          else.

        With few clusters ``percentile``, ``basic`` and ``bca`` are too narrow: with 10 they hold the truth
        in about 90% of samples where they say 95%. For rare events in few clusters only ``korn_graubard``
        and ``wilson`` are to be trusted: a sample without an event has neither variance nor bootstrap
        spread. ``notebooks/statistical-choices.md`` has the figures.
    n_resamples : int, default 2000
        Resamples of the bootstrap, at least 100, and at least 2 / (1 - level) - 1 for a bootstrap interval.
    seed : int, default 0
        Seed of the bootstrap, at least 0. Each row of a result draws from a generator of its own, seeded
        from this number and the row's name, so that the order of rows cannot change a result.
    strata : str or sequence of str, optional
        Columns that say from which part of the population a cluster was drawn, such as ``task`` where the
        number of inputs of each task was fixed beforehand. Clusters are compared and resampled within
        strata only; those of a stratum without a row in the population count with a total of 0, since how
        many have one is chance. Default: none.

    Raises
    ------
    InputError
        When a value is out of its range.

    Examples
    --------
    >>> Design(level=0.9).cluster
    ('suite', 'task', 'input_id')
    >>> Design(interval="wilsen")
    Traceback (most recent call last):
    ...
    kvstats.errors.InputError: Design: interval='wilsen' is not known; did you mean 'wilson'?
    """

    cluster: Sequence[str] = ("suite", "task", "input_id")
    weight: str | None = None
    level: float = 0.95
    interval: str = "auto"
    n_resamples: int = 2000
    seed: int = 0
    strata: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "cluster", column_names("cluster", self.cluster, "['suite', 'task', 'input_id']")
        )
        if self.strata is not None:
            object.__setattr__(self, "strata", column_names("strata", self.strata, "['task'], or None"))
        if self.weight is not None and not (isinstance(self.weight, str) and self.weight):
            raise InputError.argument(
                "Design", "weight", self.weight, "is no column name", "pass the name of a column, or None"
            )
        if isinstance(self.level, bool) or not isinstance(self.level, Real) or not 0 < self.level < 1:
            raise InputError.argument(
                "Design", "level", self.level, "is not between 0 and 1", "pass a share such as 0.95"
            )
        if self.interval not in INTERVALS:
            raise InputError.argument(
                "Design",
                "interval",
                self.interval,
                "is not known",
                nearest_name(str(self.interval), INTERVALS),
            )
        for name, least in (("n_resamples", 100), ("seed", 0)):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
                raise InputError.argument(
                    "Design",
                    name,
                    number,
                    f"is not a whole number of at least {least}",
                    "pass one such as " + {"n_resamples": "2000", "seed": "0"}[name],
                )
        least = math.ceil(2 / (1 - self.level) * (1 - 1e-12)) - 1
        if self.interval in BOOTSTRAPS and self.n_resamples < least:
            raise InputError.argument(
                "Design",
                "n_resamples",
                self.n_resamples,
                f"is too few for a bootstrap interval of level {self.level}",
                f"pass at least {least}",
            )

    @property
    def stratum(self) -> tuple[str, ...]:
        """Columns of the strata as a tuple, empty without strata."""
        if self.strata is None:
            return ()
        return (self.strata,) if isinstance(self.strata, str) else tuple(self.strata)


def column_names(argument: str, given: object, example: str) -> tuple[str, ...]:
    """Return a name or names of columns as a tuple, or raise `InputError`."""
    names = (given,) if isinstance(given, str) else given
    if (
        not isinstance(names, Sequence)
        or not names
        or not all(isinstance(name, str) and name for name in names)
        or len(set(names)) < len(names)
    ):
        raise InputError.argument(
            "Design",
            argument,
            given,
            "is not a list of different column names",
            f"pass at least one, such as {example}",
        )
    return tuple(names)


DEFAULT_DESIGN = Design()
"""The design of every estimator unless told otherwise."""
