"""Risk control: the loosest threshold whose harm rate a labelled sample shows to be below a level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import polars as pl
from scipy import special

from kvstats.errors import InputError
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY
from kvstats.policies.input_signal import SIGNAL, with_signal
from kvstats.policies.pilot import check_one_scale, check_share, drawn, pilot_keys
from kvstats.policies.threshold import DROP, Threshold
from kvstats.selection import select
from kvstats.tables import EVICTED, FULL, arm_rows, examples, pairs_of

__all__ = ["harm_bounds", "risk_controlled_threshold"]

UNIT = ("suite", "task", "input_id")
"""What may occur once in a sample of independent inputs."""

Reduce = Literal["any"] | None
"""How the runs of one input at several budgets become one outcome."""


def risk_controlled_threshold(
    log: Log,
    *,
    base: str,
    level: float = 0.05,
    confidence: float = 0.9,
    signal: str = DROP,
    full: str = FULL,
    reduce: Reduce = None,
    taus: Sequence[float] | None = None,
    where: str | None = None,
    pilot_size: int | None = None,
    seed: int = 0,
) -> Threshold:
    r"""Choose the loosest threshold whose harm rate is below a level, with a stated confidence.

    Of n independent labelled inputs, :math:`k(\tau)` would be harmed by a gate at :math:`\tau`: they have a
    signal of at least :math:`\tau` and score below their full-cache twin when evicted. From the safest
    threshold (infinity: the gate is closed for all) downwards, the hypothesis that the harm rate is above the
    level :math:`\alpha` is rejected as long as the exact binomial p-value

    .. math:: p(\tau) = \Pr[\mathrm{Bin}(n, \alpha) \le k(\tau)] \le 1 - \mathrm{confidence},

    and the last threshold that passes is chosen: fixed-sequence testing, Learn then Test [1]_. Since a higher
    threshold can only harm fewer inputs, the test at the highest threshold that violates the level decides
    alone; the thresholds tried may therefore be those of the sample itself.

    Parameters
    ----------
    log : Log
        The log.
    base : str
        Name of the arm that evicts.
    level : float, default 0.05
        Highest harm rate allowed, over all inputs, those behind a closed gate included.
    confidence : float, default 0.9
        How sure to be of it.
    signal : str, default "drop"
        Column of `log.inputs`.
    full : str, default "full"
        Name of the arm that keeps the cache.
    reduce : {"any"}, optional
        ``any`` counts an input as harmed when any of its selected runs is. By default each input may have one
        run, and more are refused: the binomial test needs independent outcomes.
    taus : sequence of float, optional
        Thresholds to try besides infinity. Default: every value of the signal in the sample.
    where : str, optional
        SQL expression over the pairs that selects the sample, such as ``budget = 0.25``. Runs at budget 1
        are left out in any case.
    pilot_size : int, optional
        Inputs to draw from the selected ones; default: all.
    seed : int, default 0
        Seed of the draw.

    Returns
    -------
    Threshold
        `Threshold.harm_bound` is the upper Clopper-Pearson bound of the harm rate at the threshold, of the
        stated confidence, and `Threshold.guarantee` says what is promised. Its value is infinite where no
        threshold that opens the gate passes.

    Raises
    ------
    InputError
        When inputs are of several models or conditions or have several runs, the sample is so small that
        even no harm at all would not pass, a run has no twin, or a name is not known.

    Notes
    -----
    The promise is about the harm rate of the population that the inputs were drawn from, at the selected
    budgets; with numbers of inputs fixed by task, about the same mix of tasks. It holds in at least a share
    ``confidence`` of samples, over the choice of the sample, and not for another model, evictor or length.

    References
    ----------
    .. [1] Angelopoulos, Bates, Candès, Jordan and Lei, *Learn then Test*, 2021, section 2.3 and
       proposition 1 for fixed sequences. Hoeffding, Annals of Mathematical Statistics 27, 1956, for trials
       of unequal rates, for which the binomial tail is an upper bound.

    Examples
    --------
    >>> from kvstats.log import InputRecord, RunRecord, log_from_records
    >>> keys = [dict(suite="s", model="m", task="t", input_id=f"{i:03}") for i in range(100)]
    >>> log = log_from_records([
    ...     record for i, key in enumerate(keys) for record in (
    ...         InputRecord(**key, drop=0.001 * i), RunRecord(**key, arm="full", budget=1.0, score=1.0),
    ...         RunRecord(**key, arm="snapkv", budget=0.25, score=float(i > 40)))
    ... ])
    >>> risk_controlled_threshold(log, base="snapkv", level=0.05)  # doctest: +NORMALIZE_WHITESPACE
    Threshold(0.04 of 'drop', risk_controlled, 100 pilot inputs, harm rate at most 0.0383 with confidence
    0.9, level 0.05)
    """
    function = "risk_controlled_threshold"
    alpha = check_share(function, "level", level)
    error = 1 - check_share(function, "confidence", confidence)
    sample = labelled_inputs(function, log, base, signal, full, reduce, where, pilot_size, seed)
    if (1 - alpha) ** sample.height > error:
        needed = int(np.ceil(np.log(error) / np.log1p(-alpha)))
        raise InputError(
            f"{function}: {sample.height} inputs cannot show a harm rate below level={level!r} with "
            f"confidence={confidence!r}, even without any harm; label at least {needed}"
        )
    table = bounds(function, sample, taus, alpha, confidence)
    value, bound = table.filter("passes").select("tau", "high").row(-1)
    return Threshold(
        value=value,
        signal=signal,
        method="risk_controlled",
        pilot=pilot_keys(sample),
        harm_level=alpha,
        confidence=float(confidence),
        harm_bound=bound,
    )


def harm_bounds(
    log: Log,
    *,
    base: str,
    level: float = 0.05,
    confidence: float = 0.9,
    signal: str = DROP,
    full: str = FULL,
    reduce: Reduce = None,
    taus: Sequence[float] | None = None,
    where: str | None = None,
    pilot_size: int | None = None,
    seed: int = 0,
) -> pl.DataFrame:
    """Show what `risk_controlled_threshold` chooses from: the harm of a labelled sample by threshold.

    Parameters
    ----------
    log : Log
        The log.
    base, level, confidence, signal, full, reduce, taus, where, pilot_size, seed
        See `risk_controlled_threshold`.

    Returns
    -------
    polars.DataFrame
        Columns ``tau`` (descending, infinity first), ``opened`` (inputs whose gate is open), ``harmed``,
        ``n``, ``harm_rate``, ``high`` (its upper Clopper-Pearson bound at the confidence, for this threshold
        alone), ``p_value`` (of a harm rate at the level or above) and ``passes``.

    Raises
    ------
    InputError
        As `risk_controlled_threshold`, small samples apart.

    Examples
    --------
    >>> from kvstats.log import InputRecord, RunRecord, log_from_records
    >>> keys = [dict(suite="s", model="m", task="t", input_id=str(i)) for i in range(3)]
    >>> log = log_from_records([
    ...     record for i, key in enumerate(keys) for record in (
    ...         InputRecord(**key, drop=0.1 * i), RunRecord(**key, arm="full", budget=1.0, score=1.0),
    ...         RunRecord(**key, arm="snapkv", budget=0.25, score=float(i > 0)))
    ... ])
    >>> harm_bounds(log, base="snapkv", level=0.6).select("tau", "opened", "harmed", "passes").rows()
    [(inf, 0, 0, True), (0.2, 1, 0, True), (0.1, 2, 0, True), (0.0, 3, 1, False)]
    """
    function = "harm_bounds"
    alpha = check_share(function, "level", level)
    confidence = check_share(function, "confidence", confidence)
    sample = labelled_inputs(function, log, base, signal, full, reduce, where, pilot_size, seed)
    return bounds(function, sample, taus, alpha, confidence)


def labelled_inputs(
    function: str,
    log: Log,
    base: str,
    signal: str,
    full: str,
    reduce: Reduce,
    where: str | None,
    pilot_size: int | None,
    seed: int,
) -> pl.DataFrame:
    """Return one row an input of the sample: key, signal and whether it was harmed."""
    if reduce not in (None, "any"):
        raise InputError.argument(function, "reduce", reduce, "is not known", "pass 'any' or None")
    arm_rows(log.runs, base, function, "base")
    pairs = select(pairs_of(function, log, base, full, where), EVICTED, function)
    pairs = with_signal(function, log, pairs, signal)
    if not pairs.height:
        raise InputError.argument(function, "where", where, "leaves no run of the arm", "select some")
    check_one_scale(function, pairs)
    if reduce == "any":
        pairs = pairs.group_by(*INPUT_KEY, maintain_order=True).agg(
            pl.col(SIGNAL).first(), pl.col("harm").any()
        )
    repeated = pairs.filter(pairs.select(UNIT).is_duplicated())
    if repeated.height:
        raise InputError(
            f"{function}: {repeated.height} runs are of inputs with several, such as "
            f"{examples(repeated, INPUT_KEY)}, and the binomial test needs independent ones; select one "
            "budget through `where`, or pass reduce='any'"
        )
    return drawn(function, pairs.select(*INPUT_KEY, SIGNAL, "harm"), pilot_size, seed, "the selection")


def bounds(
    function: str,
    sample: pl.DataFrame,
    taus: Sequence[float] | None,
    level: float,
    confidence: float,
) -> pl.DataFrame:
    """Return harm, its upper bound and its p-value by threshold, the safest threshold first."""
    values = sample[SIGNAL].to_numpy()
    harm = sample["harm"].to_numpy()
    tried = values if taus is None else np.asarray(taus, dtype=np.float64)
    if tried.ndim != 1 or np.isnan(tried).any():
        raise InputError.argument(function, "taus", taus, "is not a list of numbers", "pass thresholds")
    grid = np.unique(np.append(tried, np.inf))[::-1]
    opened = values.size - np.searchsorted(np.sort(values), grid, side="left")
    harmful = np.sort(values[harm])
    harmed = harmful.size - np.searchsorted(harmful, grid, side="left")
    n, k = values.size, harmed.astype(np.float64)
    high = np.where(k < n, special.betaincinv(k + 1, np.maximum(n - k, 1), confidence), 1.0)
    # The binomial distribution function through the incomplete beta function; 1 where all are harmed.
    p_values = np.where(k < n, special.betainc(np.maximum(n - k, 1), k + 1, 1 - level), 1.0)
    frame = pl.DataFrame(
        {
            "tau": grid,
            "opened": opened.astype(np.int64),
            "harmed": harmed.astype(np.int64),
            "n": np.full(grid.size, n, dtype=np.int64),
            "harm_rate": k / n,
            "high": high,
            "p_value": p_values,
        }
    )
    return frame.with_columns(pl.col("p_value").le(1 - confidence).cum_min().alias("passes"))
