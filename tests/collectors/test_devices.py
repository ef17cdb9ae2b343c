"""The same code on other devices and in other types of float."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
import torch

from collectors.attention import recording, window_attention
from collectors.comparison import compare_records
from collectors.compute import compute_unit, device_names, load_for
from collectors.config import StudyPlan
from collectors.failure import error_of
from collectors.models import LoadedModel
from collectors.prefill import prefill
from collectors.rows import draw_rows, split_prompt
from collectors.tasks import make_example
from collectors.units import Unit
from kvstats.errors import InputError
from kvstats.log.records import InputRecord, RunRecord

PLAN = msgspec.convert(
    {
        "suite": "small",
        "model": "smollm2-135m",
        "length": 190,
        "seed": 5,
        "tasks": {"niah_single": 1},
        "conditions": ["aware"],
        "arms": [
            {"name": "snapkv", "evictor": {"evictor": "snapkv"}, "budgets": [0.5]},
            {"name": "poisson", "evictor": {"evictor": "poisson"}, "budgets": [0.6]},
        ],
    },
    StudyPlan,
)
UNIT = Unit("niah_single", 0, "aware")


def collected(loaded: LoadedModel) -> tuple[InputRecord, dict[str, RunRecord]]:
    block = compute_unit(PLAN, loaded, UNIT)
    assert error_of(block) is None
    (prefilled,) = (record for record in block if isinstance(record, InputRecord))
    return prefilled, {record.arm: record for record in block if isinstance(record, RunRecord)}


def kept_sets(loaded: LoadedModel) -> dict[str, torch.Tensor]:
    example = make_example("niah_single", seed=5, index=0, length=190, tokenizer=loaded.tokenizer)
    context, _ = split_prompt(example, "aware")
    with recording(loaded.model) as recorder:
        filled = prefill(loaded.model, context, recorder)
    return {row.arm: row.selection.kept for row in draw_rows(PLAN, filled, "label", "aware")}


@pytest.fixture(scope="module")
def in_dtype(smollm2) -> dict[torch.dtype, LoadedModel]:
    """The model in three types of float; the weights in float64 are those in float32."""
    found = {torch.float32: smollm2}
    for dtype in (torch.float64, torch.bfloat16):
        found[dtype] = load_for(PLAN, "cpu")
        found[dtype].model.to(dtype)
    return found


@pytest.fixture(scope="module")
def by_dtype(in_dtype) -> dict[torch.dtype, tuple[InputRecord, dict[str, RunRecord]]]:
    """One input in three types of float."""
    return {dtype: collected(loaded) for dtype, loaded in in_dtype.items()}


def test_kept_sets_in_three_types_of_float(in_dtype):
    """The same in float64; in bfloat16 at most one position in fifty differs."""
    kept = {dtype: kept_sets(loaded) for dtype, loaded in in_dtype.items()}
    for arm in ("full", "snapkv", "poisson"):
        single = kept[torch.float32][arm]
        assert torch.equal(kept[torch.float64][arm], single)
        assert float((kept[torch.bfloat16][arm] ^ single).double().mean()) <= 0.02


def test_float64_makes_the_choices_of_float32(by_dtype):
    """Kept sets and tokens are the same; numbers to the rounding of float32 through 30 layers."""
    (prefilled, runs), (exact, exact_runs) = by_dtype[torch.float32], by_dtype[torch.float64]
    assert prefilled.drop == pytest.approx(exact.drop, abs=1e-3)
    assert prefilled.head_agreement_per_layer == pytest.approx(exact.head_agreement_per_layer, abs=5e-3)
    for arm, run in runs.items():
        other = exact_runs[arm]
        assert (run.n_kept, run.prediction, run.score) == (other.n_kept, other.prediction, other.score)
        assert run.signals["logprob"] == pytest.approx(other.signals["logprob"], abs=1e-4)
        assert run.signals["evicted_mass"] == pytest.approx(other.signals["evicted_mass"], abs=1e-5)
    assert runs["poisson"].signals["certificate"] == pytest.approx(
        exact_runs["poisson"].signals["certificate"], rel=1e-3
    )


def test_bfloat16_is_near(by_dtype):
    """With 8 bits of mantissa D moves by thousandths, log-probabilities by hundredths."""
    (prefilled, runs), (near, near_runs) = by_dtype[torch.float32], by_dtype[torch.bfloat16]
    assert near.prompt_hash == prefilled.prompt_hash
    assert near.drop == pytest.approx(prefilled.drop, abs=0.005)
    assert near.head_agreement_per_layer == pytest.approx(prefilled.head_agreement_per_layer, abs=0.05)
    assert near_runs["snapkv"].n_kept == runs["snapkv"].n_kept
    assert near_runs["full"].prediction == runs["full"].prediction
    for arm, run in runs.items():
        assert near_runs[arm].signals["logprob"] == pytest.approx(run.signals["logprob"], abs=0.1)
        assert near_runs[arm].signals["evicted_mass"] == pytest.approx(run.signals["evicted_mass"], abs=0.005)
    assert near_runs["poisson"].signals["certificate"] == pytest.approx(
        runs["poisson"].signals["certificate"], rel=0.1
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_window_is_captured_where_unscaled_products_exceed_half_precision(dtype):
    """Products of up to 64 times 64 times 64 are more than the 65504 of float16; scaled, they are 32768."""
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn(1, heads, 9, 64, generator=generator).mul(8) for heads in (4, 2))
    query[..., :], key[:, :, 3] = 64.0, 64.0
    key[:, :, 4] = 63.5
    query, key = query.to(dtype), key.to(dtype)
    found = window_attention(query, key, 0.125, 4)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, window_attention(query.double(), key.double(), 0.125, 4))
    assert (found[:, 3] == 1).all()


@pytest.fixture
def on_gpu() -> Iterator[LoadedModel]:
    if not torch.cuda.is_available():
        pytest.skip("this machine has no GPU")
    yield load_for(PLAN, device_names("cuda", 1)[0])
    torch.cuda.empty_cache()


def test_a_gpu_makes_the_records_of_the_processor(smollm2, on_gpu):
    here, there = compute_unit(PLAN, smollm2, UNIT), compute_unit(PLAN, on_gpu, UNIT)
    assert compare_records(here, there, tau=0.07).verdict in ("reproduced", "drifted")


def test_a_number_that_no_log_can_hold_is_an_error_of_its_unit(smollm2):
    """Weights of a last layer that overflow make every log-probability undefined."""
    norm = smollm2.model.model.norm.weight
    before = norm.detach().clone()
    try:
        norm.data.fill_(float("inf"))
        with pytest.raises(
            InputError, match=r"encode_record: signals\.logprob=nan is not finite; write None"
        ):
            compute_unit(PLAN, smollm2, UNIT)
    finally:
        norm.data.copy_(before)


@pytest.mark.parametrize("name", ["gpu", "mps", "cuda:", "cuda:0\n", ""])
def test_a_device_of_another_kind_is_refused(name):
    with pytest.raises(InputError, match=r"collect: device='.*' is unknown; write cpu, cuda or cuda:0"):
        device_names(name, 1)


def test_each_worker_has_a_device():
    assert device_names("cpu", 3) == ["cpu", "cpu", "cpu"]
    count = torch.cuda.device_count()
    with pytest.raises(
        InputError, match=rf"device='cuda:{count}' is not there: this machine has {count} GPUs"
    ):
        device_names(f"cuda:{count}", 1)
    with pytest.raises(
        InputError, match=r"collect: (device='cuda' is not there|workers=\d+ is more than the)"
    ):
        device_names("cuda", count + 1)
