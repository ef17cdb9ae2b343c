"""The command that draws a figure of logs."""

import importlib
import inspect
from datetime import UTC, datetime

import pytest

import kvstats as kv
from kvstats.cli import main
from kvstats.log import InputRecord, LogWriter, RunRecord, StudyRecord
from kvstats.log.records import SCHEMA_VERSION
from kvstats.plot_commands import COMMON, FIGURES


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
def logs(tmp_path):
    records = []
    for number in range(12):
        key = {"suite": "s", "model": "m", "task": "qa", "input_id": f"{number:02}"}
        records.append(InputRecord(**key, drop=0.05 + 0.001 * number))
        records.append(RunRecord(**key, arm="full", budget=1.0, score=1.0, success=True))
        records += [
            RunRecord(
                **key, arm="evict", budget=budget, score=float(number % 4 > least), success=number % 4 > least
            )
            for budget, least in ((0.25, 1), (0.5, 0))
        ]
    path = tmp_path / "log.jsonl"
    study = StudyRecord(
        schema_version=SCHEMA_VERSION,
        suite="s",
        model="m",
        dtype="none",
        attention="none",
        versions={},
        host="none",
        settings={},
        template_hash="none",
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    with LogWriter(path, study) as writer:
        writer.append(records)
    return path


@pytest.mark.parametrize(("ending", "first"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_it_writes_the_figure_and_prints_the_caption(run, logs, tmp_path, ending, first):
    out = tmp_path / f"figure.{ending}"
    code, printed, err = run(
        "plot", "delta_matrix", logs, "--out", out, "--arm", "evict", "--where", "budget < 1"
    )
    assert (code, err) == (0, "")
    expected = kv.figures.delta_matrix(kv.read_log(logs), arm="evict", where="budget < 1").caption
    assert printed == expected + "\n"
    assert out.read_bytes().startswith(first)


def test_other_arguments_are_json_or_text(run, logs, tmp_path):
    out = tmp_path / "figure.svg"
    code, printed, _ = run("plot", "drop_by_task", logs, "--out", out, "--set", "tau=0.06")
    assert code == 0
    assert "dotted: τ = 0.06" in printed
    code, printed, _ = run(
        "plot",
        "mixture_curve",
        logs,
        "--out",
        out,
        "--arm",
        "evict",
        "--set",
        'tasks=["qa"]',
        "--set",
        "outcome=success",
    )
    assert code == 0
    assert "Mean difference of success" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["delta_matrx", "--out", "x.png"],
            "plot: figure='delta_matrx' is not known; did you mean 'delta_matrix'?",
        ),
        (["delta_matrix", "--out", "x.png"], "plot: delta_matrix needs the argument 'arm'; add --arm ARM"),
        (
            ["tau_sensitivity", "--out", "x.png"],
            "plot: tau_sensitivity needs the argument 'base'; add --set base=ARM",
        ),
        (
            ["drop_by_task", "--out", "x.jpg"],
            "plot: out='x.jpg' does not say which format; end it in .pdf, .png or .svg",
        ),
        (
            ["drop_by_task", "--out", "none/x.png"],
            "plot: out='none/x.png' lies in no folder; make the folder first",
        ),
        (
            ["drop_by_task", "--out", "x.png", "--arm", "evict"],
            "plot: arm='evict' is no argument of drop_by_task; known: column, tau, where",
        ),
        (
            ["drop_by_task", "--out", "x.png", "--set", "tau"],
            "plot: set='tau' is not of the form NAME=VALUE; write tau=0.05",
        ),
        (
            ["drop_by_task", "--out", "x.png", "--where", "TRUE", "--set", "where=1"],
            "plot: set='where=1' names an argument again; give it once",
        ),
        (["drop_by_task", "--out", "x.png", "--set", "tau=high"], "drop_by_task: tau='high'"),
        (
            ["delta_matrix", "--out", "x.png", "--arm", "evit"],
            "delta: arm='evit' is not an arm of the log; did you mean 'evict'?",
        ),
    ],
)
def test_bad_input_is_exit_code_2(run, logs, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("plot", arguments[0], logs, *arguments[1:])
    assert (code, out) == (2, "")
    assert err.startswith(f"kvstats: {message}")
    assert not list(tmp_path.glob("x.*"))


def test_a_file_that_cannot_be_written_is_bad_input(run, logs, tmp_path):
    (tmp_path / "x.png").mkdir()
    code, _, err = run("plot", "drop_by_task", logs, "--out", tmp_path / "x.png")
    assert code == 2
    assert "cannot be written" in err


def test_without_matplotlib_it_says_what_is_missing(run, logs, tmp_path, monkeypatch):
    real = importlib.import_module

    def missing(name, *rest):
        if name == "kvstats.report.figures":
            raise ImportError("figures need matplotlib")
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", missing)
    code, _, err = run("plot", "drop_by_task", logs, "--out", tmp_path / "x.png")
    assert (code, err) == (2, "kvstats: plot: figures need matplotlib\n")


def test_help_lists_every_figure_with_what_it_needs(run):
    code, out, _ = run("plot", "--help")
    assert code == 0
    assert list(FIGURES) == sorted(kv.figures.__all__)
    for name, (text, needed) in FIGURES.items():
        assert f"  {name}\n" in out
        assert text in out
        parameters = inspect.signature(getattr(kv.figures, name)).parameters
        without_default = [
            parameter.name
            for parameter in parameters.values()
            if parameter.default is parameter.empty and parameter.name not in COMMON
        ]
        assert list(needed) == without_default
