"""Variables, counted words and conversations: what they hold, at any exact length."""

from __future__ import annotations

import hashlib
import re
from collections import Counter

import pytest
import torch

from collectors.decode import end_tokens
from collectors.tasks import TASKS, Example, make_example
from collectors.tasks.memory import fact_age
from kvstats.errors import InputError

FAMILIES = ["vt", "cwe", "fwe", "memory_10", "memory_30"]

PROMPTS = {
    "vt": "182334b12ee034042285b5f61f60a6ff8474aaad67dd4ea7749c3967839b94e0",
    "cwe": "58d4e93195894d702d5eb3314606cc75e0e10eed3ef3211906c7cfc298dc5dce",
    "fwe": "8c19d7e572512c946d2fc472fcbdf5e6ae9d4c8f79eba86482fdb3a8ac6e6d5d",
    "memory_10": "f57cc7724b5e208b9a26422983a5537080e2dad36ca374cce7c04d5e610f2af6",
    "memory_30": "5cfb1d9a5742eed9434fded527e478ae8febfadfd9e41e450304691943235521",
    "niah_single_2": "357500b1a4c33fe59dc94d94a7c46836a4e9943a06bfc60003f1d982904b168a",
    "niah_single_3": "874168118aeb84fa39ebd541bd69bdfaf1aba40d45500143dab5809a63baed58",
}
"""SHA-256 of the token ids of seed 1, index 2, 1100 tokens; logs that are collected rest on them."""


def make(loaded, task: str, *, seed: int = 1, index: int = 0, length: int = 1100) -> Example:
    return make_example(task, seed=seed, index=index, length=length, tokenizer=loaded.tokenizer)


def ids_of(example: Example) -> list[int]:
    return example.context_ids + example.question_ids + example.prefix_ids


def between(text: str, begin: str, end: str) -> str:
    """Return what stands between two texts, each the last of its kind."""
    return text[text.rindex(begin) + len(begin) : text.rindex(end)]


@pytest.mark.parametrize("task", FAMILIES)
def test_every_length_from_the_least_on_is_met_exactly(smollm2, task):
    for index in range(2):
        with pytest.raises(InputError, match=rf"length=1 is too small for {task}; ") as caught:
            make(smollm2, task, index=index, length=1)
        least = int(re.search(r"pass at least (\d+)$", str(caught.value))[1])
        assert least < 1000
        for length in [*range(least, least + 30, 1 + index), 2 * least + 7, 3001]:
            assert len(ids_of(make(smollm2, task, index=index, length=length))) == length
        with pytest.raises(InputError, match=f"pass at least {least}$"):
            make(smollm2, task, index=index, length=least - 1)


@pytest.mark.parametrize("task", FAMILIES)
def test_seed_and_index_change_the_example_and_nothing_else_does(smollm2, task):
    drawn = [make(smollm2, task, seed=seed, index=index) for seed in (1, 2) for index in range(4)]
    assert len({tuple(ids_of(example)) for example in drawn}) == 8
    assert len({tuple(example.references) for example in drawn}) == 8
    assert ids_of(make(smollm2, task, index=3)) == ids_of(drawn[3])


def test_every_process_makes_the_prompts_that_were_pinned(smollm2):
    made = {
        task: hashlib.sha256(str(ids_of(make(smollm2, task, index=2))).encode()).hexdigest()
        for task in PROMPTS
    }
    assert made == PROMPTS


@pytest.mark.parametrize("task", FAMILIES)
def test_the_answer_fits_the_new_tokens(smollm2, task):
    example = make(smollm2, task)
    answer = smollm2.tokenizer.encode(" " + ", ".join(example.references) + ".", add_special_tokens=False)
    assert len(answer) + 1 <= example.max_new_tokens <= 64


def test_variables_of_the_chain_have_the_value_asked_for(smollm2):
    for index in range(10):
        example = make(smollm2, "vt", index=index, length=600)
        value = re.search(r"assigned the value (\d{5}) in", example.prompt)[1]
        hidden = between(example.prompt, "following text.", "\nFind all")
        lines = re.findall(r"VAR (\w+) = (?:VAR )?(\w+)\.", hidden)
        values: dict[str, str] = {}
        for name, source in lines:
            values[name] = values.get(source, source)
        assert [name for name, held in values.items() if held == value] == example.references
        assert len(lines) == len(example.references) == 5
        spans = [smollm2.tokenizer.decode(example.context_ids[a:b]) for a, b in example.answer_spans]
        assert spans == [line + "." for line in re.findall(r"\nVAR [^.]+", hidden)]
        # The worked example has variables and a value of its own, and no span.
        worked = example.prompt[: example.prompt.index("Memorize")]
        assert len(re.findall(r"VAR (\w{5}) =", worked)) == 5
        assert value not in worked
        assert not any(name in worked for name in example.references)


