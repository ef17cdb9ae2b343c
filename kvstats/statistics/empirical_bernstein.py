"""Balls for the mean of random vectors of any dimension, from their empirical variance."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from kvstats.errors import InputError
from kvstats.statistics.concentration import check_delta

__all__ = ["ConfidenceSpheres", "empirical_bernstein_spheres", "psi_exponential"]

LARGEST_BET = 0.5


class ConfidenceSpheres(NamedTuple):
    """Balls that hold the mean of a sequence of random vectors.

    Attributes
    ----------
    centre : array, shape (n, d)
        Row t - 1 is the centre after t vectors, in units of the vectors.
    radius : array, shape (n,)
        Radius in the Euclidean norm, in the same units.
    """

    centre: Any
    radius: Any


def psi_exponential(bet: Any) -> Any:
    r"""Return :math:`\psi_E(\lambda) = -\log(1 - \lambda) - \lambda`, the price of a bet on a variance.

    For :math:`\xi \ge -1` and :math:`\lambda \in [0, 1)`:
    :math:`\exp(\lambda\xi - \psi_E(\lambda)\xi^2) \le 1 + \lambda\xi`.

    Parameters
    ----------
    bet : float or array of float
        In [0, 1); numpy or torch.

    Returns
    -------
    float or array of float
        At least 0; about half the square of a small bet.

    References
    ----------
    .. [1] Fan, Grama and Liu (2015), Exponential inequalities for martingales with applications, Electronic
       Journal of Probability 20, lemma 4.1.

    Examples
    --------
    >>> round(float(psi_exponential(0.5)), 4)
    0.1931
    """
    xp = np if isinstance(bet, float | int) else array_namespace(bet)
    return -xp.log1p(-bet) - bet


def empirical_bernstein_spheres(
    vectors: Any, *, bound: float, delta: float = 0.05, horizon: int | None = None
) -> ConfidenceSpheres:
    r"""Balls that hold the mean of a sequence of bounded vectors, with no knowledge of its variance.

    With bets :math:`\lambda_i`, scale :math:`c = 2 R` for a bound R on the norms, and
    :math:`\bar\mu_{i} = (i + 1)^{-1} \sum_{j \le i} X_j`:

    .. math:: \Bigl\lVert \frac{\sum_{i \le t} \lambda_i X_i}{\sum_{i \le t} \lambda_i} - \mu \Bigr\rVert \le
        \frac{c \log(2/\delta) + c^{-1} \sum_{i \le t} \psi_E(\lambda_i) \lVert X_i - \bar\mu_{i-1}\rVert^2}
        {\sum_{i \le t} \lambda_i}

    for all t at once with probability at least 1 - delta.

    Parameters
    ----------
    vectors : array of float, shape (n, d)
        Vectors in their order of arrival, n at least 1; numpy or torch.
    bound : float
        R, above 0: almost surely :math:`\lVert X_i \rVert \le R`. Must not depend on the sample.
    delta : float, default 0.05
        Failure probability, in (0, 1).
    horizon : int, optional
        Number of vectors at which the radius is to be small; at least 1 and set beforehand. By default the
        bets :math:`\lambda_t = \min(1/2, \sqrt{2 \log(2/\delta) / (\hat\sigma^2_{t-1} t \log(1 + t))})` keep
        the radius small at all times; with a horizon m, m replaces :math:`t \log(1 + t)`. The balls hold at
        all times with either.

    Returns
    -------
    ConfidenceSpheres

    Raises
    ------
    InputError
        ``vectors`` is not two-dimensional, empty, not finite or longer than ``bound``; ``bound`` is not
        above 0 and finite; ``delta`` is outside (0, 1); ``horizon`` is below 1.

    Notes
    -----
    Assumptions: the vectors live in a Hilbert space, their conditional mean given the past is the same mu at
    every step, and their norms are at most R. They need be neither independent nor identically distributed.

    The bound is of the kind that [1]_ gives for (2, D)-smooth Banach spaces. Its constants and conditions
    here are those of the following proof, which is for Hilbert spaces and needs no limit on the bets other
    than 1. Let :math:`\xi_i = (X_i - \bar\mu_{i-1}) / c`, of norm at most 1,
    :math:`\delta_i = E_{i-1}\xi_i`, :math:`S_t = \sum_{i\le t} \lambda_i (\xi_i - \delta_i)` and
    :math:`\varphi(u) = \cosh\lVert u\rVert`. Along a line the second derivative of phi is at most phi times
    the squared speed, so for :math:`u = S_{t-1} - \lambda_t\delta_t` and
    :math:`\theta = \langle\nabla\varphi(u), \xi\rangle / (\lVert\xi\rVert \varphi(u)) \in (-1, 1)`

    .. math:: \varphi(u + \lambda\xi) \le \varphi(u) \Bigl(\tfrac{1+\theta}{2} e^{\lambda\lVert\xi\rVert} +
        \tfrac{1-\theta}{2} e^{-\lambda\lVert\xi\rVert}\Bigr)
        \le e^{\psi_E(\lambda)\lVert\xi\rVert^2} (\varphi(u) + \lambda\langle\nabla\varphi(u), \xi\rangle)

    by the inequality of `psi_exponential` for both signs. The conditional mean of the last bracket is
    :math:`\varphi(u) + \langle\nabla\varphi(u), \lambda\delta_t\rangle \le \varphi(u + \lambda\delta_t) =
    \varphi(S_{t-1})`, phi being convex. Hence
    :math:`\cosh\lVert S_t\rVert \exp(-\sum_{i\le t} \psi_E(\lambda_i)\lVert\xi_i\rVert^2)` is a nonnegative
    supermartingale that starts at 1; Ville's inequality and :math:`\cosh x \ge e^x/2` finish the proof.

    References
    ----------
    .. [1] Martinez-Taboada and Ramdas (2024), Empirical Bernstein in smooth Banach spaces, arXiv 2409.06060.
    .. [2] Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting, Journal of
       the Royal Statistical Society B 86, section 3.2, for the bets.

    Examples
    --------
    >>> import numpy as np
    >>> vectors = np.random.default_rng(0).uniform(-0.1, 0.1, size=(2000, 3)) + [0.5, 0.0, 0.0]
    >>> balls = empirical_bernstein_spheres(vectors, bound=1.0)
    >>> balls.centre[-1].round(2).tolist(), balls.radius[[99, 999, 1999]].round(3).tolist()
    ([0.5, -0.0, -0.0], [0.151, 0.017, 0.009])
    """
    name = "empirical_bernstein_spheres"
    check_delta(name, delta)
    if not (bound > 0 and math.isfinite(bound)):
        raise InputError.argument(name, "bound", bound, "is not above 0 and finite", "bound the norms")
    if horizon is not None and horizon < 1:
        raise InputError.argument(
            name, "horizon", horizon, "is below 1", "pass the planned number of vectors"
        )
    if vectors.ndim != 2 or vectors.shape[0] == 0:
        raise InputError.argument(
            name,
            "vectors",
            f"array of shape {tuple(vectors.shape)}",
            "is not of shape (n, d)",
            "pass n >= 1 rows",
        )
    xp = array_namespace(vectors)
    if not bool(xp.all(xp.isfinite(vectors))):
        raise InputError.argument(
            name, "vectors", "an array", "holds undefined values", "leave those rows out"
        )
    if bool(xp.any(xp.linalg.vector_norm(vectors, axis=-1) > bound * (1 + 1e-6))):
        raise InputError.argument(
            name, "vectors", "an array", f"is longer than the bound {bound}", "raise it"
        )
    scale = 2.0 * bound
    scaled = vectors / scale
    time = xp.astype(xp.arange(1, scaled.shape[0] + 1), scaled.dtype)
    mean = xp.cumulative_sum(scaled, axis=0) / (time[:, None] + 1.0)
    mean_before = xp.concat([xp.zeros_like(mean[:1]), mean[:-1]], axis=0)
    squared = xp.sum((scaled - mean_before) ** 2, axis=-1)
    spread = (0.25 + xp.cumulative_sum(xp.sum((scaled - mean) ** 2, axis=-1), axis=0)) / (time + 1.0)
    spread_before = xp.concat([xp.full_like(spread[:1], 0.25), spread[:-1]], axis=0)
    clock = time * xp.log1p(time) if horizon is None else xp.full_like(time, float(horizon))
    log_term = math.log(2.0 / delta)
    bets = xp.clip((2.0 * log_term / (spread_before * clock)) ** 0.5, 0.0, LARGEST_BET)
    total = xp.cumulative_sum(bets, axis=0)
    centre = xp.cumulative_sum(bets[:, None] * vectors, axis=0) / total[:, None]
    cost = log_term + xp.cumulative_sum(psi_exponential(bets) * squared, axis=0)
    return ConfidenceSpheres(centre, scale * cost / total)
