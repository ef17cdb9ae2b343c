"""Seals: what a registration was, written beside it."""

from __future__ import annotations

import importlib.metadata
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from kvstats.errors import InputError
from kvstats.log.lines import without_repeated_keys
from kvstats.prereg.chain import Chain, untimely
from kvstats.prereg.data import in_utc
from kvstats.prereg.plan import Plan, load_plan
from kvstats.prereg.schema import Digest, Registration, Strict, Text, in_calendar

__all__ = [
    "Seal",
    "SealFacts",
    "SealedAmendment",
    "broken_seal",
    "read_seal",
    "seal",
    "seal_path",
    "with_zone",
]


class SealedAmendment(Strict, frozen=True):
    """An amendment: its SHA-256, and when it was sealed."""

    sha256: Digest
    sealed_at: Annotated[datetime, Meta(tz=True)]


class Seal(Strict, frozen=True, kw_only=True):
    """A seal.

    Attributes
    ----------
    format : int
        Version of the format of registrations and of their seals.
    kvstats : str
        Version of this library.
    registration : str
        Name of the sealed file.
    sealed_at : datetime
        When its frozen part was sealed, by the clock of the machine.
    frozen_sha256 : str
        SHA-256 of the canonical JSON of the frozen part.
    file_sha256 : str
        SHA-256 of the file's bytes when it was sealed last.
    amendments : list of SealedAmendment
        The amendments, first to last.
    """

    format: Literal[1] = 1
    kvstats: Text
    registration: Text
    sealed_at: Annotated[datetime, Meta(tz=True)]
    frozen_sha256: Digest
    file_sha256: Digest
    amendments: list[SealedAmendment] = msgspec.field(default_factory=list)

    @property
    def links(self) -> tuple[str, ...]:
        """SHA-256 of the frozen part and of each sealed amendment."""
        return (self.frozen_sha256, *(amendment.sha256 for amendment in self.amendments))

    def to_json(self) -> bytes:
        """Return the seal as it is written: a field a line."""
        content = msgspec.json.encode(msgspec.structs.asdict(self))
        return msgspec.json.format(content, indent=2) + b"\n"


@dataclass(frozen=True)
class SealFacts:
    """The seal that lies beside a registration.

    Attributes
    ----------
    file : str
        Its name.
    sealed_at : str
        The time that it gives, in UTC. Only the clock of whoever sealed stands for it.
    kvstats : str
        The version that wrote it.
    amendments : int
        How many amendments it seals.
    same_bytes : bool
        Whether the registration has the very bytes that were sealed. Without them, layout, comments or
        deviations are other ones, or there are amendments that were not sealed.
    """

    file: str
    sealed_at: str
    kvstats: str
    amendments: int
    same_bytes: bool


def seal_path(path: Path) -> Path:
    """Return where the seal of a registration lies.

    Examples
    --------
    >>> seal_path(Path("study/plan.yaml")).as_posix()
    'study/plan.seal.json'
    """
    return path.with_suffix(".seal.json")


def read_seal(path: Path) -> Seal | None:
    """Read the seal beside a registration, or return None when there is none.

    Raises
    ------
    InputError
        When the file is no seal.
    """
    file = seal_path(path)
    try:
        return parse_seal(file, file.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}); check the file") from error


def parse_seal(file: Path, content: bytes) -> Seal:
    """Decode a seal strictly; the path is for messages."""
    try:
        sealed = msgspec.json.decode(content, type=Seal)
        # Of equal keys the decoder takes the last, and readers see the first.
        json.loads(content, object_pairs_hook=without_repeated_keys)
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(f"{file}: is no seal ({error}); restore the file, or remove it") from error
    for time in (sealed.sealed_at, *(amendment.sealed_at for amendment in sealed.amendments)):
        if not in_calendar(time):
            raise InputError(f"{file}: is no seal (a time of the year {time.year}); restore the file")
    return sealed