def test_common_words_stand_there_six_times_as_often(smollm2):
    for index, length in enumerate((500, 700, 1500, 2500, 4000)):
        example = make(smollm2, "cwe", index=index, length=length)
        listed = between(example.prompt, "appear most often.", "\nWhat are the ten")
        items = re.findall(r"(\d+)\. (\S+)", listed)
        assert [int(number) for number, _ in items] == list(range(1, len(items) + 1))
        counts = Counter(word for _, word in items)
        common = {counts[word] for word in example.references}
        rare = {word: times for word, times in counts.items() if word not in example.references}
        assert len(example.references) == 10
        assert len(common) == 1
        assert common.pop() >= 6 * max(rare.values(), default=1)
        assert not example.answer_spans


def test_frequent_words_follow_zipf_and_the_third_is_told_from_the_fourth(smollm2):
    for index, length in enumerate((300, 500, 1000, 4000)):
        example = make(smollm2, "fwe", index=index, length=length)
        text = between(example.prompt, "each coded word appears.", "\nIgnore the dots")
        counts = Counter(text.split())
        dots = counts.pop("....")
        ranked = [word for word, _ in counts.most_common()]
        assert ranked[:3] == example.references
        assert counts[ranked[2]] > counts[ranked[3]] if len(ranked) > 3 else counts[ranked[2]] > 0
        assert dots > counts[ranked[0]]
        assert counts[ranked[0]] / counts[ranked[1]] == pytest.approx(9 / 4, rel=0.5)
        assert not example.answer_spans


@pytest.mark.parametrize("turns", [10, 30])
def test_a_conversation_tells_a_fact_a_turn_and_asks_for_one_by_its_age(smollm2, turns):
    task = f"memory_{turns}"
    for index in range(6):
        example = make(smollm2, task, index=index, length=1200)
        spoken = example.prompt.split("<|im_start|>user\n")[1:]
        assert len(spoken) == turns + 1
        facts = [re.findall(r"The number for (\w+) is (\d{5})\.", text) for text in spoken[:-1]]
        assert all(len(told) == 1 for told in facts)
        assert len({key for [(key, _)] in facts}) == len({value for [(_, value)] in facts}) == turns
        key = re.search(r"the number for (\w+)\?", spoken[-1])[1]
        age = int(example.signals["fact_age"])
        assert facts[turns - age] == [(key, example.references[0])]
        assert example.signals == {"turns": turns, "fact_age": age}
        assert all(text.split("<|im_start|>assistant\n")[1].startswith("Okay.") for text in spoken[:-1])
        [(start, stop)] = example.answer_spans
        assert smollm2.tokenizer.decode(example.context_ids[start:stop]).strip() == (
            f"The number for {key} is {example.references[0]}."
        )


def test_a_conversation_is_the_chat_template_applied_to_its_turns(smollm2):
    example = make(smollm2, "memory_10", index=1, length=700)
    spoken = [text.split("<|im_end|>")[0] for text in example.prompt.split("<|im_start|>user\n")[1:]]
    chat = [{"role": "user", "content": spoken[0]}]
    for text in spoken[1:]:
        chat += [{"role": "assistant", "content": "Okay."}, {"role": "user", "content": text}]
    frame = smollm2.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert example.prompt == frame + smollm2.tokenizer.decode(example.prefix_ids)


@pytest.mark.parametrize("turns", [1, 2, 3, 10, 30])
def test_ages_spread_evenly_over_inputs(turns):
    for offset in (0, 7, 1234567):
        ages = [fact_age(turns, offset, index) for index in range(3 * turns)]
        assert set(Counter(ages).values()) == {3}
        assert set(ages) == set(range(1, turns + 1))
    few = sorted(fact_age(30, 5, index) for index in range(10))
    gaps = [b - a for a, b in zip(few, [*few[1:], few[0] + 30], strict=True)]
    assert max(gaps) <= 5


@pytest.mark.slow
def test_the_second_model_can_do_the_tasks(qwen):
    ends = torch.tensor(sorted(end_tokens(qwen.model)))
    for task in TASKS:
        example = make(qwen, task, seed=7, length=1000)
        assert len(ids_of(example)) == 1000
        assert example.prompt.startswith("<|im_start|>system\n")
        assert example.prompt.count("<|im_start|>") == 3 + 2 * example.signals.get("turns", 0)
    for task in ("niah_single", "memory_10", "vt"):
        example = make(qwen, task, seed=7, length=500)
        ids = torch.tensor([ids_of(example)])
        with torch.no_grad():
            output = qwen.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=example.max_new_tokens,
                do_sample=False,
            )
        answer = output[0, ids.shape[1] :]
        assert torch.isin(answer[-1], ends)
        assert example.score(qwen.tokenizer.decode(answer)) == 1.0
