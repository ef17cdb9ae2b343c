"""The needle tasks: exact lengths, one chat frame, whole needles, the same prompts always, and the score."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from collectors.tasks import TASKS, Example, example_id, make_example, score, template_hash
from collectors.tasks.templates import templates
from kvstats.errors import InputError

CHAT = "<s>{% for m in messages %}[{{ m['role'] }}]{{ m['content'] | trim }}{% endfor %}[assistant]"
STATEMENT = re.compile(r"One of the special magic (number|uuid)s for (\S+) is: (\S+)\.(?=\s)")
COUNTS = {
    "niah_single": 1,
    "niah_single_2": 1,
    "niah_single_3": 1,
    "niah_multikey_1": 4,
    "niah_multivalue": 4,
    "niah_multiquery": 4,
}
NEEDLES = [*COUNTS, "niah_multikey_2", "niah_multikey_3"]

PROMPTS = {
    "niah_single": "0dede695dd636d2c258656bb057d4e1d32d20578ee5607f7e81aeb6c7cf932e5",
    "niah_multikey_1": "653fe01b98bba7c353697df3e101c8eb31525cd4a620c24e3c1154cfa7ba2a73",
    "niah_multikey_2": "5e20893792253093f3fd82bc5bad4732525b7f75058f43566139002bfa6b6e4a",
    "niah_multikey_3": "2429b0dc9d1718343837adbd931ad26c54af1775cbf4f43c617834add101fd05",
    "niah_multivalue": "90365d9c66ad0ac2b9c3c9e4f32db759a4c8a2b27604f7b64a49ff6964b0a13a",
    "niah_multiquery": "ad29fb2c8dd6839fa5ee7adc932003ed83fa733db44ffe058314bb748f0425c1",
}
"""SHA-256 of the token ids of seed 1, index 2, 450 tokens; logs that were collected rest on them."""


@pytest.fixture(scope="module")
def bytewise() -> PreTrainedTokenizerFast:
    """Make a tokenizer with one token a byte that puts a beginning-of-sequence token before every text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(["<s>", *alphabet])}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $0", special_tokens=[("<s>", 0)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", chat_template=CHAT)


def ids_of(example: Example) -> list[int]:
    return example.context_ids + example.question_ids + example.prefix_ids


def digest(example: Example) -> str:
    return hashlib.sha256(str(ids_of(example)).encode()).hexdigest()


def least_length(task: str, index: int, tokenizer) -> int:
    with pytest.raises(InputError, match=rf"make_example: length=1 is too small for {task}; ") as caught:
        make_example(task, seed=1, index=index, length=1, tokenizer=tokenizer)
    return int(re.search(r"pass at least (\d+)$", str(caught.value))[1])


@pytest.mark.parametrize("task", NEEDLES)
def test_every_length_from_the_least_on_is_met_exactly(smollm2, bytewise, task):
    for tokenizer in (smollm2.tokenizer, bytewise):
        for index in range(3):
            least = least_length(task, index, tokenizer)
            for length in [*range(least, least + 45, 1 + index), 2 * least + 7, 3000]:
                example = make_example(task, seed=1, index=index, length=length, tokenizer=tokenizer)
                assert len(ids_of(example)) == length
            with pytest.raises(InputError, match=f"length={least - 1} is too small"):
                make_example(task, seed=1, index=index, length=least - 1, tokenizer=tokenizer)


@pytest.mark.parametrize("task", NEEDLES)
def test_needles_are_whole_and_hold_the_references(smollm2, task):
    for index in range(20):
        example = make_example(task, seed=1, index=index, length=450, tokenizer=smollm2.tokenizer)
        context = smollm2.tokenizer.decode(example.context_ids)
        question = smollm2.tokenizer.decode(example.question_ids)
        needles = STATEMENT.findall(context + "\n")
        values = [value for _, _, value in needles]
        asked = [value for _, key, value in needles if re.search(rf"\b{key}\b", question)]
        assert len(set(values)) == len(values)
        assert sorted(asked) == sorted(example.references)
        assert len(needles) == COUNTS[task] if task in COUNTS else len(needles) >= 3
        if "uuid" in question:
            assert all(len(value) == 36 for value in values)
            assert all((len(key) == 36) == (task == "niah_multikey_3") for _, key, _ in needles)
        else:
            assert all(re.fullmatch(r"\d{7}", value) for value in values)
        assert not any(value in question for value in values)
        assert len(example.references) == {"niah_multivalue": 4, "niah_multiquery": 4}.get(task, 1)


@pytest.mark.parametrize("task", NEEDLES)
def test_the_spans_of_the_answer_are_those_of_the_needles_asked_for(smollm2, task):
    for index in range(10):
        example = make_example(task, seed=1, index=index, length=450, tokenizer=smollm2.tokenizer)
        spans = [smollm2.tokenizer.decode(example.context_ids[a:b]).strip() for a, b in example.answer_spans]
        assert all(span.startswith("One of the special magic ") and span.endswith(".") for span in spans)
        assert sorted(span.split(": ")[1][:-1] for span in spans) == sorted(example.references)
        assert example.answer_spans == sorted(example.answer_spans)


