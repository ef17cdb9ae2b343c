"""How an answer is scored: RULER's string matches, and LongBench's metrics."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from kvstats.errors import InputError, nearest_name

__all__ = ["METRICS", "score"]


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


def token_f1(references: Sequence[str], prediction: str, classes: Sequence[str]) -> float:
    """Return the best F1 of the words, as for SQuAD."""
    said = Counter(words(prediction))
    best = 0.0
    for reference in references:
        right = Counter(words(reference))
        common = (said & right).total()
        if common:
            best = max(best, 2 * common / (said.total() + right.total()))
    return best


def words(text: str) -> list[str]:
    """Split a text into lower-case words, without punctuation and articles."""
    bare = text.lower().translate(str.maketrans("", "", string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", bare).split()


def classification(references: Sequence[str], prediction: str, classes: Sequence[str]) -> float:
    """Return one over the number of classes that are named, or 0 if the right one is not."""
    if not classes:
        raise InputError.argument(
            "score", "classes", classes, "names no class", "pass the names of all classes"
        )
    best = 0.0
    for reference in references:
        named = [
            name for name in classes if name in prediction and (name == reference or name not in reference)
        ]
        if reference in named:
            best = max(best, 1 / len(named))
    return best


def retrieval(references: Sequence[str], prediction: str, classes: Sequence[str]) -> float:
    """Return the best share of right ones among the numbers that are named."""
    named = re.findall(r"\d+", prediction)
    best = 0.0
    for reference in references:
        right = re.search(r"\d+", reference)
        if right is None:
            raise InputError.argument(
                "score", "references", references, "holds no number", "pass references such as 'Paragraph 3'"
            )
        if named:
            best = max(best, named.count(right[0]) / len(named))
    return best


def of_first_line(metric: Callable[[Sequence[str], str, Sequence[str]], float]) -> Callable[..., float]:
    """Apply a metric to the first line of an answer that is not empty."""

    def on_first_line(references: Sequence[str], prediction: str, classes: Sequence[str]) -> float:
        return metric(references, prediction.lstrip("\n").partition("\n")[0], classes)

    return on_first_line


METRICS: dict[str, Callable[[Sequence[str], str, Sequence[str]], float]] = {
    "match_all": match_all,
    "match_part": match_part,
    "token_f1": token_f1,
    "first_line_token_f1": of_first_line(token_f1),
    "classification": classification,
    "first_line_classification": of_first_line(classification),
    "retrieval": retrieval,
    "count": retrieval,
}
"""The metrics by name."""
