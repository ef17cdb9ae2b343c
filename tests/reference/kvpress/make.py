"""Scores and kept positions of kvpress on a tiny random model, for tests/collectors/test_evictors_kvpress.py.

Run in an environment of its own, as kvpress needs an older transformers:

    python -m venv kvpress-environment
    kvpress-environment/bin/pip install torch==2.13.0 kvpress==0.5.5 "transformers<5.3"
    kvpress-environment/bin/python tests/reference/kvpress/make.py

It writes reference.npz beside itself: by layer the queries, keys (after and before RoPE) and values of one
prefill, the scores of each press, and the positions that it keeps at three ratios.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from unittest.mock import patch

import kvpress
import numpy as np
import torch
from kvpress.presses.scorer_press import ScorerPress
from kvpress.utils import get_prerope_key_states, get_prerope_query_states
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import rotate_half

TOTAL, WINDOW, RATIOS = 48, 8, (0.25, 0.5, 0.75)
CONFIG = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 1024,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    "initializer_range": 0.3,
}


def make_model(attention: str) -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM._from_config(LlamaConfig(**CONFIG), attn_implementation=attention).eval()


@torch.inference_mode()
def forward(model: LlamaForCausalLM, press: kvpress.BasePress) -> DynamicCache:
    """Prefill the same tokens under a press."""
    cache = DynamicCache()
    ids = torch.randint(0, 64, (1, TOTAL), generator=torch.Generator().manual_seed(1))
    with press(model):
        model(ids, past_key_values=cache)
    return cache


class Tensors(ScorerPress):
    """Takes note of the tensors of each layer and evicts nothing."""

    def compress(self, module, hidden_states, keys, values, attentions, kwargs):
        query = get_prerope_query_states(module, hidden_states)
        cosine, sine = kwargs["position_embeddings"]
        found["queries"].append((query * cosine + rotate_half(query) * sine)[0])
        found["keys"].append(keys[0])
        found["keys_before_rope"].append(get_prerope_key_states(module, hidden_states)[0])
        found["values"].append(values[0])
        return keys, values


found: dict[str, list[torch.Tensor]] = {"queries": [], "keys": [], "keys_before_rope": [], "values": []}
forward(make_model("sdpa"), Tensors())
out = {name: torch.stack(layers) for name, layers in found.items()}

PRESSES = {
    "snapkv": (kvpress.SnapKVPress, {"window_size": WINDOW, "kernel_size": 1}, "sdpa"),
    "tova": (kvpress.TOVAPress, {}, "sdpa"),
    "keydiff": (kvpress.KeyDiffPress, {}, "sdpa"),
    "streaming_llm": (kvpress.StreamingLLMPress, {"n_sink": 4}, "sdpa"),
    "observed_attention": (kvpress.ObservedAttentionPress, {}, "eager"),
    "capkv": (kvpress.CapPress, {}, "sdpa"),
}


def kept_and_scores(press, attention: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the positions that topk chose, as a mask, and the scores, by layer and key head."""
    scores, kept = [], []
    plain_topk = torch.Tensor.topk

    def score(*args):
        scores.append(type(press).score(press, *args)[0].clone())
        return scores[-1][None]

    def topk(values, size, dim=-1):
        chosen = plain_topk(values, size, dim=dim)
        kept.append(torch.zeros(values.shape[1:], dtype=torch.bool).scatter_(-1, chosen.indices[0], True))
        return chosen

    with patch.object(press, "score", score), patch.object(torch.Tensor, "topk", topk):
        forward(make_model(attention), press)
    return torch.stack(kept), torch.stack(scores)


for name, (kind, settings, attention) in PRESSES.items():
    for ratio in RATIOS:
        kept, scores = kept_and_scores(kind(compression_ratio=ratio, **settings), attention)
        out[f"{name}/kept/{ratio}"], out[f"{name}/scores/{ratio}"] = kept, scores

for ratio in RATIOS:
    press = kvpress.AdaKVPress(kvpress.KeyDiffPress(compression_ratio=ratio), alpha_safeguard=0.5)
    model = make_model("sdpa")
    forward(model, press)
    kept = torch.ones(CONFIG["num_hidden_layers"], 2, TOTAL, dtype=torch.bool)
    for layer, block in enumerate(model.model.layers):
        _, heads, positions = block.self_attn.masked_key_indices
        kept[layer, heads, positions] = False
    out[f"adakv_keydiff/kept/{ratio}"] = kept

# Schedules of long prompts: [length, kept fraction, layers, window, beta] and the size of each layer.
schedules = []
for length, fraction, layers, window, beta in (
    (1000, 0.3, 8, 16, 10),
    (4096, 0.125, 32, 8, 20),
    (1000, 0.7, 8, 16, 20),
):
    module = torch.nn.Module()
    module.config = LlamaConfig(num_hidden_layers=layers)
    press = kvpress.PyramidKVPress(compression_ratio=1 - fraction, window_size=window, beta=beta)
    sizes = []
    for module.layer_idx in range(layers):
        sizes.append(press.get_layer_budget(module, length))
    schedules.append({"length": length, "fraction": fraction, "window": window, "beta": beta, "sizes": sizes})

about = {
    "versions": {name: version(name) for name in ("kvpress", "torch", "transformers")},
    "config": CONFIG,
    "window": WINDOW,
    "pyramid_schedules": schedules,
}
target = Path(__file__).with_name("reference.npz")
np.savez_compressed(
    target, about=np.array(json.dumps(about)), **{name: value.numpy() for name, value in out.items()}
)
print(f"{target.name}: {target.stat().st_size} bytes, {len(out)} arrays")
