"""Replayed reads of the real small model against a float64 loop, and evicted values that trade places."""

from __future__ import annotations

import math
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import torch

from collectors.attention import recording
from collectors.config import StudyPlan
from collectors.evictors import (
    ConditionalPoisson,
    Poisson,
    Protected,
    Selection,
    SnapKV,
    Uniform,
    keep_everything,
)
from collectors.permutation import permute_evicted, retained_hash
from collectors.prefill import prefill
from collectors.reads import Read, design_of_read
from collectors.replay import Permuted, ReplayObserver, make_replay, replay_records
from collectors.rows import Row, decode_rows, generator_of, split_prompt
from collectors.tasks import make_example
from kvstats.statistics.certificate import attention_certificate

HEADS = [0, 4, 8]
LAYERS = [3, 20]
KEY = {"suite": "s", "model": "m", "task": "t", "input_id": "i", "condition": "aware"}
ARMS = {
    "full": (None, 1.0),
    "snapkv": (SnapKV(scope="head", pool=1), 0.4),
    "poisson": (Poisson(), 0.5),
    "plain": (Poisson(offset=False), 0.5),
    "fixed": (ConditionalPoisson(scope="layer"), 0.5),
    "random": (Uniform(), 0.4),
}


@pytest.fixture(scope="module")
def replayed(smollm2):
    """One batch of all designs, replayed at their own queries and at those of the full cache."""
    example = make_example("niah_single", seed=3, index=0, length=200, tokenizer=smollm2.tokenizer)
    context, fed = split_prompt(example, "aware")
    seen = {}
    with recording(smollm2.model) as recorder:
        filled = prefill(smollm2.model, context, recorder)
        rows = []
        for arm, (evictor, budget) in ARMS.items():
            if evictor is None:
                selection = keep_everything(filled.n_tokens, Protected())
            else:
                selection = evictor.select(filled, budget, Protected(), np.random.default_rng(5))
            rows.append(Row(arm, budget, 0, selection))
        common = {
            "rows": dict(enumerate(rows[1:], start=1)),
            "heads": HEADS,
            "layers": LAYERS,
            "steps": (0, 2),
        }
        own = ReplayObserver(
            **common,
            delta=0.1,
            label="x",
            without_offset=True,
            permuted=Permuted(arms=["snapkv", "poisson"], layers=[20], step=0, permutations=4),
        )
        full = ReplayObserver(**common, delta=0.1, label="x", queries="full")

        class Watch:
            def begin_step(self, step):
                self.step = step

            def __call__(self, layer, query, key, value, scaling):
                if layer in LAYERS and self.step in (0, 2):
                    seen[self.step, layer] = (query.clone(), key.clone(), value.clone(), scaling)

        generations = decode_rows(smollm2, recorder, filled, rows, fed, 4, [own, full, Watch()])
    return SimpleNamespace(
        own=own, full=full, rows=rows, generations=generations, seen=seen, total=filled.n_tokens
    )