def test_the_first_single_needle_goes_by_two_names(smollm2):
    by_name = [
        make_example(task, seed=1, index=2, length=450, tokenizer=smollm2.tokenizer)
        for task in ("niah_single", "niah_single_1")
    ]
    assert ids_of(by_name[0]) == ids_of(by_name[1])
    assert [example.input_id for example in by_name] == ["niah_single-1-0002", "niah_single_1-1-0002"]


@pytest.mark.parametrize("task", TASKS)
def test_the_control_asks_the_same_without_the_context(smollm2, bytewise, task):
    for tokenizer in (smollm2.tokenizer, bytewise):
        example = make_example(task, seed=1, index=3, length=9000, tokenizer=tokenizer)
        control = tokenizer.decode(example.no_context_ids)
        question = tokenizer.decode(example.question_ids).removeprefix("\n")
        opening = control[: control.index(question)]
        assert control == opening + question + tokenizer.decode(example.prefix_ids)
        assert example.prompt.startswith(opening)
        assert opening.endswith("[user]" if tokenizer is bytewise else "<|im_start|>user\n")
        assert example.no_context_ids[-len(example.prefix_ids) :] == example.prefix_ids
        assert example.no_context_ids.count(bytewise.bos_token_id) == 1 or tokenizer is not bytewise
        assert not any(reference in control for reference in example.references)


def test_keys_and_questions_have_the_shape_of_their_task(smollm2):
    def read(task: str) -> tuple[list[str], Example]:
        example = make_example(task, seed=1, index=0, length=450, tokenizer=smollm2.tokenizer)
        return [key for _, key, _ in STATEMENT.findall(example.prompt)], example

    keys, example = read("niah_multivalue")
    assert len(set(keys)) == 1
    assert example.prompt.endswith(
        f"\nThe special magic numbers for {keys[0]} mentioned in the provided text are"
    )
    keys, example = read("niah_multiquery")
    assert len(set(keys)) == 4
    assert all(example.prompt.count(key) == 3 for key in keys)
    keys, example = read("niah_multikey_1")
    assert sorted(example.prompt.count(key) for key in keys) == [1, 1, 1, 3]
    for task in ("niah_multikey_2", "niah_multikey_3"):
        keys, example = read(task)
        haystack = example.prompt.split("afterwards.\n")[1].split("\nWhat is")[0].splitlines()
        assert len(haystack) - len(keys) in (0, 1)
        assert all(line.startswith("One of the special magic"[: len(line)]) for line in haystack)
        assert len(set(keys)) == len(keys)
    _, example = read("niah_single")
    noise = templates()["noise"]["sentence"]
    assert example.prompt.count(noise) >= 10


@pytest.mark.parametrize("task", NEEDLES)
def test_needles_stand_at_all_depths(smollm2, task):
    depths = []
    for index in range(30):
        example = make_example(task, seed=1, index=index, length=700, tokenizer=smollm2.tokenizer)
        begin = example.prompt.index("afterwards.")
        end = example.prompt.rindex("What ")
        place = example.prompt.index(f"is: {example.references[0]}.")
        depths.append((place - begin) / (end - begin))
    assert all(0 < depth < 1 for depth in depths)
    assert min(depths) < 0.3
    assert max(depths) > 0.7
    assert len({round(depth, 2) for depth in depths}) > 3


@pytest.mark.parametrize("task", NEEDLES)
def test_the_prompt_is_the_chat_template_applied_once_with_the_answer_begun(smollm2, bytewise, task):
    for tokenizer in (smollm2.tokenizer, bytewise):
        example = make_example(task, seed=1, index=4, length=900, tokenizer=tokenizer)
        prefix = tokenizer.decode(example.prefix_ids)
        turn = example.prompt[example.prompt.index("Somewhere in the") : example.prompt.rindex("?") + 1]
        chat = [{"role": "user", "content": turn}]
        frame = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        assert example.prompt == frame + prefix
        assert tokenizer.decode(ids_of(example)) == example.prompt
        assert tokenizer.decode(example.question_ids).startswith("\nWhat ")


@pytest.mark.parametrize("task", TASKS)
def test_a_begin_of_sequence_token_is_there_once_or_not_at_all(smollm2, bytewise, task):
    assert bytewise.encode("a")[0] == bytewise.bos_token_id
    example = make_example(task, seed=1, index=0, length=6000, tokenizer=bytewise)
    for ids in (ids_of(example), example.no_context_ids):
        assert [place for place, token in enumerate(ids) if token == bytewise.bos_token_id] == [0]
    example = make_example(task, seed=1, index=0, length=1200, tokenizer=smollm2.tokenizer)
    turns = example.signals.get("turns", 0.0)
    assert example.prompt.count("<|im_start|>") == 3 + 2 * turns  # system, user and assistant
    assert example.prompt.startswith("<|im_start|>system\n")


