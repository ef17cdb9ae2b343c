"""Registrations in git: commits that hold one as it is now."""

from __future__ import annotations

import os
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


def git(folder: Path, *arguments: str) -> bytes | None:
    """Run git in a folder, and return what it prints, or None when it fails or there is none.

    Variables that point it to another repository are left out. Nothing is fetched: what a partial clone would
    run for that is named in its own settings.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(
            ["git", "--no-pager", "--literal-pathspecs", "-C", str(folder), *arguments],
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
        When there is no such commit.
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
    coverage = coverage_in(commit, path, document, chain) or sealed_in(commit, path, chain)
    if coverage is None:
        return f"git {name} (commit {commit}) does not hold the frozen part as it is now"
    return Anchor("git", True, *coverage, time_of(seconds), commit)


def coverage_in(commit: str, path: Path, document: Document, chain: Chain) -> tuple[str, int | None] | None:
    """Say what a commit's version of the registration covers."""
    content = git(path.parent, "cat-file", "blob", f"{commit}:./{path.name}")
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
    content = git(path.parent, "cat-file", "blob", f"{commit}:./{file.name}")
    return None if content is None else coverage_of_links(parse_seal(file, content).links, chain)


def time_of(seconds: str) -> str:
    return in_utc(datetime.fromtimestamp(int(seconds), UTC))
