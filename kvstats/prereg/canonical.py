"""One way of writing a value as bytes, so that its SHA-256 stands for the value and not for its spelling."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from typing import Any

__all__ = ["canonical_json", "sha256_of"]


def canonical_json(value: Any) -> bytes:
    r"""Write a value as the JSON Canonicalization Scheme wants it.

    Parameters
    ----------
    value : object
        Dictionaries with text as keys, lists, text, whole and finite real numbers, truth values, None.

    Returns
    -------
    bytes
        UTF-8: no blanks, keys in the order of their UTF-16 code units, numbers as ECMAScript writes them.
        Whole numbers beyond 2**53, for which the scheme has no form, keep all their digits.

    Notes
    -----
    Source: RFC 8785, section 3.2. ``1`` and ``1.0`` are the same number, and so are ``0.50`` and ``0.5``.

    Examples
    --------
    >>> canonical_json({"b": 0.50, "a": [1.0, "x", True]})
    b'{"a":[1,"x",true],"b":0.5}'
    """
    return text_of(value).encode()


def text_of(value: Any) -> str:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{text_of(key)}:{text_of(value[key])}" for key in keys) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(text_of, value)) + "]"
    if isinstance(value, float):
        return number_text(value)
    return json.dumps(value, ensure_ascii=False)


def number_text(number: float) -> str:
    """Write a finite number with the fewest digits that give it back, as ECMAScript does."""
    if number == 0.0:
        return "0"
    if 1e-6 <= abs(number) < 1e21:
        return format(Decimal(repr(number)).normalize(), "f")
    return repr(number).replace("e-0", "e-")


def sha256_of(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hexadecimal.

    Examples
    --------
    >>> sha256_of({"a": 1, "b": 2.0}) == sha256_of({"b": 2, "a": 1.0})
    True
    """
    return hashlib.sha256(canonical_json(value)).hexdigest()
