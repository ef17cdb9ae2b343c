"""Anchors: what shows, outside of a registration and its seal, that it was not changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kvstats.document import Document
from kvstats.errors import InputError
from kvstats.prereg.chain import Chain, chain_of, covered

__all__ = ["FILE", "Anchor", "coverage_of_document", "coverage_of_links", "expected_hash"]

FILE = "the file"


@dataclass(frozen=True)
class Anchor:
    """Something that holds a registration, or a part of it, as it is now.

    Attributes
    ----------
    by : str
        ``sha256``: a hash that the caller expected; ``git``: a commit; ``timestamp``: a time-stamp token.
    given : bool
        Whether the caller named it. A commit that was merely found in the work tree around the file is none
        that the caller knows from elsewhere: whoever holds a repository can write its history anew.
    covers : str
        ``the file``, ``the frozen part``, or ``the frozen part and n amendments``.
    amendments : int or None
        How many amendments that is; None for the file, which has them all.
    time : str or None
        In UTC: that of the token, or that of the commit, which its author's clock gave. A hash has none.
    reference : str
        The hash, the commit's id, or the token's serial number.
    """

    by: Literal["sha256", "git", "timestamp"]
    given: bool
    covers: str
    amendments: int | None
    time: str | None
    reference: str


def coverage_of_links(links: Sequence[str], chain: Chain) -> tuple[str, int] | None:
    """Say what is covered by something that holds the first links of a chain; None when it holds others."""
    if not chain.begins_with(tuple(links)):
        return None
    return covered(len(links) - 1), len(links) - 1


def coverage_of_document(other: Document, document: Document, chain: Chain) -> tuple[str, int | None] | None:
    """Say what is covered by something that holds another version of a registration."""
    if other.sha256 == document.sha256:
        return FILE, None
    return coverage_of_links(chain_of(other).links, chain)


def expected_hash(expected: str, document: Document, chain: Chain) -> Anchor | str:
    """Hold a registration against a hash: of its bytes, of its frozen part, or of one of its amendments.

    Returns
    -------
    Anchor or str
        The anchor, or what is wrong.

    Raises
    ------
    InputError
        When it is no SHA-256.
    """
    if not re.fullmatch("[0-9a-fA-F]{64}", expected):
        raise InputError.argument(
            "verify", "expect_sha256", expected, "is no SHA-256", "pass its 64 hexadecimal digits"
        )
    digest = expected.lower()
    if digest == document.sha256:
        return Anchor("sha256", True, FILE, None, None, digest)
    if digest in chain.links:
        number = chain.links.index(digest)
        return Anchor("sha256", True, covered(number), number, None, digest)
    return f"the registration has SHA-256 {document.sha256}, expected was {digest}"
