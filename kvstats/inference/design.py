"""How an estimate is to be judged: clusters, weights, level, kind of interval, resamples, seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real

from kvstats.errors import InputError, nearest_name

__all__ = ["DEFAULT_DESIGN", "INTERVALS", "Design"]

INTERVALS = ("auto", "linear", "korn_graubard", "wilson", "percentile")
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
    interval : {"auto", "linear", "korn_graubard", "wilson", "percentile"}
        - ``linear``: estimate plus and minus a t quantile times the cluster-robust linearised standard
          error.
        - ``korn_graubard``: Clopper-Pearson interval on the effective sample size; rates only.
        - ``wilson``: Wilson interval on the effective sample size; rates only.
        - ``percentile``: percentiles of a cluster bootstrap. It is too narrow with few clusters: with 10 it
          holds the truth in about 90% of samples where it says 95%.
        - ``auto``: ``korn_graubard`` for rates, ``linear`` for everything else.

        For rare events in few clusters neither ``linear`` nor ``percentile`` is to be trusted: a sample
        without an event has neither variance nor bootstrap spread, and no such interval.
    n_resamples : int, default 2000
        Resamples of the bootstrap, at least 100.
    seed : int, default 0
        Seed of the bootstrap, at least 0. Each row of a result draws from a generator of its own, seeded
        from this number and the row's name, so that the order of rows cannot change a result.

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

    def __post_init__(self) -> None:
        cluster = (self.cluster,) if isinstance(self.cluster, str) else self.cluster
        if (
            not isinstance(cluster, Sequence)
            or not cluster
            or len(set(cluster)) < len(cluster)
            or not all(isinstance(name, str) and name for name in cluster)
        ):
            raise InputError.argument(
                "Design",
                "cluster",
                self.cluster,
                "is not a list of different column names",
                "pass at least one, such as ['suite', 'task', 'input_id']",
            )
        object.__setattr__(self, "cluster", tuple(cluster))
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


DEFAULT_DESIGN = Design()
"""The design of every estimator unless told otherwise."""
