"""Allocation: inclusion probabilities proportional to a score, of a given expected size."""

from __future__ import annotations

from typing import Any, Literal

from array_api_compat import array_namespace

from kvstats.errors import InputError

__all__ = ["proportional_inclusion"]


def proportional_inclusion(
    score: Any,
    expected_size: float,
    *,
    floor: float = 1e-6,
    rule: Literal["iterated", "one_pass"] = "iterated",
) -> Any:
    r"""Inclusion probabilities proportional to a score, of given expected sample size.

    .. math:: \pi_i = \min(1, \max(f, c\, x_i)), \qquad \sum_i \pi_i = m

    Parameters
    ----------
    score : array of float, shape (..., n)
        Nonnegative and finite sizes x, numpy or torch; each row of the last axis is one population.
    expected_size : float
        The expected sample size m, in (0, n].
    floor : float, default 1e-6
        Smallest probability f, in (0, 1]: a unit that can never be drawn cannot be estimated.
    rule : {"iterated", "one_pass"}, default "iterated"
        ``iterated`` raises the factor c until the probabilities sum to m. ``one_pass`` takes
        c = m / sum(x) and clips once, as the error-certificate study does; it under-spends whenever a
        unit is clipped at 1.

    Returns
    -------
    array of float, shape (..., n)
        Probabilities in [floor, 1], of the kind and type of `score`.

    Raises
    ------
    InputError
        ``score`` is empty, negative or not finite; ``expected_size`` is outside (0, n], or below the
        least that the floor allows; ``floor`` is outside (0, 1]; ``rule`` is unknown.

    Notes
    -----
    Under ``iterated`` the probabilities are the fixed point of: units with c x >= 1 are certain, units
    with c x <= f stay at f, the rest share what remains in proportion to x. When the units that are
    neither certain nor at the floor all have score zero, they share it equally. The sum equals m to
    rounding.

    References
    ----------
    Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, section 3.6.2.

    Examples
    --------
    >>> import numpy as np
    >>> proportional_inclusion(np.array([8.0, 1.0, 1.0]), 2.0)
    array([1. , 0.5, 0.5])
    >>> proportional_inclusion(np.array([8.0, 1.0, 1.0]), 2.0, rule="one_pass")
    array([1. , 0.2, 0.2])
    """
    name = "proportional_inclusion"
    xp = array_namespace(score)
    n = score.shape[-1] if score.ndim else 0
    if n == 0:
        raise InputError.argument(name, "score", "an empty array", "has no units", "pass at least one unit")
    if not bool(xp.all(xp.isfinite(score))) or bool(xp.any(score < 0)):
        raise InputError.argument(
            name, "score", "an array", "holds negative or undefined sizes", "pass finite sizes >= 0"
        )
    if not 0 < floor <= 1:
        raise InputError.argument(name, "floor", floor, "is not in (0, 1]", "pass a small probability")
    if not 0 < expected_size <= n:
        raise InputError.argument(
            name,
            "expected_size",
            expected_size,
            f"is not in (0, {n}], the number of units",
            "change the budget",
        )
    if rule == "one_pass":
        total = xp.sum(score, axis=-1, keepdims=True)
        equal = xp.full_like(score, 1.0 / n)
        share = xp.where(total > 0, score / xp.where(total > 0, total, xp.ones_like(total)), equal)
        return xp.clip(expected_size * share, floor, 1.0)
    if rule != "iterated":
        raise InputError.argument(name, "rule", rule, "is unknown", "pass 'iterated' or 'one_pass'")
    if expected_size < n * floor:
        raise InputError.argument(
            name, "expected_size", expected_size, f"is below n * floor = {n * floor}", "lower the floor"
        )
    return iterate(score, expected_size, floor, xp)


def iterate(score: Any, expected_size: float, floor: float, xp: Any) -> Any:
    """Fix units at 1 or at the floor until the proportional rest stays within both.

    Each pass fixes only the side on which more mass lies outside, because fixing it moves the factor
    towards the other side; every pass fixes at least one unit, so there are at most n passes.
    """
    free = xp.ones_like(score, dtype=xp.bool)
    pi = xp.zeros_like(score)
    for _ in range(score.shape[-1] + 1):
        n_free = xp.sum(xp.astype(free, score.dtype), axis=-1, keepdims=True)
        left = expected_size - xp.sum(xp.where(free, xp.zeros_like(pi), pi), axis=-1, keepdims=True)
        total = xp.sum(xp.where(free, score, xp.zeros_like(score)), axis=-1, keepdims=True)
        one = xp.ones_like(total)
        equal = xp.where(n_free > 0, left / xp.where(n_free > 0, n_free, one), one)
        proportional = left / xp.where(total > 0, total, one) * score
        trial = xp.where(total > 0, proportional, equal + xp.zeros_like(score))
        over = free & (trial > 1.0)
        under = free & (trial < floor)
        excess = xp.sum(xp.where(over, trial - 1.0, xp.zeros_like(trial)), axis=-1, keepdims=True)
        lack = xp.sum(xp.where(under, floor - trial, xp.zeros_like(trial)), axis=-1, keepdims=True)
        pi = xp.where(free, trial, pi)
        high_first = excess >= lack
        fix_high = over & high_first
        fix_low = under & ~high_first
        if not bool(xp.any(fix_high | fix_low)):
            break
        pi = xp.where(fix_high, xp.ones_like(pi), xp.where(fix_low, xp.full_like(pi, floor), pi))
        free = free & ~fix_high & ~fix_low
    return xp.clip(pi, floor, 1.0)
