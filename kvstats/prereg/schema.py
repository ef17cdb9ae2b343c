"""The format of registrations, and its strict decoding."""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from kvstats.decoding import decode
from kvstats.document import Document, Place, dotted

__all__ = [
    "Amendment",
    "AtLeast",
    "Claim",
    "Data",
    "DesignBlock",
    "Deviation",
    "EvidenceRules",
    "Expected",
    "Family",
    "Guard",
    "PlannedSample",
    "PolicyStep",
    "Question",
    "Registration",
    "decode_registration",
    "in_calendar",
]

IDENTIFIER = "^[A-Za-z0-9][A-Za-z0-9_-]*$"
SHA256 = "^[0-9a-f]{64}$"
REMEDIES = {
    IDENTIFIER: "an id has letters, digits, '-' and '_'",
    SHA256: "write the 64 hexadecimal digits of a SHA-256, in lower case",
}

Text = Annotated[str, Meta(min_length=1, max_length=20_000)]
Identifier = Annotated[str, Meta(pattern=IDENTIFIER)]
Digest = Annotated[str, Meta(pattern=SHA256)]
Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(gt=0.0, lt=1.0)]
Value = str | int | float | bool


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A block of a registration: no other keys than its fields."""


class Expected(Strict, frozen=True):
    """How many runs, inputs with runs, and replay cells the logs must have."""

    runs: Count | None = None
    inputs: Count | None = None
    replays: Count | None = None


class Data(Strict, frozen=True):
    """Which logs are the evidence: patterns relative to the folder of the registration.

    With `sha256` the files must be exactly those named there, with these contents.
    """

    runs: Annotated[list[Text], Meta(min_length=1)]
    sha256: dict[str, Digest] = {}
    expected: Expected = Expected()


class EvidenceRules(Strict, frozen=True):
    """What becomes of records from before the registration, and of those whose time is unknown.

    ``exploratory`` makes the claims that rest on them exploratory, ``exclude`` leaves their inputs out with
    all their records, before anything is counted or computed, and ``allow`` reports them only.
    """

    before_registration: Literal["exploratory", "exclude", "allow"] = "exploratory"
    without_time: Literal["exploratory", "exclude", "allow"] = "allow"


class DesignBlock(Strict, frozen=True):
    """The fields of `kvstats.Design`; those left out have its defaults."""

    cluster: list[Text] | UnsetType = UNSET
    weight: Text | UnsetType = UNSET
    level: float | UnsetType = UNSET
    interval: Text | UnsetType = UNSET
    n_resamples: Annotated[int, Meta(le=100_000)] | UnsetType = UNSET
    seed: int | UnsetType = UNSET
    strata: Text | list[Text] | UnsetType = UNSET


class PolicyStep(Strict, frozen=True):
    """A virtual arm to be added to the log."""

    policy: Text
    arguments: dict[str, Any] = {}


class PlannedSample(Strict, frozen=True):
    """What is expected of the data of each row of a result, to tell the power of a claim beforehand.

    It decides nothing. A claim's own block stands before that of the registration, key by key.
    """

    inputs: Annotated[int, Meta(ge=2)] | None = None
    rows_per_input: Annotated[float, Meta(ge=1.0)] | None = None
    intraclass_correlation: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None
    discordance: Annotated[float, Meta(gt=0.0, le=1.0)] | None = None
    prevalence: Share | None = None
    effect: float | None = None


class Question(Strict, frozen=True):
    """What is asked of the log: an estimator with its arguments."""

    id: Identifier
    statement: Text
    estimator: Text
    arguments: dict[str, Any] = {}
    where: Text | None = None
    by: Text | list[Text] = []


class Guard(Question, frozen=True, kw_only=True):
    """A condition on every row of a result without which no claim is judged."""

    holds: Text


class AtLeast(Strict, frozen=True):
    """How many rows of a result must satisfy a rule."""

    at_least: Annotated[int, Meta(ge=1)]


class Claim(Question, frozen=True, kw_only=True):
    """A claim with the rules that decide it."""

    supported: Text
    killed: Text | None = None
    quantifier: Literal["all", "any"] | AtLeast = "all"
    contrast: dict[str, Annotated[list[Value], Meta(min_length=2, max_length=2)]] = {}
    null: float | None = None
    alternative: Literal["two-sided", "greater", "less"] = "two-sided"
    planned: PlannedSample = PlannedSample()


class Family(Strict, frozen=True):
    """Claims that share an error rate; without `claims`, all of them."""

    method: Literal["bh", "by", "holm", "bonferroni", "none"] = "bh"
    level: Share = 0.05
    claims: list[Identifier] = []


class Deviation(Strict, frozen=True):
    """What became known or was done otherwise after the registration, and when it was written down."""

    at: Annotated[datetime, Meta(tz=True)]
    text: Text


class Amendment(Strict, frozen=True):
    """A change of the plan, made openly: appended behind what stands, and chained to it.

    A deviation says what became known or was done otherwise. It changes no rule, it is not chained, and only
    the hash of the whole file covers it. An amendment is chained, and is the only way to change a rule of a
    sealed registration: `changes` gives, by the id of a claim or guard, the fields that replace those
    registered. `kvstats amend` writes it with the hash of what stands before it.
    """

    at: Annotated[datetime, Meta(tz=True)]
    text: Text
    previous_sha256: Digest
    changes: dict[Identifier, Annotated[dict[str, Any], Meta(min_length=1)]] = {}


class Registration(Strict, frozen=True):
    """A plan of analysis, written before the data."""

    study: Text
    registered_at: Annotated[datetime, Meta(tz=True)]
    data: Data
    claims: Annotated[list[Claim], Meta(min_length=1)]
    authors: list[Text] = []
    description: Text | None = None
    exclusions: Text | None = None
    stopping_rule: Text | None = None
    planned: PlannedSample = PlannedSample()
    deviations: list[Deviation] = []
    amendments: list[Amendment] = []
    evidence: EvidenceRules = EvidenceRules()
    design: DesignBlock = DesignBlock()
    policies: list[PolicyStep] = []
    guards: list[Guard] = []
    family: Family | None = None


def decode_registration(document: Document) -> Registration:
    """Decode the content of a registration.

    Parameters
    ----------
    document : Document
        The file as it was read.

    Returns
    -------
    Registration

    Raises
    ------
    InputError
        ``{file}:{line}: {fault}; {remedy}`` for an unknown key (with the nearest known one), a missing
        key, or a value of the wrong type or out of range.
    """
    registration = decode(document, Registration, REMEDIES)
    times: list[tuple[Place, datetime]] = [(("registered_at",), registration.registered_at)]
    times += [(("deviations", i, "at"), deviation.at) for i, deviation in enumerate(registration.deviations)]
    times += [(("amendments", i, "at"), amendment.at) for i, amendment in enumerate(registration.amendments)]
    for place, time in times:
        if not in_calendar(time):
            raise document.error(
                place, f"{dotted(place)} is of the year {time.year}", "write the time when it was written"
            )
    return registration


def in_calendar(time: datetime) -> bool:
    """Say whether a time has a date in every zone: the first and the last year of the calendar have not."""
    return MINYEAR < time.year < MAXYEAR
