"""What the README shows is what comes out."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import kvstats as kv
from kvstats.cli import main
from kvstats.prereg.template import TEMPLATE, example_names

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


def test_the_commands_options_and_examples_of_registrations_are_those_that_there_are(capsys):
    section = README.split("## Registrations")[1].split("\n## ")[0]
    shown = {}
    for command in ("new", "lint", "seal", "amend", "verify", "schema", "prml"):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0
        shown[command] = capsys.readouterr().out
    assert set(re.findall(r"kvstats (\w+)", section)) == set(shown)
    offered = set(re.findall(r"--[a-z0-9-]+", " ".join(shown.values())))
    named = set(re.findall(r"--[a-z0-9-]+", section.replace("---", "")))
    assert named >= {"--expect-sha256", "--strict"}
    assert named - offered == set()
    (examples,) = re.findall(r"with `--example` one of (.*?) \|", section)
    assert set(re.findall(r"\w+", examples)) == {*example_names()} - {TEMPLATE}


def test_the_exit_codes_of_verification_are_those_that_the_command_tells(capsys):
    with pytest.raises(SystemExit):
        main(["verify", "--help"])
    told = " ".join(capsys.readouterr().out.split("Exit codes:")[1].split())
    rows = re.findall(r"^\| ([0-3]) \| (.*) \|$", README.split("| exit code of `verify` |")[1], re.MULTILINE)
    assert [code for code, _ in rows] == ["0", "1", "2", "3"]
    for _, meaning in rows:
        for part in re.split("[;:,] ", meaning.replace("`", "").partition(", such as")[0]):
            assert part in told


def test_the_second_study_has_the_verdicts_that_it_tells_of(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as ended:
        main(["verify", "notebooks/two-models/preregistration.yaml"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert (
        out.strip()
        .splitlines()[-1]
        .startswith("Report: evictors; 26 claims: 14 inconclusive, 2 killed, 10 supported; intact")
    )
    assert "14,066 runs of 528 inputs, 82,176 replay cells" in out
    assert "Of 26 registered claims ten are supported, two\nkilled and fourteen undecided" in README


def test_the_shipped_study_is_intact_and_its_verdicts_are_those_it_tells_of(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as ended:
        main(["verify", "notebooks/needles/preregistration.yaml"])
    assert ended.value.code == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith("Report: needles; 12 claims: 2 inconclusive, 10 supported; intact")
    assert "Ten of twelve claims are\nsupported, two are undecided" in README