def by_hand(replayed, cell, head: int, source: int) -> tuple[float, float, float]:
    """Variance, radius and true error of a read, from Python floats."""
    query, keys, values, scaling = replayed.seen[cell.step, cell.layer]
    key, value = keys[source, head // 3].double().numpy(), values[source, head // 3].double().numpy()
    logits = key @ query[source, head, -1].double().numpy() * scaling
    selection = replayed.rows[cell.row].selection
    layer, unit = min(cell.layer, selection.kept.shape[0] - 1), min(head, selection.kept.shape[1] - 1)
    kept, pi = selection.kept[layer, unit], selection.inclusion_probability[layer, unit].double()
    weighted = cell.design in ("poisson", "conditional_poisson")
    units = [(i, float(pi[i]) if weighted else 1.0) for i in range(replayed.total) if kept[i]]
    units += [(i, 1.0) for i in range(replayed.total, len(key))]
    top = logits.max()
    n_hat = sum(math.exp(logits[i] - top) / p for i, p in units)
    y_hat = sum(math.exp(logits[i] - top) / p * value[i] for i, p in units) / n_hat
    parts = [
        math.sqrt((1 - p) / p**2) * math.exp(logits[i] - top) * np.linalg.norm(value[i] - y_hat) / n_hat
        for i, p in units
    ]
    variance, norm = sum(part**2 for part in parts), np.linalg.norm(y_hat) + 1e-9
    radius = (math.sqrt(2 * variance * math.log(10)) + max(parts) * math.log(10)) / norm
    weight = np.exp(logits - top)
    return variance, radius, float(np.linalg.norm(weight @ value / weight.sum() - y_hat) / norm)


@pytest.mark.parametrize("queries", ["own", "full"])
def test_cells_equal_a_float64_loop(replayed, queries):
    observer = replayed.own if queries == "own" else replayed.full
    cells = [cell for cell in observer.cells if cell.permutation == 0]
    designs = {1: ["deterministic"], 3: ["poisson_without_offset"], 5: ["uniform"]}
    drawn = {2: ["poisson"], 4: ["conditional_poisson"]}
    if queries == "own":
        drawn = {row: [*names, f"{names[0]}_without_offset"] for row, names in drawn.items()}
    designs |= drawn
    assert [(c.step, c.layer, c.row, c.design) for c in cells] == [
        (step, layer, row, design)
        for step in (0, 2)
        for layer in LAYERS
        for row in range(1, 6)
        for design in designs[row]
    ]
    for cell in cells:
        for place, head in enumerate(HEADS):
            variance, radius, error = by_hand(replayed, cell, head, cell.row if queries == "own" else 0)
            assert float(cell.true_error[place]) == pytest.approx(error, rel=2e-3, abs=2e-6)
            if cell.design == "poisson":
                assert float(cell.variance[place]) == pytest.approx(variance, rel=1e-3)
                assert float(cell.radius[place]) == pytest.approx(radius, rel=1e-3)
            else:
                assert cell.variance is None
                assert cell.radius is None


def test_records_say_what_is_certified(replayed):
    records = replay_records(KEY, replayed.own, replayed.generations)
    assert len({(r.arm, r.design, r.layer, r.head, r.step, r.delta, r.permutation) for r in records}) == len(
        records
    )
    for record in records:
        certified = record.design == "poisson"
        assert (record.delta, record.radius is None) == ((0.1, False) if certified else (None, True))
        assert (record.variance_estimate is None) == (record.radius is None)
        assert record.true_error > 0
        assert record.head in HEADS
    assert {record.step for record in records} == {0, 2}


def test_reads_past_the_end_of_a_row_are_left_out(replayed):
    ended = [SimpleNamespace(token_ids=[1] if row in (0, 2) else [1, 2]) for row in range(6)]
    steps = {row: set() for row in ARMS}
    for record in replay_records(KEY, replayed.own, ended):
        steps[record.arm].add(record.step)
    assert steps["poisson"] == {0}
    assert steps["snapkv"] == {0, 2}
    assert {record.step for record in replay_records(KEY, replayed.full, ended)} == {0}


def test_permuted_evicted_values_leave_the_retained_bit_identical_and_move_the_error(replayed):
    """Theorem 1: nothing that is retained tells what was lost."""
    found = {}
    for record in replay_records(KEY, replayed.own, replayed.generations):
        if record.retained_hash is None:
            assert record.permutation == 0
            continue
        assert (record.layer, record.step) == (20, 0)
        found.setdefault((record.arm, record.design, record.head), []).append(record)
    assert set(found) == {
        (arm, design, head)
        for arm, design in [
            ("snapkv", "deterministic"),
            ("poisson", "poisson"),
            ("poisson", "poisson_without_offset"),
        ]
        for head in HEADS
    }
    for records in found.values():
        assert [record.permutation for record in records] == [0, 1, 2, 3, 4]
        assert len({record.retained_hash for record in records}) == 1
        assert len({(record.variance_estimate, record.radius) for record in records}) == 1
        assert len({record.true_error for record in records}) == 5
    assert len({records[0].retained_hash for records in found.values()}) == len(found)


def test_a_run_over_permuted_evicted_values_is_bit_identical(smollm2):
    """Permuted in the cache itself, which moves neither tokens nor log-probabilities of the row."""
    example = make_example("niah_single", seed=3, index=1, length=200, tokenizer=smollm2.tokenizer)
    context, fed = split_prompt(example, "aware")
    with recording(smollm2.model) as recorder:
        filled = prefill(smollm2.model, context, recorder)
        selection = SnapKV().select(filled, 0.5, Protected(), np.random.default_rng(0))
        row = Row("snapkv", 0.5, 0, selection)
        before = decode_rows(smollm2, recorder, filled, [row], fed, 6)
        moved = 0.0
        for number, layer in enumerate(filled.cache.layers):
            kept = selection.kept[number].expand(layer.values.shape[1], -1)
            values = permute_evicted(layer.values[0], kept, np.random.default_rng(number))[None]
            moved += float((values - layer.values).abs().sum())
            layer.values = values
        after = decode_rows(smollm2, recorder, filled, [row], fed, 6)
        everything = keep_everything(len(context), Protected())
        full = decode_rows(smollm2, recorder, filled, [Row("full", 1.0, 0, everything)], fed, 6)
    assert moved > 0
    assert after == before
    assert full[0].log_probabilities != before[0].log_probabilities


@pytest.fixture
def small():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 20, generator=generator)
    keys, values = torch.randn(2, 20, 4, generator=generator), torch.randn(2, 20, 4, generator=generator)
    kept = torch.rand(2, 20, generator=generator) < 0.5
    return Read(logits, keys, values), kept


def test_evicted_values_trade_places_and_kept_ones_stay(small):
    read, kept = small
    permuted = permute_evicted(read.values, kept, np.random.default_rng(1))
    for head in range(2):
        assert torch.equal(permuted[head, kept[head]], read.values[head, kept[head]])
        evicted, before = permuted[head, ~kept[head]], read.values[head, ~kept[head]]
        assert not torch.equal(evicted, before)
        assert sorted(map(tuple, evicted.tolist())) == sorted(map(tuple, before.tolist()))
    again = permute_evicted(read.values, kept, np.random.default_rng(1))
    assert torch.equal(permuted, again)
    assert torch.equal(
        permute_evicted(read.values, torch.ones_like(kept), np.random.default_rng(1)), read.values
    )


