"""Each evictor's kept set against a loop, and the signals that a selection gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from collectors.evictors import Poisson, Protected, Selection, SnapKV, Uniform, keep_everything, window_score
from collectors.signals import evicted_mass, keep_margin, retained_entropy
from kvstats.errors import InputError

TOTAL = 100
PROTECTED = Protected(sinks=4, recents=8)
BUDGETS = [0.2, 0.5, 0.9]


@pytest.fixture
def attention() -> torch.Tensor:
    rng = np.random.default_rng(0)
    weight = rng.gamma(0.3, size=(5, 3, TOTAL)).astype(np.float32)
    return torch.from_numpy(weight / weight.sum(-1, keepdims=True))


def highest(scores: list[float], budget: float) -> set[int]:
    """Positions kept of scores by position: the protected and the best of the rest, earlier ones first."""
    tail = range(4, TOTAL - 8)
    best = sorted(tail, key=lambda position: (-scores[position], position))
    return set(range(4)) | set(range(TOTAL - 8, TOTAL)) | set(best[: max(0, round(budget * TOTAL) - 12)])


def kept_set(selection: Selection, layer: int) -> set[int]:
    kept = selection.kept.expand(5, -1, -1)
    assert kept.shape == (5, 1, TOTAL)
    return set(torch.nonzero(kept[layer, 0])[:, 0].tolist())


@pytest.mark.parametrize("budget", BUDGETS)
def test_snapkv_by_layer_with_pooling(attention, budget):
    selection = SnapKV(scope="layer", pool=7).select(attention, budget, PROTECTED, np.random.default_rng(0))
    for layer in range(5):
        mean = attention[layer].mean(0).tolist()
        pooled = [max(mean[max(4, i - 3) : min(TOTAL - 8, i + 4)], default=0.0) for i in range(TOTAL)]
        assert kept_set(selection, layer) == highest(pooled, budget)
    assert selection.kept_fraction == pytest.approx(budget)


@pytest.mark.parametrize("budget", BUDGETS)
def test_snapkv_with_one_set_for_all_layers(attention, budget):
    selection = SnapKV(scope="global", pool=1).select(attention, budget, PROTECTED, np.random.default_rng(0))
    assert selection.kept.shape == (1, 1, TOTAL)
    assert kept_set(selection, 3) == highest(attention.mean((0, 1)).tolist(), budget)


@pytest.mark.parametrize("budget", BUDGETS)
def test_uniform_keeps_the_size_and_depends_on_the_draw_alone(attention, budget):
    first = Uniform().select(attention, budget, PROTECTED, np.random.default_rng(1))
    again = Uniform().select(attention.flip(-1), budget, PROTECTED, np.random.default_rng(1))
    other = Uniform().select(attention, budget, PROTECTED, np.random.default_rng(2))
    assert int(first.kept.sum()) == round(budget * TOTAL)
    assert torch.equal(first.kept, again.kept)
    assert not torch.equal(first.kept, other.kept)
    counts = sum(
        Uniform().select(attention, 0.5, PROTECTED, np.random.default_rng(seed)).kept[0, 0].int()
        for seed in range(400)
    )
    share = counts[4:-8] / 400
    assert abs(float(share.mean()) - 38 / 88) < 1e-6
    assert float(share.std()) < 2 * math.sqrt(0.25 / 400)


@pytest.mark.parametrize("budget", BUDGETS)
def test_poisson_draws_with_the_probabilities_it_states(attention, budget):
    draws = [
        Poisson().select(attention, budget, PROTECTED, np.random.default_rng(seed)) for seed in range(400)
    ]
    pi = draws[0].inclusion_probability[0, 0]
    assert float(pi.sum()) == pytest.approx(budget * TOTAL, rel=1e-5)
    assert (pi[:4] == 1).all()
    assert (pi[-8:] == 1).all()
    share = torch.stack([draw.kept[0, 0].float() for draw in draws]).mean(0)
    z = (share - pi) / (pi * (1 - pi) / 400).sqrt().clamp(min=1e-3)
    assert float(z.abs().max()) < 4.5
    score = attention.mean((0, 1))[4:-8]
    free = (pi[4:-8] < 1) & (pi[4:-8] > 1e-6)
    ratio = pi[4:-8][free] / score[free]
    torch.testing.assert_close(ratio, ratio.mean().expand_as(ratio), rtol=1e-4, atol=0)
    assert draws[0].allocation == "iterated"


def test_poisson_one_pass_under_spends(attention):
    selection = Poisson(allocation="one_pass").select(attention, 0.9, PROTECTED, np.random.default_rng(0))
    assert float(selection.inclusion_probability.sum()) < 0.85 * TOTAL
    assert selection.allocation == "one_pass"


def test_poisson_by_layer_draws_layers_apart(attention):
    selection = Poisson(scope="layer").select(attention, 0.5, PROTECTED, np.random.default_rng(0))
    assert selection.kept.shape == (5, 1, TOTAL)
    assert not torch.equal(selection.kept[0], selection.kept[1])
    sizes = selection.inclusion_probability.sum((1, 2))
    torch.testing.assert_close(sizes, torch.full((5,), 50.0), rtol=1e-5, atol=0)


def test_budget_one_keeps_everything(attention):
    for evictor in (SnapKV(), SnapKV(scope="global", pool=1), Uniform(), Poisson()):
        selection = evictor.select(attention, 1.0, PROTECTED, np.random.default_rng(0))
        assert selection.kept.all()
        assert (selection.logit_offsets(5) == 0).all()


def test_a_budget_below_the_protected_keeps_the_protected(attention):
    selection = SnapKV().select(attention, 0.05, PROTECTED, np.random.default_rng(0))
    assert int(selection.kept[0].sum()) == 12
    with pytest.raises(InputError, match=r"budget=0.05 of 100 tokens does not exceed 12 protected; raise"):
        Poisson().select(attention, 0.05, PROTECTED, np.random.default_rng(0))


@pytest.mark.parametrize("evictor", [SnapKV, Poisson])
@pytest.mark.parametrize(
    ("pool", "fault"), [(4, "is even"), (2, "is even"), (0, "is below 1"), (-3, "is below 1")]
)
def test_a_pool_without_a_middle_is_refused(evictor, pool, fault):
    message = f"{evictor.__name__}: pool={pool} {fault}; pass an odd width; 1 pools nothing"
    with pytest.raises(InputError, match=message):
        evictor(pool=pool)


@pytest.mark.parametrize("floor", [0.0, -0.1, 1.5, math.nan])
def test_a_floor_that_is_no_probability_is_refused(floor):
    with pytest.raises(InputError, match=rf"Poisson: floor={floor} is not in \(0, 1\]; pass a small"):
        Poisson(floor=floor)
    assert Poisson(floor=1.0).floor == 1.0


def test_a_cache_without_tail_is_refused():
    with pytest.raises(InputError, match="total=12 leaves nothing to evict beside 12 protected tokens"):
        PROTECTED.tail(12)


def test_offsets_are_minus_log_probability_where_kept():
    kept = torch.tensor([[[True, True, False]]])
    selection = Selection(kept, torch.tensor([[[1.0, 0.25, 0.5]]]), "poisson", slice(1, 3))
    offsets = selection.logit_offsets(2)
    assert offsets.shape == (2, 1, 3)
    np.testing.assert_allclose(offsets[1, 0, :2], [0.0, math.log(4.0)], rtol=1e-6)
    assert float(offsets[0, 0, 2]) < -1e30


def test_signals_equal_their_definitions(attention):
    selection = SnapKV(scope="layer", pool=1).select(attention, 0.4, PROTECTED, np.random.default_rng(0))
    mass, entropy, margin = [], [], []
    for layer in range(5):
        mean = attention[layer].double().mean(0).numpy()
        kept = kept_set(selection, layer)
        mass.append(sum(mean[i] for i in range(TOTAL) if i not in kept))
        share = np.array([mean[i] for i in kept]) / sum(mean[i] for i in kept)
        entropy.append(-(share * np.log(share)).sum() / math.log(len(kept)))
        tail = list(range(4, TOTAL - 8))
        scores = attention[layer].mean(0).double().numpy()
        low = min(scores[i] for i in tail if i in kept)
        high = max(scores[i] for i in tail if i not in kept)
        margin.append((low - high) / scores[tail].std())
    assert evicted_mass(selection, attention) == pytest.approx(np.mean(mass), rel=1e-6)
    assert retained_entropy(selection, attention) == pytest.approx(np.mean(entropy), rel=1e-6)
    assert keep_margin(selection) == pytest.approx(np.mean(margin), rel=1e-5)


def test_signals_are_none_where_undefined(attention):
    full = keep_everything(TOTAL, PROTECTED)
    assert keep_margin(full) is None
    assert evicted_mass(full, attention) == 0.0
    assert keep_margin(Poisson().select(attention, 0.5, PROTECTED, np.random.default_rng(0))) is None
    assert keep_margin(SnapKV().select(attention, 0.1, PROTECTED, np.random.default_rng(0))) is None
    flat = torch.full_like(attention, 1 / TOTAL)
    assert keep_margin(SnapKV().select(flat, 0.5, PROTECTED, np.random.default_rng(0))) is None
    single = Selection(
        torch.eye(TOTAL, dtype=torch.bool)[:1, None], torch.ones(1, 1, TOTAL), "x", slice(4, 92)
    )
    assert retained_entropy(single, attention) is None


def test_scores_leave_the_protected_out(attention):
    assert window_score(attention, PROTECTED, scope="layer", pool=7).shape == (5, 88)
    assert window_score(attention, PROTECTED, scope="global", pool=1).shape == (1, 88)
