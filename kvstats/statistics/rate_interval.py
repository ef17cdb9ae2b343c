"""The interval of a rate from a survey sample: Clopper-Pearson on an effective sample size."""

from __future__ import annotations

from scipy import special

__all__ = ["beta_interval", "effective_trials"]


def beta_interval(p: float, n: float, level: float) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a rate p of n trials, which need not be whole.

    Parameters
    ----------
    p : float
        In [0, 1].
    n : float
        Above 0.
    level : float
        Confidence level in (0, 1).

    References
    ----------
    Clopper and Pearson, Biometrika 26, 1934.

    Examples
    --------
    >>> low, high = beta_interval(0.5, 10, 0.95)
    >>> round(low, 4), round(high, 4)
    (0.1871, 0.8129)
    """
    tail = (1 - level) / 2
    low = float(special.betaincinv(n * p, n * (1 - p) + 1, tail)) if p > 0 else 0.0
    high = float(special.betainccinv(n * p + 1, n * (1 - p), tail)) if p < 1 else 1.0
    return low, high


def effective_trials(p: float, se: float, n: int, df: float, level: float) -> float:
    r"""Return the number of independent trials that a rate is worth, less what the doubt about its se costs.

    .. math:: n^* = \min\Bigl(n, \frac{p (1 - p)}{\mathrm{se}^2}\Bigr) \min\Bigl(1,
        \frac{t_{n-1}}{t_{df}}\Bigr)^2

    Parameters
    ----------
    p, se : float
        Rate in (0, 1) and its standard error, above 0.
    n : int
        Sampled units, at least 2.
    df : float
        Degrees of freedom of the standard error, above 0.
    level : float
        Confidence level in (0, 1).

    References
    ----------
    Korn and Graubard, Survey Methodology 24, 1998, section 2.

    Examples
    --------
    >>> round(effective_trials(0.2, 0.08, 100, 99, 0.95), 6)
    25.0
    """
    tail = (1 - level) / 2
    ratio = float(special.stdtrit(n - 1, tail) / special.stdtrit(df, tail))
    return min(n, p * (1 - p) / se**2) * min(1.0, ratio) ** 2
