"""What the README says of the recorder is what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from collectors.cli import EXIT_DIFFERENT, EXIT_DRIFTED, EXIT_INPUT, EXIT_INTERRUPTED
from collectors.evictors import Evictor
from collectors.scorers.registry import BUILT_IN, WINDOW
from collectors.tasks import TASKS

FILE = Path(__file__).parents[2] / "README.md"
SECTION = FILE.read_text(encoding="utf-8").partition("To record a model")[2].partition("## Registrations")[0]
EVICTORS = {kind.__struct_config__.tag: kind for kind in get_args(Evictor)}


@pytest.mark.parametrize("tag", EVICTORS)
def test_every_evictor_is_listed_with_its_options(tag):
    (row,) = re.findall(rf"^\| `{tag}` \|.*\| (.*)\|$", SECTION, re.MULTILINE)
    options = set(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", row)))
    assert options - {"schedule"} == set(EVICTORS[tag].__struct_fields__) - {"schedule"}


def test_no_other_evictor_is_listed():
    table = SECTION.partition("| `evictor` |")[2].partition("A `scorer` is")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(EVICTORS)


def test_every_scorer_and_task_is_named():
    scorers = SECTION.partition("A `scorer` is")[2].partition("or one of your own")[0]
    assert set(re.findall(r"`(\w+)`", scorers)) == {WINDOW, *BUILT_IN}
    tasks = SECTION.partition("| tasks | names |")[2]
    for task in TASKS:
        assert f"`{task}`" in tasks or f"`{task[:-2]}_1` to `_3`" in tasks


def test_exit_codes_are_those_of_the_command():
    assert f"0 complete, {EXIT_INPUT} when" in SECTION
    assert f"{EXIT_INTERRUPTED} interrupted" in SECTION
    assert f"0 reproduced, {EXIT_DRIFTED} numbers drifted, {EXIT_DIFFERENT} something is" in SECTION
    assert f"cannot be used | {EXIT_INPUT} |" in SECTION
