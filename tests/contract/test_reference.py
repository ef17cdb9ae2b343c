"""Every public name is documented, has an example that runs, and appears in the reference."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest
from numpydoc.docscrape import ClassDoc
from numpydoc.validate import validate

ROOT = Path(__file__).parents[2]
INDEX = ROOT / "notebooks" / "reference" / "index.rst"

MODULES = [
    "kvstats",
    "kvstats.report.figures",
    "kvstats.metrics",
    "kvstats.log",
    "kvstats.statistics.survey",
]
"""Modules whose public names make the reference; what the first exports is named there only."""

POINTED_TO = [
    "kvstats.log.audit.audit_log",
    "kvstats.log.save.write_log",
    "kvstats.report.plots.CaptionedFigure",
    "kvstats.titled_table.TitledTable",
]
"""What methods of public classes are documented by, and what public functions return."""

FAULTS = {"GL08", "PR01", "PR02", "EX01", "SS03"}
"""No docstring; parameters missing or unknown; no example; a summary without a period."""


def public_names() -> list[str]:
    """Return module and name of every public function and class."""
    found: dict[int, str] = {}
    for module in MODULES:
        exported = importlib.import_module(module)
        for name in exported.__all__:
            thing = getattr(exported, name)
            if callable(thing):
                found.setdefault(id(thing), f"{module}.{name}")
    return sorted(found.values())


def referenced_names() -> list[str]:
    """Return module and name of each entry of the reference's index, as often as it is there."""
    module, names = "", []
    for line in INDEX.read_text().splitlines():
        if current := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            module = current[1]
        elif entry := re.fullmatch(r"   (\w+)", line):
            names.append(f"{module}.{entry[1]}")
    return names


def test_the_reference_has_each_public_name_once():
    assert sorted(referenced_names()) == sorted([*public_names(), *POINTED_TO])


@pytest.mark.parametrize("name", [*public_names(), *POINTED_TO])
def test_each_public_name_is_documented(name):
    faults = {code: message for code, message in validate(name)["errors"] if code in FAULTS}
    module, _, attribute = name.rpartition(".")
    thing = getattr(importlib.import_module(module), attribute)
    if "PR01" in faults and inspect.isclass(thing):
        listed = ClassDoc(thing)["Attributes"]
        documented = {part for entry in listed for part in entry.name.split(", ")}
        # What a plain record is made of is documented as its attributes.
        if set(inspect.signature(thing).parameters) <= documented or getattr(thing, "_is_protocol", False):
            faults.pop("PR01", None)
    assert faults == {}
