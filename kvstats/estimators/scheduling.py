"""Scheduling: what re-running the most suspicious inputs gains, against chance and against an oracle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from kvstats.estimators.attribution import THRESHOLDS, refitted
from kvstats.estimators.joint_table import chosen_quantities, estimate_table
from kvstats.estimators.population import By, check_outcome, numbers
from kvstats.estimators.registry import table_estimator
from kvstats.estimators.signal_pairs import check_signal, oriented, strata_of
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.joint import Member, joint_samples
from kvstats.inference.result import Result
from kvstats.inference.sample import Kind, Sample
from kvstats.log.frames import Log
from kvstats.policies.top_share import DEPLOYMENT, check_share
from kvstats.selection import within_columns
from kvstats.statistics.ratios import Mean
from kvstats.statistics.same_rows import Combination, Quotient
from kvstats.statistics.statistic import FloatArray, IntArray, Statistic
from kvstats.statistics.top_share import TopShareMean
from kvstats.tables import pairs_of, require_values

__all__ = ["recomputation"]

COLUMNS: dict[str, pl.DataType] = {"quantity": pl.String()}

CONFIDENCE = "confidence"

NULLS: dict[str, float | None] = {
    **dict.fromkeys(("base", "full", "policy", "confidence", "random", "oracle")),
    **dict.fromkeys(("gain", "confidence_gain", "random_gain", "oracle_gain"), 0.0),
    **dict.fromkeys(("gain_over_random", "gain_over_confidence"), 0.0),
    "gain_ratio": 1.0,
    "headroom_captured": 0.0,
}
"""The quantities of the table, with their values under the null hypothesis."""


@table_estimator(**COLUMNS)
def recomputation(
    log: Log,
    *,
    arm: str,
    signal: str,
    share: float,
    confidence: str | None = None,
    outcome: str = "success",
    within: str | Sequence[str] | None = DEPLOYMENT,
    higher: str = "positive",
    confidence_higher: str = "negative",
    thresholds: str = "refit",
    quantities: Sequence[str] | None = None,
    baseline: str = "full",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    r"""Mean outcome when the share of runs with the highest signal is run again, and what that gains.

    Formula: with x the outcome of the arm, y that of the baseline's run of the same input, c the share, and
    :math:`a_i` the part of run i that is among the share c of the highest signal (see
    `kvstats.statistics.TopShareMean`), one row for each ``quantity``:

    - ``base``, ``full``: means of x and of y;
    - ``policy``: mean of :math:`a y + (1 - a) x`; ``confidence``: the same with the other signal;
    - ``random``: mean of :math:`c\, y + (1 - c)\, x`, the exact expectation of a random choice;
    - ``oracle``: the same as policy, with the runs chosen that gain most, and none that lose. For successes
      its gain is :math:`\min(c, \text{share of induced failures})` in each group of `within`;
    - ``gain``, ``random_gain``, ``confidence_gain``, ``oracle_gain``: the four less ``base``;
    - ``gain_over_random``, ``gain_over_confidence``: paired differences of the policy to these;
    - ``gain_ratio``: gain over random gain; ``headroom_captured``: gain over oracle gain.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts.
    signal : str
        Numeric column of the pairs; see `kvstats.auc`.
    share : float
        Share c of the runs that are run again, in [0, 1].
    confidence : str, optional
        Another signal to choose by, such as ``logprob``; default: no such rows.
    outcome : {"success", "score"}
        Which outcome.
    within : str or sequence of str, or None
        The share is taken of each group of runs that agree in these columns; see
        `kvstats.policies.recompute`.
    higher, confidence_higher : {"positive", "negative"}
        Whether runs of high or of low signal are run again first.
    thresholds : {"refit", "fixed"}
        Whether the limits are estimates (they are found anew in each bootstrap replicate, and a linearised
        interval allows for their spread), or held fixed as the sample has them, which is what the arm of
        `kvstats.policies.recompute` does. The title of the result states it.
    quantities : sequence of str, optional
        Which of these rows to show, for registered claims about some of them. Default: all. Where all that
        are shown have the same value under the null hypothesis, it is that of the result:
        0 for gains, 1 for the ratio.
    baseline : str, default "full"
        The arm that answers again: ``full``, or one with a run of the same input, budgets and seed. For
        escalation to a larger budget it is the arm of `kvstats.policies.escalate` with ``share=1.0``, and
        `where` leaves out the budgets that it has no rows of.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within, such as ``["budget", "seed"]``.
    design : Design
        How to judge it; ``auto`` takes linearised intervals, and Korn-Graubard ones for ``base`` and ``full``
        where all outcomes are 0 or 1. All rows of a part are resampled together.

    Returns
    -------
    Result
        By-columns and ``quantity``. A ratio is null with status ``undefined`` where its divisor is 0; a
        difference is 0 with status ``no discordant pairs`` where no run differs. An oracle that finds more
        induced failures than it may run again gains the share itself, without variance.

    Raises
    ------
    InputError
        When a run has no twin, an outcome or a signal is null, the share is not in [0, 1], or a name is not
        known.

    Notes
    -----
    Simulated coverage of the linearised 95% intervals, for clusters of four correlated runs, 30% induced
    failures, a signal that is 1.2 standard deviations higher in them, and a share of 0.25 (1,000 samples).
    Refitted limits: 0.95 for ``gain`` and ``gain_over_random``, 0.96 for ``gain_ratio`` and 0.95 for
    ``headroom_captured`` with 40 and with 200 clusters; 0.91 to 0.95 with 10. Fixed limits: 0.99 for the
    gains, which is too wide: where many runs are suspicious a refitted limit rises, and a fixed one counts
    them all. Percentile bootstrap, refitted, 40 clusters: 0.97. Where the share of induced failures is about
    the share that may be run again, the oracle's gain is near the bend of a minimum, and no interval of it or
    of ``headroom_captured`` is to be trusted.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", table 4.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(success), success=success, signals={"certificate": i % 9})
    ...     for i in range(90)
    ...     for arm, budget, success in (("full", 1.0, i % 9 > i % 5), ("poisson", 0.5, i % 4 > 2))
    ... ])
    >>> table = recomputation(log, arm="poisson", signal="certificate", share=0.25).frame
    >>> dict(table.select("quantity", pl.col("estimate").round(3)).rows())["headroom_captured"]
    0.744
    """
    function = "recomputation"
    part_rerun = check_share(function, share)
    sign = oriented(function, "higher", higher)
    other_sign = oriented(function, "confidence_higher", confidence_higher)
    refit = refitted(function, thresholds)
    known = (
        NULLS if confidence is not None else {name: NULLS[name] for name in NULLS if CONFIDENCE not in name}
    )
    shown, null = chosen_quantities(function, quantities, known)
    pairs = pairs_of(function, log, arm, baseline, where)
    check_outcome(function, pairs, outcome)
    require_values(function, pairs, f"baseline_{outcome}")
    signals = [("policy", "signal", signal, sign)]
    if confidence is not None:
        signals.append(("confidence", "confidence", confidence, other_sign))
    for _, argument, name, _ in signals:
        check_signal(function, argument, pairs, name)
        require_values(function, pairs, name)
    groups = within_columns(function, within, pairs)

    title = f"{function} (share {part_rerun:g}, limits {THRESHOLDS[thresholds]})"

    def build(everything: Sample, part: pl.DataFrame) -> list[Sample]:
        base, full = numbers(part, outcome), numbers(part, f"baseline_{outcome}")
        strata = strata_of(part, groups) if groups else None
        runs = Rerun(base, full, part_rerun, strata, None if refit else everything.weights)
        chosen = {name: side * numbers(part, column) for name, _, column, side in signals}
        several = [
            ((*everything.key, *own), statistic, kind)
            for own, statistic, kind in members(runs, chosen)
            if own[0] in shown
        ]
        return joint_samples(f"{title}, {everything.key!r}", everything, several)

    return estimate_table(function, title, log, pairs, by, design, build, COLUMNS, null)


class Rerun:
    """Runs with the outcome of each, that of running it again, and the share that may be."""

    def __init__(
        self,
        base: FloatArray,
        full: FloatArray,
        share: float,
        strata: IntArray | None,
        fixed: FloatArray | None,
    ) -> None:
        self.base = base
        self.full = full
        self.share = share
        self._strata = strata
        self._fixed = fixed

    def gain_by(self, signal: FloatArray, gain: FloatArray) -> Statistic:
        """Return the mean gain from running the share of the highest signal again."""
        # A run that gains nothing adds an exact 0, which a difference of two means would not.
        mean = TopShareMean(signal, gain, np.zeros_like(gain), self.share, self._strata)
        return mean if self._fixed is None else mean.held_fixed(self._fixed)


def members(runs: Rerun, signals: dict[str, FloatArray]) -> list[Member]:
    """Return every quantity of the table with its kind."""
    base, gain = Mean(runs.base), runs.full - runs.base
    helped = np.maximum(gain, 0.0)
    gains: dict[str, Statistic] = {name: runs.gain_by(signal, gain) for name, signal in signals.items()}
    gains["random"] = Mean(runs.share * gain)
    gains["oracle"] = runs.gain_by(helped, helped)
    found: dict[str, tuple[Statistic, Kind]] = {
        "base": (base, kind_of(runs.base)),
        "full": (Mean(runs.full), kind_of(runs.full)),
    }
    for name, part in gains.items():
        found[name] = (Combination([1.0, 1.0], [base, part]), "mean")
        found["gain" if name == "policy" else f"{name}_gain"] = (part, "paired")
    for name in ("random", "confidence"):
        if name in gains:
            difference = Combination([1.0, -1.0], [gains["policy"], gains[name]])
            found[f"gain_over_{name}"] = (difference, "paired")
    found["gain_ratio"] = (Quotient(gains["policy"], gains["random"]), "mean")
    found["headroom_captured"] = (Quotient(gains["policy"], gains["oracle"]), "mean")
    return [((name,), statistic, kind) for name, (statistic, kind) in found.items()]


def kind_of(values: FloatArray) -> Kind:
    """Return the kind of a mean: a rate where all values are 0 or 1."""
    return "rate" if bool(((values == 0) | (values == 1)).all()) else "mean"
