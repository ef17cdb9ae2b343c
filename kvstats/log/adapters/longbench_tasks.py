"""The tasks of LongBench: which part of an answer each looks at, and how it is scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvstats.log.adapters.predictions import Scoring
from kvstats.metrics import (
    chinese_rouge_l,
    chinese_token_f1,
    classification,
    code_similarity,
    first_code_line,
    longbench_rouge_l,
    retrieval,
    token_f1,
)

__all__ = ["LONGBENCH_TASKS", "LongBenchTask", "first_line"]

Metric = Callable[[str, Sequence[str]], float]


@dataclass(frozen=True)
class LongBenchTask:
    """How a task is scored.

    Attributes
    ----------
    metric : callable
        The metric; that of classification takes the classes too.
    part : callable, optional
        What of the answer is scored.
    threshold : float, optional
        The score of a success; None for metrics of degree, for which LongBench has no threshold.
    """

    metric: Callable[..., float]
    part: Callable[[str], str] | None = None
    threshold: float | None = None

    @property
    def scoring(self) -> Scoring:
        """The same for rows of any benchmark."""
        return Scoring(self.metric.__name__, self.score, self.threshold)

    def score(self, prediction: str, references: Sequence[str], fields: Mapping[str, Any]) -> float:
        """Score the answer of a row."""
        said = prediction if self.part is None else self.part(prediction)
        if self.metric is classification:
            return classification(said, references, classes=fields.get("all_classes") or ())
        return self.metric(said, references)


def first_line(text: str) -> str:
    r"""Return the first line of a text that is not empty; white space is a line too.

    Examples
    --------
    >>> first_line("\n\nDate\nQuestion: ...")
    'Date'
    """
    return text.lstrip("\n").split("\n")[0]


LONGBENCH_TASKS: dict[str, LongBenchTask] = {
    "narrativeqa": LongBenchTask(token_f1),
    "qasper": LongBenchTask(token_f1),
    "multifieldqa_en": LongBenchTask(token_f1),
    "multifieldqa_zh": LongBenchTask(chinese_token_f1),
    "hotpotqa": LongBenchTask(token_f1),
    "2wikimqa": LongBenchTask(token_f1),
    "musique": LongBenchTask(token_f1),
    "dureader": LongBenchTask(chinese_rouge_l),
    "gov_report": LongBenchTask(longbench_rouge_l),
    "qmsum": LongBenchTask(longbench_rouge_l),
    "multi_news": LongBenchTask(longbench_rouge_l),
    "vcsum": LongBenchTask(chinese_rouge_l),
    "trec": LongBenchTask(classification, first_line, threshold=1.0),
    "triviaqa": LongBenchTask(token_f1, first_line),
    "samsum": LongBenchTask(longbench_rouge_l, first_line),
    "lsht": LongBenchTask(classification, first_line, threshold=1.0),
    "passage_count": LongBenchTask(retrieval, threshold=1.0),
    "passage_retrieval_en": LongBenchTask(retrieval, threshold=1.0),
    "passage_retrieval_zh": LongBenchTask(retrieval, threshold=1.0),
    "lcc": LongBenchTask(code_similarity, first_code_line),
    "repobench-p": LongBenchTask(code_similarity, first_code_line),
}
"""The 21 tasks by name, which is that of their files."""
