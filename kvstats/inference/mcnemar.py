"""McNemar's test of paired successes and failures, from the counts of discordant pairs."""

from __future__ import annotations

from numbers import Integral

from scipy import special

from kvstats.errors import InputError, nearest_name
from kvstats.inference.p_values import Alternative

__all__ = ["mcnemar_test"]


def mcnemar_test(
    lost: int, gained: int, *, mid_p: bool = False, alternative: Alternative = "two-sided"
) -> float:
    r"""Test whether a change makes as many pairs worse as better, exactly.

    Of n = lost + gained pairs that differ, under the null hypothesis each is as likely lost as gained:
    :math:`X \sim \mathrm{Bin}(n, 1/2)`. The one-sided p-value against more losses is
    :math:`P(X \ge \mathrm{lost})`; its mid-p version counts :math:`P(X = \mathrm{lost})` half. The two-sided
    one is twice the smaller one-sided one, at most 1.

    Parameters
    ----------
    lost, gained : int
        Numbers of pairs that only the first, and only the second of two arms got right, at least 0.
    mid_p : bool, default False
        Take the mid-p value: less conservative, and in simulations seldom above its level [2]_, though not
        guaranteed to stay below it.
    alternative : {"two-sided", "greater", "less"}
        ``greater``: more pairs are lost than gained; ``less``: fewer.

    Returns
    -------
    float
        In [0, 1]; 1 without discordant pairs. The time does not depend on the counts.

    Raises
    ------
    InputError
        When a count is no whole number of at least 0, or the alternative is not known.

    Notes
    -----
    Pairs must be independent of each other. Runs of one input at several budgets, or on several models, are
    not: use `kvstats.discordant_harm_share` with its clustered interval, or `sign_flip_test`.

    References
    ----------
    .. [1] McNemar, Psychometrika 12, 1947.
    .. [2] Fagerland, Lydersen and Laake, BMC Medical Research Methodology 13:91, 2013.

    Examples
    --------
    >>> round(mcnemar_test(12, 4), 6), round(mcnemar_test(12, 4, mid_p=True), 6)
    (0.076813, 0.049042)
    >>> mcnemar_test(0, 0)
    1.0
    """
    for name, count in (("lost", lost), ("gained", gained)):
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 0:
            raise InputError.argument(
                "mcnemar_test", name, count, "is no whole number of at least 0", "pass a number of pairs"
            )
    known = ("two-sided", "greater", "less")
    if alternative not in known:
        raise InputError.argument(
            "mcnemar_test",
            "alternative",
            alternative,
            "is not known",
            nearest_name(str(alternative), known),
        )
    more, fewer = upper_tail(int(lost), int(gained), mid_p), upper_tail(int(gained), int(lost), mid_p)
    return {"greater": more, "less": fewer, "two-sided": min(1.0, 2 * min(more, fewer))}[alternative]


def upper_tail(events: int, others: int, mid_p: bool) -> float:
    """Return P(X >= events) for a binomial X of events + others fair trials, or its mid-p version."""
    if events == others == 0:
        return 1.0
    at_least = float(special.betainc(events, others + 1, 0.5)) if events else 1.0
    if not mid_p:
        return at_least
    above = float(special.betainc(events + 1, others, 0.5)) if others else 0.0
    return (at_least + above) / 2
