"""Scorers: against eager attention and projections of real layers, the rotation undone, the register."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from transformers import (
    CohereConfig,
    CohereForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PhiConfig,
    PhiForCausalLM,
)

from collectors.attention import recording, scored
from collectors.config import read_plan
from collectors.evictors import H2O, AdaKV, KeyDiff, SnapKV, TopK, needs_question, requested_scorers
from collectors.prefill import Prefill, prefill
from collectors.scorers import (
    AccumulatedAttention,
    CapKVLeverage,
    CentroidDistance,
    LastQueryAttention,
    QuestionAttention,
    find_scorer,
    h2o,
    scorer_label,
    scorer_names,
)
from collectors.scorers.attention_of import attention_of
from collectors.scorers.registry import BUILT_IN
from collectors.scorers.rotation import rotation_of
from kvstats.errors import InputError

TOKENS = 60
QUESTION = range(31, 44)


@pytest.fixture(scope="module")
def eager(smollm2) -> tuple[list[int], tuple[torch.Tensor, ...], list[torch.Tensor]]:
    """Tokens, the attention [H, T, T] of each layer, and its keys before RoPE [H_kv, T, d]."""
    ids = torch.randint(5, 40000, (TOKENS,), generator=torch.Generator().manual_seed(0)).tolist()
    model, keys = smollm2.model, []
    hooks = [
        layer.self_attn.k_proj.register_forward_hook(
            lambda module, args, out: keys.append(out[0].view(TOKENS, 3, -1).transpose(0, 1))
        )
        for layer in model.model.layers
    ]
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            out = model(torch.tensor([ids]), output_attentions=True)
    finally:
        model.set_attn_implementation(before)
        for hook in hooks:
            hook.remove()
    return ids, tuple(layer[0] for layer in out.attentions), keys


@pytest.fixture(scope="module")
def filled(smollm2, eager) -> Prefill:
    scorers = {scorer_label(name): scorer for name, scorer in BUILT_IN.items()}
    scorers["all"] = AccumulatedAttention(stride=1)
    with recording(smollm2.model) as recorder:
        done = prefill(smollm2.model, eager[0], recorder, scorers=scorers, question=QUESTION)
        assert not recorder.scorers
        assert not recorder.scores
    return done


def test_scores_from_attention_equal_those_of_eager_attention(filled, eager):
    attention = torch.stack(eager[1])
    close = {"atol": 2e-5, "rtol": 1e-3}
    torch.testing.assert_close(filled.score("all"), attention.sum(2), atol=2e-4, rtol=1e-3)
    strided = attention[:, :, list(range(TOKENS - 1, -1, -8))].sum(2)
    torch.testing.assert_close(filled.score("h2o"), strided, atol=2e-4, rtol=1e-3)
    torch.testing.assert_close(filled.score("tova"), attention[:, :, -1], **close)
    question = attention[:, :, QUESTION.start : QUESTION.stop].mean(2)
    torch.testing.assert_close(filled.score("question"), question, **close)
    assert filled.score("window") is filled.attention


def test_distance_before_rope_equals_that_of_the_projected_keys(filled, eager):
    expected = torch.stack([(keys - keys.mean(1, keepdim=True)).norm(dim=-1) for keys in eager[2]])
    torch.testing.assert_close(filled.score("manifold_before_rope"), expected, atol=1e-3, rtol=1e-3)
    rotated = torch.stack([layer.keys[0] for layer in filled.cache.layers])
    expected = (rotated - rotated.mean(2, keepdim=True)).norm(dim=-1)
    torch.testing.assert_close(filled.score("manifold"), expected, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(filled.score("manifold"), filled.score("manifold_before_rope"), rtol=0.1)


def test_shapes_and_types(filled):
    heads = {"capkv": 3, "keydiff": 3, "manifold": 3, "manifold_before_rope": 3}
    for name in BUILT_IN:
        score = filled.score(name)
        assert score.shape == (30, heads.get(name, 9), TOKENS)
        assert score.dtype == torch.float32
        assert bool((score >= 0).all())
    assert float(filled.score("capkv")[..., 4:].max()) <= 1
    assert (filled.n_heads, filled.n_key_heads, filled.n_tokens) == (9, 3, TOKENS)


def test_attention_of_some_queries_equals_a_loop():
    generator = torch.Generator().manual_seed(0)
    queries, keys = torch.randn(4, 3, 8, generator=generator), torch.randn(2, 10, 8, generator=generator)
    positions = [9, 2, 5]
    attention = attention_of(queries, keys, torch.tensor(positions))
    for head in range(4):
        for row, position in enumerate(positions):
            weight = (keys[head // 2, : position + 1] @ queries[head, row]).exp()
            expected = torch.nn.functional.pad(weight / weight.sum(), (0, 9 - position))
            torch.testing.assert_close(attention[head, row], expected)


def test_accumulation_by_chunks_holds_no_square_matrix(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    queries, keys = torch.randn(4, 90, 8, generator=generator), torch.randn(2, 90, 8, generator=generator)
    whole = AccumulatedAttention(stride=2)(queries, keys, keys, 0)
    held = []

    def watched(*args):
        attention = attention_of(*args)
        held.append(attention.numel())
        return attention

    monkeypatch.setattr(h2o, "attention_of", watched)
    monkeypatch.setattr(h2o, "CHUNK", 2000)
    torch.testing.assert_close(AccumulatedAttention(stride=2)(queries, keys, keys, 0), whole)
    assert len(held) == 9
    assert max(held) <= 2000


def test_queries_of_the_last_positions_alone():
    """A prefill that goes on from a cache has fewer queries than keys."""
    generator = torch.Generator().manual_seed(0)
    queries, keys = torch.randn(4, 30, 8, generator=generator), torch.randn(2, 30, 8, generator=generator)
    for scorer in (LastQueryAttention(), QuestionAttention().bind(None, range(22, 26))):
        torch.testing.assert_close(scorer(queries[:, 20:], keys, keys, 0), scorer(queries, keys, keys, 0))
    late = AccumulatedAttention(stride=1)(queries[:, 20:], keys, keys, 0)
    torch.testing.assert_close(late, attention_of(queries, keys, torch.arange(30))[:, 20:].sum(1))


YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 32}
SMALL = {
    "vocab_size": 16,
    "hidden_size": 32,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
}


@pytest.mark.parametrize(
    "model",
    [
        LlamaForCausalLM(LlamaConfig(**SMALL)),
        LlamaForCausalLM(LlamaConfig(**SMALL, rope_parameters=YARN, max_position_embeddings=128)),
        CohereForCausalLM(CohereConfig(**SMALL)),
        PhiForCausalLM(PhiConfig(**SMALL)),
    ],
    ids=["llama", "yarn", "interleaved", "partial"],
)
def test_the_rotation_of_a_model_is_undone(model):
    """Against the model's own: plain, scaled, of neighbouring pairs, of a part of the coordinates."""
    rotation = rotation_of("test", model)
    x = torch.randn(2, 50, 16, generator=torch.Generator().manual_seed(0))
    cosine, sine = model.model.rotary_emb(x, torch.arange(50)[None])
    width = cosine.shape[-1]
    apply = sys.modules[type(model).__module__].apply_rotary_pos_emb
    turned = apply(x[None, ..., :width], x[None, ..., :width], cosine, sine)[0][0]
    rotated = torch.cat([turned, x[..., width:]], -1)
    torch.testing.assert_close(rotation.undo(rotated, torch.arange(50)), x, atol=1e-5, rtol=1e-5)
    mean = rotation.mean_apply(x[:, 7], torch.tensor([7]))
    torch.testing.assert_close(mean, rotated[:, 7], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(rotated, x, atol=0.1)


def test_a_model_without_rotary_embedding_is_refused():
    model = GPT2LMHeadModel(GPT2Config(vocab_size=8, n_positions=8, n_embd=8, n_layer=1, n_head=2))
    for scorer in (CentroidDistance(before_rope=True), CapKVLeverage()):
        message = rf"{type(scorer).__name__}.bind: model='GPT2LMHeadModel' has no rotary embedding that could"
        with pytest.raises(InputError, match=message):
            scorer.bind(model, range(0))
    assert CentroidDistance().bind(model, range(0)).rotation is None


def test_a_question_that_was_not_prefilled_is_refused(smollm2):
    with (
        recording(smollm2.model) as recorder,
        pytest.raises(
            InputError, match=r"question=range\(0, 0\) holds no prefilled token; score by the quest"
        ),
    ):
        prefill(smollm2.model, [1, 2, 3], recorder, scorers={"q": QuestionAttention()})


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (
            torch.zeros(5),
            r"scorers='mine' returned scores of shape \(5,\) at layer 3; return \[1 or 2 or 4, 5\]",
        ),
        (torch.zeros(3, 5), r"returned scores of shape \(3, 5\) at layer 3"),
        (torch.zeros(2, 4), r"returned scores of shape \(2, 4\) at layer 3"),
        (torch.full((1, 5), float("nan")), "'mine' returned scores that are not finite at layer 3; return a"),
        (torch.full((1, 5), float("inf")), "returned scores that are not finite"),
    ],
)
def test_what_a_scorer_returns_is_checked(returned, message):
    query, key = torch.zeros(1, 4, 5, 8), torch.zeros(1, 2, 5, 8)
    with pytest.raises(InputError, match=message):
        scored({"mine": lambda *args: returned}, query, key, key, 1.0, 3)


