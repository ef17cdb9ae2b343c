"""An example of a task: one prompt as token ids, with the answer that is hoped for."""

from __future__ import annotations

from dataclasses import dataclass, field

from collectors.tasks.score import score

__all__ = ["Example", "example_id"]


@dataclass(frozen=True)
class Example:
    """One prompt with the answer that is hoped for.

    The prompt is ``context_ids + question_ids + prefix_ids``. The three pieces are tokenised apart, so no
    token straddles a border, and a cache can be compressed after the context or after the question.

    Attributes
    ----------
    task, input_id : str
        Name of the task, and ``{task}-{seed}-{index:04d}``.
    context_ids : list of int
        Begin of the chat, system turn if the template has one, instruction and context; of a conversation
        all turns but the last.
    question_ids : list of int
        The question, end of the user's turn and begin of the assistant's.
    prefix_ids : list of int
        How the answer begins, up to the values.
    references : list of str
        What the answer is held against.
    max_new_tokens : int
        Tokens enough for the answer.
    prompt : str
        The prompt decoded, for reading.
    answer_spans : list of (int, int)
        Where the facts that the answer needs stand in `context_ids`, as positions from ``start`` to before
        ``stop``, in order. Empty when no part of the context is enough, as for a count, or when it is not
        known.
    no_context_ids : list of int
        Prompt of the control without a context: begin of the chat, question and prefix.
    signals : dict of str to float
        What is known of the input before it is run: ``turns`` and ``fact_age`` of a conversation;
        ``record``, the place in its file, and ``truncated_tokens``, how many were cut out of the middle, of
        an input that was read.
    metric : str
        How the answer is scored, see `collectors.tasks.score.score`.
    classes : list of str
        The classes between which the answer chooses, for the metrics that ask for them.
    """

    task: str
    input_id: str
    context_ids: list[int]
    question_ids: list[int]
    prefix_ids: list[int]
    references: list[str]
    max_new_tokens: int
    prompt: str
    answer_spans: list[tuple[int, int]]
    no_context_ids: list[int]
    signals: dict[str, float] = field(default_factory=dict)
    metric: str = "match_all"
    classes: list[str] = field(default_factory=list)

    def score(self, prediction: str) -> float:
        """Score an answer by the metric of the example, from 0 to 1."""
        return score(self.references, prediction, metric=self.metric, classes=self.classes)


def example_id(task: str, seed: int, index: int) -> str:
    """Return the id of an example, ``{task}-{seed}-{index:04d}``."""
    return f"{task}-{seed}-{index:04d}"
