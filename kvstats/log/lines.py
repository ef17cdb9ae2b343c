"""Lines of log files: opened whatever their compression, numbered, and decoded as strict JSON objects."""

from __future__ import annotations

import gzip
import io
import json
import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
import zstandard

from kvstats.errors import InputError

__all__ = ["REPEATED", "Reject", "json_object", "numbered_lines", "shown"]

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

BLOCK = 1 << 16
"""Bytes of a compressed file that are read at once."""


REPEATED = "remove one of them, or pass on_duplicate='first' to list the later in log.rejects"
"""What to do about a row that repeats an earlier one."""


class Reject(msgspec.Struct, frozen=True):
    """A line that could not be read, or one that repeats the key of an earlier line."""

    line: int
    error: str
    text: str
    remedy: str = "repair the line, or pass on_error='skip' to list it in log.rejects"
    duplicate: bool = False


def numbered_lines(file: Path) -> Iterator[tuple[int, bytes] | Reject]:
    """Yield number and content of each line that is not blank, or a reject where the data break off."""
    number = 0
    with open_log(file) as stream:
        while True:
            number += 1
            try:
                line = stream.readline()
            except (EOFError, OSError, zlib.error, zstandard.ZstdError) as error:
                yield Reject(number, f"the compressed data ends or breaks here ({error})", "")
                return
            if not line:
                return
            if not line.isspace():
                yield number, line


def open_log(file: Path) -> BinaryIO:
    """Open a file, whatever its compression; what a compressed file holds is told by its first bytes."""
    try:
        with file.open("rb") as stream:
            begin = stream.read(4)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}); check the file") from error
    if begin.startswith(GZIP_MAGIC):
        return cast(BinaryIO, gzip.open(file, "rb"))
    if begin == ZSTD_MAGIC:
        return io.BufferedReader(ZstdStream(file.open("rb")), BLOCK)
    return file.open("rb")


class ZstdStream(io.RawIOBase):
    """The content of Zstandard frames, one after the other.

    Unlike the library's own stream it does not take a frame that breaks off for one that ends.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.frame = zstandard.ZstdDecompressor().decompressobj()
        self.fed = False
        self.rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.rest:
            block = self.frame.unused_data if self.frame.eof else b""
            block = block or self.file.read(BLOCK)
            if self.frame.eof:
                self.frame = zstandard.ZstdDecompressor().decompressobj()
                self.fed = False
            if not block:
                if self.fed:
                    raise EOFError("Zstandard frame ended before its end-of-stream marker was reached")
                return 0
            self.rest = memoryview(self.frame.decompress(block))
            self.fed = True
        count = min(len(buffer), len(self.rest))
        buffer[:count], self.rest = self.rest[:count], self.rest[count:]
        return count

    def close(self) -> None:
        self.file.close()
        super().close()


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