def test_a_template_that_writes_the_date_gives_the_same_prompt_every_day(bytewise):
    dated = PreTrainedTokenizerFast(
        tokenizer_object=bytewise.backend_tokenizer,
        chat_template="{{ date_string if date_string is defined else strftime_now('%d %B %Y') }} " + CHAT,
    )
    example = make_example("niah_single", seed=1, index=0, length=700, tokenizer=dated)
    assert example.prompt.startswith("01 January 2025 <s>")


def test_every_process_makes_the_prompts_that_were_pinned(smollm2):
    made = {
        task: digest(make_example(task, seed=1, index=2, length=450, tokenizer=smollm2.tokenizer))
        for task in PROMPTS
    }
    assert made == PROMPTS


def test_seed_index_and_task_all_change_the_example(smollm2):
    drawn = {
        (task, seed, index): make_example(
            task, seed=seed, index=index, length=450, tokenizer=smollm2.tokenizer
        )
        for task in NEEDLES
        for seed in (1, 2, 12)
        for index in range(12)
    }
    assert len({digest(example) for example in drawn.values()}) == len(drawn)
    assert len({example.input_id for example in drawn.values()}) == len(drawn)
    assert len({example.references[0] for example in drawn.values()}) == len(drawn)
    assert drawn["niah_single", 12, 3].input_id == example_id("niah_single", 12, 3) == "niah_single-12-0003"


@pytest.mark.parametrize("task", NEEDLES)
def test_the_answer_fits_the_new_tokens(smollm2, bytewise, task):
    for tokenizer in (smollm2.tokenizer, bytewise):
        example = make_example(task, seed=1, index=0, length=2000, tokenizer=tokenizer)
        answer = f" {', '.join(example.references)}."
        assert len(tokenizer.encode(answer, add_special_tokens=False)) + 1 <= example.max_new_tokens


def test_the_model_finds_the_single_needle(smollm2):
    example = make_example("niah_single", seed=1, index=0, length=230, tokenizer=smollm2.tokenizer)
    ids = torch.tensor([ids_of(example)])
    with torch.no_grad():
        answer = smollm2.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=example.max_new_tokens,
            do_sample=False,
        )
    assert score(example.references, smollm2.tokenizer.decode(answer[0, ids.shape[1] :])) == 1.0


def test_bad_arguments_are_named(smollm2, bytewise):
    def make(task="niah_single", seed=1, index=0, length=200, tokenizer=smollm2.tokenizer) -> Example:
        return make_example(task, seed=seed, index=index, length=length, tokenizer=tokenizer)

    with pytest.raises(
        InputError, match=r"make_example: task='niah_singel' is unknown; did you mean 'niah_s"
    ):
        make(task="niah_singel")
    with pytest.raises(InputError, match=r"make_example: seed=-1 is negative; pass 0 or more"):
        make(seed=-1)
    with pytest.raises(InputError, match=r"make_example: index=-1 is negative; pass 0 or more"):
        make(index=-1)
    plain = PreTrainedTokenizerFast(tokenizer_object=bytewise.backend_tokenizer)
    with pytest.raises(InputError, match=r"tokenizer='.*' has no chat template; take an instruction-tuned"):
        make(tokenizer=plain)
    plain.chat_template = CHAT + "{{ messages[0]['content'] }}"
    with pytest.raises(
        InputError, match=r"has a chat template that writes the user's text 2 times in 1 turns; take a"
    ):
        make(tokenizer=plain)


def test_a_length_that_needs_more_keys_than_there_are_is_refused(smollm2):
    message = (
        r"length=200000 needs more than the 3599 other keys that niah_multikey_2 has; pass at most (\d+)"
    )
    with pytest.raises(InputError, match=message) as caught:
        make_example("niah_multikey_2", seed=1, index=0, length=200_000, tokenizer=smollm2.tokenizer)
    most = int(re.search(r"pass at most (\d+)$", str(caught.value))[1])
    longest = make_example("niah_multikey_2", seed=1, index=0, length=most, tokenizer=smollm2.tokenizer)
    assert len(ids_of(longest)) == most
    with pytest.raises(InputError, match=f"pass at most {most}"):
        make_example("niah_multikey_2", seed=1, index=0, length=most + 1, tokenizer=smollm2.tokenizer)


def test_the_essay_is_varied_and_holds_no_digit():
    essay = templates()["essay"]
    assert len(set(essay["sentences"])) == len(essay["sentences"]) >= 40
    slots = {slot for sentence in essay["sentences"] for slot in re.findall(r"\{(\w+)\}", sentence)}
    assert slots == set(essay["words"])
    text = str(essay) + str(templates()["noise"]) + str(templates()["key"])
    assert text.isascii()
    assert not re.search(r"\d", text)
    for name in ("adjectives", "nouns"):
        assert len(set(templates()["key"][name])) == len(templates()["key"][name])
    # "a {adjective}" must read well with every adjective.
    assert not [word for word in essay["words"]["adjective"] if word[0] in "aeiou"]


def test_the_template_hash_is_that_of_the_file():
    content = files("collectors.tasks").joinpath("templates.toml").read_bytes()
    assert template_hash() == hashlib.sha256(content).hexdigest()
