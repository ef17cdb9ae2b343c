"""What a path names: files, patterns, folders, and files elsewhere, which are fetched for reading."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import Any

from kvstats.errors import InputError
from kvstats.log.adapters.reader import EXTENSION

__all__ = ["Source", "sources"]

URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


@dataclass(frozen=True)
class Source:
    """A file to read.

    Attributes
    ----------
    file : Path
        Where it is.
    name : str
        What messages and tables call it: the path or URL that the caller knows.
    chosen : bool
        Whether the caller named this very file; one that a folder or pattern holds may be a companion of
        others.
    """

    file: Path
    name: str
    chosen: bool


def sources(path: str | os.PathLike[str], folder: Path, companions: Sequence[str] = ()) -> Iterator[Source]:
    """Yield the files that a path names, sorted.

    Parameters
    ----------
    path : str or path-like
        A file, a pattern, a folder (all files in it and below that have an extension of data, but hidden
        ones), or a URL of one of these.
    folder : Path
        Where files behind URLs are fetched to.
    companions : sequence of str
        Patterns of names of files that are fetched with those beside them, which readers may look for.

    Raises
    ------
    InputError
        When there is no such file, or what a URL needs is not installed.
    """
    text = os.fspath(path)
    if URL.match(text):
        yield from fetched(text, folder, companions)
        return
    if os.path.isfile(text):
        yield Source(Path(text), str(Path(text)), True)
        return
    if os.path.isdir(text):
        names = sorted(data_files(text, set()))
    else:
        names = sorted(name for name in glob.glob(text, recursive=True) if os.path.isfile(name))
    if not names:
        raise no_file(text, os.path.isdir(text))
    for name in names:
        yield Source(Path(name), str(Path(name)), False)


def data_files(folder: str, seen: set[str]) -> Iterator[str]:
    """Yield the files of data in and below a folder, each once, whatever links there are."""
    real = os.path.realpath(folder)
    if real in seen:
        return
    seen.add(real)
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from data_files(entry.path, seen)
            elif is_data(entry.name):
                yield entry.path


def is_data(name: str) -> bool:
    """Say whether a file's name has an extension of data."""
    found = EXTENSION.search(name)
    return found is not None and found[1] is not None


def fetched(url: str, folder: Path, companions: Sequence[str]) -> Iterator[Source]:
    """Fetch the files that a URL names into a folder, below their own path."""
    system, path = file_system(url)
    web = url.lower().startswith("http")
    # In the address of a web page a question mark begins the query.
    magic = re.search(r"[*\[]" if web else r"[*?\[]", path) is not None
    try:
        if magic:
            paths = sorted(name for name in system.glob(path) if system.isfile(name))
        elif system.isfile(path):
            paths = [path]
        else:
            paths = sorted(name for name in system.find(path) if is_data(name) and not hidden(name, path))
        beside: set[str] = set()
        # Pages of the web are not asked for others beside them: there is no list of them.
        for parent in () if web else sorted({name.rpartition("/")[0] for name in paths}):
            found = [str(name) for name in system.ls(parent, detail=False)]
            beside.update(n for n in found if any(fnmatch(n.rpartition("/")[2], one) for one in companions))
        files = {name: folder / local_path(system.unstrip_protocol(name)) for name in {*paths, *beside}}
        for name, file in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            system.get_file(name, str(file))
    except Exception as error:  # Each system has its own: of networks, credentials, protocols.
        fault = f"cannot be fetched ({type(error).__name__}: {error})"
        raise InputError(f"{url}: {fault}; check the address and the access to it") from error
    if not paths:
        raise no_file(url, False)
    for name in paths:
        yield Source(files[name], system.unstrip_protocol(name), not magic and paths == [path])


def local_path(url: str) -> Path:
    """Return where a file behind a URL is fetched to, in a folder for all of them.

    Examples
    --------
    >>> local_path("s3://bucket/logs/../a.jsonl").as_posix()
    's3/bucket/logs/a.jsonl'
    """
    return Path(*(part for part in re.split(r"[/:?]+", url) if part not in ("", ".", "..")))


def hidden(name: str, folder: str) -> bool:
    """Say whether a file or a folder that it lies in below another has a hidden name."""
    return any(part.startswith(".") for part in name.removeprefix(folder).split("/"))


def file_system(url: str) -> tuple[Any, str]:
    """Return the system of files that a URL is of, and the path in it."""
    try:
        fsspec = import_module("fsspec")
    except ImportError as error:
        fault = "is a URL, for which fsspec is not installed"
        raise InputError.argument("read_log", "path", url, fault, "pip install fsspec") from error
    try:
        system, path = fsspec.url_to_fs(url)
    except (ImportError, ValueError) as error:
        fault = f"cannot be opened ({error})"
        remedy = "install what it names, or fetch the file first"
        raise InputError.argument("read_log", "path", url, fault, remedy) from error
    return system, path


def no_file(path: str, folder: bool) -> InputError:
    """Build the error for a path without files."""
    fault = "is a folder without files of data" if folder else "matches no file"
    return InputError.argument("read_log", "path", path, fault, "check the path")
