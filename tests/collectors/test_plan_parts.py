"""What a plan may ask for besides its runs, and what is refused."""

from __future__ import annotations

import pytest

from collectors.config import read_plan
from kvstats.errors import InputError

PLAN = """\
suite: small
model: smollm2-135m
length: 190
seed: 5
tasks: {niah_single: 3}
conditions: [aware]
arms:
  - {name: snapkv, evictor: {evictor: snapkv}, budgets: [0.5]}
  - {name: poisson, evictor: {evictor: poisson}, budgets: [0.6, 0.8]}
  - {name: plain, evictor: {evictor: poisson, offset: false}, budgets: [0.6]}
certificate: {steps: 3}
replay: {inputs: 2, steps: [0, 2], arms: [snapkv, poisson], queries: full, without_offset: true}
permutation: {inputs: 1, arms: [snapkv], permutations: 5}
retrieval: {arm: poisson, budgets: [0.6], blocks: [1, 3]}
timing: {inputs: 3}
head_pairs: {inputs: 2}
no_context: true
"""


def read(tmp_path, text: str):
    path = tmp_path / "small.yaml"
    path.write_text(text)
    return read_plan(path)


def test_all_parts_are_read(tmp_path):
    plan = read(tmp_path, PLAN)
    assert plan.replay.arms == ("snapkv", "poisson")
    assert (plan.replay.queries, plan.replay.without_offset) == ("full", True)
    assert (plan.permutation.permutations, plan.permutation.layer_stride) == (5, 10)
    assert (plan.retrieval.block_tokens, plan.retrieval.blocks) == (64, (1, 3))
    assert (plan.timing.inputs, plan.head_pairs.inputs, plan.no_context) == (3, 2, True)


def test_nothing_besides_the_runs_by_default(tmp_path):
    plan = read(tmp_path, PLAN[: PLAN.index("replay:")])
    assert (plan.replay.inputs, plan.permutation.inputs, plan.timing.inputs, plan.head_pairs.inputs) == (
        0,
    ) * 4
    assert plan.retrieval is None
    assert not plan.no_context


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("steps: [0, 2]", "steps: []", "12: replay.steps is empty; name a decode step, such as 0"),
        ("steps: [0, 2]", "steps: [0, 0]", "12: replay.steps has 0 twice; keep one of them"),
        ("[0, 2]", "[0, 3]", "12: replay.steps[1] is 3, which is not among the 3 certified steps; raise"),
        (
            "arms: [snapkv, poisson], q",
            "arms: [snapvk], q",
            "12: replay.arms[0] is 'snapvk', which is no arm of the plan; did you mean 'snapkv'?",
        ),
        (
            "arms: [snapkv, poisson], q",
            "arms: [snapkv, snapkv], q",
            "12: replay.arms has 'snapkv' twice; keep",
        ),
        (
            "queries: full",
            "queries: fool",
            "12: replay.queries is 'fool', which is unknown; known: full, own",
        ),
        (
            "permutation: {inputs: 1",
            "permutation: {inputs: 3",
            "13: permutation.inputs is 3, more than the 2 that are replayed; raise replay.inputs",
        ),
        (
            "{inputs: 1, arms: [snapkv], ",
            "{inputs: 1, ",
            "13: permutation names no arms; add arms, such as a",
        ),
        (
            "1, arms: [snapkv]",
            "1, arms: [plain]",
            "13: permutation.arms[0] is 'plain', which is not replayed; add it to replay.arms",
        ),
        (
            "arms: [snapkv, poisson], q",
            "q",
            "13: permutation.arms[0] is 'snapkv', which is not replayed; add it",
        ),
        (
            "permutations: 5",
            "permutations: 0",
            "13: permutation.permutations is 0: expected a whole number >= 1",
        ),
        (
            "{arm: poisson,",
            "{arm: posson,",
            "14: retrieval.arm is 'posson', which is no arm of the plan; did",
        ),
        (
            "{arm: poisson,",
            "{arm: snapkv,",
            "14: retrieval.arm is 'snapkv', which has no certificate to rank",
        ),
        (
            "  - {name: poisson, evictor: {evictor: poisson}",
            "  - {name: poisson, evictor: {evictor: conditional_poisson}",
            "14: retrieval.arm is 'poisson', which has no certificate to rank blocks by; name a poisson arm",
        ),
        ("{arm: poisson,", "{arm: plain,", "14: retrieval.arm is 'plain', which has no certificate to rank"),
        (
            "budgets: [0.6], blocks",
            "budgets: [0.7], blocks",
            "14: retrieval.budgets[0] is 0.7, at which 'poisson'",
        ),
        (
            "budgets: [0.6], blocks",
            "budgets: [0.6, 0.6], blocks",
            "14: retrieval.budgets has 0.6 twice; keep one",
        ),
        ("blocks: [1, 3]", "blocks: [3, 3]", "14: retrieval.blocks has 3 twice; keep one of them"),
        ("blocks: [1, 3]", "blocks: [0]", "14: retrieval.blocks[0] is 0: expected a whole number >= 1"),
        ("timing: {inputs: 3}", "timing: {input: 3}", "15: timing has the unknown key 'input'; did you mean"),
        ("name: plain,", "name: no_context,", "10: the arm name 'no_context' is taken; rename the arm"),
        ("name: plain,", "name: poisson+ranked3,", "10: the arm name 'poisson+ranked3' is taken; rename"),
        (
            "name: plain,",
            "name: poisson+oracle,",
            "10: the arm name 'poisson+oracle' is taken; rename the arm",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused(tmp_path, old, new, message):
    assert PLAN.count(old) == 1
    with pytest.raises(InputError) as error:
        read(tmp_path, PLAN.replace(old, new))
    assert str(error.value).startswith(f"{tmp_path / 'small.yaml'}:")
    assert message in str(error.value)


def test_names_of_arms_that_are_not_added_are_free(tmp_path):
    text = PLAN.replace("no_context: true", "no_context: false").replace("name: plain,", "name: no_context,")
    assert [arm.name for arm in read(tmp_path, text).arms][2] == "no_context"
