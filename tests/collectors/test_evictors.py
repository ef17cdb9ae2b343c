"""Each evictor's kept set at three budgets against its definition, written out as loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from collectors.attention import scored, window_attention
from collectors.evictors import (
    H2O,
    TOVA,
    AdaKV,
    CapKV,
    ConditionalPoisson,
    Evictor,
    KeyDiff,
    ManifoldKV,
    Poisson,
    Protected,
    PyramidKV,
    QuestionAware,
    Selection,
    SnapKV,
    StreamingLLM,
    TopK,
    Uniform,
    keep_highest,
    requested_scorers,
    tail_score,
)
from collectors.evictors.allocation import head_sizes, pyramid_sizes
from collectors.prefill import Prefill
from collectors.rows import question_positions, split_prompt
from kvstats.errors import InputError

LAYERS, HEADS, KEY_HEADS, TOTAL, WIDTH, WINDOW = 3, 4, 2, 40, 8, 5
GROUP = HEADS // KEY_HEADS
QUESTION = range(20, 26)
PROTECTED = Protected(sinks=2, recents=6)
TAIL = range(2, TOTAL - 6)
BUDGETS = [0.3, 0.5, 0.8]
THETA = 10000.0

EVICTORS = [
    SnapKV(scope="global", pool=1),
    SnapKV(scope="layer", pool=7),
    SnapKV(scope="head", pool=3),
    H2O(stride=1),
    H2O(stride=3, scope="layer"),
    StreamingLLM(),
    TOVA(),
    PyramidKV(beta=4.0, pool=1),
    PyramidKV(beta=20.0, pool=5, scope="head"),
    PyramidKV(schedule="weights", beta=4.0, pool=3),
    KeyDiff(),
    ManifoldKV(),
    ManifoldKV(before_rope=True, scope="layer"),
    AdaKV(pool=3),
    AdaKV(scorer="manifold", pool=1, floor=0.0),
    CapKV(),
    QuestionAware(pool=1),
    TopK(scorer="h2o", scope="head"),
]
IDS = [repr(evictor) for evictor in EVICTORS]

Tensors = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def tensors() -> Tensors:
    """Queries (scaled) and keys after RoPE, and values, [L, heads, T, d]."""
    rng = np.random.default_rng(7)
    shape = (LAYERS, KEY_HEADS, TOTAL, WIDTH)
    return {
        "queries": rng.normal(size=(LAYERS, HEADS, TOTAL, WIDTH)).astype(np.float32),
        "keys": (rng.normal(size=shape) + rng.normal(size=(1, KEY_HEADS, 1, WIDTH))).astype(np.float32),
        "values": rng.normal(size=shape).astype(np.float32),
    }


@pytest.fixture(scope="module")
def filled(tensors: Tensors) -> Prefill:
    config = LlamaConfig(
        vocab_size=8,
        hidden_size=HEADS * WIDTH,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=HEADS,
        num_key_value_heads=KEY_HEADS,
        rope_parameters={"rope_type": "default", "rope_theta": THETA},
    )
    model = LlamaForCausalLM(config)
    scorers = {
        label: scorer.bind(model, QUESTION) if hasattr(scorer, "bind") else scorer
        for label, scorer in requested_scorers(EVICTORS).items()
    }
    cache, attention, scores = DynamicCache(), [], {}
    for layer in range(LAYERS):
        query, key, value = (torch.from_numpy(tensors[name][layer])[None] for name in tensors)
        cache.update(key, value, layer)
        attention.append(window_attention(query, key, 1.0, WINDOW))
        scores |= scored(scorers, query, key, value, 1.0, layer)
    by_label = {label: torch.stack([scores[label, layer] for layer in range(LAYERS)]) for label in scorers}
    return Prefill(cache, torch.stack(attention), WINDOW, by_label)


def received(tensors: Tensors, layer: int, head: int, queries: list[int], *, mean: bool) -> list[float]:
    """Attention that each position receives from some queries."""
    score = [0.0] * TOTAL
    for t in queries:
        q = tensors["queries"][layer, head, t].astype(float)
        weight = [math.exp(q @ tensors["keys"][layer, head // GROUP, i].astype(float)) for i in range(t + 1)]
        for i, w in enumerate(weight):
            score[i] += w / sum(weight) / (len(queries) if mean else 1)
    return score


def turned(vector: np.ndarray, position: int, sign: int) -> np.ndarray:
    """Rotate each pair of coordinates (i, i + d/2) by its angle at a position."""
    half = WIDTH // 2
    pairs = vector[:half] + 1j * vector[half:]
    pairs = pairs * np.exp(sign * 1j * position * THETA ** (-2 * np.arange(half) / WIDTH))
    return np.concatenate([pairs.real, pairs.imag])


def centroid_distance(keys: list[np.ndarray]) -> list[float]:
    centroid = sum(keys) / len(keys)
    return [math.sqrt(float(((key - centroid) ** 2).sum())) for key in keys]


def leverage(tensors: Tensors, layer: int, head: int) -> list[float]:
    """CapKV's score of one query head; the first four positions come first in any case."""
    unturned = [turned(tensors["queries"][layer, head, t].astype(float), t, -1) for t in range(4, TOTAL)]
    anchor = sum(turned(sum(unturned) / len(unturned), TOTAL + p, 1) for p in range(512)) / 512
    keys, values = (tensors[name][layer, head // GROUP].astype(float) for name in ("keys", "values"))
    cosine = [anchor @ k / np.linalg.norm(anchor) / np.linalg.norm(k) for k in keys]
    weight = [math.exp(5 * (c - max(cosine[4:]))) for c in cosine]
    a = np.eye(WIDTH)
    for i in range(4, TOTAL):
        a += (weight[i] + 1e-6) * np.outer(values[i], values[i])
    inverse = np.linalg.inv(a)
    return [1e9] * 4 + [weight[i] * float(values[i] @ inverse @ values[i]) for i in range(4, TOTAL)]


def score_of(tensors: Tensors, kind: str, layer: int, head: int) -> list[float]:
    """Score of each position by one query head, straight from the definitions."""
    keys = list(tensors["keys"][layer, head // GROUP].astype(float))
    if kind == "window":
        return received(tensors, layer, head, list(range(TOTAL - WINDOW, TOTAL)), mean=True)
    if kind == "question":
        return received(tensors, layer, head, list(QUESTION), mean=True)
    if kind.startswith("h2o"):
        return received(tensors, layer, head, list(range(TOTAL - 1, -1, -int(kind[4:]))), mean=False)
    if kind == "tova":
        return received(tensors, layer, head, [TOTAL - 1], mean=True)
    if kind == "keydiff":
        anchor = sum(key / np.linalg.norm(key) for key in keys) / TOTAL
        return [1 - key @ anchor / np.linalg.norm(key) / np.linalg.norm(anchor) for key in keys]
    if kind == "manifold":
        return centroid_distance(keys)
    if kind == "manifold_before_rope":
        return centroid_distance([turned(key, t, -1) for t, key in enumerate(keys)])
    assert kind == "capkv"
    return leverage(tensors, layer, head)


def pooled(score: list[float], width: int) -> list[float]:
    """Replace each evictable position's score by the largest of the evictable ones around it."""
    reach = width // 2
    out = list(score)
    for i in TAIL:
        out[i] = max(score[j] for j in range(i - reach, i + reach + 1) if j in TAIL)
    return out


Scores = dict[tuple[int, int], list[float]]


def averaged(tensors: Tensors, kind: str, scope: str, pool: int) -> Scores:
    """Scores by layer and key head, averaged as widely as the scope says."""
    single = {(n, h): score_of(tensors, kind, n, h) for n in range(LAYERS) for h in range(HEADS)}
    out = {}
    for layer in range(LAYERS):
        for key_head in range(KEY_HEADS):
            of = [
                scores
                for (n, h), scores in single.items()
                if (scope == "global" or n == layer) and (scope != "head" or h // GROUP == key_head)
            ]
            out[layer, key_head] = pooled([sum(column) / len(of) for column in zip(*of, strict=True)], pool)
    return out


def best(score: list[float], size: int) -> set[int]:
    """Protected positions and the evictable ones of highest score, earlier ones first."""
    ranked = sorted(TAIL, key=lambda i: (-score[i], i))
    return {0, 1} | set(range(TOTAL - 6, TOTAL)) | set(ranked[:size])


def size_of(budget: float) -> int:
    return max(0, round(budget * TOTAL) - 8)


def pyramid(mean: int, beta: float) -> list[int]:
    last = max(mean / beta, 2 * mean - len(TAIL))
    exact = [(2 * mean - last) + layer / (LAYERS - 1) * (2 * last - 2 * mean) for layer in range(LAYERS)]
    sizes = [math.floor(x + 1e-9) for x in exact]
    for layer in sorted(range(LAYERS), key=lambda n: (-round(exact[n] - sizes[n], 9), n)):
        if sum(sizes) < LAYERS * mean:
            sizes[layer] += 1
    return sizes


def shared_by_scores(scores: Scores, size: int, floor: float) -> dict[tuple[int, int], set[int]]:
    """Ada-KV: each head's floor, then the highest scores of the layer."""
    out = {}
    for layer in range(LAYERS):
        ranked = {h: sorted(TAIL, key=lambda i: (-scores[layer, h][i], i)) for h in range(KEY_HEADS)}
        kept = {h: ranked[h][: math.floor(floor * size)] for h in range(KEY_HEADS)}
        rest = [(-scores[layer, h][i], h, i) for h in range(KEY_HEADS) for i in TAIL if i not in kept[h]]
        for _, h, i in sorted(rest)[: KEY_HEADS * size - sum(map(len, kept.values()))]:
            kept[h].append(i)
        for h in range(KEY_HEADS):
            out[layer, h] = {0, 1} | set(range(TOTAL - 6, TOTAL)) | set(kept[h])
    return out


def top(kind: str, scope: str, pool: int) -> Callable[[Tensors, float], dict[tuple[int, int], set[int]]]:
    def kept(tensors: Tensors, budget: float) -> dict[tuple[int, int], set[int]]:
        scores = averaged(tensors, kind, scope, pool)
        return {place: best(score, size_of(budget)) for place, score in scores.items()}

    return kept


def by_size(beta: float, scope: str, pool: int):
    def kept(tensors, budget):
        sizes = pyramid(size_of(budget), beta)
        scores = averaged(tensors, "window", scope, pool)
        return {(layer, head): best(score, sizes[layer]) for (layer, head), score in scores.items()}

    return kept


def by_weight(beta: float, pool: int):
    def kept(tensors, budget):
        scores = averaged(tensors, "window", "layer", 1)
        weight = [2 - 1 / beta, 1.0, 1 / beta]
        mean = [sum(weight[n] * scores[n, 0][i] for n in range(LAYERS)) / LAYERS for i in range(TOTAL)]
        return dict.fromkeys(scores, best(pooled(mean, pool), size_of(budget)))

    return kept


def ada(kind: str, floor: float, pool: int):
    def kept(tensors, budget):
        return shared_by_scores(averaged(tensors, kind, "head", pool), size_of(budget), floor)

    return kept


def latest(tensors, budget):
    return {
        (n, h): best(list(range(TOTAL)), size_of(budget)) for n in range(LAYERS) for h in range(KEY_HEADS)
    }


DEFINITIONS = [
    top("window", "global", 1),
    top("window", "layer", 7),
    top("window", "head", 3),
    top("h2o/1", "head", 1),
    top("h2o/3", "layer", 1),
    latest,
    top("tova", "layer", 1),
    by_size(4.0, "layer", 1),
    by_size(20.0, "head", 5),
    by_weight(4.0, 3),
    top("keydiff", "head", 1),
    top("manifold", "head", 1),
    top("manifold_before_rope", "layer", 1),
    ada("window", 0.5, 3),
    ada("manifold", 0.0, 1),
    top("capkv", "head", 1),
    top("question", "layer", 1),
    top("h2o/8", "head", 1),
]


def draw(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def kept_sets(selection: Selection) -> dict[tuple[int, int], set[int]]:
    """Kept positions by layer and key head, of a mask that its query heads must share."""
    kept = selection.kept.expand(LAYERS, HEADS, TOTAL)
    out = {}
    for layer in range(LAYERS):
        for head in range(HEADS):
            found = set(torch.nonzero(kept[layer, head])[:, 0].tolist())
            assert out.setdefault((layer, head // GROUP), found) == found
    return out


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(("evictor", "definition"), list(zip(EVICTORS, DEFINITIONS, strict=True)), ids=IDS)
def test_the_kept_set_equals_the_definition(filled, tensors, evictor, definition, budget):
    selection = evictor.select(filled, budget, PROTECTED, draw())
    assert kept_sets(selection) == definition(tensors, budget)
    assert selection.kept_fraction == pytest.approx(round(budget * TOTAL) / TOTAL, abs=1e-12)
    assert (selection.inclusion_probability == 1).all()
    assert selection.inclusion_probability.shape == selection.kept.shape
    if selection.score is not None:
        assert selection.score.shape == selection.kept[..., selection.tail].shape


@pytest.mark.parametrize("evictor", [*EVICTORS, Uniform()], ids=[*IDS, "Uniform()"])
def test_budgets_at_both_ends(filled, evictor):
    assert evictor.select(filled, 1.0, PROTECTED, draw()).kept.all()
    for budget in (0.05, 0.2):
        kept = evictor.select(filled, budget, PROTECTED, draw()).kept
        assert not kept[..., TAIL].any()
        assert kept[..., :2].all()
        assert kept[..., -6:].all()


@pytest.mark.parametrize("evictor", EVICTORS, ids=IDS)
def test_a_larger_budget_keeps_what_a_smaller_one_kept(filled, evictor):
    before = torch.zeros(1, dtype=torch.bool)
    for size in range(8, TOTAL + 1):
        selection = evictor.select(filled, size / TOTAL, PROTECTED, draw())
        assert float(selection.kept.double().mean()) == pytest.approx(size / TOTAL)
        assert not (before & ~selection.kept).any()
        before = selection.kept


@pytest.mark.parametrize("evictor", [*EVICTORS, Uniform(), Poisson(), ConditionalPoisson()])
def test_a_plan_names_an_evictor_by_its_tag(evictor):
    written = msgspec.to_builtins(evictor)
    assert written["evictor"] == type(evictor).__struct_config__.tag
    assert msgspec.convert(written, Evictor) == evictor


@pytest.mark.parametrize("evictor", EVICTORS, ids=IDS)
def test_no_chance_is_involved(filled, evictor):
    one, other = (evictor.select(filled, 0.5, PROTECTED, draw(seed)) for seed in (0, 1))
    assert torch.equal(one.kept, other.kept)
    assert one.design == "deterministic"


@pytest.mark.parametrize(
    "evictor", [SnapKV(pool=1), SnapKV(scope="head"), PyramidKV(), TopK(scorer="window", scope="global")]
)
def test_earlier_positions_win_ties(filled, evictor):
    flat = Prefill(filled.cache, torch.full_like(filled.attention, 1 / TOTAL), WINDOW)
    kept = evictor.select(flat, 0.5, PROTECTED, draw()).kept
    for row in kept.reshape(-1, TOTAL):
        chosen = torch.nonzero(row[2:-6])[:, 0].tolist()
        assert chosen == list(range(len(chosen)))


def test_ties_between_heads_go_to_the_lower_head(filled):
    flat = Prefill(filled.cache, torch.full_like(filled.attention, 1 / TOTAL), WINDOW)
    kept = AdaKV(floor=0.5).select(flat, 0.5, PROTECTED, draw()).kept
    assert kept[0, :, 2:-6].sum(-1).tolist() == [18, 18, 6, 6]
    assert kept[0, 0, 2:20].all()
    assert kept[0, 3, 2:8].all()


@pytest.mark.parametrize("budget", BUDGETS)
def test_uniform_keeps_the_size_and_depends_on_the_draw_alone(filled, budget):
    other = Prefill(filled.cache, filled.attention.flip(-1), WINDOW)
    first = Uniform().select(filled, budget, PROTECTED, draw(1))
    assert first.kept.shape == (1, 1, TOTAL)
    assert int(first.kept.sum()) == round(budget * TOTAL)
    assert torch.equal(first.kept, Uniform().select(other, budget, PROTECTED, draw(1)).kept)
    assert not torch.equal(first.kept, Uniform().select(filled, budget, PROTECTED, draw(2)).kept)
    draws = [Uniform().select(filled, 0.5, PROTECTED, draw(seed)).kept[0, 0] for seed in range(400)]
    share = torch.stack(draws).float().mean(0)[2:-6]
    assert float(share.mean()) == pytest.approx(12 / 32)
    assert float((share - 12 / 32).abs().max()) < 4 * math.sqrt(12 / 32 * 20 / 32 / 400)


def test_uniform_draws_rank_one_number_a_position(filled):
    lots = np.random.default_rng(3).random((1, len(TAIL)))[0]
    expected = best([0, 0, *lots, *[0] * 6], size_of(0.5))
    assert kept_sets(Uniform().select(filled, 0.5, PROTECTED, draw(3)))[0, 0] == expected


def test_pyramid_sizes_sum_to_the_mean_and_fall():
    for mean, n_layers, most, beta in (
        (10, 7, 50, 20.0),
        (33, 30, 40, 3.0),
        (40, 4, 40, 2.0),
        (1, 5, 9, 9.0),
    ):
        sizes = pyramid_sizes(mean, n_layers, most, beta).tolist()
        assert sum(sizes) == mean * n_layers
        assert sizes == sorted(sizes, reverse=True)
        assert 0 <= min(sizes) <= max(sizes) <= most
    assert pyramid_sizes(5, 1, 9, 20.0).tolist() == [5]
    assert pyramid_sizes(5, 3, 9, 1.0).tolist() == [5, 5, 5]


def test_a_pyramid_of_equal_layers_is_snapkv(filled):
    expected = SnapKV(scope="layer", pool=3).select(filled, 0.5, PROTECTED, draw()).kept
    assert torch.equal(PyramidKV(beta=1, pool=3).select(filled, 0.5, PROTECTED, draw()).kept, expected)
    expected = SnapKV(scope="global", pool=3).select(filled, 0.5, PROTECTED, draw()).kept
    weighted = PyramidKV(schedule="weights", beta=1, pool=3).select(filled, 0.5, PROTECTED, draw())
    assert torch.equal(weighted.kept, expected)
    assert weighted.allocation == "pyramid_weights"


def test_a_full_floor_gives_every_head_the_same():
    score = torch.rand(3, 4, 20, generator=torch.Generator().manual_seed(0))
    assert (head_sizes(score, 7, 1.0) == 7).all()
    loose = head_sizes(score + torch.arange(4.0)[:, None], 7, 0.0)
    assert loose.sum(1).tolist() == [28, 28, 28]
    assert loose[0].tolist() == [0, 0, 8, 20]


def test_a_floor_is_rounded_down():
    """0.5 of 7 is 3.5: the head without high scores keeps its 3 best; 2.75 of 11 at 0.25 are 2."""
    score = torch.tensor([[[9.0] * 20, [1.0] * 20]])
    assert head_sizes(score, 7, 0.5).tolist() == [[11, 3]]
    assert head_sizes(score, 11, 0.25).tolist() == [[20, 2]]


def test_sizes_beyond_the_tail_keep_it_whole():
    kept = keep_highest(torch.rand(1, 2, 32), torch.tensor([[40, 3]]), TOTAL, PROTECTED, n_heads=4).kept
    assert kept.sum(-1).tolist() == [[40, 40, 11, 11]]


def test_scores_leave_the_protected_out(filled):
    shapes = {"head": (LAYERS, KEY_HEADS, 32), "layer": (LAYERS, 1, 32), "global": (1, 1, 32)}
    for scope, shape in shapes.items():
        assert tail_score(filled, "window", PROTECTED, scope=scope, pool=7).shape == shape
        assert tail_score(filled, "manifold", PROTECTED, scope=scope).shape == shape


def test_a_scorer_that_shares_heads(filled):
    """Scores [L, 1, T] make one set a layer, and cannot tell Ada-KV's heads apart."""
    shared = Prefill(filled.cache, filled.attention.mean(1, keepdim=True), WINDOW)
    object.__setattr__(shared, "scores", {"window": shared.attention})
    assert SnapKV(scope="head").select(shared, 0.5, PROTECTED, draw()).kept.shape == (LAYERS, 1, TOTAL)
    with pytest.raises(
        InputError, match=r"AdaKV.select: scorer='window' gives the 2 key heads one score; us"
    ):
        AdaKV().select(shared, 0.5, PROTECTED, draw())


def test_the_question_is_where_it_was_prefilled():
    example = SimpleNamespace(context_ids=[1, 2, 3], question_ids=[4, 5], prefix_ids=[6])
    for prefix, expected in (([6], [4, 5]), ([], [4])):
        example.prefix_ids = prefix
        context, fed = split_prompt(example, "aware")
        assert context + fed == [1, 2, 3, 4, 5, *prefix]
        assert [context[place] for place in question_positions(example, "aware")] == expected
    assert not question_positions(example, "stream")
    assert split_prompt(example, "stream") == ([1, 2, 3], [4, 5])


def test_a_cache_without_tail_is_refused():
    with pytest.raises(InputError, match="total=8 leaves nothing to evict beside 8 protected tokens"):
        PROTECTED.tail(8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: H2O(stride=0), "H2O: stride=0 is below 1; pass 1 to take all queries"),
        (lambda: PyramidKV(beta=0.5), r"PyramidKV: beta=0.5 is not in \[1, inf\); pass 20.0"),
        (lambda: PyramidKV(beta=math.nan), r"PyramidKV: beta=nan is not in \[1, inf\)"),
        (
            lambda: PyramidKV(schedule="weights", scope="head"),
            "PyramidKV: scope='head' has no meaning under schedule 'weights'; leave it out",
        ),
        (lambda: AdaKV(floor=1.5), r"AdaKV: floor=1.5 is not in \[0, 1\]; pass 0.5"),
        (lambda: CapKV(tau=-1.0), r"CapKV: tau=-1.0 is not in \[0, inf\); pass 5.0"),
        (lambda: TopK(scorer="keydif"), "TopK: scorer='keydif' is unknown; did you mean 'keydiff'"),
        (lambda: AdaKV(scorer="h20"), "AdaKV: scorer='h20' is unknown; did you mean 'h2o'"),
        (lambda: Poisson(scorer="x"), "Poisson: scorer='x' is unknown; known: capkv, h2o, keydiff, man"),
        (lambda: ConditionalPoisson(scorer="tov"), "ConditionalPoisson: scorer='tov' is unknown; did you me"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    "evictor", [SnapKV, Poisson, ConditionalPoisson, PyramidKV, AdaKV, QuestionAware, TopK]
)
@pytest.mark.parametrize(
    ("pool", "fault"), [(4, "is even"), (2, "is even"), (0, "is below 1"), (-3, "is below 1")]
)
def test_a_pool_without_a_middle_is_refused(evictor, pool, fault):
    message = f"{evictor.__name__}: pool={pool} {fault}; pass an odd width; 1 pools nothing"
    with pytest.raises(InputError, match=message):
        evictor(pool=pool, **({"scorer": "h2o"} if evictor is TopK else {}))
