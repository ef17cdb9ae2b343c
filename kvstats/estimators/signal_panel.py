"""The panel of self-signals: what each logged signal knows of each kind of failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.estimators.joint_table import chosen_quantities, refuse_own_columns
from kvstats.estimators.panel_samples import Panel, panel_samples
from kvstats.estimators.population import By, by_columns
from kvstats.estimators.registry import table_estimator
from kvstats.estimators.signal_pairs import check_signal, oriented, with_outcome
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result, infer
from kvstats.inference.sample import Sample
from kvstats.log.frames import Log
from kvstats.selection import within_columns
from kvstats.tables import pairs_of

__all__ = ["HIGHER", "known_directions", "signal_panel"]

HIGHER: Mapping[str, str] = {
    "certificate": "positive",
    "evicted_mass": "positive",
    "retained_entropy": "positive",
    "draw_disagreement": "positive",
    "draw_f1_gap": "positive",
    "draw_score_gap": "positive",
    "margin": "negative",
    "logprob": "negative",
    "logprob_first": "negative",
    "logprob_min": "negative",
    "partner_success": "negative",
}
"""Which class is expected to have the higher signal, by its name: the failures, or the others."""


COLUMNS: dict[str, pl.DataType] = {
    "outcome": pl.String(),
    "signal": pl.String(),
    "higher": pl.String(),
    "quantity": pl.String(),
}


NULLS: dict[str, float | None] = {"share": None, "auc": 0.5, "difference": 0.0, "missing": None}
"""The quantities of the table, with their values under the null hypothesis."""


@table_estimator(**COLUMNS)
def signal_panel(
    log: Log,
    *,
    arm: str,
    signals: Sequence[str] | None = None,
    outcomes: Sequence[str] = ("failure", "induced_failure"),
    reference: str | None = "certificate",
    higher: Mapping[str, str] | None = None,
    within: str | Sequence[str] | None = None,
    rows: str = "own",
    quantities: Sequence[str] | None = None,
    baseline: str = "full",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Area under the receiver operating characteristic of every signal for every kind of failure.

    Formula: one row for each outcome, signal and ``quantity``, with the areas of `kvstats.auc`:

    - ``auc``: the area of `kvstats.auc`, in [0, 1], above 0.5 where the class that `higher` names has the
      higher signal;
    - ``difference``: this area minus that of the reference, on the runs that have both, in [-1, 1];
    - ``missing``: share of the outcome's runs in which the signal is null;
    - ``share`` (signal null): share of the runs that have the outcome; with ``n`` it tells how many do.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm.
    signals : sequence of str, optional
        Numeric columns of the pairs; see `kvstats.auc`. Default: every signal of runs in the log.
    outcomes : sequence of str, default ("failure", "induced_failure")
        Boolean columns of the pairs, or ``attribution``: among failures, the induced against the inherent;
        see `kvstats.auc`.
    reference : str or None, default "certificate"
        The signal that the others are compared with, which may itself be left out of `signals`; None for no
        differences.
    higher : mapping of str to {"positive", "negative"}, optional
        Which class is expected to have the higher signal; see `kvstats.auc`. Known are ``positive`` (the runs
        with the outcome) for certificate, evicted_mass, retained_entropy, draw_disagreement, draw_f1_gap and
        draw_score_gap, and ``negative`` for margin, logprob, logprob_first, logprob_min and partner_success;
        any other signal must be named here. The column ``higher`` states it.
    within : str or sequence of str, optional
        Columns that runs must agree in to be compared, such as ``["model", "task", "budget"]``. Default: all
        runs are compared.
    rows : {"own", "shared"}
        ``own``: each area is of the runs that have the signal, each difference of those that have it and the
        reference. ``shared``: everything is of the runs that have all signals of the panel.
    quantities : sequence of str, optional
        Which of these rows to show, for registered claims about some of them. Default: all. Where all that
        are shown have the same value under the null hypothesis, it is that of the result:
        0.5 for areas, 0 for differences.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes linearised intervals as in `kvstats.auc` and
        `kvstats.auc_difference`, and Korn-Graubard ones for shares. A bootstrap resamples clusters once for
        all signals of an outcome and part.

    Returns
    -------
    Result
        By-columns, ``outcome``, ``signal``, ``higher`` and ``quantity``. Null with status ``one class`` where
        all or none of the runs have the outcome, ``no rows`` where none is left or has the signal. Tests of
        the whole table need ``null``, or `quantities`.

    Raises
    ------
    InputError
        When a run has no twin, an outcome is null, a name is not known, or the class that has the higher
        signal is not.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", table 2 and claims R1 to R3.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(success), success=success,
    ...               signals={"certificate": i % 7, "margin": -(i % 3)})
    ...     for i in range(40)
    ...     for arm, budget, success in (("full", 1.0, True), ("poisson", 0.5, i % 5 > i % 7))
    ... ])
    >>> signal_panel(log, arm="poisson", outcomes=["failure"])
    signal_panel, 95% interval
    outcome  signal       higher    quantity    estimate    low   high     se    df   n  clusters  status
    failure  –            –         share           0.75   0.59   0.87  0.069    39  40        40  ok
    failure  certificate  positive  auc             0.87   0.71   0.95  0.056  31.0  40        40  ok
    failure  certificate  positive  missing        0.000  0.000  0.088      –    39  40        40  ok
    failure  margin       negative  auc             0.45   0.25   0.66  0.104  14.5  40        40  ok
    failure  margin       negative  difference     -0.42  -0.69  -0.15  0.126  15.0  40        40  ok
    failure  margin       negative  missing        0.000  0.000  0.088      –    39  40        40  ok
    """
    function = "signal_panel"
    if rows not in ("own", "shared"):
        raise InputError.argument(
            function, "rows", rows, "is not known", nearest_name(str(rows), ("own", "shared"))
        )
    kinds, null = chosen_quantities(function, quantities, NULLS)
    pairs = pairs_of(function, log, arm, baseline, where)
    shown = list(log.run_signals if signals is None else signals)
    if not shown or len(set(shown)) < len(shown):
        raise InputError.argument(
            function, "signals", shown, "names no signal, or one twice", "name each once"
        )
    if not outcomes or len(set(outcomes)) < len(outcomes):
        raise InputError.argument(
            function, "outcomes", list(outcomes), "names no outcome, or one twice", "name each once"
        )
    used = shown if reference is None or reference in shown else [*shown, reference]
    for name in used:
        check_signal(function, "reference" if name == reference else "signals", pairs, name)
    if kinds == ["difference"] and (reference is None or shown == [reference]):
        raise InputError.argument(
            function, "quantities", kinds, "leaves no row without another signal to compare", "add signals"
        )
    directions = known_directions(function, used, higher)
    panel = Panel(
        shown, used, reference, directions, within_columns(function, within, pairs), rows == "shared", kinds
    )
    names = by_columns(function, by, pairs)
    refuse_own_columns(function, names, COLUMNS)
    samples: list[Sample] = []
    for outcome in outcomes:
        population = with_outcome(function, pairs, outcome)
        samples += panel_samples(function, log, population, outcome, names, design, panel)
    columns = {name: pairs.schema[name] for name in names}
    return infer(function, samples, design, columns | COLUMNS, null)


def known_directions(
    function: str, signals: Sequence[str], higher: Mapping[str, str] | None
) -> dict[str, str]:
    """Return which class has the higher signal, for each, or raise `InputError` where it is not known."""
    known = {**HIGHER, **(higher or {})}
    for name in higher or {}:
        if name not in signals:
            raise InputError.argument(
                function, "higher", name, "is not among the signals", nearest_name(str(name), signals)
            )
        oriented(function, "higher", known[name])
    unknown = [name for name in signals if name not in known]
    if unknown:
        others = [name for name in signals if name in known]
        raise InputError.argument(
            function,
            "signals",
            unknown[0] if len(unknown) == 1 else unknown,
            "is not known to be higher in one class or the other",
            f"state it with higher={{{unknown[0]!r}: 'positive'}} or 'negative'"
            + (", for each of them" if len(unknown) > 1 else "")
            + (f", or leave it out with signals={others!r}" if others else ""),
        )
    return {name: known[name] for name in signals}
