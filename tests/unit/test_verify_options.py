"""What the command does besides printing: a page, stricter exit codes, and progress on a terminal only."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kvstats.cli import main
from kvstats.prereg import verify

TOY = Path(__file__).parents[1] / "golden" / "toy"
PLAN = str(TOY / "preregistration.yaml")
DIGEST = verify(PLAN).registration.sha256


@pytest.fixture
def run(capsys):
    """Run the command in this process; return exit code, stdout and stderr."""

    def call(*arguments):
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return end.value.code or 0, out, err

    return call


def test_html_is_written_besides_the_answer(run, tmp_path):
    page = tmp_path / "report.html"
    code, out, err = run("verify", PLAN, "--json", "--html", page)
    report = verify(PLAN)
    assert (code, err) == (0, "")
    assert out.encode() == report.to_json()
    assert page.read_bytes() == report.to_html().encode()


def test_a_page_is_written_of_what_is_not_intact_too(run, tmp_path):
    page = tmp_path / "report.html"
    assert run("verify", PLAN, "--expect-sha256", "0" * 64, "--html", page)[0] == 3
    assert "the registration has SHA-256" in page.read_text() or "NOT INTACT" in page.read_text()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("preregistration.yaml", "does not end in .html; name the page so"),
        ("none/report.html", "lies in no folder; make the folder first"),
        ("folder.html", "cannot be written (Is a directory); check the path"),
    ],
)
def test_a_page_that_cannot_be_written_is_refused(run, tmp_path, name, message):
    (tmp_path / "folder.html").mkdir()
    plan = Path(shutil.copytree(TOY, tmp_path, dirs_exist_ok=True), "preregistration.yaml")
    before = plan.read_bytes()
    code, out, err = run("verify", plan, "--html", tmp_path / name)
    assert (code, out) == (2, "")
    assert message in err
    assert plan.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--strict", "--only", "gate_helps"], 1),
        (["--strict", "--only", "gate_helps", "--expect-sha256", DIGEST], 0),
        (["--strict", "--only", "one_input", "--expect-sha256", DIGEST], 1),
        (["--strict", "--only", "eviction_is_harmless", "--expect-sha256", DIGEST], 1),
        (["--strict", "--expect-sha256", "0" * 64], 3),
        (["--require", "--only", "gate_helps"], 0),
    ],
)
def test_strict(run, arguments, code):
    assert run("verify", PLAN, *arguments)[0] == code


@pytest.fixture
def late(tmp_path):
    """Register the toy study after its file was begun."""
    plan = Path(shutil.copytree(TOY, tmp_path, dirs_exist_ok=True), "preregistration.yaml")
    early, late = "2026-10-31T12:00:00+01:00", "2026-11-15T12:00:00+01:00"
    plan.write_text(plan.read_text().replace(early, late).replace("2026-11-01T08:30", "2026-11-16T08:30"))
    return plan


@pytest.mark.parametrize(("dated", "verdict", "require"), [(True, "exploratory", 1), (False, "supported", 0)])
def test_strict_takes_no_time_on_trust(run, late, dated, verdict, require):
    if dated:
        for log in late.parent.glob("logs/*.jsonl"):
            text = log.read_text()
            assert '"recorded_at":null' in text
            log.write_text(text.replace('"recorded_at":null', '"recorded_at":"2026-11-02T00:00:00Z"'))
    report = verify(late, only="gate_helps")
    assert report.claims[0].verdict == verdict
    arguments = ["verify", late, "--only", "gate_helps", "--expect-sha256", report.registration.sha256]
    assert run(*arguments)[0] == 0
    assert run(*arguments, "--require")[0] == require
    assert run(*arguments, "--strict")[0] == 1


def test_help_names_strict(run):
    _, out, _ = run("verify", "--help")
    assert "with --strict: the same, or the registration is unanchored, or anchored\n" in out


def test_progress_is_for_terminals():
    code = "import sys; from kvstats.cli import main; main(sys.argv[1:])"
    main_end, other_end = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", code, "verify", PLAN, "--json"],
        stdout=subprocess.PIPE,
        stderr=other_end,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(other_end)
    shown = os.read(main_end, 1 << 16).decode()
    os.close(main_end)
    assert done.stdout == verify(PLAN).to_json()
    assert any(text in shown for text in ("reading logs", "policies and guards", "claim "))


def test_steps_are_named_in_order():
    steps = []
    verify(PLAN, only=["coverage", "gate_helps"], sensitivity=True, progress=lambda *step: steps.append(step))
    assert steps[:3] == [
        ("reading logs/multi.jsonl", 0, 2),
        ("reading logs/single.jsonl", 1, 2),
        ("policies and guards", 0, 1),
    ]
    claims = [step for step in steps if step[0].startswith("claim ")]
    assert {"claim gate_helps", "claim coverage"} <= {text for text, _, _ in claims}
    assert [(done, total) for _, done, total in claims] == [(n, len(claims)) for n in range(len(claims))]
    choices = steps[3 + len(claims) :]
    assert choices[0] == ("interval: percentile", 0, len(choices))
