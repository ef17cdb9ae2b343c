"""Simulated logs: runs of which the truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import polars as pl

from kvstats.log.build import log_from_records
from kvstats.log.frames import INPUT_SCHEMA, REPLAY_SCHEMA, RUN_SCHEMA, Log
from kvstats.log.records import SCHEMA_VERSION, StudyRecord
from kvstats.planning.draws import Draws
from kvstats.planning.rates import Rate
from kvstats.planning.scenario import DEFAULT_SIGNALS, Scenario
from kvstats.planning.truth import truth_of

__all__ = ["SimulatedLog", "simulate_log"]


@dataclass(frozen=True, eq=False)
class SimulatedLog:
    """A log, and what is true of the population that it was drawn from.

    Attributes
    ----------
    log : Log
        The log, as one that was read from files.
    truth : polars.DataFrame
        One row a true value: ``estimator`` (the function that recovers it), ``model``, ``task``,
        ``condition``, ``arm``, ``budget``, ``signal``, ``outcome`` and ``value``; null where a column does
        not apply.
    """

    log: Log
    truth: pl.DataFrame

    def __repr__(self) -> str:
        return f"SimulatedLog({self.log!r}; {self.truth.height:,} true values)"


def simulate_log(
    *,
    seed: int,
    suite: str = "simulated",
    models: Sequence[str] = ("model",),
    tasks: Sequence[str] = ("task",),
    conditions: Sequence[str | None] = (None,),
    arms: Sequence[str] = ("plain",),
    budgets: Sequence[float] = (0.25, 0.5, 0.75),
    inputs: int = 200,
    accuracy: Rate = 0.8,
    harm: Rate = 0.1,
    recovery: Rate = 0.02,
    intraclass_correlation: float = 0.3,
    signals: Mapping[str, tuple[float, float]] = DEFAULT_SIGNALS,
    fragile: float = 0.25,
    drop_separation: float = 1.5,
    missing: Rate = 0.0,
    cells: int = 0,
    coverage: float = 0.95,
    rank_correlation: float = 0.9,
    delta: float = 0.1,
    context_tokens: int = 1024,
) -> SimulatedLog:
    r"""Make a log whose truth is known: for planning a study, for tests and for benchmarks.

    For each model, task, condition and input there is an input record and a full-cache run, and a run of each
    arm at each budget. With p the accuracy, h the harm and r the recovery, a full-cache run succeeds with
    probability p; where it does, the arm's run fails with probability h / p (an induced failure); where it
    does not, the arm's run succeeds with probability r / (1 - p).

    Parameters
    ----------
    seed : int
        At least 0. Every part of the log draws from a generator of its own, seeded from this number and the
        part's name: the order in which names are listed changes nothing, and to add a model, a task, an
        arm, a budget or more inputs leaves all other rows as they were.
    suite : str
        Name of the set of inputs.
    models, tasks, arms : sequence of str
        Different names. The arm ``full`` is always there besides.
    conditions : sequence of str or None
        Such as ``("aware", "stream")``.
    budgets : sequence of float
        Kept fractions, in (0, 1).
    inputs : int
        Inputs of each task, at least 1. The models and conditions are run on the same ones.
    accuracy, harm, recovery : float or mapping
        p, h and r, with h <= p and r <= 1 - p. One number, or a mapping whose keys are all names of one
        dimension, nested at will: ``{0.25: 0.2, 0.5: 0.05}`` by budget, ``{"plain": 0.2, "gate": {0.25: 0.1,
        0.5: 0.0}}`` by arm, then by budget. The accuracy may depend on model, task and condition only.
    intraclass_correlation : float
        In [0, 1]: how alike the runs of one input are, over models, conditions, arms and budgets. It is the
        correlation of two successes of the full cache, of two induced failures given that both twins
        succeeded, and of two recoveries given that both failed, where their chances are equal (with unequal
        ones it is lower); and of the noise of two runs' signals.
    signals : mapping of str to (float, float)
        Signals of runs, by name: the AUC that tells successes from induced failures, and the one that tells
        successes from inherent failures (both the arm and the full cache fail), each in (0, 1) and above 0.5
        where failures have the higher values. The values are the exponential of normal numbers of variance 1;
        minus their inverse, which is below 0, for ``logprob``. Full-cache runs have no ``certificate``.
    fragile : float
        Share of inputs, in [0, 1], that are fragile: those which induced failures strike first. They are the
        more often hit, the higher the intraclass correlation; without any they are like all others.
    drop_separation : float
        How many standard deviations (0.02) the mean drop of fragile inputs is above that of others (0.05).
    missing : float or mapping
        Share of inputs that an arm was not run on, at random, at any budget; it may depend on model, task,
        condition and arm (``full`` among them, whose absence leaves runs without twins).
    cells : int
        Replayed attention cells of each run of an arm.
    coverage, rank_correlation : float
        Of the cells: the share whose true error is within the radius, in (0, 1), and Spearman's correlation
        of both, in (-1, 1). Both figures are log-normal.
    delta : float
        The nominal failure probability recorded with a cell, in (0, 1).
    context_tokens : int
        Tokens that may be evicted, of each input.

    Returns
    -------
    SimulatedLog
        ``log`` and ``truth``. Scores are 1 and 0.

    Raises
    ------
    InputError
        When an option is out of its range, before anything is drawn.

    References
    ----------
    .. [1] Lunn and Davies, Biometrika 85, 1998: binary variables of given correlation, by shared draws.

    Examples
    --------
    >>> made = simulate_log(seed=1, inputs=400, harm={0.25: 0.2, 0.5: 0.1, 0.75: 0.0})
    >>> made.log
    Log: 1,600 runs of 400 inputs by 1 model (model), 1 task (task), 2 arms (full, plain); 400 input records,
    0 replay cells, 0 rejects
    >>> made.truth.filter(estimator="harm_rate").select("budget", "value").rows()
    [(0.25, 0.2), (0.5, 0.1), (0.75, 0.0)]
    >>> from kvstats.estimators import harm_rate
    >>> harm_rate(made.log, arm="plain", by="budget")
    harm_rate, 95% interval
    budget  estimate     low    high      se   df    n  clusters  status
      0.25     0.215   0.176   0.259  0.0206  399  400       400  ok
       0.5     0.110   0.081   0.145  0.0157  399  400       400  ok
      0.75    0.0000  0.0000  0.0092       –  399  400       400  ok
    """
    scenario = Scenario(
        seed=seed,
        suite=suite,
        models=models,
        tasks=tasks,
        conditions=conditions,
        arms=arms,
        budgets=budgets,
        inputs=inputs,
        accuracy=accuracy,
        harm=harm,
        recovery=recovery,
        intraclass_correlation=intraclass_correlation,
        signals=signals,
        fragile=fragile,
        drop_separation=drop_separation,
        missing=missing,
        cells=cells,
        coverage=coverage,
        rank_correlation=rank_correlation,
        delta=delta,
        context_tokens=context_tokens,
    )
    input_parts, run_parts, replay_parts = [], [], []
    for model, task, condition in scenario.groups():
        draws = Draws(scenario, model, task, condition)
        input_parts.append(draws.inputs())
        run_parts.append(draws.full_runs())
        for arm in scenario.arms:
            present = draws.present(arm)
            for cell in scenario.cells_of(model, task, condition, arm):
                run_parts.append(draws.arm_runs(cell).filter(present))
                if scenario.cells:
                    replay_parts.append(draws.replays(cell).filter(np.repeat(present, scenario.cells)))
    names = tuple(sorted(scenario.signals))
    log = Log(
        runs=with_schema(run_parts, {**RUN_SCHEMA, **dict.fromkeys(names, pl.Float64())}),
        inputs=with_schema(input_parts, INPUT_SCHEMA),
        replays=with_schema(replay_parts, REPLAY_SCHEMA),
        studies=log_from_records([study_of(scenario, model) for model in scenario.models]).studies,
        run_signals=names,
    )
    return SimulatedLog(log, truth_of(scenario))


def with_schema(parts: Sequence[pl.DataFrame], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Stack frames and give them all columns of the log contract, null where they have none."""
    if not parts:
        return pl.DataFrame(schema=dict(schema))
    rows = pl.concat(parts, how="vertical_relaxed")
    return rows.select(
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in schema.items()
    )


def study_of(scenario: Scenario, model: str) -> StudyRecord:
    """Return the study record of a model: the scenario is its settings."""
    return StudyRecord(
        schema_version=SCHEMA_VERSION,
        suite=scenario.suite,
        model=model,
        dtype="none",
        attention="none",
        versions={},
        host="simulated",
        settings=scenario.settings(),
        template_hash="none",
        started_at=datetime(2000, 1, 1, tzinfo=UTC),
    )
