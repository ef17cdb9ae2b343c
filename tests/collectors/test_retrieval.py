"""Blocks that are put back: their ranking against a loop, the rows that answer again, and their ranks."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from collectors.attention import recording
from collectors.evictors import Poisson, Protected, Selection
from collectors.plan_parts import RetrievalPlan
from collectors.prefill import prefill
from collectors.retrieval import BlockObserver, answer_blocks, restore, restored_rows, tail_blocks
from collectors.rows import Row, decode_rows, split_prompt
from collectors.tasks import make_example

TAIL = slice(4, 24)


@pytest.fixture
def base() -> Row:
    kept = torch.ones(2, 3, 30, dtype=torch.bool)
    kept[..., TAIL] = torch.rand(2, 3, 20, generator=torch.Generator().manual_seed(0)) < 0.5
    pi = torch.where(torch.arange(30).expand(2, 3, 30) % 2 == 0, 0.5, 0.25)
    return Row("poisson", 0.5, 3, Selection(kept, pi, "poisson", TAIL))


def test_blocks_cut_the_tail_without_gap_or_overlap():
    for size in (1, 3, 5, 20, 50):
        blocks = tail_blocks(TAIL, size)
        assert [place for block in blocks for place in range(block.start, block.stop)] == list(range(4, 24))
        assert {block.stop - block.start for block in blocks[:-1]} <= {size}


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(5, 7)], [0]),
        ([(7, 10)], [0, 1]),
        ([(20, 21), (9, 10)], [1, 3]),
        ([(9, 9)], []),
        ([(0, 4)], []),
        ([(24, 30)], []),
        ([(0, 30)], [0, 1, 2, 3]),
        ([], []),
    ],
)
def test_blocks_that_hold_the_answer(spans, expected):
    blocks = tail_blocks(TAIL, 5)
    assert answer_blocks(blocks, spans) == expected
    places = {place for start, stop in spans for place in range(start, stop)}
    assert expected == [i for i, b in enumerate(blocks) if places & set(range(b.start, b.stop))]


def test_a_block_comes_back_in_all_layers_and_heads_and_is_certain(base):
    found = restore(base.selection, [slice(9, 14)])
    assert found.kept[..., 9:14].all()
    assert (found.inclusion_probability[..., 9:14] == 1).all()
    outside = [place for place in range(30) if not 9 <= place < 14]
    assert torch.equal(found.kept[..., outside], base.selection.kept[..., outside])
    assert torch.equal(
        found.inclusion_probability[..., outside], base.selection.inclusion_probability[..., outside]
    )
    assert (found.logit_offsets(2)[..., 9:14] == 0).all()
    assert found.kept_fraction > base.selection.kept_fraction
    assert not base.selection.kept[..., 9:14].all()


def test_rows_that_answer_again_say_what_was_put_back(base):
    plan = RetrievalPlan(arm="poisson", budgets=(0.5,), block_tokens=5, blocks=(1, 3))
    rows = restored_rows(plan, base, [2, 0, 3, 1], [(7, 10)], "x")
    arms = [row.arm for row, _ in rows]
    assert arms == plan.arms
    assert arms == [f"poisson+{kind}" for kind in ("ranked", "ranked3", "random", "random3", "oracle")]
    assert {(row.budget, row.seed) for row, _ in rows} == {(0.5, 3)}
    blocks = tail_blocks(TAIL, 5)
    by_arm = {row.arm: (row.selection, signals) for row, signals in rows}
    for arm, taken, rank in [
        ("poisson+ranked", [2], 2),
        ("poisson+ranked3", [2, 0, 3], 2),
        ("poisson+oracle", [0, 1], 1),
    ]:
        selection, signals = by_arm[arm]
        assert torch.equal(selection.kept, restore(base.selection, [blocks[i] for i in taken]).kept)
        assert signals == {"true_block_rank": rank, "n_blocks": len(taken), "candidate_blocks": 4}
    one, three = by_arm["poisson+random"][0].kept, by_arm["poisson+random3"][0].kept
    assert (one <= three).all()
    assert by_arm["poisson+random"][1]["true_block_rank"] == by_arm["poisson+random3"][1]["true_block_rank"]
    again = restored_rows(plan, base, [2, 0, 3, 1], [(7, 10)], "x")
    assert all(
        torch.equal(a.row.selection.kept, b.row.selection.kept) for a, b in zip(rows, again, strict=True)
    )


def test_random_blocks_are_uniform_and_depend_on_the_input(base):
    plan = RetrievalPlan(arm="poisson", budgets=(0.5,), block_tokens=5)
    ranks = [restored_rows(plan, base, [0, 1, 2, 3], [(5, 7)], str(i))[1].signals for i in range(400)]
    counts = np.bincount([int(signals["true_block_rank"]) for signals in ranks], minlength=5)[1:]
    assert ((counts - 100) ** 2 / 100).sum() < 16.3


def test_an_answer_that_is_not_known_has_no_rank_and_no_oracle(base):
    plan = RetrievalPlan(arm="poisson", budgets=(0.5,), block_tokens=5)
    rows = restored_rows(plan, base, [2, 0, 3, 1], [], "x")
    assert [row.arm for row, _ in rows] == ["poisson+ranked", "poisson+random"]
    assert {signals["true_block_rank"] for _, signals in rows} == {None}


def test_more_blocks_than_there_are_put_everything_back(base):
    plan = RetrievalPlan(arm="poisson", budgets=(0.5,), block_tokens=5, blocks=(9,))
    (row, signals), *_ = restored_rows(plan, base, [2, 0, 3, 1], [(5, 6)], "x")
    assert row.selection.kept.all()
    assert signals["n_blocks"] == 4


def test_the_ranking_equals_a_float64_loop(smollm2):
    example = make_example("niah_single", seed=3, index=0, length=200, tokenizer=smollm2.tokenizer)
    context, fed = split_prompt(example, "aware")
    heads, layers, seen = [1, 5], [2, 9], {}
    with recording(smollm2.model) as recorder:
        filled = prefill(smollm2.model, context, recorder)
        selection = Poisson().select(filled, 0.5, Protected(), np.random.default_rng(0))
        rows = [Row("poisson", 0.5, 0, selection)] * 2
        observer = BlockObserver(rows={1: rows[1]}, heads=heads, layers=layers, steps=2, block_tokens=20)

        class Watch:
            def begin_step(self, step):
                self.step = step

            def __call__(self, layer, query, key, value, scaling):
                if layer in layers:
                    seen[self.step, layer] = (
                        query[1, :, -1].double(),
                        key[1].double(),
                        value[1].double(),
                        scaling,
                    )

        decode_rows(smollm2, recorder, filled, rows, fed, 3, [observer, Watch()])
    blocks = tail_blocks(selection.tail, 20)
    assert len(blocks) == 9
    kept, pi = selection.kept[0, 0], selection.inclusion_probability[0, 0].double()
    shares = {}
    for step in (0, 1):
        for layer in layers:
            query, keys, values, scaling = seen[step, layer]
            for head in heads:
                logits = keys[head // 3] @ query[head] * scaling
                units = [(i, float(pi[i])) for i in range(len(pi)) if kept[i]]
                units += [(i, 1.0) for i in range(len(pi), len(logits))]
                weight = {i: float((logits[i] - logits.max()).exp()) / p for i, p in units}
                estimate = sum(weight[i] * values[head // 3, i] for i in weight) / sum(weight.values())
                part = {
                    i: (1 - p) * (weight[i] * float((values[head // 3, i] - estimate).norm())) ** 2
                    for i, p in units
                }
                share = [
                    sum(part.get(i, 0.0) for i in range(b.start, b.stop)) / sum(part.values()) for b in blocks
                ]
                assert sum(share) == pytest.approx(1.0)
                shares.setdefault(step, []).append(share)
    for n_reads in (1, 2, 9):
        mean = np.mean([share for step in range(min(n_reads, 2)) for share in shares[step]], axis=0)
        assert observer.ranking(1, n_reads=n_reads) == sorted(range(9), key=lambda b: -mean[b])
    assert set(observer.shares) == {(1, 0), (1, 1)}


def test_blocks_of_equal_contribution_rank_in_their_order():
    certain = Selection(torch.ones(1, 1, 30, dtype=torch.bool), torch.ones(1, 1, 30), "poisson", TAIL)
    row = SimpleNamespace(selection=certain)
    observer = BlockObserver(rows={0: row}, heads=[0], layers=[0], steps=1, block_tokens=5)
    state = torch.randn(1, 1, 30, 4, generator=torch.Generator().manual_seed(0))
    observer(0, state[:, :, -1:], state, state, 0.5)
    assert observer.ranking(0, n_reads=1) == [0, 1, 2, 3]
