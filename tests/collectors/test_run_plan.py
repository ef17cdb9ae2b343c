"""The plan of a collection as a file: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.config import read_plan
from collectors.failure import failed_block
from collectors.units import Unit, plan_units, planned_rows
from kvstats.errors import InputError

PLAN = """
suite: small
model: smollm2-135m
length: 190
seed: 5
tasks: {niah_single: 1, niah_multikey_1: 1}
conditions: [aware]
arms:
  - {name: snapkv, evictor: {evictor: snapkv, scope: layer, pool: 7}, budgets: [0.5, 1.0]}
  - {name: poisson, evictor: {evictor: poisson}, budgets: [0.6], seeds: [0, 1]}
certificate: {per_head: true, head_stride: 4, layer_stride: 10, steps: 3}
replay: {inputs: 1, steps: [0, 2]}
"""


def write_plan(folder: Path, text: str = PLAN) -> Path:
    path = folder / "small.yaml"
    path.write_text(text)
    return path


TASKS = "tasks: {niah_single: 1, niah_multikey_1: 1}"
POOL = "scope: layer, pool: 7}"
SAMPLED = "{evictor: poisson}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "niah_single: 1",
            "niah_singel: 2",
            "6: has the unknown task 'niah_singel'; did you mean 'niah_single'",
        ),
        (TASKS, "tasks: {}", "6: tasks is a mapping: expected a mapping of length >= 1"),
        (
            TASKS,
            "tasks:\n  niah_single: many",
            "7: tasks.niah_single is 'many': expected a whole number, got te",
        ),
        (
            TASKS,
            "tasks:\n  niah_single: 1\n  niah_single: 2",
            "8: has the key 'niah_single' again, first on li",
        ),
        ("seed: 5", "seed: 5\nseed: 6", "6: has the key 'seed' again, first on line 5; keep one of them"),
        (
            "seed: 5",
            "seed: 5\ndevice: gpu",
            "6: device is 'gpu': expected text of another form; write cpu, cuda or one GPU",
        ),
        ("seed: 5", "seed: -5", "5: seed is -5: expected a whole number >= 0"),
        ("length: 190", "lenght: 190", "4: the file has the unknown key 'lenght'; did you mean 'length'?"),
        (
            "length: 190",
            "length: long",
            "4: length is 'long': expected a whole number, got text; write a number",
        ),
        (
            "length: 190",
            "length: 36",
            "4: length is 36, which leaves nothing to evict beside 36 protected tok",
        ),
        (
            "length: 190",
            "length: 67",
            "4: agreement_top_k is 32, more than the 31 evictable of 67 tokens; lower",
        ),
        (
            "seed: 5",
            "seed: 5\nagreement_top_k: 155",
            "6: agreement_top_k is 155, more than the 154 evictable of",
        ),
        (
            "conditions: [aware]",
            "conditions: [awear]",
            "7: conditions[0] is 'awear', which is unknown; did you",
        ),
        (
            "conditions: [aware]",
            "conditions: [aware, aware]",
            "7: conditions has 'aware' twice; keep one of them",
        ),
        ("name: snapkv,", "name: full,", "9: the arm name 'full' is taken; rename the arm"),
        ("name: poisson,", "name: snapkv,", "10: the arm name 'snapkv' is taken; rename the arm"),
        (
            "steps: [0, 2]",
            "steps: [0, 3]",
            "12: replay.steps[1] is 3, which is not among the 3 certified steps",
        ),
        (
            "evictor: snapkv,",
            "evictor: snapvk,",
            "9: arms[0].evictor.evictor is 'snapvk', which is unknown; did",
        ),
        (
            "evictor: snapkv,",
            "evictor: lru,",
            "9: arms[0].evictor.evictor is 'lru', which is unknown; known: adakv, ",
        ),
        (POOL, "scope: layer, pol: 7}", "9: arms[0].evictor has the unknown key 'pol'; did you mean 'pool'?"),
        (POOL, "scope: layer, pool: 6}", "9: SnapKV: pool=6 is even; pass an odd width"),
        (SAMPLED, "{evictor: poisson, pool: 0}", "10: Poisson: pool=0 is below 1; pass an odd width"),
        (SAMPLED, "{evictor: poisson, floor: 0.0}", "10: Poisson: floor=0.0 is not in (0, 1]; pass a small"),
        (
            SAMPLED,
            "{evictor: poisson, floor: 1e-6}",
            "10: arms[1].evictor.floor is 1e-6, which is a number in",
        ),
        ("budgets: [0.6]", "budgets: [60]", "10: arms[1].budgets[0] is 60: expected a number <= 1.0"),
        ("budgets: [0.5, 1.0]", "budgets: [0.5, 0.50]", "9: arms[0].budgets has 0.5 twice; keep one of them"),
        (
            "budgets: [0.6]",
            "budgets: [0.6, 0.18]",
            "10: arms[1].budgets[1] is 0.18, which of 190 tokens does no",
        ),
        ("seeds: [0, 1]", "seeds: [1, 1]", "10: arms[1].seeds has 1 twice; keep one of them"),
        ("seeds: [0, 1]", "seeds: [0, -1]", "10: arms[1].seeds[1] is -1: expected a whole number >= 0"),
        ("suite: small", "suite: [", "is not YAML (while parsing a flow"),
    ],
)
def test_a_bad_plan_is_refused(tmp_path, old, new, message):
    assert PLAN.count(old) == 1
    text = PLAN.replace(old, new)
    with pytest.raises(InputError) as error:
        read_plan(write_plan(tmp_path, text))
    assert str(error.value).startswith(f"{tmp_path / 'small.yaml'}:")
    assert message in str(error.value)


def test_a_tab_in_a_plan_is_named(tmp_path):
    text = PLAN.replace("  - {name: poisson", "\t- {name: poisson")
    with pytest.raises(
        InputError, match=r"small\.yaml:10: .*; replace the tab: indentation is made of spaces$"
    ):
        read_plan(write_plan(tmp_path, text))


def test_a_plan_at_the_limits_is_read(tmp_path):
    least = PLAN.replace("length: 190", "length: 68").replace("[0.6]", "[0.53]").replace("seed: 5", "seed: 0")
    assert 36 < 0.53 * read_plan(write_plan(tmp_path, least)).length < 37


@pytest.mark.parametrize("content", [PLAN.encode("utf-16"), b"\x1f\x8b\x08\x00"])
def test_a_plan_that_is_not_text_is_refused(tmp_path, content):
    path = tmp_path / "small.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"small\.yaml:1: is not UTF-8; save the file as UTF-8"):
        read_plan(path)


def test_a_missing_plan_is_named(tmp_path):
    with pytest.raises(
        InputError, match=r"nothing\.yaml: cannot be read \(No such file or directory\); check"
    ):
        read_plan(tmp_path / "nothing.yaml")


def test_units_take_tasks_in_turn(tmp_path):
    units = plan_units(read_plan(write_plan(tmp_path, PLAN.replace("niah_single: 1", "niah_single: 2"))))
    assert [(unit.task, unit.index) for unit in units] == [
        ("niah_single", 0),
        ("niah_multikey_1", 0),
        ("niah_single", 1),
    ]


def test_a_sample_of_fixed_size_needs_a_whole_position_beside_the_protected(tmp_path):
    """0.191 of 190 tokens is 36.3: more than the 36 protected in expectation, none more when rounded."""
    text = PLAN.replace("[0.6]", "[0.191]")
    assert read_plan(write_plan(tmp_path, text)).arms[1].budgets == (0.191,)
    fixed = text.replace(SAMPLED, "{evictor: conditional_poisson}")
    message = r"10: arms\[1\].budgets\[0\] is 0.191, which of 190 tokens does not exceed 36 protected; raise"
    with pytest.raises(InputError, match=message):
        read_plan(write_plan(tmp_path, fixed))


def test_rows_are_those_of_the_condition_and_what_a_plan_adds(tmp_path):
    text = PLAN.replace("conditions: [aware]", "conditions: [aware, stream]")
    text = text.replace("budgets: [0.5, 1.0]}", "budgets: [0.5], conditions: [aware]}")
    text += "retrieval: {arm: poisson, budgets: [0.6], blocks: [1, 2]}\nno_context: true\n"
    plan = read_plan(write_plan(tmp_path, text))
    kinds = ("ranked", "ranked2", "random", "random2", "oracle")
    common = [
        ("poisson", 0.6, 0),
        ("poisson", 0.6, 1),
        *((f"poisson+{kind}", 0.6, seed) for seed in (0, 1) for kind in kinds),
        ("no_context", None, 0),
    ]
    assert planned_rows(plan, "aware") == [("full", 1.0, 0), ("snapkv", 0.5, 0), *common]
    assert planned_rows(plan, "stream") == [("full", 1.0, 0), *common]
    for condition in plan.conditions:
        *runs, last = failed_block(plan, Unit("niah_single", 0, condition), "MemoryError")
        assert [(run.arm, run.budget, run.seed) for run in runs] == planned_rows(plan, condition)
        assert {(run.error, run.score, run.condition) for run in runs} == {("MemoryError", None, condition)}
        assert (last.input_id, last.condition, last.drop) == ("niah_single-5-0000", condition, None)


def test_each_unit_has_its_rows_the_full_cache_first(tmp_path):
    assert planned_rows(read_plan(write_plan(tmp_path)), "aware") == [
        ("full", 1.0, 0),
        ("snapkv", 0.5, 0),
        ("snapkv", 1.0, 0),
        ("poisson", 0.6, 0),
        ("poisson", 0.6, 1),
    ]
