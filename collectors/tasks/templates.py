"""The texts of the tasks, read from ``templates.toml`` beside this file."""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["template_hash", "templates"]


def template_bytes() -> bytes:
    return files("collectors.tasks").joinpath("templates.toml").read_bytes()


@cache
def templates() -> dict[str, Any]:
    """Return the tables of ``templates.toml``; not to be changed."""
    return tomllib.loads(template_bytes().decode())


def template_hash() -> str:
    """Return the SHA-256 of the prompt templates and word lists.

    Returns
    -------
    str
        64 hexadecimal digits, over the bytes of ``templates.toml``.

    Examples
    --------
    >>> len(template_hash())
    64
    """
    return hashlib.sha256(template_bytes()).hexdigest()
