"""The command: the answer on stdout, the rest on stderr, and exit codes that mean one thing each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kvstats.cli import main
from kvstats.log import log_schema
from kvstats.prereg import verify

TOY = Path(__file__).parents[1] / "golden" / "toy"
PLAN = str(TOY / "preregistration.yaml")


@pytest.fixture
def run(capsys):
    """Run the command in this process; return exit code, stdout and stderr."""

    def call(*arguments):
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return end.value.code or 0, out, err

    return call


@pytest.fixture
def toy(tmp_path):
    return Path(shutil.copytree(TOY, tmp_path / "toy"))


def test_verify_prints_the_table(run):
    code, out, err = run("verify", PLAN)
    assert (code, err) == (0, "")
    assert "gate_helps" in out
    assert "\x1b" not in out


def test_verify_prints_json(run):
    code, out, err = run("verify", PLAN, "--json")
    assert (code, err) == (0, "")
    assert out.encode() == verify(PLAN).to_json()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--require"], 1),
        (["--require", "--only", "gate_helps"], 0),
        (["--require", "--only", "gate_helps", "--only", "coverage"], 0),
        (["--require", "--only", "coverage", "--only", "one_input"], 1),
        (["--only", "one_input"], 0),
    ],
)
def test_require(run, arguments, code):
    assert run("verify", PLAN, *arguments)[0] == code


def test_expected_hash(run):
    digest = verify(PLAN).registration.sha256
    code, out, _ = run("verify", PLAN, "--expect-sha256", digest)
    assert code == 0
    assert f"{digest} (as expected)" in out
    code, out, err = run("verify", PLAN, "--expect-sha256", "0" * 64, "--json", "--require")
    assert (code, err) == (3, "")
    assert {claim["verdict"] for claim in json.loads(out)["claims"]} == {"invalid"}


def test_a_failed_guard_is_3_and_wins_over_require(run, toy):
    path = toy / "preregistration.yaml"
    path.write_text(path.read_text().replace("runs: 96", "runs: 97"))
    for arguments in ([], ["--require"]):
        code, out, err = run("verify", path, *arguments)
        assert (code, err) == (3, "")
        assert "data.expected.runs FAILS: the logs have 96 runs" in " ".join(out.split())


def test_another_folder_of_data(run, toy, tmp_path):
    shutil.move(toy / "logs", tmp_path / "elsewhere" / "logs")
    path = toy / "preregistration.yaml"
    assert run("verify", path)[0] == 2
    code, out, _ = run("verify", path, "--data", tmp_path / "elsewhere", "--json")
    assert code == 0
    assert out.encode() == verify(PLAN, git=False).to_json()
    assert run("verify", PLAN, "--no-git", "--json")[1] == out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["verify", "none.yaml"],
            "kvstats: none.yaml: cannot be read (No such file or directory); check the path\n",
        ),
        (["verify", PLAN, "--only", "coverge"], "; did you mean 'coverage'?\n"),
        (
            ["verify", PLAN, "--expect-sha256", "abc"],
            "kvstats: verify: expect_sha256='abc' is no SHA-256; pass its",
        ),
        (["verify", PLAN, "--data", "none"], "kvstats: verify: data='none' is no folder; check the path\n"),
        (["summary", "none*"], "kvstats: read_log: path='none*' matches no file; check the path\n"),
    ],
)
def test_input_errors_are_one_line_on_stderr_and_2(run, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("kvstats: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["verify"], ["verfy"], ["verify", PLAN, "--jsn"], ["summary"]])
def test_usage_errors_are_2(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "Usage: kvstats" in err


def test_an_unknown_estimator_is_answered_with_line_and_nearest_name(run, toy):
    path = toy / "preregistration.yaml"
    path.write_text(path.read_text().replace("estimator: harm_rate", "estimator: harm_rates", 1))
    shutil.rmtree(toy / "logs")
    code, out, err = run("verify", path)
    assert (code, out) == (2, "")
    line = 1 + path.read_text().splitlines().index("    estimator: harm_rates")
    expected = f"{path}:{line}: claims[4].estimator is no estimator: 'harm_rates'; did you mean 'harm_rate'?"
    assert err == f"kvstats: {expected}\n"


def test_summary(run):
    code, out, err = run("summary", TOY / "logs" / "single.jsonl", f"{TOY}/logs/m*.jsonl")
    assert (code, err) == (0, "")
    assert out.startswith("Log: 96 runs of 24 inputs")
    assert "0.917" in out


def test_schema(run):
    code, out, err = run("schema")
    assert (code, err) == (0, "")
    assert json.loads(out) == log_schema()


def test_version(run):
    code, out, err = run("--version")
    assert (code, err) == (0, "")
    assert out.startswith("kvstats 0.")


def test_help_names_the_exit_codes(run):
    for arguments in (["--help"], ["verify", "-h"]):
        code, out, _ = run(*arguments)
        assert code == 0
        for line in ("  0  verified", "  1  with --require", "  2  wrong usage", "  3  not intact"):
            assert line in out
        assert max(map(len, out.splitlines())) <= 80


def test_as_a_process_without_a_terminal(toy):
    path = toy / "preregistration.yaml"
    text = path.read_text().replace("Twelve inputs of each task.", "Twelve inputs – of each task π.")
    path.write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "TERM": "dumb"}
    code = "import sys; from kvstats.cli import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, "verify", path, "--require"], env=environment, capture_output=True
    )
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"Twelve inputs ? of each task ?." in done.stdout
    assert b"\x1b" not in done.stdout


@pytest.mark.parametrize("package", ["kvstats", "collectors"])
def test_the_packages_run_as_their_commands(package):
    done = subprocess.run(
        [sys.executable, "-m", package, "--help"], capture_output=True, text=True, check=True
    )
    assert "Usage: " in done.stdout
    assert done.stderr == ""


def test_sensitivity_is_asked_for(run):
    code, out, err = run("verify", PLAN, "--sensitivity", "--only", "gate_helps")
    assert (code, err) == (0, "")
    assert "Under other choices than the registered ones" in out
    assert "Under other choices" not in run("verify", PLAN, "--only", "gate_helps")[1]


def test_a_claim_that_the_logs_refuse_is_reported_and_exits_with_2(run, toy):
    path = toy / "preregistration.yaml"
    path.write_text(
        path.read_text().replace("arguments: {arm: gate, baseline: snapkv}", "arguments: {arm: gat}", 1)
    )
    code, out, err = run("verify", path, "--json")
    assert (code, err) == (2, "")
    claims = {claim["id"]: claim for claim in json.loads(out)["claims"]}
    assert claims["gate_helps"]["verdict"] == "undefined"
    assert "arm='gat' is not an arm of the log; did you mean 'gate'" in claims["gate_helps"]["error"]
    assert claims["coverage"]["verdict"] == "supported"
