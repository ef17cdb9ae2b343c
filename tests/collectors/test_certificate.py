"""The certificates of a batch's reads against the formula of one read, on tensors."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from collectors.certificate import CertificateObserver
from collectors.certified_rows import radii_of_runs
from kvstats.errors import InputError
from kvstats.statistics.certificate import attention_certificate

TOTAL, LATER, WIDTH, BATCH = 60, 3, 8, 5


def observe(heads, n_heads, n_key_heads, rows, *, design_heads=1, dtype=torch.float32, seed=0):
    """Let an observer see three steps of two layers; return it, and what each cell should be made of.

    The rows share what was prefilled.
    """
    rng = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=rng).to(dtype)

    pi = torch.rand(2, len(rows), design_heads, TOTAL, generator=rng) * 0.9 + 0.1
    pi[..., :4] = 1.0
    kept = torch.rand(pi.shape, generator=rng) < pi
    observer = CertificateObserver(
        rows=rows,
        kept=kept,
        inclusion_probability=pi,
        heads=heads,
        layers=frozenset({0, 1}),
        steps=LATER,
        delta=0.2,
    )
    keys, values = (draw(2, BATCH, n_key_heads, TOTAL + LATER, WIDTH) for _ in range(2))
    for states in (keys, values):
        states[..., :TOTAL, :] = states[:, :1, :, :TOTAL]
    seen = {}
    for step in range(LATER + 1):
        observer.begin_step(step)
        for layer in range(2):
            query = draw(BATCH, n_heads, 2, WIDTH)
            length = TOTAL + step
            observer(layer, query, keys[layer, :, :, :length], values[layer, :, :, :length], 0.5)
            seen[step, layer] = (query, keys[layer, :, :, :length], values[layer, :, :, :length])
    return observer, seen


def one_read(observer, seen, cell, row, head, n_heads):
    """Logits, values, probabilities and sample of one read, in the type that was given."""
    query, key, value = seen[cell.step, cell.layer]
    batch_row, query_head = observer.rows[row], observer.heads[head]
    key_head = query_head // (n_heads // key.shape[1])
    keys, values = key[batch_row, key_head], value[batch_row, key_head]
    logits = keys.double() @ query[batch_row, query_head, -1].double() * 0.5
    of_head = query_head if observer.kept.shape[2] > 1 else 0
    extra = len(keys) - TOTAL
    kept = torch.nn.functional.pad(observer.kept[cell.layer, row, of_head], (0, extra), value=True)
    pi = torch.nn.functional.pad(
        observer.inclusion_probability[cell.layer, row, of_head], (0, extra), value=1
    )
    return logits, values.double(), pi.double(), kept


@pytest.mark.parametrize(
    ("heads", "n_heads", "n_key_heads", "rows", "design_heads"),
    [
        ([0, 1, 2, 3], 4, 4, [0, 1, 2, 3, 4], 1),
        ([0, 4, 8], 9, 3, [3, 4], 1),
        ([0, 4, 8, 12], 14, 2, [1, 3], 14),
        ([0, 5], 6, 3, [2], 6),
        ([0, 1, 4], 6, 2, [0, 4], 1),
    ],
)
def test_every_cell_equals_the_formula_of_one_read(heads, n_heads, n_key_heads, rows, design_heads):
    observer, seen = observe(heads, n_heads, n_key_heads, rows, design_heads=design_heads)
    assert [(cell.step, cell.layer) for cell in observer.cells] == [
        (s, k) for s in range(3) for k in range(2)
    ]
    for cell in observer.cells:
        assert cell.radius.shape == cell.variance.shape == (len(rows), len(heads))
        for row in range(len(rows)):
            for head in range(len(heads)):
                logits, values, pi, kept = one_read(observer, seen, cell, row, head, n_heads)
                expected = attention_certificate(logits, values, pi, kept, delta=0.2)
                assert float(cell.variance[row, head]) == pytest.approx(float(expected.variance), rel=2e-5)
                assert float(cell.radius[row, head]) == pytest.approx(float(expected.radius), rel=1e-5)


def test_a_read_that_one_value_dominates_keeps_its_digits():
    """The estimate nearly equals one sampled value, whose distance from it is 1e-4 of its norm."""
    keys = torch.zeros(1, 1, 40, WIDTH)
    keys[..., 7, 0] = 1.0
    rng = np.random.default_rng(0)
    values = torch.from_numpy(rng.normal(5, 1, (1, 1, 40, WIDTH)).astype(np.float32))
    query = torch.zeros(1, 1, 1, WIDTH)
    query[..., 0] = 12.5
    pi = torch.full((1, 1, 1, 40), 0.5)
    kept = torch.ones(1, 1, 1, 40, dtype=torch.bool)
    observer = CertificateObserver(
        rows=[0], kept=kept, inclusion_probability=pi, heads=[0], layers=frozenset({0}), steps=1
    )
    observer(0, query, keys, values, 1.0)
    logits = keys[0, 0] @ query[0, 0, 0]
    expected = attention_certificate(
        logits.double(), values[0, 0].double(), pi[0, 0, 0].double(), kept[0, 0, 0]
    )
    distance = torch.linalg.vector_norm(values[0, 0, 7] - expected.estimate)
    assert float(distance) < 3e-4 * float(torch.linalg.vector_norm(values[0, 0, 7]))
    (cell,) = observer.cells
    assert float(cell.radius) == pytest.approx(float(expected.radius), rel=1e-5)
    assert float(cell.variance) == pytest.approx(float(expected.variance), rel=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-5), (torch.bfloat16, 1e-5)])
def test_reads_of_other_types_are_certified_in_float32(dtype, tolerance):
    observer, seen = observe([0, 3], 4, 2, [1, 2], dtype=dtype)
    for cell in observer.cells:
        assert cell.radius.dtype == torch.float32
        logits, values, pi, kept = one_read(observer, seen, cell, 1, 1, 4)
        expected = attention_certificate(logits, values, pi, kept, delta=0.2)
        assert float(cell.radius[1, 1]) == pytest.approx(float(expected.radius), rel=tolerance)


@pytest.mark.parametrize("states", ["key", "value"])
def test_rows_of_different_sequences_are_refused(states):
    observer, _ = observe([0, 2], 4, 2, [1, 4])
    getattr(observer.reads[1], states)[4, 1, TOTAL - 1] += 1.0
    with pytest.raises(InputError, match=r"rows=\[1, 4\] do not hold the same prefilled positions"):
        observer.cells  # noqa: B018


def test_cells_may_be_asked_for_between_steps():
    whole, _ = observe([0, 2], 4, 2, [0, 1])
    stepwise, seen = observe([0, 2], 4, 2, [0, 1])
    stepwise.reads.clear()
    for step in range(LATER):
        stepwise.begin_step(step)
        for layer in range(2):
            query, key, value = seen[step, layer]
            stepwise(layer, query, key, value, 0.5)
        assert len(stepwise.cells) == 2 * (step + 1)
    for one, other in zip(whole.cells, stepwise.cells, strict=True):
        assert (one.step, one.layer) == (other.step, other.layer)
        torch.testing.assert_close(one.radius, other.radius, rtol=1e-5, atol=0)


def test_the_radii_of_a_row_leave_out_reads_past_its_end():
    observer, _ = observe([0, 2], 4, 2, [1, 4])
    found = observer.per_head(4, n_reads=2)
    assert found.shape == (2, 2, 2)
    cells = {(cell.step, cell.layer): cell for cell in observer.cells}
    assert found[1, 0].tolist() == cells[1, 0].radius[1].tolist()


def test_a_run_has_one_read_more_than_tokens_that_of_its_end():
    observer, _ = observe([0, 2], 4, 2, [1, 4])
    generations = [SimpleNamespace(token_ids=list(range(row))) for row in range(BATCH)]
    radii = radii_of_runs(observer, generations)
    assert {row: found.shape for row, found in radii.items()} == {1: (2, 2, 2), 4: (LATER, 2, 2)}
    assert torch.equal(radii[1], observer.per_head(1, n_reads=2))
    assert radii_of_runs(None, generations) == {}
