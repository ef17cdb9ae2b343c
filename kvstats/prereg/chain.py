"""The frozen part of a registration, and the chain of amendments behind it.

Everything in a registration is frozen but its `amendments` and `deviations`. The SHA-256 of the frozen part's
canonical JSON is the first link of a chain. Each amendment holds the link before it as `previous_sha256`, and
the SHA-256 of its own canonical JSON, that hash included, is the next link. A link therefore stands for the
frozen part and all amendments up to it: none of them can change without breaking what follows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kvstats.document import Document, Place, dotted
from kvstats.errors import nearest_name
from kvstats.prereg.canonical import sha256_of
from kvstats.prereg.data import in_utc
from kvstats.prereg.schema import Registration

__all__ = ["Chain", "apply_amendments", "chain_of", "covered", "untimely"]

UNFROZEN = ("amendments", "deviations")


@dataclass(frozen=True)
class Chain:
    """The links of a registration.

    Attributes
    ----------
    links : tuple of str
        SHA-256 of the frozen part, then of each amendment.
    findings : tuple of str
        What is broken.
    """

    links: tuple[str, ...]
    findings: tuple[str, ...]

    @property
    def frozen_sha256(self) -> str:
        """SHA-256 of the frozen part."""
        return self.links[0]

    def begins_with(self, links: tuple[str, ...]) -> bool:
        """Say whether other links are the first ones of this chain."""
        return self.links[: len(links)] == links


def chain_of(document: Document) -> Chain:
    """Compute the links of a registration, and hold each amendment against the link before it.

    Parameters
    ----------
    document : Document
        A registration that was decoded without fault.

    Returns
    -------
    Chain

    Examples
    --------
    >>> from pathlib import Path
    >>> from kvstats.document import parse_document
    >>> chain = chain_of(parse_document(Path("a.yaml"), b"study: a"))
    >>> same = chain_of(parse_document(Path("b.yaml"), b"{'study': 'a', deviations: []}  # a comment"))
    >>> same == chain, len(chain.links)
    (True, 1)
    """
    frozen = {name: value for name, value in document.value.items() if name not in UNFROZEN}
    links, findings = [sha256_of(frozen)], []
    for number, amendment in enumerate(document.value.get("amendments", []), start=1):
        if amendment["previous_sha256"] != links[-1]:
            before = "the frozen part" if number == 1 else f"amendment {number - 1}"
            findings.append(
                f"amendment {number} was written after SHA-256 {amendment['previous_sha256']}, "
                f"but {before} has {links[-1]}"
            )
        links.append(sha256_of(amendment))
    return Chain(tuple(links), tuple(findings))


def covered(amendments: int) -> str:
    """Say what a link stands for.

    Examples
    --------
    >>> covered(0), covered(1), covered(2)
    ('the frozen part', 'the frozen part and 1 amendment', 'the frozen part and 2 amendments')
    """
    noun = "amendment" if amendments == 1 else "amendments"
    return "the frozen part" + (f" and {amendments} {noun}" if amendments else "")


def untimely(registration: Registration, now: datetime) -> Iterable[str]:
    """Yield a finding for each time that lies in the future, and for amendments that are out of order."""
    before, name = registration.registered_at, "the registration"
    if before > now:
        yield f"registered_at is {in_utc(before)}, which lies in the future"
    for number, amendment in enumerate(registration.amendments, start=1):
        if amendment.at > now:
            yield f"amendment {number} is of {in_utc(amendment.at)}, which lies in the future"
        if amendment.at < before:
            yield f"amendment {number} is of {in_utc(amendment.at)}, before {name} of {in_utc(before)}"
        before, name = amendment.at, f"amendment {number}"
    for number, deviation in enumerate(registration.deviations, start=1):
        if deviation.at > now:
            yield f"deviation {number} is of {in_utc(deviation.at)}, which lies in the future"


def apply_amendments(document: Document, registration: Registration) -> Document:
    """Put the changes of amendments in the place of what they change, the last one last.

    Parameters
    ----------
    document : Document
        The file.
    registration : Registration
        Its decoded content.

    Returns
    -------
    Document
        The same file with its value amended. What an amendment changed has the amendment's line.

    Raises
    ------
    InputError
        ``{file}:{line}: {fault}; {remedy}`` for a change of what is no claim or guard, or of an id.
    """
    if not any(amendment.changes for amendment in registration.amendments):
        return document
    questions: dict[str, tuple[str, int]] = {}
    value, lines = dict(document.value), dict(document.lines)
    for block in ("guards", "claims"):
        value[block] = [dict(question) for question in value.get(block, [])]
        questions |= {question["id"]: (block, index) for index, question in enumerate(value[block])}
    if not value["guards"]:
        del value["guards"]
    for number, amendment in enumerate(registration.amendments):
        for name, fields in amendment.changes.items():
            place: Place = ("amendments", number, "changes", name)
            if name not in questions:
                raise document.error(
                    place, f"{dotted(place)} is no claim or guard", nearest_name(name, questions)
                )
            if "id" in fields:
                raise document.error((*place, "id"), f"{dotted(place)} changes the id", "keep the id")
            block, index = questions[name]
            value[block][index] |= fields
            lines |= moved(document.lines, place, (block, index), fields)
    return replace(document, value=value, lines=lines)


def moved(lines: dict[Place, int], source: Place, target: Place, fields: dict[str, Any]) -> dict[Place, int]:
    """Return the lines of some fields under the place that they move to."""
    depth = len(source)
    return {
        (*target, *place[depth:]): line
        for place, line in lines.items()
        if place[:depth] == source and place[depth : depth + 1] and place[depth] in fields
    }
