"""Audits: which runs to repeat with the full cache, so that few tell the harm rate of all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Literal

import numpy as np
import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.log.records import RUN_KEY
from kvstats.planning.audit_spread import AuditEstimator, anticipated_spreads, poisson_se
from kvstats.planning.planned import check_share
from kvstats.statistics.allocation import proportional_inclusion
from kvstats.statistics.designs.conditional_poisson import ConditionalPoisson
from kvstats.statistics.designs.poisson import Poisson

__all__ = ["AuditDesign", "AuditPlan", "plan_audit"]

AuditDesign = Literal["poisson", "conditional_poisson"]

PLANNED = ("inclusion_probability", "drawn")
"""Columns that a plan adds."""


@dataclass(frozen=True, eq=False)
class AuditPlan:
    """An audit: the probability with which each run is repeated, and the runs that were drawn.

    Attributes
    ----------
    frame : polars.DataFrame
        All runs, in the order of their keys, with ``inclusion_probability`` and ``drawn``.
    key : tuple of str
        Columns that tell runs apart.
    budget : int
        Re-runs: exactly with ``conditional_poisson``, on average with ``poisson``.
    harm_probability : str or None
        Column of the anticipated probability of harm.
    design, estimator : str
        How it was drawn, and what it is best for.
    seed : int
        Seed of the draw.
    anticipated_se : float
        Standard error that the estimate will have if harm is as anticipated.
    simple_random_se : float
        The same for as many runs drawn with equal probability, and estimated by their mean.
    """

    frame: pl.DataFrame
    key: tuple[str, ...]
    budget: int
    harm_probability: str | None
    design: AuditDesign
    estimator: AuditEstimator
    seed: int
    anticipated_se: float
    simple_random_se: float

    @property
    def sample(self) -> pl.DataFrame:
        """The runs to repeat with the full cache."""
        return self.frame.filter("drawn").drop("drawn")

    @cached_property
    def sampling_design(self) -> Poisson | ConditionalPoisson:
        """The design that the runs were drawn by."""
        pi = self.frame["inclusion_probability"].to_numpy()
        return Poisson(pi) if self.design == "poisson" else ConditionalPoisson(pi)

    @property
    def worth(self) -> float:
        """How many simple random re-runs one of this plan is worth, if harm is as anticipated."""
        if self.anticipated_se == 0:
            return math.nan
        return (self.simple_random_se / self.anticipated_se) ** 2

    def __repr__(self) -> str:
        return (
            f"AuditPlan: {self.sample.height:,} of {self.frame.height:,} runs to repeat ({self.design}, for "
            f"the {self.estimator} estimator); anticipated se {self.anticipated_se:.3g}, against "
            f"{self.simple_random_se:.3g} by a simple random audit"
        )


def plan_audit(
    runs: pl.DataFrame,
    *,
    budget: int,
    seed: int,
    harm_probability: str | None = None,
    spread: str | None = None,
    estimator: AuditEstimator = "hajek",
    design: AuditDesign = "poisson",
    floor: float = 0.25,
    key: Sequence[str] | None = None,
) -> AuditPlan:
    r"""Choose which compressed runs to repeat with the full cache, to estimate how many were harmed.

    Whether a run was harmed is only known once its full-cache twin has been run, and to run all twins would
    cost what compression saved. This draws a few at random, more often where a signal says that harm is
    uncertain, and `audit_estimate` then estimates the harm rate of all runs, with an interval that rests on
    the known probabilities of the draw, not on the signal. A signal that is wrong costs precision; it cannot
    bias.

    The probabilities are proportional to the anticipated standard deviation s of what the estimator weighs,
    which minimises the anticipated variance of Poisson sampling at a given expected number of re-runs
    (Neyman):

    .. math:: V = \frac 1 {N^2} \sum_i \frac{1 - \pi_i}{\pi_i} s_i^2, \qquad \pi_i \propto s_i, \qquad
        s_i^2 = \begin{cases} p_i (1 - p_i) + (p_i - \bar p)^2 & \text{hajek} \\
        p_i (1 - p_i) & \text{difference} \end{cases}

    cut off at 1 and at a floor, and scaled until they sum to the budget.

    Parameters
    ----------
    runs : polars.DataFrame
        The runs of the population, one row each: such as a day's traffic, or ``log.runs`` of one arm. Two
        rows of one input count as two runs.
    budget : int
        Full-cache re-runs, at least 2 and at most the number of runs.
    seed : int
        Seed of the draw, at least 0. The same runs, in any order, and the same seed give the same plan again.
    harm_probability : str, optional
        Column of anticipated probabilities of harm p, in [0, 1]: of a model fitted to earlier audits, or
        `anticipated_harm` of a certificate. Without it, and without `spread`, all runs are as likely.
    spread : str, optional
        Column of s itself, at least 0, in the place of the formula: for outcomes that are no rate, such as
        points lost, the standard deviation that is anticipated.
    estimator : {"hajek", "difference"}
        What is to be estimated with: ``hajek``, a weighted mean, or ``difference``, the mean of
        `harm_probability` over all runs plus the weighted mean of what it was off by. The latter is the more
        precise where p is well calibrated and tells much; it needs `harm_probability`.
    design : {"poisson", "conditional_poisson"}
        ``poisson`` decides on each run by itself, so that it can be done while traffic passes; the number of
        re-runs varies by about its root. ``conditional_poisson`` draws exactly the budget, in time
        proportional to runs times budget, and estimates with a matrix of all pairs of runs: for some
        thousands of runs.
    floor : float, default 0.25
        Least probability, as a share of that of a simple random audit, in (0, 1]. A run that the signal holds
        for safe still has this chance: however wrong the signal, the variance is at most
        :math:`(1 - \phi f) / (\phi (1 - f))` times that of a simple random audit, for a floor :math:`\phi`
        and a share f = budget / N of the runs: 1/floor where few runs are repeated, and more where many are
        (7 times, not 4, for a floor of 1/4 and half of the runs). 1 makes all runs as likely.
    key : sequence of str, optional
        Columns that tell runs apart; default: those of the log's run key that are there.

    Returns
    -------
    AuditPlan
        `sample` lists what to run.

    Raises
    ------
    InputError
        When a column is missing or holds what it cannot, keys repeat, or a number is out of range.

    References
    ----------
    .. [1] Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, section 12.2, for the
       optimum.
    .. [2] Hesterberg, Technometrics 37, 1995, for the defence by a floor.

    Examples
    --------
    What production has is compressed runs with their certificates. From a study the certificate is known to
    tell harmed runs with an AUC of about 0.85, and harm to be about 3%:

    >>> from kvstats.planning import anticipated_harm, audit_estimate, simulate_log
    >>> from kvstats.tables import paired
    >>> log = simulate_log(seed=3, inputs=5000, budgets=[0.5], harm=0.04, recovery=0.0,
    ...     signals={"certificate": (0.9, 0.6)}).log
    >>> runs = log.runs.filter(arm="plain")
    >>> runs = runs.with_columns(risk=anticipated_harm(runs["certificate"], rate=0.03, auc=0.85))
    >>> plan = plan_audit(runs, harm_probability="risk", budget=400, seed=1)
    >>> plan
    AuditPlan: 404 of 5,000 runs to repeat (poisson, for the hajek estimator); anticipated se 0.0064, against
    0.00818 by a simple random audit

    Repeat them with the full cache and compare; here the twins are in the simulated log.

    >>> repeated = paired(log, arm="plain").join(plan.sample, on=plan.key, how="semi", nulls_equal=True)
    >>> audit_estimate(plan, repeated, outcome="harm")
    harm by audit, 95% interval
    estimate    low   high      se   df    n  population  status
       0.040  0.028  0.058  0.0067  403  404        5000  ok
    """
    function = "plan_audit"
    names = key_columns(function, runs, key)
    if isinstance(budget, bool) or not isinstance(budget, Integral) or not 2 <= budget <= runs.height:
        raise InputError.argument(
            function,
            "budget",
            budget,
            f"is not a whole number from 2 to the {runs.height} runs",
            "pass the number of full-cache re-runs",
        )
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InputError.argument(function, "seed", seed, "is not a whole number of at least 0", "pass one")
    for argument, value, known in (
        ("estimator", estimator, ("hajek", "difference")),
        ("design", design, ("poisson", "conditional_poisson")),
    ):
        if value not in known:
            raise InputError.argument(
                function, argument, value, "is not known", nearest_name(str(value), known)
            )
    if not check_share(function, "floor", floor, closed=True):
        raise InputError.argument(
            function, "floor", floor, "leaves runs that are never drawn", "pass a share above 0"
        )
    if estimator == "difference" and harm_probability is None:
        raise InputError.argument(
            function,
            "estimator",
            estimator,
            "needs anticipated probabilities of harm",
            "name their column by harm_probability, or use 'hajek'",
        )
    frame = runs.sort(names, nulls_last=False, maintain_order=True)
    anticipated, plain = anticipated_spreads(function, frame, harm_probability, spread, estimator)
    share = budget / frame.height
    pi = proportional_inclusion(anticipated, float(budget), floor=floor * share)
    drawn = (Poisson(pi) if design == "poisson" else ConditionalPoisson(pi)).sample(
        np.random.default_rng(seed)
    )
    return AuditPlan(
        frame=frame.with_columns(pl.Series("inclusion_probability", pi), pl.Series("drawn", drawn)),
        key=names,
        budget=int(budget),
        harm_probability=harm_probability,
        design=design,
        estimator=estimator,
        seed=int(seed),
        anticipated_se=poisson_se(anticipated, pi),
        simple_random_se=poisson_se(plain, np.full(frame.height, share)),
    )


def key_columns(function: str, runs: pl.DataFrame, key: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns that tell runs apart, or raise `InputError` where they do not."""
    names = tuple(name for name in RUN_KEY if name in runs.columns) if key is None else tuple(key)
    unknown = [name for name in names if name not in runs.columns]
    if unknown or not names:
        raise InputError.argument(
            function,
            "key",
            unknown[0] if unknown else key,
            "is not a column" if unknown else "is empty, and the runs have none of the log's key columns",
            nearest_name(unknown[0], runs.columns) if unknown else "name the columns that tell runs apart",
        )
    taken = [name for name in PLANNED if name in runs.columns]
    if taken:
        raise InputError.argument(
            function, "runs", taken[0], "is a column that a plan adds", "rename it, or drop it"
        )
    repeated = int(runs.select(names).is_duplicated().sum())
    if repeated:
        raise InputError.argument(
            function,
            "key",
            list(names),
            f"does not tell apart {repeated} of {runs.height} runs",
            "add columns to the key, or remove the duplicates",
        )
    return names
