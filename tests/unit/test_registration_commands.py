"""The commands that write, check and exchange registrations."""

import json

import msgspec
import pytest

from kvstats.cli import main
from kvstats.prereg.json_schema import registration_schema
from kvstats.prereg.lint import lint
from kvstats.prereg.plan import load_plan
from kvstats.prereg.prml import read_manifest

PLAN = """\
study: toy
registered_at: 2026-10-31T12:00:00Z
planned: {inputs: 100, discordance: 0.3, effect: -0.2}
data: {runs: [logs/*.jsonl]}
claims:
  - id: harm
    statement: Eviction harms.
    estimator: delta
    arguments: {arm: evict}
    supported: high < 0
"""


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
def plan(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return path


def test_new_writes_a_registration_that_lints(run, tmp_path):
    path = tmp_path / "preregistration.yaml"
    code, out, err = run("new", path)
    assert (code, err) == (0, "")
    assert out == f"wrote {path}; check it with: kvstats lint {path}\n"
    code, out, err = run("lint", path)
    assert (code, err) == (0, "")
    assert out.startswith("my study (preregistration.yaml): no errors, no warnings\n")
    code, out, err = run("new", path)
    assert (code, out) == (2, "")
    assert err.endswith("is there already; name another file\n")


def test_new_from_an_example(run, tmp_path):
    path = tmp_path / "plan.yaml"
    assert run("new", path, "--example", "gating_32k")[0] == 0
    assert load_plan(path).registration.study == "predictions of the gating study for 32K"
    code, _, err = run("new", tmp_path / "other.yaml", "--example", "gating")
    assert code == 2
    assert "example='gating' is no example" in err


def test_lint_prints_power_and_warnings(run, plan):
    code, out, err = run("lint", plan)
    assert (code, err) == (0, "")
    assert out == (
        "toy (plan.yaml): no errors, 2 warnings\n"
        "warning: no stopping rule: when the collection ends is open; add 'stopping_rule'\n"
        "\n"
        "harm (line 6)\n"
        "  power: 97% at the planned effect -0.2; a true value of at most -0.149 is found with 80% power,\n"
        "    level 0.95\n"
        "  warning: no rule kills it: nothing that is found can count against it; add 'killed'\n"
    )
    code, out, err = run("lint", plan, "--json")
    assert (code, err) == (0, "")
    assert out.encode() == msgspec.json.format(msgspec.json.encode(lint(plan))) + b"\n"


def test_lint_finds_the_errors_of_verify(run, plan):
    plan.write_text(PLAN + "nonsense_key: 1\n")
    linted, verified = run("lint", plan), run("verify", plan)
    assert linted == verified
    assert linted[0] == 2
    assert "plan.yaml:11: the file has the unknown key 'nonsense_key'" in linted[2]


def test_schema_of_registrations(run):
    code, out, _ = run("schema", "--registration")
    assert code == 0
    assert json.loads(out) == registration_schema()


def test_prml(run, plan, tmp_path):
    digest = "a" * 64
    code, out, err = run(
        "prml", "export", plan, "--claim", "harm", "--producer", "example.org",
        "--dataset-id", "a.jsonl", "--dataset-sha256", digest,
    )  # fmt: skip
    assert (code, err) == (0, "")
    manifest = tmp_path / "harm.prml.yaml"
    manifest.write_text(out)
    found = read_manifest(manifest).sha256
    assert run("prml", "hash", manifest) == (0, f"{found}\n", "")
    assert run("prml", "hash", manifest, "--expect-sha256", found.upper())[0] == 0
    code, out, _ = run("prml", "import", manifest, "--expect-sha256", found)
    assert code == 0
    back = tmp_path / "back.yaml"
    back.write_text(out)
    assert load_plan(back).registration.data.sha256 == {"a.jsonl": digest}
    manifest.write_text(manifest.read_text().replace("threshold: 0.0", "threshold: 0.1"))
    for command in ("hash", "import"):
        code, out, err = run("prml", command, manifest, "--expect-sha256", found)
        assert (code, out) == (3, "")
        assert f"expected was {found}" in err
    code, _, err = run("prml", "export", plan, "--claim", "harm", "--producer", "example.org")
    assert code == 2
    assert "plan.yaml:4: the registration does not name the SHA-256 of one file" in err
