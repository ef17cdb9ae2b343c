"""The collector's mechanism on the real small model: capture, offsets, slicing, certificate."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from transformers import DynamicCache

from collectors.attention import ATTENTION_NAME, recording
from collectors.cache import expand_cache
from collectors.certificate import CertificateObserver
from collectors.decode import decode, end_tokens
from collectors.evictors import Poisson, Protected, SnapKV, keep_everything
from collectors.models import LoadedModel
from collectors.prefill import prefill
from collectors.rows import split_prompt, stack_rows
from collectors.tasks import Example, make_example

NEW_TOKENS = 10


@pytest.fixture(scope="module")
def example(smollm2: LoadedModel) -> Example:
    return make_example("niah_single", seed=3, index=0, length=230, tokenizer=smollm2.tokenizer)


def slice_cache(cache: DynamicCache, kept: torch.Tensor) -> DynamicCache:
    """Copy only the kept positions [L, T], as a system that frees memory does."""
    sliced = DynamicCache()
    for number, layer in enumerate(cache.layers):
        positions = torch.nonzero(kept[number])[:, 0]
        sliced.update(layer.keys[:, :, positions], layer.values[:, :, positions], number)
    return sliced


def generate(smollm2: LoadedModel, example: Example, condition: str, selections, *, sliced: bool = False):
    """Decode one row for each selection, by masking in one batch or by slicing one cache after another."""
    context, fed = split_prompt(example, condition)
    model = smollm2.model
    with recording(model) as recorder:
        filled = prefill(model, context, recorder)
        chosen = selections(filled)
        offsets = [selection.logit_offsets(len(filled.cache)) for selection in chosen]
        common = {"position": len(context), "max_new_tokens": NEW_TOKENS, "ends": end_tokens(model)}
        if not sliced:
            cache = expand_cache(filled.cache, len(chosen), len(fed) + NEW_TOKENS)
            return decode(
                model, recorder, cache, fed, rows=len(chosen), offsets=stack_rows(offsets), **common
            )
        rows = []
        for selection, offset in zip(chosen, offsets, strict=True):
            kept = selection.kept[:, 0].expand(len(filled.cache), -1)
            kept_offsets = torch.stack([offset[layer, 0, kept[layer]] for layer in range(len(kept))])
            cache = slice_cache(filled.cache, kept)
            rows += decode(model, recorder, cache, fed, rows=1, offsets=kept_offsets[:, None, None], **common)
        return rows


def draw(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("condition", ["aware", "stream"])
def test_a_masked_row_equals_a_cache_that_was_really_sliced(smollm2, example, condition):
    def selections(filled):
        protected = Protected()
        return [
            SnapKV(scope="layer", pool=7).select(filled, 0.5, protected, draw(0)),
            SnapKV(scope="global", pool=1).select(filled, 0.3, protected, draw(0)),
            Poisson().select(filled, 0.6, protected, draw(1)),
        ]

    masked = generate(smollm2, example, condition, selections)
    sliced = generate(smollm2, example, condition, selections, sliced=True)
    assert [row.token_ids for row in masked] == [row.token_ids for row in sliced]
    for one, other in zip(masked, sliced, strict=True):
        np.testing.assert_allclose(one.log_probabilities, other.log_probabilities, atol=1e-4)
    assert len({row.mean_log_probability for row in masked}) == 3


@pytest.mark.parametrize("condition", ["aware", "stream"])
def test_budget_one_equals_plain_generation(smollm2, example, condition):
    prompt = torch.tensor([example.context_ids + example.question_ids + example.prefix_ids])
    with torch.inference_mode():
        plain = smollm2.model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=NEW_TOKENS,
            do_sample=False,
            pad_token_id=smollm2.tokenizer.pad_token_id,
        )[0, prompt.shape[1] :].tolist()
    ends = end_tokens(smollm2.model)
    plain = plain[: next((i for i, token in enumerate(plain) if token in ends), len(plain))]

    def selections(filled):
        total, protected = filled.n_tokens, Protected()
        return [
            keep_everything(total, protected),
            SnapKV().select(filled, 1.0, protected, draw(0)),
            Poisson().select(filled, 1.0, protected, draw(0)),
        ]

    for row in generate(smollm2, example, condition, selections):
        assert row.token_ids == plain
    assert len(plain) >= 5


def test_the_captured_window_equals_eager_attention(smollm2, example):
    ids = example.context_ids[:60]
    before = smollm2.model.config._attn_implementation
    with recording(smollm2.model) as recorder:
        captured = prefill(smollm2.model, ids, recorder, window=8).attention
    smollm2.model.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            eager = smollm2.model(torch.tensor([ids]), output_attentions=True).attentions
    finally:
        smollm2.model.set_attn_implementation(before)
    expected = torch.stack([layer[0, :, -8:].mean(1) for layer in eager])
    torch.testing.assert_close(captured, expected, atol=2e-5, rtol=1e-3)


def fail_while_recording(model):
    with recording(model):
        assert model.config._attn_implementation == ATTENTION_NAME
        raise KeyError("on purpose")


def test_nothing_is_left_on_the_model(smollm2, example):
    before = smollm2.model.config._attn_implementation
    hooks = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in smollm2.model.modules())
    with pytest.raises(KeyError, match="on purpose"):
        fail_while_recording(smollm2.model)
    assert smollm2.model.config._attn_implementation == before
    assert sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in smollm2.model.modules()) == hooks
    smollm2.model.set_attn_implementation(ATTENTION_NAME)
    try:
        with pytest.raises(RuntimeError, match="only inside collectors\\.attention\\.recording"):
            smollm2.model(torch.tensor([example.context_ids[:5]]))
    finally:
        smollm2.model.set_attn_implementation(before)


def test_the_certificate_of_a_read_equals_a_float64_loop(smollm2, example):
    """Every cell of one decode step against the formula written out over Python floats."""
    context, fed = split_prompt(example, "aware")
    seen = {}
    with recording(smollm2.model) as recorder:
        filled = prefill(smollm2.model, context, recorder)
        total = filled.n_tokens
        selection = Poisson().select(filled, 0.5, Protected(), draw(2))
        n_layers = len(filled.cache)
        observer = CertificateObserver(
            rows=[1],
            kept=stack_rows([selection.kept.expand(n_layers, -1, -1)]),
            inclusion_probability=stack_rows([selection.inclusion_probability.expand(n_layers, -1, -1)]),
            heads=[0, 2, 7],
            layers=frozenset({0, 17}),
            steps=2,
        )

        def watch(layer, query, key, value, scaling):
            observer(layer, query, key, value, scaling)
            seen[observer.step, layer] = (
                query[1, :, -1].double().numpy(),
                key[1].double().numpy(),
                value[1].double().numpy(),
                scaling,
            )

        recorder.observer = watch
        full = keep_everything(total, Protected()).logit_offsets(n_layers)
        decode(
            smollm2.model,
            recorder,
            expand_cache(filled.cache, 2, 32),
            fed,
            position=total,
            rows=2,
            max_new_tokens=3,
            ends=(),
            before_step=observer.begin_step,
            offsets=stack_rows([full, selection.logit_offsets(n_layers)]),
        )
    assert {(cell.step, cell.layer) for cell in observer.cells} == {(0, 0), (0, 17), (1, 0), (1, 17)}
    kept, pi = selection.kept[0, 0].numpy(), selection.inclusion_probability[0, 0].double().numpy()
    for cell in observer.cells:
        query, keys, values, scaling = seen[cell.step, cell.layer]
        for place, head in enumerate([0, 2, 7]):
            key, value = keys[head // 3], values[head // 3]
            units = [
                (key[i] @ query[head] * scaling, float(pi[i]), value[i]) for i in range(total) if kept[i]
            ]
            units += [(key[i] @ query[head] * scaling, 1.0, value[i]) for i in range(total, len(key))]
            top = max(s for s, _, _ in units)
            n_hat = sum(math.exp(s - top) / p for s, p, _ in units)
            y_hat = sum(math.exp(s - top) / p * v for s, p, v in units) / n_hat
            parts = [
                math.sqrt((1 - p) / p**2) * math.exp(s - top) * np.linalg.norm(v - y_hat) / n_hat
                for s, p, v in units
            ]
            variance, log_term = sum(part**2 for part in parts), math.log(10)
            norm = np.linalg.norm(y_hat) + 1e-9
            radius = (math.sqrt(2 * variance * log_term) + max(parts) * log_term) / norm
            assert float(cell.variance[0, place]) == pytest.approx(variance, rel=1e-4)
            assert float(cell.radius[0, place]) == pytest.approx(radius, rel=1e-4)