def broken_seal(
    sealed: Seal, file: Path, chain: Chain, registration: Registration, now: datetime
) -> Iterable[str]:
    """Yield what contradicts a seal: another frozen part, amendments rewritten or removed, times."""
    name, links = file.name, chain.links
    if sealed.frozen_sha256 != chain.frozen_sha256:
        yield (
            f"the frozen part has SHA-256 {chain.frozen_sha256}, "
            f"{name} of {in_utc(sealed.sealed_at)} has {sealed.frozen_sha256}"
        )
    for number, amendment in enumerate(sealed.amendments, start=1):
        if number >= len(links):
            yield f"amendment {number} was removed: {name} has it with SHA-256 {amendment.sha256}"
        elif links[number] != amendment.sha256:
            yield (
                f"amendment {number} was rewritten: it has SHA-256 {links[number]}, "
                f"{name} has {amendment.sha256}"
            )
    for what, time in (
        ("sealed_at", sealed.sealed_at),
        *(
            (f"sealed_at of amendment {number}", amendment.sealed_at)
            for number, amendment in enumerate(sealed.amendments, start=1)
        ),
    ):
        if time > now:
            yield f"{what} in {name} is {in_utc(time)}, which lies in the future"
    before, what = sealed.sealed_at, "sealed_at"
    for number, amendment in enumerate(sealed.amendments, start=1):
        if amendment.sealed_at < before:
            yield (
                f"sealed_at of amendment {number} in {name} is {in_utc(amendment.sealed_at)}, "
                f"before {what} of {in_utc(before)}"
            )
        before, what = amendment.sealed_at, f"sealed_at of amendment {number}"
    pairs = zip(registration.amendments, sealed.amendments, strict=False)
    for number, (written, amendment) in enumerate(pairs, start=1):
        if amendment.sealed_at < written.at:
            yield (
                f"sealed_at of amendment {number} in {name} is {in_utc(amendment.sealed_at)}, "
                f"before the amendment of {in_utc(written.at)}"
            )
    if sealed.sealed_at < registration.registered_at:
        yield (
            f"sealed_at in {name} is {in_utc(sealed.sealed_at)}, "
            f"before the registration of {in_utc(registration.registered_at)}"
        )


def seal(path: str | os.PathLike[str], *, at: datetime | None = None) -> Seal:
    """Seal a registration: write beside it what it is.

    Parameters
    ----------
    path : str or path-like
        The registration, a YAML file. It is checked as `verify` does, without data.
    at : datetime, optional
        The time, with its zone; default: now, to the second.

    Returns
    -------
    Seal
        As written to ``<name>.seal.json``. A registration that is sealed already keeps its seal and its time;
        amendments that came since are added.

    Raises
    ------
    InputError
        For a faulty registration; when there is a seal of another frozen part, or of amendments that were
        rewritten or removed; when the chain of amendments is broken; when a time lies in the future.

    Notes
    -----
    A seal shows changes made by mistake. Whoever can change the registration can seal it again: it proves
    nothing to others until its hash, ``frozen_sha256``, stands where its author cannot change it.

    Examples
    --------
    >>> import tempfile
    >>> plan = '''
    ... study: toy
    ... registered_at: 2026-01-01T12:00:00Z
    ... data: {runs: [a.jsonl]}
    ... claims:
    ...   - {id: harm, statement: a, estimator: delta, arguments: {arm: evict}, supported: high < 0}
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "plan.yaml")
    ...     _ = file.write_text(plan)
    ...     sealed = seal(file, at=datetime(2026, 1, 1, 13, tzinfo=UTC))
    ...     again = seal(file)
    >>> sealed.frozen_sha256[:16], again == sealed
    ('375aaaf57f736266', True)
    """
    plan = load_plan(path)
    path, file = plan.document.path, seal_path(plan.document.path)
    clock = datetime.now(UTC).replace(microsecond=0)
    for finding in (*plan.chain.findings, *untimely(plan.registration, clock)):
        raise InputError(f"{path}: {finding}; correct it before it is sealed")
    before = read_seal(path)
    restore = "restore what was sealed, and write a changed plan as an amendment or as a new registration"
    sealed = sealed_again(plan, before, clock if at is None else with_zone("seal", at))
    for known, remedy in ((before, restore), (sealed, "give the time of the seal")):
        broken = () if known is None else broken_seal(known, file, plan.chain, plan.registration, clock)
        for finding in broken:
            raise InputError(f"{path}: {finding}; {remedy}")
    if sealed != before:
        write_whole(file, sealed.to_json())
    return sealed


def sealed_again(plan: Plan, before: Seal | None, now: datetime) -> Seal:
    """Return the seal of a plan, with the times that an earlier seal has."""
    chain = plan.chain
    known = [] if before is None else before.amendments
    return Seal(
        kvstats=importlib.metadata.version("kvstats") if before is None else before.kvstats,
        registration=plan.document.path.name,
        sealed_at=now if before is None else before.sealed_at,
        frozen_sha256=chain.frozen_sha256,
        file_sha256=plan.document.sha256,
        amendments=[*known, *(SealedAmendment(link, now) for link in chain.links[len(known) + 1 :])],
    )


def with_zone(function: str, at: datetime) -> datetime:
    """Return a time that has a zone; refuse one that has none."""
    if at.tzinfo is None:
        raise InputError.argument(function, "at", at, "has no zone", "pass one such as datetime.now(UTC)")
    return at


def write_whole(file: Path, content: bytes) -> None:
    """Write a file so that it is never there in part."""
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_bytes(content)
        part.replace(file)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror}); check the folder") from error
