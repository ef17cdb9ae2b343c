"""Whether references are found in a prediction, as the RULER benchmark scores it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from kvstats.errors import InputError
from kvstats.metrics.references import require_references

__all__ = ["RULER_METRICS", "ruler_metric", "string_match_all", "string_match_part", "without_control"]

CONTROL = re.compile(r"[\x00-\x1f]")


def string_match_all(prediction: str, references: Sequence[str]) -> float:
    r"""Return the share of the references that the prediction contains.

    .. math:: \frac{1}{|R|} \sum_{r \in R} 1[\mathrm{lower}(r) \subseteq \mathrm{lower}(p)]

    Parameters
    ----------
    prediction : str
        What was generated.
    references : sequence of str
        What is looked for. One that comes twice counts twice.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        Without a reference, and when one is empty: every prediction contains it.

    References
    ----------
    .. [1] C.-P. Hsieh et al. (2024), "RULER: What's the Real Context Size of Your Long-Context Language
       Models?"; ``string_match_all`` of its evaluation.

    Examples
    --------
    >>> string_match_all("The numbers are 12 and 34.", ["12", "34", "56", "78"])
    0.5
    """
    found = matches("string_match_all", prediction, references)
    return sum(found) / len(found)


def string_match_part(prediction: str, references: Sequence[str]) -> float:
    r"""Return 1 where the prediction contains one of the references, and 0 elsewhere.

    .. math:: \max_{r \in R} 1[\mathrm{lower}(r) \subseteq \mathrm{lower}(p)]

    Parameters
    ----------
    prediction : str
        What was generated.
    references : sequence of str
        Answers of which one is enough.

    Returns
    -------
    float
        0 or 1.

    Raises
    ------
    InputError
        As for `string_match_all`.

    References
    ----------
    .. [1] C.-P. Hsieh et al. (2024), "RULER: What's the Real Context Size of Your Long-Context Language
       Models?"; ``string_match_part`` of its evaluation.

    Examples
    --------
    >>> string_match_part("It was NORMANDY", ["Normandy", "in Normandy"])
    1.0
    """
    return max(matches("string_match_part", prediction, references))


RULER_METRICS: dict[str, Callable[[str, Sequence[str]], float]] = {
    "string_match_all": string_match_all,
    "string_match_part": string_match_part,
}
"""The metrics of the RULER benchmark by name."""


def ruler_metric(task: str) -> str:
    """Return the name of the metric of a RULER task: questions need one answer, all others every reference.

    Examples
    --------
    >>> ruler_metric("qa_1"), ruler_metric("niah_multikey_1")
    ('string_match_part', 'string_match_all')
    """
    return "string_match_part" if task.split("_")[0] == "qa" else "string_match_all"


def without_control(prediction: str, replacement: str) -> str:
    r"""Return a prediction stripped, with its control characters replaced, before RULER matches it.

    RULER replaces them by a line break; kvpress takes them out, so that what stood on two lines is one word.

    Examples
    --------
    >>> without_control(" 12\n34\t", "")
    '1234'
    """
    return CONTROL.sub(replacement, prediction.strip()).strip()


def matches(function: str, prediction: str, references: Sequence[str]) -> list[float]:
    """Return 1 or 0 for each reference: whether the prediction contains it, in any case of letters."""
    require_references(function, references)
    if "" in references:
        fault = "holds an empty text, which every prediction contains"
        raise InputError.argument(function, "references", list(references), fault, "remove it")
    lowered = prediction.lower()
    return [float(reference.lower() in lowered) for reference in references]
