"""One input with everything a plan can ask for, on the real small model."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
import torch

import kvstats as kv
from collectors.config import StudyPlan
from collectors.models import LoadedModel, load_model
from collectors.record import collect_input
from collectors.run import study_record
from collectors.tasks import make_example
from collectors.units import planned_rows
from kvstats.log import LogWriter, log_from_records
from kvstats.log.records import REPLAY_KEY, RUN_KEY, InputRecord, ReplayRecord, RunRecord

PLAN = {
    "suite": "small",
    "model": "smollm2-135m",
    "length": 230,
    "seed": 5,
    "tasks": {"niah_single": 4},
    "conditions": ["stream", "aware"],
    "arms": [
        {"name": "snapkv", "evictor": {"evictor": "snapkv", "scope": "head"}, "budgets": [0.5, 1.0]},
        {"name": "random", "evictor": {"evictor": "uniform"}, "budgets": [0.5]},
        {"name": "poisson", "evictor": {"evictor": "poisson"}, "budgets": [0.5, 0.75], "seeds": [0, 1]},
        {"name": "plain", "evictor": {"evictor": "poisson", "offset": False}, "budgets": [0.5]},
    ],
    "certificate": {"head_stride": 4, "layer_stride": 10, "steps": 3, "per_head": True},
    "replay": {
        "inputs": 1,
        "steps": [0],
        "arms": ["snapkv", "random", "poisson", "plain"],
        "without_offset": True,
    },
    "permutation": {"inputs": 1, "arms": ["snapkv"], "permutations": 3, "layer_stride": 2},
    "retrieval": {"arm": "poisson", "budgets": [0.5], "block_tokens": 32, "blocks": [1, 3]},
    "timing": {"inputs": 1},
    "head_pairs": {"inputs": 1},
    "no_context": True,
}
OUTPUT = {"logprob", "logprob_min", "logprob_first"}
RETAINED = {"certificate", "retained_entropy", "evicted_mass", "margin", *OUTPUT}


def collected(smollm2: LoadedModel, plan: dict, index: int):
    example = make_example("niah_single", seed=5, index=index, length=230, tokenizer=smollm2.tokenizer)
    example = replace(example, signals={"turns": 10.0})
    study = msgspec.convert(plan, StudyPlan)
    return example, collect_input(smollm2, study, example, "stream", index=index)


@pytest.fixture(scope="module")
def whole(smollm2):
    return collected(smollm2, PLAN, 0)


@pytest.fixture(scope="module")
def later(smollm2):
    arms = [arm for arm in PLAN["arms"] if arm["name"] in ("snapkv", "poisson")]
    replay = {**PLAN["replay"], "arms": ["snapkv", "poisson"]}
    return collected(smollm2, {**PLAN, "arms": arms, "replay": replay}, 1)


def runs_of(records) -> dict:
    return {(run.arm, run.budget, run.seed): run for run in records if isinstance(run, RunRecord)}


def test_all_runs_are_there_once(whole):
    _, records = whole
    runs = [record for record in records if isinstance(record, RunRecord)]
    assert len({tuple(getattr(run, name) for name in RUN_KEY) for run in runs}) == len(runs)
    arms = [(run.arm, run.budget, run.seed) for run in runs]
    retrieval = [f"poisson+{kind}" for kind in ("ranked", "ranked3", "random", "random3", "oracle")]
    assert arms == [
        ("full", 1.0, 0),
        ("snapkv", 0.5, 0),
        ("snapkv", 1.0, 0),
        ("random", 0.5, 0),
        *(("poisson", budget, seed) for budget in (0.5, 0.75) for seed in (0, 1)),
        ("plain", 0.5, 0),
        *((arm, 0.5, seed) for seed in (0, 1) for arm in retrieval),
        ("no_context", None, 0),
    ]
    assert arms == planned_rows(msgspec.convert(PLAN, StudyPlan), "stream")
    replays = [record for record in records if isinstance(record, ReplayRecord)]
    assert len({tuple(getattr(cell, name) for name in REPLAY_KEY) for cell in replays}) == len(replays)
    assert isinstance(records[-1], InputRecord)


def test_signals_of_every_arm(whole):
    _, records = whole
    for (arm, budget, _), run in runs_of(records).items():
        if arm == "no_context":
            assert set(run.signals) == OUTPUT
            continue
        blocks = {"true_block_rank", "n_blocks", "candidate_blocks"} if "+" in arm else set()
        assert set(run.signals) == RETAINED | blocks
        assert (run.signals["certificate"] is None) == (arm != "poisson")
        assert (run.certificate_per_head is None) == (arm != "poisson")
        # Every tenth of 30 layers, and every fourth of 9 heads.
        assert [len(heads) for heads in run.certificate_per_head or [[0] * 3] * 3] == [3, 3, 3]
        assert (run.signals["margin"] is None) == (arm != "snapkv" or budget == 1.0)
        assert run.signals["logprob_min"] <= run.signals["logprob"] <= 0
        assert run.signals["logprob_min"] <= run.signals["logprob_first"] <= 0
        assert 0 < run.signals["retained_entropy"] <= 1
        assert (run.signals["evicted_mass"] == 0) == (budget == 1.0)


def test_the_library_ranks_the_blocks_that_were_recorded(whole):
    _, records = whole
    runs = [run for run in records if isinstance(run, RunRecord) and run.arm == "poisson+ranked3"]
    found = kv.block_ranking(log_from_records(runs), arm="poisson+ranked3", top=[1, 3])
    assert found.item(quantity="chance_top_3") == pytest.approx(3 / runs[0].signals["candidate_blocks"])
    assert found.item(quantity="top_3") == sum(r.signals["true_block_rank"] <= 3 for r in runs) / len(runs)


def test_blocks_are_kept_besides_what_the_base_row_keeps(whole):
    _, records = whole
    runs = runs_of(records)
    for seed in (0, 1):
        base = runs["poisson", 0.5, seed]
        for arm in ("ranked", "random", "oracle", "ranked3", "random3"):
            run = runs[f"poisson+{arm}", 0.5, seed]
            added = run.n_kept - base.n_kept
            assert 0 < added <= 32 * run.signals["n_blocks"]
            assert run.kept_fraction > base.kept_fraction
            assert run.memory_bytes["cache"] > base.memory_bytes["cache"]
        assert runs["poisson+oracle", 0.5, seed].signals["true_block_rank"] == 1
        ranks = {
            runs[f"poisson+{arm}", 0.5, seed].signals["true_block_rank"] for arm in ("ranked", "ranked3")
        }
        assert len(ranks) == 1


def test_the_control_without_a_context_equals_plain_generation(whole, smollm2):
    example, records = whole
    run = runs_of(records)["no_context", None, 0]
    prompt = torch.tensor([example.no_context_ids])
    with torch.inference_mode():
        plain = smollm2.model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=example.max_new_tokens,
            do_sample=False,
            pad_token_id=smollm2.tokenizer.pad_token_id,
        )[0, prompt.shape[1] :]
    assert run.prediction == smollm2.tokenizer.decode(plain, skip_special_tokens=True)
    assert (run.n_kept, run.kept_fraction, run.n_prompt) == (0, 0.0, len(example.context_ids))


def test_replays_cover_the_named_arms_and_designs(whole):
    _, records = whole
    cells = [record for record in records if isinstance(record, ReplayRecord)]
    found = {(cell.arm, cell.budget, cell.seed, cell.design) for cell in cells}
    assert found == {
        ("snapkv", 0.5, 0, "deterministic"),
        ("random", 0.5, 0, "uniform"),
        ("plain", 0.5, 0, "poisson_without_offset"),
        *(
            ("poisson", budget, seed, design)
            for budget in (0.5, 0.75)
            for seed in (0, 1)
            for design in ("poisson", "poisson_without_offset")
        ),
    }
    permuted = [cell for cell in cells if cell.retained_hash is not None]
    assert {cell.arm for cell in permuted} == {"snapkv"}
    assert len(permuted) == 4 * 2 * 3
    assert {cell.layer for cell in permuted} == {0, 20}


def test_the_input_says_what_its_prefill_showed(whole):
    example, records = whole
    record = records[-1]
    assert set(record.signals) == {
        *("attention_entropy", "entropy_drop", "top_32_mass", "max_share", "key_norm_dispersion"),
        *("margin_to_noise", "turns"),
    }
    assert record.signals["turns"] == 10.0
    assert record.context_tokens == len(example.context_ids)
    assert [len(pairs) for pairs in record.head_agreement_per_pair] == [36] * 30
    mean = [sum(pairs) / 36 for pairs in record.head_agreement_per_pair]
    assert mean == pytest.approx(record.head_agreement_per_layer, abs=5e-5)


def test_times_of_the_certificate_stand_on_the_certified_rows(whole):
    _, records = whole
    for (arm, _, _), run in runs_of(records).items():
        timed = {"decode_plain", "decode_certified"} if arm == "poisson" else set()
        assert set(run.seconds) - {"prefill", "decode_batch"} == timed
        assert all(value > 0 for value in run.seconds.values())


def test_what_is_asked_of_the_first_input_is_not_recorded_of_the_second(later):
    _, records = later
    assert not any(isinstance(record, ReplayRecord) for record in records)
    assert records[-1].head_agreement_per_pair is None
    assert all("decode_plain" not in run.seconds for run in runs_of(records).values())
    assert ("poisson+ranked", 0.5, 0) in runs_of(records)


def test_what_is_recorded_besides_changes_no_run(whole, smollm2):
    bare = {
        name: PLAN[name] for name in PLAN if name not in ("permutation", "retrieval", "timing", "no_context")
    }
    _, records = collected(smollm2, {**bare, "replay": {}, "head_pairs": {}}, 0)
    others = runs_of(whole[1])
    for key, run in runs_of(records).items():
        assert run.prediction == others[key].prediction
        assert run.signals == others[key].signals
        assert run.certificate_per_head == others[key].certificate_per_head


def test_the_records_make_a_log(whole, later, smollm2, tmp_path):
    path = tmp_path / "log.jsonl"
    with LogWriter(path, study_record(msgspec.convert(PLAN, StudyPlan), smollm2)) as writer:
        for _, records in (whole, later):
            writer.append(records)
    log = kv.read_log(path)
    assert log.rejects.height == 0
    assert log.runs.filter(arm="no_context")["kept_fraction"].to_list() == [0.0, 0.0]
    assert log.runs.filter(arm="poisson+oracle")["true_block_rank"].to_list() == [1.0] * 4


def test_bfloat16_gives_the_same_kinds_of_records(whole):
    loaded = load_model("smollm2-135m", dtype="bfloat16")
    arms = [
        {"name": "snapkv", "evictor": {"evictor": "snapkv"}, "budgets": [0.5]},
        {"name": "poisson", "evictor": {"evictor": "poisson"}, "budgets": [0.5]},
    ]
    replay = {**PLAN["replay"], "arms": ["snapkv", "poisson"]}
    _, records = collected(loaded, {**PLAN, "arms": arms, "replay": replay, "dtype": "bfloat16"}, 0)
    exact = runs_of(whole[1])
    for key, run in runs_of(records).items():
        assert set(run.signals) == set(exact[key].signals)
    assert (
        runs_of(records)["full", 1.0, 0].memory_bytes["cache"]
        == exact["full", 1.0, 0].memory_bytes["cache"] / 2
    )
    errors = [record.true_error for record in records if isinstance(record, ReplayRecord)]
    assert len(errors) == 3 * 3 * 3 + 3 * 2 * 3
    assert all(0 < error < 10 for error in errors)
    entropy = [found[-1].signals["attention_entropy"] for found in (records, whole[1])]
    assert entropy[0] == pytest.approx(entropy[1], abs=0.02)
