"""What all plans share: the checks of their arguments, how they are solved, and how they are shown."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import ClassVar, Literal

from scipy import special

from kvstats.errors import InputError, nearest_name
from kvstats.statistics.student import student_quantile

__all__ = [
    "Alternative",
    "Planned",
    "check_alternative",
    "check_clusters",
    "check_inputs",
    "check_share",
    "design_effect",
    "fewest_inputs",
    "root",
    "student_power",
    "unknown_of",
]

Alternative = Literal["two-sided", "greater", "less"]
"""Which values count against the null hypothesis."""

MOST_INPUTS = 10**9
"""Where the search for a number of inputs ends."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Planned:
    """A plan: what was solved for, and everything that it rests on.

    Attributes
    ----------
    solved_for : str
        The figure that the others determine.
    """

    assumptions: ClassVar[tuple[str, ...]] = ()
    solved_for: str

    def __repr__(self) -> str:
        figures = {
            field.name: getattr(self, field.name) for field in fields(self) if field.name != "solved_for"
        }
        width = max(map(len, figures))
        lines = [
            f"  {name:<{width}}  {shown(value)}" + ("  <- solved for" if name == self.solved_for else "")
            for name, value in figures.items()
        ]
        assumed = [f"  assumes: {sentence}" for sentence in self.assumptions]
        return "\n".join([type(self).__name__, *lines, *assumed])


def shown(value: object) -> str:
    """Return a figure as text."""
    return (
        f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    )


def unknown_of(function: str, figures: dict[str, object]) -> str:
    """Return the name of the one figure that is None, to be solved for."""
    unknown = [name for name, value in figures.items() if value is None]
    if len(unknown) != 1:
        names = ", ".join(figures)
        raise InputError.argument(
            function,
            "arguments",
            unknown,
            f"is not the one figure to solve for among {names}",
            f"pass {len(figures) - 1} of them",
        )
    return unknown[0]


def check_share(function: str, argument: str, value: object, *, closed: bool = False) -> float:
    """Return a number between 0 and 1; with `closed`, 0 and 1 are allowed."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not (0 <= number <= 1 if closed else 0 < number < 1):
        where = "in [0, 1]" if closed else "between 0 and 1"
        raise InputError.argument(function, argument, value, f"is not {where}", "pass a share such as 0.1")
    return number


def check_inputs(function: str, value: object) -> int:
    """Return a number of inputs, at least 2."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 2:
        raise InputError.argument(
            function, "inputs", value, "is not a whole number of at least 2", "pass the number of inputs"
        )
    return int(value)


def check_clusters(function: str, rows_per_input: float, intraclass_correlation: float) -> None:
    """Check how many rows an input has, and how alike they are."""
    real = isinstance(rows_per_input, Real) and not isinstance(rows_per_input, bool)
    if not real or not 1 <= float(rows_per_input) < math.inf:
        raise InputError.argument(
            function, "rows_per_input", rows_per_input, "is not at least 1", "pass the mean number of rows"
        )
    check_share(function, "intraclass_correlation", intraclass_correlation, closed=True)


def check_alternative(function: str, value: str, known: tuple[str, ...]) -> None:
    """Check an alternative hypothesis."""
    if value not in known:
        raise InputError.argument(
            function, "alternative", value, "is not known", nearest_name(str(value), known)
        )


def design_effect(rows_per_input: float, intraclass_correlation: float) -> float:
    """Return how much the likeness of an input's rows multiplies a variance, ``1 + (m - 1) * rho``.

    References
    ----------
    .. [1] Kish (1965), Survey Sampling, section 5.4.

    Examples
    --------
    >>> design_effect(8, 0.3)
    3.1
    """
    return 1 + (rows_per_input - 1) * intraclass_correlation


def student_power(
    effect: float, se: float, df: float, level: float, alternative: Alternative, spread: float = 1.0
) -> float:
    """Return the power of a t test of an effect of 0, by the noncentral t distribution.

    `spread` is the standard deviation of the estimate in units of `se`, where it is not 1.

    Examples
    --------
    >>> round(student_power(0.5, 0.2, 30, 0.95, "two-sided"), 4)
    0.677
    """
    towards = alternative == "two-sided" or (effect > 0) == (alternative == "greater")
    if se == 0:
        return float(effect != 0 and towards)
    shift = abs(effect) / se / spread
    if alternative == "two-sided":
        critical = float(student_quantile((1 - level) / 2, df)) / spread
        # The other tail is below 1e-9 for larger shifts, for which scipy returns NaN.
        other = special.nctdtr(df, shift, -critical) if shift < 6 else 0.0
        return float(1 - special.nctdtr(df, shift, critical) + other)
    critical = float(student_quantile(1 - level, df)) / spread
    return float(1 - special.nctdtr(df, shift if towards else -shift, critical))


def fewest_inputs(function: str, argument: str, value: float, enough: Callable[[int], bool]) -> int:
    """Return the least number of inputs that is enough, where more are enough too.

    `argument` and `value` are what was asked for, to be named where no number will do.
    """
    high = 2
    while not enough(high):
        high *= 2
        if high > MOST_INPUTS:
            raise InputError.argument(
                function, argument, value, f"is not reached with {MOST_INPUTS:,} inputs", "ask for less"
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def root(rising: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Return where a rising function reaches a target, by bisection (`scipy.optimize` takes long to load)."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if rising(middle) >= target else (middle, high)
    return high
