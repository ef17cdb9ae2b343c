"""The commands that seal and amend, and what verification then prints."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kvstats.cli import main
from kvstats.document import read_document
from kvstats.prereg.chain import chain_of

TOY = Path(__file__).parents[1] / "golden" / "toy"


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
    return Path(shutil.copytree(TOY, tmp_path / "toy")) / "preregistration.yaml"


def test_seal_amend_verify(run, plan):
    assert run("seal", plan)[0] == 0
    code, out, err = run(
        "amend", plan, "--text", "A wider margin.", "--change", "coverage.supported=low > 0.2"
    )
    assert (code, err) == (0, "")
    document = read_document(plan)
    frozen, link = chain_of(document).links
    assert out.splitlines()[1] == f"previous      {frozen}"
    assert out.splitlines()[2] == f"Seal it before the next record is made: kvstats seal {plan}"
    assert document.value["amendments"][0]["changes"] == {"coverage": {"supported": "low > 0.2"}}
    code, out, err = run("seal", plan)
    assert (code, err) == (0, "")
    assert out.startswith("seal          preregistration.seal.json, 20")
    assert f"\nfrozen part   {frozen}\namendment 1   {link}\n" in out
    code, out, err = run("verify", plan, "--expect-sha256", link)
    assert (code, err) == (0, "")
    assert f"sha256        {document.sha256} (sealed, anchored)\nfrozen part   {frozen}\n" in out
    words = " ".join(out.split())
    assert "seal preregistration.seal.json, 20" in words
    assert "Z by its own word; the same bytes, 1 amendment expected" in words
    assert f"expected {link}: the frozen part and 1 amendment data" in words
    assert ": A wider margin. (changes coverage) guard" in words
    code, out, _ = run("verify", plan, "--expect-sha256", frozen)
    assert code == 0
    assert f"(sealed, anchored in part) frozen part {frozen} (as expected) seal" in " ".join(out.split())


def test_json(run, plan):
    code, out, err = run("seal", plan, "--json")
    assert (code, err) == (0, "")
    assert out == (plan.parent / "preregistration.seal.json").read_text()
    code, out, err = run("amend", plan, "--text", "Why.", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["previous_sha256"] == chain_of(read_document(plan)).frozen_sha256
    code, out, _ = run("verify", plan, "--json", "--no-git")
    content = json.loads(out)
    assert (code, content["registration"]["sha256"]) == (0, read_document(plan).sha256)
    assert [entry["text"] for entry in content["amendments"]] == ["Why."]
    assert content["registration"]["seal"]["same_bytes"] is False


def test_a_broken_seal_is_3_and_is_not_written_over(run, plan):
    assert run("seal", plan)[0] == 0
    plan.write_text(plan.read_text().replace("low > 0.3", "low > 0.1"))
    code, out, err = run("verify", plan)
    assert (code, err) == (3, "")
    assert "integrity     the frozen part has SHA-256" in out
    code, out, err = run("seal", plan)
    assert (code, out) == (2, "")
    assert "write a changed plan as an amendment or as a new registration" in err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["coverage=1"], "amend: change='coverage=1' is not of the form ID.FIELD=VALUE; write harm"),
        (["coverage.null=1", "coverage.null=2"], "amend: change='coverage.null=2' changes a field again"),
        (["coverge.null=1"], "amendments[0].changes.coverge is no claim or guard; did you mean 'coverage'?"),
    ],
)
def test_a_faulty_change_is_2(run, plan, change, message):
    code, out, err = run(
        "amend", plan, "--text", "x", *(part for text in change for part in ("--change", text))
    )
    assert (code, out) == (2, "")
    assert message in err


def test_git_and_time_stamps_are_asked_as_named(run, plan):
    code, out, err = run("verify", plan, "--git", "v1")
    assert (code, out) == (2, "")
    assert "verify: git='v1' is no commit or tag of a git repository around" in err
    code, _, err = run("verify", plan, "--timestamp-roots", plan)
    assert (code, "is without a token; pass timestamp too" in err) == (2, True)
    code, _, err = run("verify", plan, "--timestamp", plan)
    assert (code, "kvstats: verify: timestamp=" in err) == (2, True)


@pytest.mark.parametrize("command", ["seal", "amend"])
def test_help(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"Usage: kvstats {command} [OPTIONS] {{FILE}}" in out