def test_scorers_get_float32_and_scaled_queries():
    seen = []

    def scorer(queries, keys, values, layer):
        seen.extend([queries, keys, values])
        return keys.sum(-1)

    half = {"dtype": torch.bfloat16}
    result = scored(
        {"mine": scorer},
        torch.ones(1, 4, 5, 8, **half),
        torch.ones(1, 2, 5, 8, **half),
        torch.ones(1, 2, 5, 8, **half),
        0.25,
        3,
    )
    assert {tensor.dtype for tensor in seen} == {torch.float32}
    assert (seen[0] == 0.25).all()
    assert list(result) == [("mine", 3)]


def test_bfloat16_ranks_alike():
    torch.manual_seed(0)
    config = LlamaConfig(**{**SMALL, "num_hidden_layers": 3}, initializer_range=0.3)
    ids = torch.randint(0, 16, (50,)).tolist()
    model = LlamaForCausalLM(config).eval()
    results = []
    for dtype in (torch.float32, torch.bfloat16):
        with recording(model.to(dtype)) as recorder:
            scorers = dict(BUILT_IN)
            results.append(prefill(model, ids, recorder, window=8, scorers=scorers, question=range(40, 45)))
    for name in BUILT_IN:
        exact, rough = (result.scores[name].flatten() for result in results)
        assert rough.dtype == torch.float32
        assert float(torch.corrcoef(torch.stack([exact, rough]))[0, 1]) > 0.95


