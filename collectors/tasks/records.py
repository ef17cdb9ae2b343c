"""From the records of a source to the texts of an example."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec

from collectors.tasks.passage import Encode, Filling, Passage, Piece, TooLong, TooShort
from collectors.tasks.sources import (
    DocumentsRecord,
    LongBenchRecord,
    RulerRecord,
    Source,
    SourceRecord,
    read_source,
    shuffled,
)
from collectors.tasks.templates import templates
from kvstats.errors import InputError, nearest_name

__all__ = ["Documents", "GivenText", "draw_record"]


def draw_record(task: str, source: Source, seed: int, index: int, generator: random.Random) -> Passage:
    """Take the texts of one example from a source; without replacement, in an order given by the seed."""
    records = read_source(source)
    if index >= len(records):
        raise InputError.argument(
            "make_example",
            "index",
            index,
            f"is beyond the {len(records)} records of {source.name}",
            f"ask for at most {len(records)} inputs of {task}",
        )
    place = shuffled(task, seed, len(records))[index]
    record = records[place]
    signals = {"record": float(place)}
    if isinstance(record, RulerRecord):
        return ruler_passage(record, source, signals)
    if isinstance(record, LongBenchRecord):
        return longbench_passage(record, source, signals)
    others = [other for other in records if other is not record]
    return documents_passage(record, others, source, signals, generator)


def ruler_passage(record: RulerRecord, source: Source, signals: dict[str, float]) -> Passage:
    """Take an input of RULER apart: its last line is the question, what comes before is the context."""
    context, newline, question = record.input.rstrip("\n").rpartition("\n")
    return Passage(
        instruction="",
        question=question,
        prefix=record.answer_prefix.strip(),
        body=GivenText(context),
        references=record.outputs,
        answer_room=source.max_new_tokens or " " + ", ".join(record.outputs),
        metric=source.metric,
        signals=signals,
        junction=newline,
    )


def longbench_passage(record: LongBenchRecord, source: Source, signals: dict[str, float]) -> Passage:
    """Put an input of LongBench into the prompt of its data set."""
    table = templates()["longbench"]
    dataset = record.dataset.removesuffix("_e")
    if dataset not in table:
        raise InputError.argument(
            "make_example",
            "dataset",
            record.dataset,
            "has no metric here",
            f"supported are {', '.join(table)}; "
            "the others need ROUGE, an edit distance or a Chinese word splitter",
        )
    form = table[dataset]
    instruction, question, prefix = form["instruction"], form["question"], form["prefix"]
    if source.prompts is not None:
        instruction, question = published_prompt(source.prompts, dataset)
        prefix = ""
    return Passage(
        instruction=instruction.replace("{input}", record.input),
        question=question.replace("{input}", record.input),
        prefix=prefix,
        body=GivenText(record.context),
        references=record.answers,
        answer_room=source.max_new_tokens or form["max_new_tokens"],
        metric=form["metric"],
        classes=record.all_classes or [],
        signals=signals,
        junction="" if source.prompts is not None else "\n",
    )


@lru_cache(maxsize=64)
def published_prompt(path: str, dataset: str) -> tuple[str, str]:
    """Read what stands before and after the context in the prompt of a data set."""
    try:
        prompts = msgspec.json.decode(Path(path).expanduser().read_bytes(), type=dict[str, str])
    except (OSError, msgspec.MsgspecError) as error:
        raise InputError.argument(
            "make_example",
            "prompts",
            path,
            f"cannot be read ({error})",
            "pass a JSON file from data set to prompt",
        ) from error
    if dataset not in prompts:
        raise InputError.argument(
            "make_example", "prompts", path, f"has no prompt for {dataset!r}", nearest_name(dataset, prompts)
        )
    before, mark, after = prompts[dataset].partition("{context}")
    if not mark:
        raise InputError.argument(
            "make_example",
            "prompts",
            path,
            f"has a prompt for {dataset!r} without {{context}}",
            "say where the context goes",
        )
    return before, after


@dataclass(frozen=True)
class GivenText:
    """A text as it is; if the room is too small, tokens in the middle of it are left out.

    As many tokens are kept of its begin as of its end, or one more of its end. The number left out is the
    signal ``truncated_tokens``. LongBench cuts the whole prompt in the middle; here instruction and question
    stay whole whatever their length.

    Attributes
    ----------
    text : str
        The text.
    """

    text: str

    def fill(self, room: int, encode: Encode, generator: random.Random, between: Sequence[str]) -> Filling:
        """Fill the room or less, see `Body.fill`."""
        token_ids = encode(self.text)
        if room < min(2, len(token_ids)):
            raise TooShort(min(2, len(token_ids)) - room)
        dropped = max(len(token_ids) - room, 0)
        begin = room // 2
        if dropped:
            token_ids = token_ids[:begin] + token_ids[begin + dropped :]
        return Filling([Piece(token_ids)], {"truncated_tokens": float(dropped)})


def documents_passage(
    record: DocumentsRecord,
    others: Sequence[SourceRecord],
    source: Source,
    signals: dict[str, float],
    generator: random.Random,
) -> Passage:
    """Ask a question on its documents among those of other questions."""
    form = templates()["documents"]
    answers = [answer.casefold() for answer in record.answers]
    distractors = sorted(
        {
            document
            for other in others
            if isinstance(other, DocumentsRecord)
            for document in other.documents
            # A document that holds the answer does not distract.
            if not any(answer in document.casefold() for answer in answers)
        }
        - set(record.documents)
    )
    generator.shuffle(distractors)
    return Passage(
        instruction=form["instruction"],
        question=form["question"].format(question=record.question),
        prefix=form["prefix"],
        body=Documents(record.documents, distractors),
        references=record.answers,
        answer_room=source.max_new_tokens or " " + max(record.answers, key=len),
        metric="match_part",
        signals=signals,
    )


@dataclass(frozen=True)
class Documents:
    """The documents that answer a question among others, numbered in random order; the last one is cut.

    Attributes
    ----------
    documents, distractors : list of str
        Those that answer the question, and those that do not.
    """

    documents: list[str]
    distractors: list[str]

    def fill(self, room: int, encode: Encode, generator: random.Random, between: Sequence[str]) -> Filling:
        """Fill the room, see `Body.fill`."""
        form = templates()["documents"]["document"]

        def heading(number: int) -> list[int]:
            return encode(form.format(number=number))

        whole = [Piece(encode(text), answers=True) for text in self.documents]
        left = room - sum(len(heading(n + 1)) + len(piece.token_ids) for n, piece in enumerate(whole))
        if left < 0:
            raise TooShort(-left)
        cut: list[Piece] = []
        for text in self.distractors:
            number = heading(len(whole) + 1)
            tokens = encode(text)
            if len(number) + len(tokens) > left:
                cut = [Piece((number + tokens)[:left])]
                left = 0
                break
            whole.append(Piece(tokens))
            left -= len(number) + len(tokens)
        if left > 0:
            raise TooLong(f"needs more than the {len(self.distractors)} other documents", left)
        generator.shuffle(whole)
        numbered = [
            piece
            for number, text in enumerate(whole, start=1)
            for piece in (Piece(heading(number), text.answers), text)
        ]
        return Filling(numbered + cut)
