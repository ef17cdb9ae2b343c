"""Evictors that sample: probabilities, draws, sizes and offsets."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from transformers import DynamicCache

from collectors.certified_rows import is_certified
from collectors.evictors import ConditionalPoisson, Poisson, Protected, Selection
from collectors.prefill import Prefill
from collectors.rows import Row
from collectors.scorers import scorer_label
from kvstats.errors import InputError
from kvstats.statistics import designs

LAYERS, HEADS, KEY_HEADS, TOTAL = 3, 4, 2, 100
PROTECTED = Protected(sinks=4, recents=8)
BUDGETS = [0.2, 0.5, 0.9]


@pytest.fixture(scope="module")
def filled() -> Prefill:
    rng = np.random.default_rng(0)
    weight = rng.gamma(0.3, size=(LAYERS, HEADS, TOTAL)).astype(np.float32)
    attention = torch.from_numpy(weight / weight.sum(-1, keepdims=True))
    cache = DynamicCache()
    for layer in range(LAYERS):
        cache.update(torch.zeros(1, KEY_HEADS, TOTAL, 2), torch.zeros(1, KEY_HEADS, TOTAL, 2), layer)
    scores = {scorer_label("keydiff"): torch.from_numpy(rng.random((LAYERS, KEY_HEADS, TOTAL)))}
    return Prefill(cache, attention, 32, scores)


def draws_of(evictor, filled: Prefill, budget: float, count: int) -> list[Selection]:
    return [evictor.select(filled, budget, PROTECTED, np.random.default_rng(seed)) for seed in range(count)]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("kind", [Poisson, ConditionalPoisson])
def test_positions_are_drawn_with_the_probabilities_that_are_stated(filled, kind, budget):
    count = 400 if kind is Poisson else 150
    draws = draws_of(kind(), filled, budget, count)
    pi = draws[0].inclusion_probability[0, 0]
    assert draws[0].kept.shape == (1, 1, TOTAL)
    assert float(pi.sum()) == pytest.approx(budget * TOTAL, rel=1e-5)
    assert (pi[:4] == 1).all()
    assert (pi[-8:] == 1).all()
    share = torch.stack([draw.kept[0, 0].float() for draw in draws]).mean(0)
    z = (share - pi) / (pi * (1 - pi) / count).sqrt().clamp(min=1e-3)
    assert float(z.abs().max()) < 4.5
    score = filled.attention.mean((0, 1))[4:-8]
    free = (pi[4:-8] < 1) & (pi[4:-8] > 1e-6)
    ratio = pi[4:-8][free] / score[free]
    torch.testing.assert_close(ratio, ratio.mean().expand_as(ratio), rtol=1e-4, atol=0)
    assert draws[0].allocation == "iterated"


def test_poisson_compares_one_number_a_position_with_its_probability(filled):
    """The rule of the draws that logs were made with."""
    score = filled.attention[..., 4:-8].mean((0, 1)).double().numpy()
    pi = np.ones(TOTAL)
    pi[4:-8] = np.minimum(1, 38 * score / score.sum())
    for _ in range(100):  # the mass clipped at 1 goes to the others
        free = pi[4:-8] < 1
        pi[4:-8] = np.where(free, np.minimum(1, (38 - (~free).sum()) * score / score[free].sum()), 1)
    expected = np.random.default_rng(5).random((1, TOTAL))[0] < np.maximum(pi, 1e-6)
    selection = Poisson().select(filled, 0.5, PROTECTED, np.random.default_rng(5))
    assert selection.kept[0, 0].tolist() == expected.tolist()


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("scope", ["global", "layer", "head"])
@pytest.mark.parametrize("scorer", ["window", "keydiff"])
def test_sizes_by_scope_and_scorer(filled, scope, scorer, budget):
    size = round(budget * TOTAL)
    fixed = ConditionalPoisson(scope=scope, scorer=scorer).select(
        filled, budget, PROTECTED, np.random.default_rng(0)
    )
    assert (fixed.kept.sum(-1) == size).all()
    assert fixed.kept_fraction == pytest.approx(size / TOTAL, abs=1e-12)
    assert fixed.design == "conditional_poisson"
    random = Poisson(scope=scope, scorer=scorer).select(filled, budget, PROTECTED, np.random.default_rng(0))
    shape = {"global": (1, 1), "layer": (LAYERS, 1), "head": (LAYERS, HEADS)}[scope]
    for selection in (fixed, random):
        assert selection.kept.shape == selection.inclusion_probability.shape == (*shape, TOTAL)
        assert selection.score.shape == (*shape, 88)
        torch.testing.assert_close(
            selection.inclusion_probability.sum(-1), torch.full(shape, budget * TOTAL), rtol=1e-5, atol=0
        )
        if scope == "head":
            assert torch.equal(selection.kept[:, 0], selection.kept[:, 1])
            assert not torch.equal(selection.kept[:, 1], selection.kept[:, 2])
        if scope != "global":
            assert not torch.equal(selection.kept[0], selection.kept[1])


def test_one_pass_under_spends(filled):
    selection = Poisson(allocation="one_pass").select(filled, 0.9, PROTECTED, np.random.default_rng(0))
    assert float(selection.inclusion_probability.sum()) < 0.85 * TOTAL
    assert selection.allocation == "one_pass"


@pytest.mark.parametrize("kind", [Poisson, ConditionalPoisson])
def test_the_offset_is_a_choice_that_leaves_the_draw_alone(filled, kind):
    rows = [
        kind(offset=offset).select(filled, 0.5, PROTECTED, np.random.default_rng(0))
        for offset in (True, False)
    ]
    assert torch.equal(rows[0].kept, rows[1].kept)
    assert torch.equal(rows[0].inclusion_probability, rows[1].inclusion_probability)
    kept = rows[0].kept[0, 0]
    pi = rows[0].inclusion_probability[0, 0]
    with_offset, without = (row.logit_offsets(LAYERS) for row in rows)
    assert with_offset.shape == without.shape == (LAYERS, 1, TOTAL)
    torch.testing.assert_close(with_offset[1, 0, kept], -pi[kept].log())
    assert float(with_offset.max()) > 0.1
    assert (without[1, 0, kept] == 0).all()
    assert (without[1, 0, ~kept] < -1e30).all()


@pytest.mark.parametrize("kind", [Poisson, ConditionalPoisson])
def test_budgets_at_both_ends(filled, kind):
    everything = kind(scope="head").select(filled, 1.0, PROTECTED, np.random.default_rng(0))
    assert everything.kept.all()
    assert (everything.logit_offsets(LAYERS) == 0).all()
    message = rf"{kind.__name__}.select: budget=0.1 of 100 tokens does not exceed 12 protected; raise the"
    with pytest.raises(InputError, match=message):
        kind().select(filled, 0.1, PROTECTED, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("evictor", "certified"),
    [(Poisson(), True), (Poisson(offset=False), False), (ConditionalPoisson(), False)],
)
def test_only_independent_draws_with_their_offset_are_certified(filled, evictor, certified):
    selection = evictor.select(filled, 0.5, PROTECTED, np.random.default_rng(0))
    assert is_certified(Row("arm", 0.5, 0, selection)) == certified


def test_the_variance_of_independent_draws_can_be_too_small_for_a_fixed_size():
    """One of two units, whose contributions are opposite: the total is 2 or -2, with variance 4, not 2."""
    design = designs.ConditionalPoisson([0.5, 0.5])
    pi, joint, total = design.inclusion_probability, design.joint_inclusion_probability, np.array([1.0, -1.0])
    scaled = total / pi
    fixed = ((np.outer(pi, pi) - joint) * (scaled[:, None] - scaled) ** 2).sum() / 2
    independent = ((1 - pi) / pi * total**2).sum()
    assert (fixed, independent) == (pytest.approx(4.0), pytest.approx(2.0))


def test_fixed_sizes_need_a_whole_position(filled):
    """A budget of 12.4 tokens rounds to the 12 protected: Poisson can sample 0.4, a fixed size cannot."""
    assert Poisson().select(filled, 0.124, PROTECTED, np.random.default_rng(0)).kept.any()
    with pytest.raises(InputError, match=r"budget=0.124 of 100 tokens does not exceed 12 protected"):
        ConditionalPoisson().select(filled, 0.124, PROTECTED, np.random.default_rng(0))


def test_negative_scores_cannot_be_sizes(filled):
    label = scorer_label("keydiff")
    shifted = Prefill(filled.cache, filled.attention, 32, {label: filled.scores[label] - 0.9})
    with pytest.raises(InputError, match=r"score='an array' holds negative or undefined sizes"):
        Poisson(scorer="keydiff").select(shifted, 0.5, PROTECTED, np.random.default_rng(0))


@pytest.mark.parametrize("kind", [Poisson, ConditionalPoisson])
@pytest.mark.parametrize("floor", [0.0, -0.1, 1.5, math.nan])
def test_a_floor_that_is_no_probability_is_refused(kind, floor):
    with pytest.raises(InputError, match=rf"{kind.__name__}: floor={floor} is not in \(0, 1\]; pass a small"):
        kind(floor=floor)
    assert kind(floor=1.0).floor == 1.0


def test_offsets_are_minus_log_probability_where_kept():
    kept = torch.tensor([[[True, True, False]]])
    selection = Selection(kept, torch.tensor([[[1.0, 0.25, 0.5]]]), "poisson", slice(1, 3))
    offsets = selection.logit_offsets(2)
    assert offsets.shape == (2, 1, 3)
    np.testing.assert_allclose(offsets[1, 0, :2], [0.0, math.log(4.0)], rtol=1e-6)
    assert float(offsets[0, 0, 2]) < -1e30