def test_heads_that_evicted_the_same_positions_trade_them_alike(small):
    _, kept = small
    place = torch.arange(20.0).expand(2, -1)[..., None]
    permuted = permute_evicted(place, kept[:1].expand(2, -1), np.random.default_rng(1))
    assert torch.equal(permuted[0], permuted[1])


@pytest.mark.parametrize("changed", ["value", "key", "weight", "probability", "evicted"])
def test_the_hash_changes_with_what_is_retained_and_with_nothing_else(small, changed):
    read, kept = small
    pi = torch.full((2, 20), 0.5)

    def hashes(read, pi):
        return retained_hash(read, kept, pi, attention_certificate(read.logits, read.values, pi, kept))

    before = hashes(read, pi)
    logits, keys, values, other_pi = read.logits.clone(), read.keys.clone(), read.values.clone(), pi.clone()
    mine, lost = int(torch.nonzero(kept[0])[0, 0]), int(torch.nonzero(~kept[0])[0, 0])
    if changed == "value":
        values[0, mine, 2] += 1e-6
    elif changed == "key":
        keys[0, mine, 2] += 1e-6
    elif changed == "weight":
        logits[0, mine] += 1e-3
    elif changed == "probability":
        other_pi[0, mine] = 0.25
    else:
        logits[0, lost], keys[0, lost], values[0, lost], other_pi[0, lost] = 9.0, 9.0, 9.0, 0.1
    after = hashes(Read(logits, keys, values), other_pi)
    assert before[1] == after[1]
    assert (before[0] == after[0]) == (changed == "evicted")


def test_designs_extend_over_later_positions():
    generator = torch.Generator().manual_seed(3)
    shared = torch.rand(3, 1, 16, generator=generator) < 0.5
    by_head = torch.rand(1, 4, 16, generator=generator) < 0.5
    for kept, layer, heads, expected in [
        (shared, 1, [2], shared[1, :1]),
        (by_head, 1, [3, 0], by_head[0, [3, 0]]),
    ]:
        pi = torch.rand(kept.shape, generator=generator, dtype=torch.float64)
        selection = Selection(kept, pi, "poisson", slice(2, 14))
        found, probability = design_of_read(selection, layer, heads, torch.zeros(len(heads), 20))
        assert torch.equal(found[:, :16], expected)
        assert found[:, 16:].all()
        assert probability.dtype == torch.float32
        mine = pi[min(layer, len(pi) - 1), heads[0] if pi.shape[1] > 1 else 0]
        assert torch.equal(probability[0, :16], mine.float())
        assert (probability[:, 16:] == 1).all()


def plan(**blocks) -> StudyPlan:
    arms = [
        {"name": "snapkv", "evictor": {"evictor": "snapkv"}, "budgets": [0.5, 1.0]},
        {"name": "poisson", "evictor": {"evictor": "poisson"}, "budgets": [0.5]},
    ]
    fields = {"suite": "s", "model": "m", "length": 200, "seed": 0, "tasks": {"niah_single": 9}}
    return msgspec.convert({**fields, "conditions": ["aware"], "arms": arms, **blocks}, StudyPlan)


def test_a_plan_names_what_is_replayed():
    protected = Protected(sinks=1, recents=1)
    everything = keep_everything(6, protected)
    part = everything.kept.clone()
    part[..., 2] = False
    one = Selection(part, everything.inclusion_probability, "deterministic", slice(1, 5))
    drawn = Selection(part, everything.inclusion_probability, "poisson", slice(1, 5))
    rows = [Row("full", 1.0, 0, everything), Row("snapkv", 0.5, 0, one), Row("snapkv", 1.0, 0, everything)]
    rows.append(Row("poisson", 0.5, 0, drawn))
    assert make_replay(plan(replay={"inputs": 2}), rows, (30, 9), "x", 2) is None
    assert set(make_replay(plan(replay={"inputs": 2}), rows, (30, 9), "x", 1).rows) == {3}
    named = plan(
        replay={"inputs": 2, "arms": ["snapkv"], "queries": "full"},
        permutation={"inputs": 1, "arms": ["snapkv"], "permutations": 3, "layer_stride": 10},
    )
    observer = make_replay(named, rows, (30, 9), "x", 0)
    assert set(observer.rows) == {1}
    assert observer.queries == "full"
    assert list(observer.permuted.layers) == [0, 10, 20]
    assert make_replay(named, rows, (30, 9), "x", 1).permuted is None


def test_chance_depends_on_the_name_of_the_row_alone():
    draws = [
        generator_of(*name).random() for name in [(0, "a", "p", 0.5), (0, "a", "p", 0.25), (1, "a", "p", 0.5)]
    ]
    assert len(set(draws)) == 3
    assert generator_of(0, "a", "p", 0.5).random() == draws[0]
