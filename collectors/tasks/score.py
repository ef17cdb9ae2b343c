"""How an answer is scored: RULER's string matches, and LongBench's metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvstats.errors import InputError, nearest_name
from kvstats.metrics import classification, retrieval, token_f1

__all__ = ["METRICS", "score"]

Metric = Callable[[Sequence[str], str, Sequence[str]], float]
"""References, answer and classes, which most metrics do not need, to a score."""


def score(
    references: Sequence[str], prediction: str, *, metric: str = "match_all", classes: Sequence[str] = ()
) -> float:
    """Hold an answer against the references.

    Parameters
    ----------
    references : sequence of str
        What should be in the answer, at least one, none of them empty.
    prediction : str
        The answer.
    metric : str
        ``match_all``: the share of references that the answer contains, upper and lower case being the same
        (RULER). ``match_part``: 1 if it contains any of them (RULER, for questions on documents).
        ``token_f1``: harmonic mean of precision and recall of the words, without case, punctuation and
        articles. ``classification``: one over the number of classes named in the answer if the right one is
        among them, where a class that is part of the right one's name is not counted. ``retrieval`` and
        ``count``: the share of the numbers in the answer that are the right one. The last four take the best
        of the references (LongBench). ``first_line_token_f1`` and ``first_line_classification`` look at the
        first line of the answer only.
    classes : sequence of str
        The names of all classes, for classification.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    InputError
        When there is no reference, or an empty one, which every answer contains; for an unknown metric; for
        a classification without classes; and when a reference of ``retrieval`` holds no number.

    References
    ----------
    Hsieh et al. (2024), RULER: What's the Real Context Size of Your Long-Context Language Models?,
    arXiv:2404.06654, section 3. Bai et al. (2024), LongBench: A Bilingual, Multitask Benchmark for Long
    Context Understanding, arXiv:2308.14508, section 4.

    Examples
    --------
    >>> score(["7205513", "9914402"], "They are 9914402 and 1.")
    0.5
    >>> score(["7205513", "9914402"], "They are 9914402 and 1.", metric="match_part")
    1.0
    >>> score(["the old mill"], "An old mill, they say", metric="token_f1")
    0.6666666666666666
    """
    if isinstance(references, str) or not references or not all(references):
        raise InputError.argument(
            "score",
            "references",
            references,
            "is not a list of non-empty texts",
            "pass at least one reference",
        )
    if metric not in METRICS:
        raise InputError.argument("score", "metric", metric, "is unknown", nearest_name(metric, METRICS))
    return METRICS[metric](references, prediction, classes)


def match_all(references: Sequence[str], prediction: str, classes: Sequence[str]) -> float:
    """Return the share of references found; RULER's ``string_match_all`` for one example."""
    found = sum(reference.casefold() in prediction.casefold() for reference in references)
    return found / len(references)


def match_part(references: Sequence[str], prediction: str, classes: Sequence[str]) -> float:
    """Return 1 if any reference is found; RULER's ``string_match_part`` for one example."""
    return float(any(reference.casefold() in prediction.casefold() for reference in references))


def without_classes(metric: Callable[[str, Sequence[str]], float]) -> Metric:
    """Adapt a metric that needs no classes."""
    return lambda references, prediction, classes: metric(prediction, references)


def class_named(references: Sequence[str], prediction: str, classes: Sequence[str]) -> float:
    """Score by the classes that the answer names."""
    return classification(prediction, references, classes=classes)


def of_first_line(metric: Metric) -> Metric:
    """Apply a metric to the first line of an answer that is not empty."""

    def on_first_line(references: Sequence[str], prediction: str, classes: Sequence[str]) -> float:
        return metric(references, prediction.lstrip("\n").partition("\n")[0], classes)

    return on_first_line


METRICS: dict[str, Metric] = {
    "match_all": match_all,
    "match_part": match_part,
    "token_f1": without_classes(token_f1),
    "first_line_token_f1": of_first_line(without_classes(token_f1)),
    "classification": class_named,
    "first_line_classification": of_first_line(class_named),
    "retrieval": without_classes(retrieval),
    "count": without_classes(retrieval),
}
"""The metrics by name."""
