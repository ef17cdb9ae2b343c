"""The command: the answer on stdout, the rest on stderr, and exit codes that mean one thing each."""

from __future__ import annotations

import json
import os
import pty
import re
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


def test_the_summary_as_json_says_the_same(run):
    code, out, err = run("summary", TOY / "logs", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert [(Path(file["file"]).name, file["format"]) for file in told["files"]] == [
        ("multi.jsonl", "kvstats"),
        ("single.jsonl", "kvstats"),
    ]
    assert (told["runs"], told["inputs"], told["rejects"]) == (96, 24, 0)
    assert told["cells"][0] == {
        "model": "m",
        "task": "multi",
        "condition": "aware",
        "arm": "full",
        "runs": 12,
        "inputs": 12,
        "unscored": 0,
        "mean_score": pytest.approx(11 / 12),
    }
    assert sum(cell["runs"] for cell in told["cells"]) == 96


@pytest.fixture
def predictions(tmp_path):
    """Predictions of two arms in the form of LongBench, which say neither arm nor budget."""
    for arm, answers in (("full", ["Paris", "Rome"]), ("evict", ["Paris", "Oslo"])):
        folder = tmp_path / arm
        folder.mkdir()
        rows = [
            {"pred": pred, "answers": [right], "all_classes": None, "length": 9}
            for pred, right in zip(answers, ["Paris", "Rome"], strict=True)
        ]
        (folder / "hotpotqa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


LABELS = ["--label", 'arm={"full": "full", "evict": "snapkv"}', "--label", 'budget={"full": 1, "evict": 0.5}']


def test_logs_of_other_formats_are_labelled_in_one_way_by_all_commands(run, predictions):
    named = ["--format", "longbench", "--label", "model=m", "--label", "pair_by=position", *LABELS]
    code, out, err = run("summary", predictions, "--json", *named)
    assert (code, err) == (0, "")
    cells = {cell["arm"]: cell["mean_score"] for cell in json.loads(out)["cells"]}
    assert cells == {"full": 1.0, "snapkv": 0.5}
    code, out, err = run("audit", predictions, "--json", *named)
    assert err == ""
    assert json.loads(out)["n_scored"] == 4
    out = predictions / "delta.svg"
    code, _, err = run("plot", "delta_matrix", predictions, "--arm", "snapkv", "--out", out, *named)
    assert (code, err) == (0, "")
    assert out.exists()


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("arm", "summary: label='arm' is not of the form NAME=VALUE; write arm=snapkv"),
        ("amr=x", "summary: label='amr' is no label; did you mean 'arm'?"),
        ("arm=x", "read_log: arm='x' is not needed: the records carry it; leave it out"),
    ],
)
def test_labels_that_cannot_be_used(run, label, message):
    code, out, err = run("summary", TOY / "logs", "--label", label)
    assert (code, out, err) == (2, "", f"kvstats: {message}\n")


def test_a_label_is_given_once(run):
    code, _, err = run("summary", TOY / "logs", "--label", "arm=x", "--label", "arm=y")
    assert (code, err) == (2, "kvstats: summary: label='arm=y' names an argument again; give it once\n")


COMMANDS = ["summary", "audit", "plot", "new", "lint", "seal", "amend", "verify", "schema"]
MANIFESTS = [["prml", "export"], ["prml", "import"], ["prml", "hash"]]


def test_these_are_the_commands(run):
    _, out, _ = run("--help")
    listed = out.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed] == [*COMMANDS, "prml"]
    assert not any(line.endswith("...") for line in listed)


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS), ["prml"], *MANIFESTS], ids=" ".join)
def test_help_has_examples_and_exit_codes_and_fits_80_columns(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(*command, "--help")
    assert (code, err) == (0, "")
    assert f"\n    kvstats {' '.join(command)}" in out.split("  Examples:")[1]
    codes = out.split("  Exit codes:\n")[1]
    assert codes.startswith("    0  ")
    assert "\n    2  wrong usage" in codes
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("arguments", [["--help"], ["verify", "-h"]])
def test_help_tells_what_each_exit_code_means(run, arguments):
    _, out, _ = run(*arguments)
    codes = out.split("  Exit codes:\n")[1]
    assert all(f"    {number}  " in codes for number in range(4))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("kvstats s", ["summary", "seal", "schema"]),
        ("kvstats plot d", ["delta_matrix", "drop_by_task"]),
        ("kvstats summary --format page_", ["page_release", "page_profiles"]),
        ("kvstats audit --label m", ["model=", "metric="]),
    ],
)
def test_the_shell_completes_commands_figures_formats_and_labels(run, monkeypatch, words, expected):
    monkeypatch.setenv("_KVSTATS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    code, out, err = run()
    assert (code, out.split(), err) == (0, expected, "")


def test_a_shell_gets_its_completion(run, monkeypatch):
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    code, out, err = run("--show-completion")
    assert (code, err) == (0, "")
    assert "complete -o default -F _kvstats_completion kvstats" in out


@pytest.mark.parametrize(
    "arguments", [["schema"], ["summary", TOY / "logs"], ["audit", TOY / "logs"]], ids=str
)
def test_a_reader_that_stops_reading_is_no_error(arguments):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "kvstats", *arguments], stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert done.stderr == b""


def on_a_terminal(arguments, **environment):
    """Run the command with a terminal for everything; return what it showed."""
    main_end, other_end = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "kvstats", *arguments],
        stdin=other_end,
        stdout=other_end,
        stderr=other_end,
        env={
            **{k: v for k, v in os.environ.items() if k != "NO_COLOR"},
            "TERM": "xterm-256color",
            **environment,
        },
    )
    os.close(other_end)
    shown = os.read(main_end, 1 << 16).decode()
    os.close(main_end)
    return shown


def test_colours_are_for_terminals_that_want_them():
    coloured = re.compile(r"\x1b\[[0-9;]*3[0-9]")
    assert coloured.search(on_a_terminal(["verify", PLAN, "--only", "gate_helps"]))
    assert not coloured.search(on_a_terminal(["verify", PLAN, "--only", "gate_helps"], NO_COLOR="1"))


def test_reading_shows_a_bar_on_a_terminal_and_takes_it_away():
    shown = on_a_terminal(["summary", TOY / "logs"])
    assert re.search(r"reading (multi|single)\.jsonl .*/2", shown)
    assert shown.index("reading") < shown.index("Log: 96 runs")


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
    assert done.stdout.startswith(f"Usage: {'kvstats' if package == 'kvstats' else 'collect'} [OPTIONS]")
    assert "  Exit codes:\n    0" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
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
