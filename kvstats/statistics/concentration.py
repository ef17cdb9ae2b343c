"""Concentration of sums: a radius for random vectors of any dimension, a bound for their variance."""

from __future__ import annotations

import math
from typing import Any

from kvstats.errors import InputError

__all__ = [
    "bernstein_radius",
    "check_delta",
    "check_nonnegative",
    "variance_upper_bound",
]


def bernstein_radius(variance: Any, largest: Any, *, delta: float) -> Any:
    r"""Radius that the norm of a sum of independent mean-zero vectors exceeds with probability delta at most.

    With :math:`V \ge \sum_i E\lVert X_i\rVert^2` and :math:`B \ge \lVert X_i\rVert`, Pinelis' inequality is

    .. math:: P\Bigl(\bigl\lVert \textstyle\sum_i X_i \bigr\rVert \ge r\Bigr)
        \le 2 \exp\Bigl(-\frac{r^2}{2 (V + B r / 3)}\Bigr)

    and its right-hand side is delta at

    .. math:: r = \frac{B L}{3} + \sqrt{\Bigl(\frac{B L}{3}\Bigr)^2 + 2 V L}, \qquad L = \log(2/\delta)

    Parameters
    ----------
    variance : float or array of float
        V, at least 0, in squared units of the vectors; numpy or torch. Infinity gives an infinite radius.
    largest : float or array of float
        B, at least 0, in units of the vectors; broadcasts against `variance`.
    delta : float
        Failure probability, in (0, 1).

    Returns
    -------
    float or array of float
        At least 0, in units of the vectors, of the broadcast shape.

    Raises
    ------
    InputError
        ``variance`` or ``largest`` is negative or NaN, or ``delta`` is outside (0, 1).

    Notes
    -----
    Holds in every separable Hilbert space, whatever its dimension; also for martingale differences when V
    bounds the sum of the conditional variances, and for the largest norm among the partial sums. V and B
    must not depend on the sample.

    References
    ----------
    .. [1] Pinelis (1994), Optimum bounds for the distributions of martingales in Banach spaces, Annals of
       Probability 22, section 3: his bound of Bennett's form implies this one of Bernstein's form.

    Examples
    --------
    >>> round(bernstein_radius(1.0, 0.5, delta=0.1), 4)
    2.9974
    """
    name = "bernstein_radius"
    check_delta(name, delta)
    check_nonnegative(name, "variance", variance)
    check_nonnegative(name, "largest", largest)
    log_term = math.log(2.0 / delta)
    linear = largest * (log_term / 3.0)
    return linear + (linear**2 + variance * (2.0 * log_term)) ** 0.5


def variance_upper_bound(estimate: Any, largest: Any, *, delta: float) -> Any:
    r"""Upper confidence bound for the mean of a sum of independent nonnegative variables.

    With :math:`Y_i \in [0, C]` independent, :math:`\hat V = \sum_i Y_i` and :math:`V = E \hat V`,

    .. math:: V \le \Bigl(\sqrt{C L / 2} + \sqrt{\hat V + C L / 2}\Bigr)^2, \qquad L = \log(1/\delta)

    with probability at least 1 - delta.

    Parameters
    ----------
    estimate : float or array of float
        The observed sum, at least 0; numpy or torch.
    largest : float or array of float
        C, at least 0, in the same units; must not depend on the sample.
    delta : float
        Failure probability, in (0, 1).

    Returns
    -------
    float or array of float
        At least `estimate`, of the broadcast shape.

    Raises
    ------
    InputError
        ``estimate`` or ``largest`` is negative or NaN, or ``delta`` is outside (0, 1).

    Notes
    -----
    For nonnegative variables :math:`P(\hat V \le V - t) \le \exp(-t^2 / (2 \sum_i E Y_i^2))`, and
    :math:`\sum_i E Y_i^2 \le C V`; the bound solves :math:`V - \hat V \le \sqrt{2 C V L}` for V.

    References
    ----------
    .. [1] Maurer (2003), A bound on the deviation probability for sums of non-negative random variables,
       Journal of Inequalities in Pure and Applied Mathematics 4, theorem 1.

    Examples
    --------
    >>> round(variance_upper_bound(0.0, 1.0, delta=0.1), 4)
    4.6052
    """
    name = "variance_upper_bound"
    check_delta(name, delta)
    check_nonnegative(name, "estimate", estimate)
    check_nonnegative(name, "largest", largest)
    half = largest * (0.5 * math.log(1.0 / delta))
    return (half**0.5 + (estimate + half) ** 0.5) ** 2


def check_delta(function: str, delta: float) -> None:
    """Raise unless a failure probability is inside (0, 1)."""
    if not 0 < delta < 1:
        raise InputError.argument(
            function, "delta", delta, "is not in (0, 1)", "pass a probability such as 0.1"
        )


def check_nonnegative(function: str, argument: str, value: Any) -> None:
    """Raise unless a number, or every number of an array, is at least 0."""
    scalar = isinstance(value, float | int)
    if not (value >= 0 if scalar else bool((value >= 0).all())):
        shown = value if scalar else "an array"
        raise InputError.argument(function, argument, shown, "is negative or undefined", "pass numbers >= 0")
