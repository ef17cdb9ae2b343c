"""Checksums of a folder: a file ``SHA256SUMS`` that ``sha256sum -c`` checks, and so does a verification."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from kvstats.errors import InputError

__all__ = ["CHECKSUMS", "broken_checksums", "sha256_of", "write_checksums"]

CHECKSUMS = "SHA256SUMS"
"""Name of the file."""

LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")
MAX_BYTES = 10_000_000


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_checksums(folder: Path) -> None:
    """Write the checksums of all files in and below a folder."""
    names = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    lines = [f"{sha256_of(folder / name)}  {name}\n" for name in names if name != CHECKSUMS]
    (folder / CHECKSUMS).write_text("".join(lines))


def broken_checksums(folder: Path, data: Iterable[str]) -> Iterator[str]:
    """Yield what contradicts the checksums of a folder; nothing where it has none.

    Parameters
    ----------
    folder : Path
        The folder.
    data : iterable of str
        Files of data below it, which must be listed.

    Raises
    ------
    InputError
        When the file is not a list of checksums.
    """
    file = folder / CHECKSUMS
    if not file.is_file():
        return
    listed = read_checksums(file)
    for name, digest in listed.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            yield f"{name} in {CHECKSUMS} leads out of the folder"
        elif not path.is_file():
            yield f"{name} is in {CHECKSUMS}, but missing"
        elif (found := sha256_of(path)) != digest:
            yield f"{name} has SHA-256 {found}, {CHECKSUMS} has {digest}"
    for name in sorted({*data} - listed.keys()):
        yield f"{name} is among the data, but not in {CHECKSUMS}"


def read_checksums(file: Path) -> dict[str, str]:
    """Return the SHA-256 of each file that is listed."""
    try:
        if file.stat().st_size > MAX_BYTES:
            raise InputError(f"{file}: is too large for a list of checksums; restore or remove it")
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read ({error}); restore or remove it") from error
    listed: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        found = LINE.fullmatch(line)
        if found is None or "\0" in line or found[2] in listed:
            raise InputError.line(
                file, number, "is not a checksum and the name of another file", "restore or remove the file"
            )
        listed[found[2]] = found[1]
    return listed
