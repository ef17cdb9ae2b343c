"""What is known of a registration itself: its hashes, its seal, its anchors, and what contradicts them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kvstats.errors import InputError
from kvstats.prereg.anchors import FILE, Anchor, expected_hash
from kvstats.prereg.chain import covered, untimely
from kvstats.prereg.data import in_utc
from kvstats.prereg.history import commit_named, first_commit
from kvstats.prereg.plan import Plan
from kvstats.prereg.schema import Registration
from kvstats.prereg.seal import SealFacts, broken_seal, read_seal, seal_path
from kvstats.prereg.timestamp import check_timestamp

__all__ = ["RegistrationFacts", "Standing", "registration_standing"]


@dataclass(frozen=True)
class RegistrationFacts:
    """Which registration was verified.

    Attributes
    ----------
    file : str
        Name of the file, without its folder.
    sha256 : str
        SHA-256 of its bytes.
    frozen_sha256 : str
        SHA-256 of the canonical JSON of its frozen part: everything but amendments and deviations.
    registered_at : str
        The time that it gives, in UTC.
    anchored : bool
        Whether an anchor that the caller named holds the frozen part, and every amendment that changes a
        rule. Without such an anchor nothing shows that it was not changed.
    standing : str
        The same in words, such as ``sealed, unanchored``.
    anchors : tuple of Anchor
        Everything that holds it as it is.
    seal : SealFacts or None
        The seal beside it.
    """

    file: str
    sha256: str
    frozen_sha256: str
    registered_at: str
    anchored: bool
    standing: str
    anchors: tuple[Anchor, ...]
    seal: SealFacts | None


@dataclass(frozen=True)
class Standing:
    """The facts of a registration, and what is wrong with it; `reason` says it of a claim."""

    facts: RegistrationFacts
    findings: tuple[str, ...]
    reason: str


def registration_standing(
    plan: Plan,
    *,
    expect_sha256: str | None = None,
    git: str | bool = True,
    timestamp: str | os.PathLike[str] | None = None,
    timestamp_roots: str | os.PathLike[str] | None = None,
) -> Standing:
    """Hold a registration against its seal, and against everything outside that the caller names.

    Parameters
    ----------
    plan : Plan
        The registration.
    expect_sha256, git, timestamp, timestamp_roots
        As for `kvstats.verify`.

    Returns
    -------
    Standing

    Raises
    ------
    InputError
        When a seal, a commit, a token or certificates cannot be used.
    """
    document, chain, registration = plan.document, plan.chain, plan.registration
    now = datetime.now(UTC)
    findings = [*chain.findings, *untimely(registration, now)]
    file = seal_path(document.path)
    sealed = read_seal(document.path)
    facts = None
    digests: dict[str, tuple[str, int | None]] = {link: (covered(i), i) for i, link in enumerate(chain.links)}
    digests[document.sha256] = (FILE, None)
    if sealed is not None:
        findings += broken_seal(sealed, file, chain, registration, now)
        same = sealed.file_sha256 == document.sha256
        facts = SealFacts(
            file.name, in_utc(sealed.sealed_at), sealed.kvstats, len(sealed.amendments), same_bytes=same
        )
    found: list[Anchor | str] = []
    if expect_sha256 is not None:
        found.append(expected_hash(expect_sha256, document, chain))
    if isinstance(git, str):
        found.append(commit_named(git, document, chain))
    elif git and (commit := first_commit(document, chain)) is not None:
        found.append(commit)
    if timestamp is not None:
        found.append(check_timestamp(timestamp, timestamp_roots, digests))
    elif timestamp_roots is not None:
        raise InputError.argument(
            "verify", "timestamp_roots", str(timestamp_roots), "is without a token", "pass timestamp too"
        )
    anchors = tuple(anchor for anchor in found if isinstance(anchor, Anchor))
    unexpected = [fault for fault in found if isinstance(fault, str)]
    unexpected += [
        f"{anchor.by} {anchor.reference} is of {anchor.time}, which lies in the future"
        for anchor in anchors
        if anchor.given and anchor.time is not None and datetime.fromisoformat(anchor.time) > now
    ]
    reason = "the registration is not intact" if findings else "the registration is not the expected one"
    anchored = not (findings or unexpected) and any(holds_rules(anchor, registration) for anchor in anchors)
    return Standing(
        RegistrationFacts(
            file=document.path.name,
            sha256=document.sha256,
            frozen_sha256=chain.frozen_sha256,
            registered_at=in_utc(registration.registered_at),
            anchored=anchored,
            standing=in_words(facts, anchors, anchored),
            anchors=anchors,
            seal=facts,
        ),
        (*findings, *unexpected),
        reason,
    )


def holds_rules(anchor: Anchor, registration: Registration) -> bool:
    """Say whether a named anchor holds the frozen part and each amendment that changes a rule."""
    beyond = [] if anchor.amendments is None else registration.amendments[anchor.amendments :]
    return anchor.given and not any(amendment.changes for amendment in beyond)


def in_words(seal: SealFacts | None, anchors: Sequence[Anchor], anchored: bool) -> str:
    """Say how a registration stands."""
    parts = [] if seal is None else ["sealed"]
    if anchored:
        parts.append("anchored")
    elif any(anchor.given for anchor in anchors):
        parts.append("anchored in part")
    else:
        parts.append("unanchored")
    return ", ".join(parts)
