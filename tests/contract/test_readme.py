"""What the README shows is what comes out."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import kvstats as kv
from kvstats.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_example_prints_what_stands_below_it(monkeypatch):
    monkeypatch.chdir(ROOT)
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (output,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), {})
    assert printed.getvalue().split() == output.split()


def test_every_call_that_it_names_exists():
    names = set(re.findall(r"`kv\.(\w+)", README))
    assert {"accuracy", "gate", "verify"} <= names
    assert {name for name in names if not hasattr(kv, name)} == set()


def test_every_file_that_it_links_is_there():
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_shipped_study_is_intact_and_its_verdicts_are_those_it_tells_of(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as ended:
        main(["verify", "notebooks/needles/preregistration.yaml"])
    assert ended.value.code == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith("Report: needles; 12 claims: 2 inconclusive, 10 supported; intact")
    assert "Ten of twelve claims are\nsupported, two are undecided" in README
