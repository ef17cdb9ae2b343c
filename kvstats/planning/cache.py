"""Arithmetic of the key-value cache: its bytes, what a gate keeps of it, and what retries cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kvstats.errors import InputError

__all__ = ["RetryCost", "gated_kept_fraction", "kv_cache_bytes", "margin_to_noise", "retry_break_even"]


def kv_cache_bytes(
    *, layers: int, kv_heads: int, head_dim: int, tokens: int, bytes_per_number: float = 2.0
) -> int:
    """Return the size of a key-value cache in bytes: ``L * H_kv * d * T * 2 * bytes``.

    Parameters
    ----------
    layers, kv_heads, head_dim : int
        Attention layers, key-value heads of each (not query heads), and the dimension of a head.
    tokens : int
        Tokens that are cached, of all sequences together; for a mean kept fraction, the mean number.
    bytes_per_number : float, default 2.0
        2 for 16-bit floats, 0.5 for four bits.

    Returns
    -------
    int
        Bytes of keys and values, rounded up. Indices, scales of quantisation and padding come on top.

    Raises
    ------
    InputError
        When a number is out of its range.

    Examples
    --------
    >>> kv_cache_bytes(layers=28, kv_heads=2, head_dim=128, tokens=4096)
    117440512
    >>> kv_cache_bytes(layers=28, kv_heads=2, head_dim=128, tokens=0)
    0
    """
    function = "kv_cache_bytes"
    for name, number, least in (
        ("layers", layers, 1),
        ("kv_heads", kv_heads, 1),
        ("head_dim", head_dim, 1),
        ("tokens", tokens, 0),
    ):
        check_count(function, name, number, least)
    check_number(function, "bytes_per_number", bytes_per_number, above=0.0)
    return math.ceil(layers * kv_heads * head_dim * tokens * 2 * bytes_per_number)


def gated_kept_fraction(*, p_open: float, budget: float, batch: int = 1) -> float:
    """Return the mean fraction of the cache that a gate keeps: ``1 - p ** B * (1 - b)``.

    Inputs whose gate is open keep the budget b, the others everything; a static batch of B inputs is
    compressed only where all its gates are open. From a log, `kvstats.kept_fraction` and
    `kvstats.batch_kept_fraction` estimate the same with intervals.

    Parameters
    ----------
    p_open : float
        Share p of inputs whose gate is open, in [0, 1].
    budget : float
        Fraction b that a compressed cache keeps, in [0, 1].
    batch : int, default 1
        Size B of the batch, at least 1.

    Returns
    -------
    float
        In [budget, 1]; 1 divided by it is the compression.

    Raises
    ------
    InputError
        When a number is out of its range.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", tables 22 and 23.

    Examples
    --------
    >>> round(gated_kept_fraction(p_open=0.75, budget=0.0625), 3)
    0.297
    >>> round(1 / gated_kept_fraction(p_open=0.75, budget=0.0625, batch=4), 2)
    1.42
    """
    function = "gated_kept_fraction"
    check_share(function, "p_open", p_open)
    check_share(function, "budget", budget)
    check_count(function, "batch", batch, 1)
    return 1 - p_open**batch * (1 - budget)


@dataclass(frozen=True)
class RetryCost:
    """Cost of detecting failures and running these inputs again with the whole cache, against a gate's.

    Attributes
    ----------
    retried : float
        Share of inputs that are run again.
    retry_cost : float
        Expected cost of an input's retries, in the unit of the costs.
    gate_cost : float
        Cost of an input's gate.
    saving : float
        Retry cost minus gate cost: above 0 the gate is cheaper.
    break_even_prevalence : float or None
        The share of failures at which both cost the same; None where none in [0, 1] does.
    """

    retried: float
    retry_cost: float
    gate_cost: float
    saving: float
    break_even_prevalence: float | None


def retry_break_even(
    *,
    prevalence: float,
    tpr: float,
    fpr: float,
    prefill_cost: float,
    decode_cost: float,
    gate_cost: float,
) -> RetryCost:
    """Weigh a detector with retries against a gate: ``(p TPR + (1 - p) FPR) (c_pre + c_dec)`` against c_gate.

    Parameters
    ----------
    prevalence : float
        Share p of inputs that eviction makes fail, in [0, 1].
    tpr, fpr : float
        Shares of these, and of the others, that the detector flags, in [0, 1].
    prefill_cost, decode_cost : float
        Cost of one prefill and of one generation, at least 0, such as in seconds.
    gate_cost : float
        Cost of the gate for one input, at least 0, in the same unit.

    Returns
    -------
    RetryCost

    Raises
    ------
    InputError
        When a number is out of its range.

    Notes
    -----
    It weighs time alone: a detector that misses failures leaves them in the answers, 1 - TPR of them. From
    the runs of a log `kvstats.retry_saving` estimates the saving with an interval.

    Examples
    --------
    >>> costs = dict(prefill_cost=2.0, decode_cost=1.0, gate_cost=0.1)
    >>> cost = retry_break_even(prevalence=0.3, tpr=0.8, fpr=0.1, **costs)
    >>> round(cost.retried, 3), round(cost.retry_cost, 3), round(cost.saving, 3), cost.break_even_prevalence
    (0.31, 0.93, 0.83, None)
    """
    function = "retry_break_even"
    for name, share in (("prevalence", prevalence), ("tpr", tpr), ("fpr", fpr)):
        check_share(function, name, share)
    for name, number in (
        ("prefill_cost", prefill_cost),
        ("decode_cost", decode_cost),
        ("gate_cost", gate_cost),
    ):
        check_number(function, name, number, least=0.0)
    retried = prevalence * tpr + (1 - prevalence) * fpr
    one = prefill_cost + decode_cost
    at = (gate_cost / one - fpr) / (tpr - fpr) if one > 0 and tpr != fpr else math.nan
    return RetryCost(
        retried, retried * one, gate_cost, retried * one - gate_cost, at if 0 <= at <= 1 else None
    )


def margin_to_noise(*, heads: int, layers: int, tokens: int, beta: float = 0.05) -> float:
    r"""Return the margin, in noise units, above which no pair of heads mistakes a token anywhere.

    :math:`\kappa = 2 \sqrt{\log(2 H^2 L T^2 / \beta)}`: with independent sub-Gaussian noise of unit scale on
    each attention score, a margin of kappa between the scores of two tokens keeps their order in all
    :math:`H^2 L T^2` comparisons at once with probability :math:`1 - \beta`, by the union bound.

    Parameters
    ----------
    heads, layers, tokens : int
        Heads H of a layer, layers L, and tokens T.
    beta : float, default 0.05
        Probability of any mistake, between 0 and 1.

    Returns
    -------
    float
        Kappa, a pure number.

    Raises
    ------
    InputError
        When a number is out of its range.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", the requirement on margin to noise.

    Examples
    --------
    >>> round(margin_to_noise(heads=12, layers=28, tokens=4096), 3)
    10.701
    """
    function = "margin_to_noise"
    for name, number in (("heads", heads), ("layers", layers), ("tokens", tokens)):
        check_count(function, name, number, 1)
    if isinstance(beta, bool) or not isinstance(beta, int | float) or not 0 < beta < 1:
        raise InputError.argument(function, "beta", beta, "is not between 0 and 1", "pass one such as 0.05")
    return 2 * math.sqrt(
        math.log(2) + 2 * math.log(heads) + math.log(layers) + 2 * math.log(tokens) - math.log(beta)
    )


def check_count(function: str, argument: str, number: object, least: int) -> None:
    """Raise `InputError` where a number is not whole or too small."""
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise InputError.argument(
            function, argument, number, f"is not a whole number of at least {least}", "pass a count"
        )


def check_share(function: str, argument: str, share: object) -> None:
    """Raise `InputError` where a number is no share."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InputError.argument(
            function, argument, share, "is not a share in [0, 1]", "pass one such as 0.5"
        )


def check_number(
    function: str, argument: str, number: object, *, least: float = -math.inf, above: float = -math.inf
) -> None:
    """Raise `InputError` where a number is not finite, or too small."""
    if (
        isinstance(number, bool)
        or not isinstance(number, int | float)
        or not math.isfinite(number)
        or not (number >= least and number > above)
    ):
        bound = f" above {above:g}" if above > -math.inf else f" of at least {least:g}"
        raise InputError.argument(
            function, argument, number, f"is not a finite number{bound}", "pass one such as 1.0"
        )
