"""What the collector's own work costs beside the model's, in one process of one thread.

    OMP_NUM_THREADS=1 python tests/benchmarks/collector.py [--model smollm2-135m] [--lengths 512 2048 4096]

All figures are ratios of medians of processor time; the two sides of a ratio are run in turn, so that a
machine that slows down or speeds up meanwhile does so for both. The model's answers do not matter here: a
row is decoded for a fixed number of tokens.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from collectors.agreement import head_agreement
from collectors.attention import Recorder, recording, window_attention
from collectors.cache import expand_cache
from collectors.certificate import CertificateObserver
from collectors.decode import decode
from collectors.evictors import Poisson, Protected
from collectors.models import LoadedModel, load_model
from collectors.prefill import Prefill, prefill
from collectors.rows import stack_rows
from collectors.tasks import make_example
from kvstats.statistics.certificate import attention_certificate

REPEATS = 5
NEW_TOKENS = 12


def seconds(call: Callable[[], Any]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def medians(*calls: Callable[[], Any], repeats: int = REPEATS) -> list[float]:
    """Median times of calls, run in turn after one run each."""
    for call in calls:
        call()
    times = [[seconds(call) for call in calls] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def report(what: str, found: float, target: str, note: str = "") -> None:
    print(f"  {what:<58} {found:>9.4f}  {target:<12} {note}", flush=True)


class Largest(TorchDispatchMode):
    """Note the largest tensor that any operation makes; views of others do not count."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers, self.shape = 0, ()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation, and look at what it returns."""
        found = func(*args, **(kwargs or {}))
        for item in found if isinstance(found, tuple | list) else (found,):
            if isinstance(item, Tensor) and item._base is None and item.numel() > self.numbers:
                self.numbers, self.shape = item.numel(), tuple(item.shape)
        return found


def agreement(loaded: LoadedModel, recorder: Recorder, tokens: list[int]) -> None:
    """D against the prefill, and against a loop over sets."""
    attention = prefill(loaded.model, tokens, recorder).attention

    def by_sets() -> float:
        per_layer = []
        for layer in attention.numpy():
            tops = [set(np.argsort(-head, kind="stable")[:32].tolist()) for head in layer]
            pairs = [len(a & b) / len(a | b) for a, b in itertools.combinations(tops, 2)]
            per_layer.append(sum(pairs) / len(pairs))
        third = len(per_layer) // 3
        return sum(per_layer[:third]) / third - sum(per_layer[-third:]) / third

    assert abs(by_sets() - head_agreement(attention).drop) < 1e-9
    whole, ours, loop = medians(
        lambda: prefill(loaded.model, tokens, recorder), lambda: head_agreement(attention), by_sets
    )
    report("D, as a share of the prefill", ours / whole, "<= 0.005", "the study tells of 0.05")
    report("D by a loop over sets, as a share of the prefill", loop / whole, "")