REGISTERED = '''
def key_norm(queries, keys, values, layer):
    """Longer keys first."""
    return keys.norm(dim=-1)

NOT_CALLABLE = 3
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that registers scorers."""
    (tmp_path / "my_scorers.py").write_text(REGISTERED)
    info = tmp_path / "my_scorers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-scorers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[collectors.scorers]\nkey_norm = my_scorers:key_norm\nbroken = my_scorers:NOT_CALLABLE\n"
        "h2o = my_scorers:key_norm\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("my_scorers", None)


PLAN = """
suite: small
model: smollm2-135m
length: 190
seed: 5
tasks: {niah_single: 1}
conditions: [aware, stream]
arms:
  - {name: mine, evictor: {evictor: adakv, scorer: SCORER, floor: 0.5}, budgets: [0.5]}
  - {name: asked, evictor: {evictor: question_aware}, budgets: [0.5], conditions: [aware]}
"""


def test_a_registered_scorer_is_used_by_its_name(package, smollm2, eager):
    path = package / "plan.yaml"
    path.write_text(PLAN.replace("SCORER", "key_norm"))
    plan = read_plan(path)
    requested = requested_scorers(arm.evictor for arm in plan.arms_under("stream"))
    assert list(requested) == ["key_norm"]
    with recording(smollm2.model) as recorder:
        filled = prefill(smollm2.model, eager[0], recorder, scorers=requested)
    keys = torch.stack([layer.keys[0] for layer in filled.cache.layers])
    torch.testing.assert_close(filled.score("key_norm"), keys.norm(dim=-1))
    selection = plan.arms[0].evictor.select(filled, 0.8, plan.protected, None)
    assert selection.kept_fraction == pytest.approx(48 / TOKENS)


def test_names_of_scorers(package):
    assert {"window", "key_norm", *BUILT_IN} <= set(scorer_names())
    assert find_scorer("h2o") == AccumulatedAttention()
    with pytest.raises(InputError, match="find_scorer: name='key_nrm' is unknown; did you mean 'key_norm'"):
        find_scorer("key_nrm")
    with pytest.raises(InputError, match="find_scorer: name='broken' is registered but cannot be called; re"):
        find_scorer("broken")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("SCORER", "keydif", "9: AdaKV: scorer='keydif' is unknown; did you mean 'keydiff'"),
        (
            ", conditions: [aware]}",
            "}",
            "10: the arm 'asked' ranks by the question, which comes after the ev",
        ),
        ("conditions: [aware]}", "conditions: [stream]}", "10: the arm 'asked' ranks by the question"),
        ("conditions: [aware]}", "conditions: [aware, aware]}", "arms\\[1\\].conditions has 'aware' twice"),
        ("conditions: [aware]}", "conditions: []}", "10: arms\\[1\\].conditions is a list: expected"),
        ("[aware, stream]", "[aware]", None),
        (
            "conditions: [aware, stream]",
            "conditions: [stream]",
            "conditions\\[0\\] is 'aware', which the plan",
        ),
    ],
)
def test_arms_under_conditions(tmp_path, old, new, message):
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN.replace(old, new, 1).replace("SCORER", "keydiff"))
    if message is None:
        assert [arm.name for arm in read_plan(path).arms_under("aware")] == ["mine", "asked"]
        return
    with pytest.raises(InputError, match=message):
        read_plan(path)


def test_scorers_are_asked_for_once():
    assert list(
        requested_scorers([SnapKV(), H2O(), TopK(scorer="h2o"), AdaKV(scorer="keydiff"), KeyDiff()])
    ) == [
        "AccumulatedAttention(stride=8)",
        "KeyDifference()",
    ]
    assert len(requested_scorers([H2O(), H2O(stride=4)])) == 2
    assert needs_question(TopK(scorer="question"))
    assert not needs_question(H2O())
