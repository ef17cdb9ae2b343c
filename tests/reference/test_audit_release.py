"""What the audit and the reproduction check say of a gating study's released rows, and of other logs.

The released cells are clean, so each fault of the field is put into them by hand and must be found.
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import polars as pl
import pytest

import kvstats as kv

DATA = Path(__file__).parents[3] / "shared" / "data"
RELEASE, LONGBENCH, KVPRESS = DATA / "page_release", DATA / "longbench_pred", DATA / "kvpress_centrality"
CELL = RELEASE / "gated_4k_mistral7b.jsonl"

pytestmark = pytest.mark.skipif(not RELEASE.is_dir(), reason="the released rows are not here")


@cache
def cell():
    return kv.read_log(CELL, model="m", suite="4K")


def checks(log, **options):
    found = log.audit(**options).findings
    return {item.check: item for item in found if item.check != "no study record"}


def changed(**columns):
    """The cell with other columns of runs."""
    return cell().with_runs(cell().runs.with_columns(**columns))


def test_the_released_cells_are_clean():
    for path in sorted(RELEASE.glob("gated_*k_*.jsonl")):
        log = kv.read_log(path)
        assert checks(log) == {}, path.name
        assert log.audit().n_scored == log.runs.height > 3_000
        assert kv.compare_logs(log, log, tau=0.07).verdict == "reproduced"


def test_the_cell_of_a_trained_evictor_has_no_full_cache():
    found = checks(kv.read_log(RELEASE / "gated_dbtrimkv_qwen3_4k.jsonl"))
    assert {check: item.count for check, item in found.items()} == {"missing twin": 720}


def test_an_arm_that_is_silently_the_other():
    """Equal on 600 of 600 evicting rows of one task."""
    plain = cell().runs.filter(pl.col("arm") == "plain", task="vt")
    copy = plain.with_columns(arm=pl.lit("uniform")).filter(pl.col("budget") < 1)
    found = checks(cell().with_runs(pl.concat([plain, copy])))
    assert found["identical arms"].count == copy.height > 500


def test_a_cell_that_was_run_at_another_threshold_than_reported():
    stated = pl.when(pl.col("arm") == "gated").then(pl.lit('{"tau":0.04}')).otherwise(pl.col("extra"))
    found = checks(changed(extra=stated))["tau against its calls"]
    drops = cell().inputs.filter(pl.col("drop").is_between(0.04, 0.07))
    assert found.count == 9 * drops.height > 0
    right = pl.when(pl.col("arm") == "gated").then(pl.lit('{"tau":0.07}')).otherwise(pl.col("extra"))
    assert checks(changed(extra=right)) == {}


def test_a_stub_beside_a_cell(tmp_path):
    shutil.copy(CELL, tmp_path)
    lines = CELL.read_bytes().splitlines(keepends=True)[:9]
    (tmp_path / "gated_4k_mistral7.jsonl").write_bytes(b"".join(lines))
    found = checks(kv.read_log(str(tmp_path / "*.jsonl")))["stub beside a large file"]
    assert len(found.examples) == 1
    assert "gated_4k_mistral7.jsonl has" in found.examples[0]


def test_a_second_first_token_is_told_by_the_reference():
    moved = cell().inputs.with_columns(pl.col("context_tokens") + 1, pl.col("drop") + 0.011)
    new = cell().with_inputs(moved)
    found = checks(new, reference=cell())
    assert (found["prompt length drift"].severity, found["prompt length drift"].count) == (
        "error",
        moved.height,
    )
    assert found["D drift"].count == moved.height
    assert "by 0.011 on average and 0.011 at most" in found["D drift"].message
    compared = kv.compare_logs(new, cell(), tau=0.07)
    flips = cell().inputs.filter(pl.col("drop").is_between(0.059, 0.07, closed="left")).height
    (gate,) = compared.frame.filter(field="gate").rows(named=True)
    assert (compared.verdict, gate["different"]) == ("different", flips)
    assert flips > 0


@pytest.mark.skipif(not LONGBENCH.is_dir(), reason="the rows are not here")
def test_two_files_of_one_benchmark_of_which_one_has_rows_twice():
    """One has 234 rows where 200 are expected."""
    names = {"llama2-7b-chat-4k": 1.0, "llama2-7b-chat-4k_S17-19-21-23": 0.5}
    with pytest.warns(UserWarning, match="34 of 234 rows repeat the input of an earlier one"):
        log = kv.read_log(
            [LONGBENCH / name / "narrativeqa.jsonl" for name in names],
            arm={name: "full" if budget == 1 else "skip" for name, budget in names.items()},
            budget=names,
            model="m",
            pair_by="content",
            on_error="skip",
        )
    found = checks(log)
    assert (found["unreadable lines"].severity, found["unreadable lines"].count) == ("error", 34)
    assert "missing twin" not in found


@pytest.mark.skipif(not KVPRESS.is_dir(), reason="the rows are not here")
def test_a_killed_run_is_told_by_its_folder(tmp_path):
    (source,) = KVPRESS.glob("*ppr_knorm_d0.15__0.50")
    shutil.copytree(source, tmp_path / source.name)
    shutil.copytree(source, tmp_path / f"{source.name}__1")
    (tmp_path / f"{source.name}__1" / "config.yaml").unlink()
    with (
        pytest.warns(UserWarning, match="has a number because"),
        pytest.warns(UserWarning, match=r"has no config\.yaml"),
    ):
        log = kv.read_log(str(tmp_path), on_error="skip")
    found = checks(log)
    assert set(found) >= {"numbered twin", "config missing", "duplicates"}
    assert found["config missing"].examples[0].startswith(str(tmp_path / f"{source.name}__1"))