def capture(loaded: LoadedModel, recorder: Recorder, tokens: list[int]) -> None:
    """The window attention of all layers against a prefill that captures nothing, and what it allocates."""
    reads: list[tuple[Tensor, Tensor, float]] = []
    recorder.observer = lambda layer, query, key, value, scaling: reads.append((query, key, scaling))
    prefill(loaded.model, tokens, recorder)
    recorder.observer = None

    @torch.inference_mode()
    def plain() -> None:
        loaded.model(torch.tensor([tokens]), use_cache=True, logits_to_keep=1)

    @torch.inference_mode()
    def windows() -> None:
        for query, key, scaling in reads:
            window_attention(query, key, scaling, 32)

    whole, ours = medians(plain, windows, repeats=REPEATS if len(tokens) <= 1024 else 2)
    report("capture, as a share of the prefill", ours / whole, "<= 0.03", f"prefill {whole:.2f} s")
    with Largest() as largest:
        prefill(loaded.model, tokens, recorder)
    report(
        "largest tensor of the prefill, as a share of T x T numbers",
        largest.numbers / len(tokens) ** 2,
        "",
        f"{largest.shape}",
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    report("most memory of the process so far, GB", peak, "")


def read_by_read(rows: list[int], kept: Tensor, pi: Tensor, heads: list[int]) -> Callable[..., None]:
    """Certify each read when it happens, by the formula of one read: what the observer is held against."""

    def observe(layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> None:
        key_heads = [head // (query.shape[1] // key.shape[1]) for head in heads]
        places = torch.tensor(rows)[:, None]
        keys, values = key[places, key_heads].float(), value[places, key_heads].float()
        logits = torch.einsum("rhd,rhtd->rht", query[places, heads, -1].float(), keys) * scaling
        extra = logits.shape[-1] - kept.shape[-1]
        sample = torch.nn.functional.pad(kept[layer], (0, extra), value=True).expand_as(logits)
        chance = torch.nn.functional.pad(pi[layer], (0, extra), value=1.0).expand_as(logits)
        attention_certificate(logits, values, chance, sample)

    return observe


def certificate(loaded: LoadedModel, recorder: Recorder, filled: Prefill, n_rows: int, steps: int) -> None:
    """Decoding rows that are all certified, at some of their steps, against the same rows without it."""
    n_layers, n_heads, _ = filled.attention.shape
    drawn = [
        Poisson().select(filled, 0.5, Protected(), np.random.default_rng(seed)) for seed in range(n_rows)
    ]
    kept = stack_rows([item.kept.expand(n_layers, -1, -1) for item in drawn])
    pi = stack_rows([item.inclusion_probability.expand(n_layers, -1, -1) for item in drawn])
    offsets = stack_rows([item.logit_offsets(n_layers) for item in drawn])
    heads = list(range(0, n_heads, 4))
    rows = list(range(n_rows))

    def run(observer: Any, before_step: Callable[[int], None] | None = None) -> None:
        recorder.observer = observer
        try:
            decode(
                loaded.model,
                recorder,
                expand_cache(filled.cache, n_rows, NEW_TOKENS + 1),
                [1],
                position=filled.n_tokens,
                rows=n_rows,
                max_new_tokens=NEW_TOKENS,
                ends=(),
                offsets=offsets,
                before_step=before_step,
            )
        finally:
            recorder.observer = None

    def ours() -> None:
        observer = CertificateObserver(
            rows=rows,
            kept=kept,
            inclusion_probability=pi,
            heads=heads,
            layers=frozenset(range(n_layers)),
            steps=steps,
        )
        run(observer, observer.begin_step)
        assert len(observer.cells) == steps * n_layers

    def each() -> None:
        watch, step = read_by_read(rows, kept, pi, heads), [0]

        def observe(*read: Any) -> None:
            if step[0] < steps:
                watch(*read)

        run(observe, lambda number: step.__setitem__(0, number))

    without, together, one_by_one = medians(lambda: run(None), ours, each)
    what = f"{n_rows} rows, {steps} of {NEW_TOKENS} steps certified, times the decoding"
    report(what, together / without, "<= 1.1", f"read by read {one_by_one / without:.3f}")


def batch(loaded: LoadedModel, recorder: Recorder, filled: Prefill, n_rows: int) -> None:
    """All rows of an input in one batch against one after another, from the same prefill."""
    n_layers = len(filled.cache.layers)
    drawn = [
        Poisson().select(filled, 0.5, Protected(), np.random.default_rng(seed)) for seed in range(n_rows)
    ]
    offsets = [item.logit_offsets(n_layers) for item in drawn]

    def run(some: list[Tensor]) -> None:
        decode(
            loaded.model,
            recorder,
            expand_cache(filled.cache, len(some), NEW_TOKENS + 1),
            [1],
            position=filled.n_tokens,
            rows=len(some),
            max_new_tokens=NEW_TOKENS,
            ends=(),
            offsets=stack_rows(some),
        )

    def one_by_one() -> None:
        for item in offsets:
            run([item])

    together, apart = medians(lambda: run(offsets), one_by_one, repeats=3)
    report(
        f"{n_rows} rows one by one, times one batch of them", apart / together, ">= 4", f"{together:.2f} s"
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 2048, 4096])
    parser.add_argument("--rows", type=int, nargs="+", default=[4, 12])
    parser.add_argument("--batch", type=int, nargs="+", default=[12, 18])
    options = parser.parse_args()
    torch.set_num_threads(1)
    loaded = load_model(options.model)
    for length in options.lengths:
        example = make_example(
            "niah_multikey_1", seed=7_000_000, index=0, length=length, tokenizer=loaded.tokenizer
        )
        tokens = example.context_ids + example.question_ids + example.prefix_ids
        print(f"{options.model}, {length} tokens")
        with recording(loaded.model) as recorder, torch.inference_mode():
            capture(loaded, recorder, tokens)
            if length > 1024:
                continue
            agreement(loaded, recorder, tokens)
            filled = prefill(loaded.model, tokens, recorder)
            for n_rows in options.rows:
                for steps in (6, NEW_TOKENS):
                    certificate(loaded, recorder, filled, n_rows, steps)
            for n_rows in options.batch:
                batch(loaded, recorder, filled, n_rows)


if __name__ == "__main__":
    main()
