"""Registrations in git: commits that hold one as it is now.

The id of a commit is the anchor, and not the repository: whatever is read is held against the ids on the way
from the commit to the file, since git itself believes what lies in its store.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from kvstats.document import Document, parse_document
from kvstats.errors import InputError
from kvstats.prereg.anchors import Anchor, coverage_of_document, coverage_of_links
from kvstats.prereg.chain import Chain
from kvstats.prereg.data import in_utc
from kvstats.prereg.schema import decode_registration
from kvstats.prereg.seal import parse_seal, seal_path

__all__ = ["commit_named", "first_commit"]

STORE_ONLY = ("-c", "core.commitGraph=false")
"""Times of commits come from the commits, and from no file beside them."""

ABBREVIATED = re.compile("[0-9a-f]{7,64}", re.IGNORECASE)


def git(folder: Path, *arguments: str) -> bytes | None:
    """Run git in a folder, and return what it prints, or None when it fails or there is none.

    Variables that point it to another repository are left out. Nothing is fetched: what a partial clone would
    run for that is named in its own settings.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(
            ["git", "--no-pager", "--literal-pathspecs", *STORE_ONLY, "-C", str(folder), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def first_commit(document: Document, chain: Chain) -> Anchor | None:
    """Return the earliest commit in the history of the work tree that holds the frozen part as it is now.

    Parameters
    ----------
    document : Document
        The registration's file.
    chain : Chain
        Its links.

    Returns
    -------
    Anchor or None
        None without git, outside of a work tree, and when no commit holds it. It covers as many amendments as
        that commit has.
    """
    path = document.path.resolve()
    found = git(path.parent, "rev-list", "--reverse", "--timestamp", "HEAD", "--", path.name)
    for line in (found or b"").decode().splitlines():
        seconds, commit = line.split()
        coverage = coverage_in(commit, path, document, chain)
        if coverage is not None:
            return Anchor("git", False, *coverage, time_of(seconds), commit)
    return None


def commit_named(name: str, document: Document, chain: Chain) -> Anchor | str:
    """Hold a registration against a commit or tag that has it, or its seal, at the same place.

    Returns
    -------
    Anchor or str
        The anchor, or what is wrong.

    Raises
    ------
    InputError
        When there is no such commit, and when a tag or branch is named like the beginning of a commit's id.
    """
    path = document.path.resolve()
    found = None
    if not name.startswith("-"):
        found = git(path.parent, "rev-list", "--timestamp", "--max-count=1", f"{name}^{{commit}}", "--")
    if not found:
        raise InputError.argument(
            "verify",
            "git",
            name,
            f"is no commit or tag of a git repository around {document.path}",
            "check the name, or leave it out",
        )
    seconds, commit = found.decode().split()
    if ABBREVIATED.fullmatch(name) and not commit.startswith(name.lower()):
        raise InputError.argument(
            "verify",
            "git",
            name,
            f"looks like the id of a commit, but is a name of commit {commit}",
            f"write that id, or the name in full, such as refs/tags/{name}",
        )
    coverage = coverage_in(commit, path, document, chain) or sealed_in(commit, path, chain)
    if coverage is None:
        return f"git {name} (commit {commit}) does not hold the frozen part as it is now at this path"
    return Anchor("git", True, *coverage, time_of(seconds), commit)


def coverage_in(commit: str, path: Path, document: Document, chain: Chain) -> tuple[str, int | None] | None:
    """Say what a commit's version of the registration covers."""
    content = content_in(commit, path)
    if content is None:
        return None
    try:
        version = parse_document(path, content)
        decode_registration(version)
    except InputError:
        # A version of the past that was no registration does not hold this one; no more is asked of it.
        return None
    return coverage_of_document(version, document, chain)


def sealed_in(commit: str, path: Path, chain: Chain) -> tuple[str, int | None] | None:
    """Say what a commit's version of the seal covers."""
    file = seal_path(path)
    content = content_in(commit, file)
    return None if content is None else coverage_of_links(parse_seal(file, content).links, chain)


def content_in(commit: str, path: Path) -> bytes | None:
    """Return a commit's version of a file, by ids that their contents bear out; None when there is none."""
    prefix, found = git(path.parent, "rev-parse", "--show-prefix"), object_of(path.parent, "commit", commit)
    if prefix is None or found is None:
        return None
    name = found.split(b"\n", 1)[0].removeprefix(b"tree ").decode()
    for step in filter(None, prefix.rstrip(b"\n").split(b"/")):
        known = entry(path.parent, name, step)
        if known is None:
            return None
        name = known
    blob = entry(path.parent, name, os.fsencode(path.name))
    return None if blob is None else object_of(path.parent, "blob", blob)


def entry(folder: Path, tree: str, name: bytes) -> str | None:
    """Return the id that a folder of a commit has under a name: mode, blank, name, zero, id, and so on."""
    content, size = object_of(folder, "tree", tree) or b"", len(tree) // 2
    while content:
        head, rest = content.split(b"\0", 1)
        if head.split(b" ", 1)[1] == name:
            return rest[:size].hex()
        content = rest[size:]
    return None


def object_of(folder: Path, kind: str, name: str) -> bytes | None:
    """Return an object of the repository, or None when there is none, or another under this id."""
    content = git(folder, "cat-file", kind, name)
    if content is None:
        return None
    whole = f"{kind} {len(content)}\0".encode() + content
    digest = hashlib.new("sha256" if len(name) == 64 else "sha1", whole, usedforsecurity=False)
    return content if digest.hexdigest() == name else None


def time_of(seconds: str) -> str:
    return in_utc(datetime.fromtimestamp(int(seconds), UTC))
