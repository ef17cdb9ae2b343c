"""Whether an answer names the right class, and no other."""

from __future__ import annotations

from collections.abc import Sequence

from kvstats.errors import InputError
from kvstats.metrics.references import require_references

__all__ = ["classification"]


def classification(prediction: str, references: Sequence[str], *, classes: Sequence[str]) -> float:
    """Return one over the number of classes that an answer names, or 0 if the right one is not among them.

    Parameters
    ----------
    prediction : str
        The answer.
    references : sequence of str
        The right classes, at least one; the best counts.
    classes : sequence of str
        The names of all classes. One whose name is part of the right one's is not counted.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        Without a reference, and without classes.

    Notes
    -----
    LongBench removes names that are part of the right one from a list while going through it, and so misses
    every second of several in a row; here all are left out. No name of its English classes is part of
    another.

    References
    ----------
    Bai et al. (2024), LongBench, arXiv:2308.14508, section 4, and its ``metrics.py``.

    Examples
    --------
    >>> classification("A date or a city", ["date"], classes=["date", "city", "food"])
    0.5
    """
    require_references("classification", references)
    named_well = isinstance(classes, Sequence) and all(isinstance(name, str) for name in classes)
    if isinstance(classes, str) or not named_well or not classes:
        raise InputError.argument(
            "classification", "classes", classes, "is not a list of names", "pass the names of all classes"
        )
    best = 0.0
    for reference in references:
        named = [
            name for name in classes if name in prediction and (name == reference or name not in reference)
        ]
        if reference in named:
            best = max(best, 1 / len(named))
    return best
