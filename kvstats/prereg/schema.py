"""The format of registrations, and its strict decoding."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.inspect import ListType, LiteralType, StructType, Type, UnionType, type_info

from kvstats.errors import InputError, nearest_name
from kvstats.prereg.document import Document, Place, dotted

__all__ = [
    "AtLeast",
    "Claim",
    "Data",
    "DesignBlock",
    "Deviation",
    "Expected",
    "Family",
    "Guard",
    "PolicyStep",
    "Question",
    "Registration",
    "decode_registration",
]

Text = Annotated[str, Meta(min_length=1)]
Identifier = Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$")]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
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


class DesignBlock(Strict, frozen=True):
    """The fields of `kvstats.Design`; those left out have its defaults."""

    cluster: list[Text] | UnsetType = UNSET
    weight: Text | UnsetType = UNSET
    level: float | UnsetType = UNSET
    interval: Text | UnsetType = UNSET
    n_resamples: int | UnsetType = UNSET
    seed: int | UnsetType = UNSET
    strata: Text | list[Text] | UnsetType = UNSET


class PolicyStep(Strict, frozen=True):
    """A virtual arm to be added to the log."""

    policy: Text
    arguments: dict[str, Any] = {}


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


class Family(Strict, frozen=True):
    """Claims that share an error rate; without `claims`, all of them."""

    method: Literal["bh", "by", "holm", "bonferroni", "none"] = "bh"
    level: Share = 0.05
    claims: list[Identifier] = []


class Deviation(Strict, frozen=True):
    """What became known or was done otherwise after the registration, and when it was written down."""

    at: Annotated[datetime, Meta(tz=True)]
    text: Text


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
    deviations: list[Deviation] = []
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
    try:
        return msgspec.convert(document.value, Registration)
    except msgspec.ValidationError as error:
        raise explained(document, str(error)) from error


def explained(document: Document, message: str) -> InputError:
    """Word a message of the decoder with the line, the value and a remedy."""
    fault, _, path = message.partition(" - at ")
    place = place_of(path.strip("`"))
    if found := re.fullmatch(r"Object contains unknown field `(.*)`", fault):
        name = found[1]
        block = next(kind for kind in kinds_at(place) if isinstance(kind, StructType))
        return document.error(
            (*place, name),
            f"{dotted(place)} has the unknown key {name!r}",
            nearest_name(name, [field.encode_name for field in block.fields]),
        )
    if found := re.fullmatch(r"Object missing required field `(.*)`", fault):
        return document.error(place, f"{dotted(place)} has no key {found[1]!r}", "add it")
    value: Any = document.value
    for step in place:
        value = value[step]
    shown = f"a {'list' if isinstance(value, list) else 'mapping'}"
    if isinstance(value, str | int | float | bool):
        shown = repr(value)
    if fault.startswith("Invalid enum value"):
        words = next(kind.values for kind in kinds_at(place) if isinstance(kind, LiteralType))
        return document.error(
            place, f"{dotted(place)} is {shown}, which is unknown", nearest_name(str(value), map(str, words))
        )
    return document.error(place, f"{dotted(place)} is {shown}: {plain(fault)}", remedy_for(fault))


def place_of(path: str) -> Place:
    """Turn the decoder's path into a place: ``$.claims[0].id`` is ``("claims", 0, "id")``.

    A value of a mapping with free keys is ``[...]`` there; the place then is that of the mapping.
    """
    place: list[str | int] = []
    for name, index in re.findall(r"\.([^.\[]+)|\[([0-9]+|\.\.\.)\]", path):
        if index == "...":
            break
        place.append(int(index) if index else name)
    return tuple(place)


def kinds_at(place: Place) -> list[Type]:
    """Return the types that the format admits at a place."""
    kinds: list[Type] = [type_info(Registration)]
    for step in place:
        if isinstance(step, int):
            kinds = [kind.item_type for kind in kinds if isinstance(kind, ListType)]
        else:
            blocks = [kind for kind in kinds if isinstance(kind, StructType)]
            kinds = [field.type for block in blocks for field in block.fields if field.encode_name == step]
        kinds = [kind for one in kinds for kind in (one.types if isinstance(one, UnionType) else [one])]
    return kinds


WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "datetime": "a time",
}


def plain(fault: str) -> str:
    """Put a decoder's message into the words of the format."""
    fault = fault.replace(" | null", "").replace("`", "").replace(" | ", " or ")
    fault = fault.replace("Invalid RFC3339 encoded datetime", "expected datetime")
    fault = re.sub(r" matching regex '.*'", " of another form", fault)
    return re.sub(r"\b(" + "|".join(WORDS) + r")\b", lambda m: WORDS[m[0]], fault[0].lower() + fault[1:])


def remedy_for(fault: str) -> str:
    """Say what to write instead."""
    if "0-9a-f" in fault:
        return "write the 64 hexadecimal digits of a SHA-256, in lower case"
    if "matching regex" in fault:
        return "an id has letters, digits, '-' and '_'"
    if "datetime" in fault or "timezone" in fault:
        return "write a time with its zone, such as 2026-11-29T20:00:00Z"
    if fault.startswith("Expected `str") and "got" in fault:
        return "write text; a number or truth value that is meant as text needs quotes"
    if re.match(r"Expected `(int|float)\b.*got `str", fault):
        return "write a number, without quotes"
    return "correct the value"
