"""Lines of log files: opened whatever their compression, numbered, and decoded as strict JSON objects."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any

import msgspec

from kvstats.errors import InputError

__all__ = ["Reject", "json_object", "numbered_lines", "shown"]

GZIP_MAGIC = b"\x1f\x8b"


class Reject(msgspec.Struct, frozen=True):
    """A line that could not be read."""

    line: int
    error: str
    text: str
    remedy: str = "repair the line, or pass on_error='skip' to list it in log.rejects"


def numbered_lines(file: Path) -> Iterator[tuple[int, bytes] | Reject]:
    """Yield number and content of each line that is not blank, or a reject where the data break off."""
    number = 0
    with open_log(file) as stream:
        while True:
            number += 1
            try:
                line = stream.readline()
            except (EOFError, OSError, zlib.error) as error:
                yield Reject(number, f"the compressed data ends or breaks here ({error})", "")
                return
            if not line:
                return
            if not line.isspace():
                yield number, line


def open_log(file: Path) -> gzip.GzipFile | BufferedReader:
    try:
        with file.open("rb") as stream:
            compressed = stream.read(2) == GZIP_MAGIC
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}); check the file") from error
    return gzip.open(file, "rb") if compressed else file.open("rb")


def json_object(line: bytes, number: int, *, minus_infinity: bool = False) -> dict[str, Any] | Reject:
    """Decode a line as a strict JSON object, with -Infinity as the one extension where it is admitted.

    Keys come once, numbers are finite, text is text (half of a surrogate pair is none), and integers keep all
    their digits.
    """
    try:
        fields = json.loads(
            line,
            parse_constant=only_minus_infinity if minus_infinity else no_constant,
            parse_float=finite,
            object_pairs_hook=without_repeated_keys,
        )
        if rb"\ud" in line.lower():
            # Half of a surrogate pair is valid JSON, but no text.
            json.dumps(fields, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        return Reject(number, f"is not JSON ({error})", shown(line))
    if not isinstance(fields, dict):
        return Reject(number, f"is JSON, but a {type(fields).__name__} and not an object", shown(line))
    return fields


def without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {repeated!r} comes twice")
    return fields


def finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large for a number")
    return number


def no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def only_minus_infinity(name: str) -> float:
    return -math.inf if name == "-Infinity" else no_constant(name)


def shown(line: bytes) -> str:
    """Return the beginning of a line as text."""
    return line[:200].decode("utf-8", errors="replace").rstrip("\r\n")
