"""Each statement of the page on statistical choices names a simulation that there is."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SIMULATIONS = ROOT / "tests" / "simulation"
PAGE = (ROOT / "notebooks" / "statistical-choices.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## In two minutes\n")[2].partition("\n## ")[0]


def anchor(heading):
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


def test_every_line_of_the_table_names_its_simulation():
    rows = [line for line in TABLE.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 10
    for row in rows:
        last = row.strip("|").split("|")[-1]
        assert re.search(r"\]\(#|`test_\w+\.py`", last), row


def test_what_is_linked_or_named_is_there():
    anchors = {anchor(heading) for heading in re.findall(r"^## (.*)$", PAGE, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([^)]*)\)", PAGE)) <= anchors
    for name in re.findall(r"`(test_\w+\.py)`", PAGE):
        assert (SIMULATIONS / name).exists(), name


def test_each_simulation_that_makes_a_table_is_in_its_script():
    tree = ast.parse((SIMULATIONS / "statistical_choices.py").read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    named = re.findall(r"(?<=[Ss]imulation)s?:?\s((?:`\w+`(?:, )?)+)", PAGE)
    named = {name for group in named for name in re.findall(r"\w+", group)}
    assert {"rates", "coverage_by_cluster", "quantiles", "unequal_weights"} <= named
    assert named <= functions
