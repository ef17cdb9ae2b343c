"""Inputs from files and the hub: formats, prompts, cuts in the middle, and what is refused."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from collectors.config import read_plan
from collectors.tasks import Example, Source, make_example
from collectors.tasks.sources import read_source
from collectors.tasks.templates import templates
from kvstats.errors import InputError

RULER = [
    {
        "index": 0,
        "input": "Numbers are hidden.\nThe key of red is 17.\nThe sky was grey.\nWhat is the key of red?",
        "outputs": ["17"],
        "length": 40,
        "answer_prefix": " The key of red is",
    },
    {"index": 1, "input": "One line only, what then?", "outputs": ["a", "b"], "length": 12},
]
LONGBENCH = [
    {
        "input": "Who built the mill?",
        "context": "Anna built the mill. "
        + "It stood by the river for many years. " * 30
        + "Then it burnt down.",
        "answers": ["Anna", "a woman called Anna"],
        "dataset": "hotpotqa",
        "length": 250,
        "all_classes": None,
        "language": "en",
    },
    {
        "input": "Question: How far is it?\nType:",
        "context": "Question: Who was it?\nType: Person\n",
        "answers": ["Distance"],
        "dataset": "trec_e",
        "length": 12,
        "all_classes": ["Person", "Distance"],
    },
]
DOCUMENTS = [
    {
        "documents": [f"{name} was born in {city}. She liked the place and stayed for many years."],
        "question": f"Where was {name} born?",
        "answers": [city],
    }
    for name, city in zip(
        ("Ada", "Bea", "Cleo", "Dora", "Elsa", "Fay"),
        ("Oslo", "Rome", "Lima", "Cairo", "Paris", "OSLO"),
        strict=True,
    )
]


@pytest.fixture
def written(tmp_path) -> Callable[..., Source]:
    def write(form: str, rows: list[dict[str, object]], **options: object) -> Source:
        path = tmp_path / f"{form}-{len(list(tmp_path.iterdir()))}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return Source(format=form, path=str(path), **options)

    return write


def every(smollm2, source: Source, count: int, length: int = 400, seed: int = 1) -> list[Example]:
    """Make all examples of a source, in the order of its file."""
    made = [
        make_example(
            "mine", seed=seed, index=index, length=length, tokenizer=smollm2.tokenizer, source=source
        )
        for index in range(count)
    ]
    assert {example.signals["record"] for example in made} == set(range(count))
    return sorted(made, key=lambda example: example.signals["record"])


def test_an_input_of_ruler_is_asked_as_it_is(smollm2, written):
    with_prefix, one_line = every(smollm2, written("ruler", RULER), 2)
    decode = smollm2.tokenizer.decode
    text = RULER[0]["input"]
    assert text in with_prefix.prompt
    assert with_prefix.prompt.endswith("<|im_start|>assistant\nThe key of red is")
    assert decode(with_prefix.question_ids).startswith("\nWhat is the key of red?<|im_end|>")
    assert "The key of red is 17" not in decode(with_prefix.no_context_ids)
    assert with_prefix.references == ["17"]
    assert with_prefix.metric == "match_all"
    assert with_prefix.signals["truncated_tokens"] == 0
    assert decode(one_line.question_ids).startswith("One line only, what then?")
    assert one_line.score("A") == 0.5
    part = every(smollm2, written("ruler", RULER, metric="match_part"), 2)[1]
    assert part.score("A") == 1.0


def test_an_input_of_longbench_is_put_into_the_prompt_of_its_data_set(smollm2, written):
    question, typed = every(smollm2, written("longbench", LONGBENCH), 2)
    form = templates()["longbench"]["hotpotqa"]
    asked = form["question"].format(input=LONGBENCH[0]["input"])
    assert f"{form['instruction']}{LONGBENCH[0]['context']}\n{asked}" in question.prompt
    assert question.max_new_tokens == form["max_new_tokens"] == 32
    assert question.score(" It was Anna.") == pytest.approx(2 * (1 / 3) / (1 + 1 / 3))
    assert typed.classes == ["Person", "Distance"]
    assert typed.score("\nDistance\nQuestion: Who? Type: Person") == 1.0
    assert "Type: Person\n\nQuestion: How far is it?\nType:<|im_end|>" in typed.prompt


def test_published_prompts_take_the_place_of_ours(smollm2, written, tmp_path):
    prompts = tmp_path / "dataset2prompt.json"
    prompts.write_text(json.dumps({"hotpotqa": "For {input} read.\n{context}\nNow: {input}\nSay:"}))
    source = written("longbench", LONGBENCH[:1], prompts=str(prompts), max_new_tokens=7)
    [example] = every(smollm2, source, 1)
    user = example.prompt.split("<|im_start|>user\n")[1]
    context = LONGBENCH[0]["context"]
    assert user.startswith(
        f"For Who built the mill? read.\n{context}\nNow: Who built the mill?\nSay:<|im_end|>"
    )
    assert example.prefix_ids == []
    assert example.max_new_tokens == 7

    def refused(content: object) -> str:
        other = tmp_path / f"other-{len(list(tmp_path.iterdir()))}.json"
        other.write_text(json.dumps(content))
        with pytest.raises(InputError) as caught:
            every(smollm2, written("longbench", LONGBENCH[:1], prompts=str(other)), 1)
        return str(caught.value)

    assert "has no prompt for 'hotpotqa'; did you mean 'hotpotq'?" in refused({"hotpotq": "{context}"})
    assert "has a prompt for 'hotpotqa' without {context}; say where" in refused({"hotpotqa": "{input}"})
    assert "cannot be read (" in refused(["a list"])
    with pytest.raises(InputError, match=r"prompts='.*none\.json' cannot be read \(.*No such file"):
        every(smollm2, written("longbench", LONGBENCH[:1], prompts=str(tmp_path / "none.json")), 1)


def test_a_text_that_is_too_long_is_cut_in_the_middle_and_counted(smollm2, written):
    source = written("longbench", LONGBENCH[:1])
    [whole] = every(smollm2, source, 1, length=4000)
    size = len(whole.context_ids + whole.question_ids + whole.prefix_ids)
    assert whole.signals["truncated_tokens"] == 0
    text = smollm2.tokenizer.encode(LONGBENCH[0]["context"], add_special_tokens=False)
    head = len(whole.context_ids) - len(text)
    assert whole.context_ids[head:] == text
    for length in (size, size - 1, size - 2, 150, 149):
        [cut] = every(smollm2, source, 1, length=length)
        dropped = size - length
        kept = len(text) - dropped
        assert len(cut.context_ids + cut.question_ids + cut.prefix_ids) == length
        assert cut.signals["truncated_tokens"] == dropped
        assert cut.context_ids == whole.context_ids[: head + kept // 2] + text[kept // 2 + dropped :]
        assert cut.question_ids == whole.question_ids
    least = size - len(text) + 2
    with pytest.raises(InputError, match=rf"length=50 is too small for mine; pass at least {least}$"):
        every(smollm2, source, 1, length=50)
    [cut] = every(smollm2, source, 1, length=least)
    assert cut.context_ids[head:] == [text[0], text[-1]]


def test_documents_that_answer_stand_whole_among_others_at_any_exact_length(smollm2, written):
    source = written("documents", DOCUMENTS)
    for example in every(smollm2, source, 6, length=190):
        record = DOCUMENTS[int(example.signals["record"])]
        assert len(example.context_ids + example.question_ids + example.prefix_ids) == 190
        assert example.references == record["answers"]
        assert example.metric == "match_part"
        spans = [smollm2.tokenizer.decode(example.context_ids[a:b]) for a, b in example.answer_spans]
        assert re.fullmatch(r"\n\nDocument \d+:\n", spans[0])
        assert spans[1] == record["documents"][0]
        context = smollm2.tokenizer.decode(example.context_ids)
        numbers = [int(number) for number in re.findall(r"\nDocument (\d+):", context)]
        assert numbers == list(range(1, len(numbers) + 1))
        # Oslo is the answer to two questions, in capitals in one; neither distracts from the other.
        if record["answers"][0].casefold() == "oslo":
            assert context.casefold().count("oslo") == 1
        assert f"Question: {record['question']}<|im_end|>" in example.prompt
        assert record["documents"][0] not in smollm2.tokenizer.decode(example.no_context_ids)
    places = {example.answer_spans[0][0] for example in every(smollm2, source, 6, length=190)}
    assert len(places) > 1


def test_documents_cannot_fill_every_length(smollm2, written):
    source = written("documents", DOCUMENTS)

    def make(length: int) -> Example:
        return make_example(
            "mine", seed=1, index=0, length=length, tokenizer=smollm2.tokenizer, source=source
        )

    for length, word in ((1, "least"), (2000, "most")):
        with pytest.raises(InputError, match=rf"length={length} .*mine.*; pass at {word} \d+$") as caught:
            make(length)
        limit = int(re.search(r"(\d+)$", str(caught.value))[1])
        example = make(limit)
        assert len(example.context_ids + example.question_ids + example.prefix_ids) == limit
        with pytest.raises(InputError, match=f"pass at {word} {limit}$"):
            make(limit + (1 if word == "most" else -1))


def test_the_seed_gives_the_order_and_every_record_comes_once(smollm2, written):
    source = written("documents", DOCUMENTS)
    orders = set()
    for seed in range(5):
        made = [
            make_example(
                "mine", seed=seed, index=index, length=190, tokenizer=smollm2.tokenizer, source=source
            )
            for index in range(6)
        ]
        orders.add(tuple(example.signals["record"] for example in made))
        assert [example.input_id for example in made][1] == f"mine-{seed}-0001"
    assert len(orders) > 1
    assert all(sorted(order) == [0, 1, 2, 3, 4, 5] for order in orders)
    message = r"index=6 is beyond the 6 records of .*\.jsonl; ask for at most 6 inputs of mine"
    with pytest.raises(InputError, match=message):
        make_example("mine", seed=0, index=6, length=190, tokenizer=smollm2.tokenizer, source=source)


def test_data_sets_whose_metric_is_not_here_are_named(smollm2, written):
    source = written("longbench", [{**LONGBENCH[0], "dataset": "gov_report"}])
    message = r"make_example: dataset='gov_report' has no metric here; supported are narrativeqa, .*ROUGE"
    with pytest.raises(InputError, match=message):
        every(smollm2, source, 1)


def test_lines_that_are_not_of_the_format_are_named(written, tmp_path):
    for row, fault in (
        ({"input": "a"}, "missing required field `outputs`"),
        ({"input": "a", "outputs": []}, "Expected `array` of length >= 1"),
        ({"input": 1, "outputs": ["a"]}, "Expected `str`, got `int`"),
    ):
        source = written("ruler", [RULER[0], row])
        with pytest.raises(InputError, match=rf"\.jsonl:2: is not a record of the format \(.*{fault}"):
            read_source(source)
    with pytest.raises(InputError, match=r"path='.*none' cannot be read \(No such file"):
        read_source(Source(format="ruler", path=str(tmp_path / "none")))
    with pytest.raises(InputError, match=r"source='.*\.jsonl' has no record; pass another one"):
        read_source(written("ruler", []))


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({}, "a source has either a path or a hub id"),
        ({"path": "a", "hub": "b"}, "a source has either a path or a hub id"),
        ({"path": "a", "subset": "b"}, "subset and revision belong to a hub id"),
        ({"path": "a", "prompts": "b"}, "prompts belong to the format longbench"),
    ],
)
def test_a_source_is_checked(fields, fault):
    with pytest.raises(msgspec.ValidationError, match=fault):
        msgspec.convert({"format": "ruler", **fields}, Source)
    with pytest.raises(msgspec.ValidationError, match="a metric is chosen for the format ruler only"):
        msgspec.convert({"format": "documents", "path": "a", "metric": "match_part"}, Source)


def test_the_hub_is_read_by_the_library_datasets(smollm2, monkeypatch):
    # The library is optional and the hub is far: a module in its place, with the one function that is used.
    asked = []

    def load_dataset(path: str, name: str | None, *, split: str, revision: str | None) -> list[object]:
        asked.append((path, name, split, revision))
        if name == "gone":
            raise ValueError("BuilderConfig 'gone' not found.\nMore of it.")
        return LONGBENCH if name == "hotpotqa" else [{"input": "a"}]

    library = ModuleType("datasets")
    library.load_dataset = load_dataset
    library.__spec__ = importlib.util.spec_from_loader("datasets", None)
    monkeypatch.setitem(sys.modules, "datasets", library)
    source = Source(format="longbench", hub="owner/bench", subset="hotpotqa", revision="v1")
    assert [example.references[0] for example in every(smollm2, source, 2)] == ["Anna", "Distance"]
    assert asked == [("owner/bench", "hotpotqa", "test", "v1")]  # read once
    message = r"hub='owner/bench' could not be had \(BuilderConfig 'gone' not found\.\); check id"
    with pytest.raises(InputError, match=message):
        read_source(Source(format="longbench", hub="owner/bench", subset="gone"))
    with pytest.raises(InputError, match=r"hub='owner/bench' has row 0, which is not a record .*`context`"):
        read_source(Source(format="longbench", hub="owner/bench", subset="odd"))


@pytest.mark.skipif(importlib.util.find_spec("datasets") is not None, reason="datasets is installed")
def test_a_hub_without_the_library_is_refused():
    message = r"read_source: hub='a/b' needs the library datasets; pip install datasets, or pass the path"
    with pytest.raises(InputError, match=message):
        read_source(Source(format="ruler", hub="a/b"))


PLAN = """\
suite: mine
model: smollm2-135m
length: 400
seed: 1
tasks: {TASK: 2}
conditions: [aware]
arms: [{name: snapkv, evictor: {evictor: snapkv}, budgets: [0.5]}]
sources: {NAME: {format: ruler, path: mine.jsonl}}
"""


def test_a_plan_names_its_sources(tmp_path: Path):
    def plan(task: str, name: str, text: str = PLAN):
        path = tmp_path / "study.yaml"
        path.write_text(text.replace("TASK", task).replace("NAME", name))
        return read_plan(path)

    assert plan("mine", "mine").sources["mine"] == Source(format="ruler", path="mine.jsonl")
    with pytest.raises(InputError, match=r"has the unknown task 'mime'; did you mean 'mine'\?"):
        plan("mime", "mine")
    with pytest.raises(InputError, match=r"has a source for 'vt', which needs none; give it another name"):
        plan("vt", "vt")
    with pytest.raises(InputError, match=r"a source has either a path or a hub id"):
        plan("mine", "mine", PLAN.replace("path: mine.jsonl", "split: test"))
