"""Decoding of a YAML file into typed blocks, with faults named by file, line, value and remedy."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.inspect import (
    DictType,
    ListType,
    LiteralType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

from kvstats.document import Document, Place, dotted, shortened
from kvstats.errors import InputError, nearest_name

__all__ = ["decode"]

T = TypeVar("T")


def decode(document: Document, kind: type[T], remedies: Mapping[str, str] | None = None) -> T:
    r"""Decode the content of a YAML file strictly.

    Parameters
    ----------
    document : Document
        The file as it was read.
    kind : type
        A `msgspec.Struct` whose blocks forbid unknown fields.
    remedies : mapping of str to str, optional
        What to write where text must match a regular expression, by that expression.

    Returns
    -------
    object
        Of type `kind`.

    Raises
    ------
    InputError
        ``{file}:{line}: {fault}; {remedy}`` for an unknown key or word (with the nearest known one), a
        missing key, a value of the wrong type or out of range, and a value that a block itself refuses.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kvstats.document import read_document
    >>> class Plan(msgspec.Struct, forbid_unknown_fields=True):
    ...     length: int
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.yaml").write_text("length: 500\n")
    ...     decode(read_document(f"{folder}/a.yaml"), Plan)
    Plan(length=500)
    """
    try:
        return msgspec.convert(document.value, kind)
    except msgspec.ValidationError as error:
        raise explained(document, kind, error, remedies or {}) from error


def explained(
    document: Document, kind: type, error: msgspec.ValidationError, remedies: Mapping[str, str]
) -> InputError:
    """Word an error of the decoder with the line, the value and a remedy."""
    place = place_of(document, kind, str(error))
    if isinstance(error.__cause__, InputError):
        return InputError(f"{document.at(place)}: {error.__cause__}")
    fault = split(str(error))[0]
    if found := re.fullmatch(r"Object contains unknown field `(.*)`", fault):
        name = found[1]
        return document.error(
            (*place, name),
            f"{dotted(place)} has the unknown key {shortened(name)!r}",
            nearest_name(name, known_keys(document, kind, place)),
        )
    if found := re.fullmatch(r"Object missing required field `(.*)`", fault):
        return document.error(place, f"{dotted(place)} has no key {found[1]!r}", "add it")
    value = value_at(document.value, place)
    shown = f"a {'list' if isinstance(value, list) else 'mapping'}"
    if isinstance(value, str | int | float | bool):
        shown = shortened(repr(value))
    if fault.startswith(("Invalid enum value", "Invalid value")):
        return document.error(
            place,
            f"{dotted(place)} is {shown}, which is unknown",
            nearest_name(str(value), known_words(document, kind, place)),
        )
    return document.error(place, f"{dotted(place)} is {shown}: {plain(fault)}", remedy_for(fault, remedies))


def split(message: str) -> tuple[str, str]:
    """Split a decoder's message into the fault and its path, such as ``$.claims[0].id``."""
    found = re.fullmatch(r"(?s)(.*?)(?: - at `([^`]*)`)?", message)
    assert found is not None
    return found[1], found[2] or "$"


def place_of(document: Document, kind: type, message: str) -> Place:
    """Return the place that a message is about: ``$.claims[0].id`` is ``("claims", 0, "id")``.

    An entry of a mapping with free keys is ``[...]`` there, whichever it is: it is looked for, and where
    it cannot be told the place is that of the mapping.
    """
    place: Place = ()
    for name, index in re.findall(r"\.([^.\[]+)|\[([0-9]+|\.\.\.)\]", split(message)[1]):
        if index == "...":
            entry = faulty_entry(document, kind, place, message)
            if entry is None:
                break
            place = (*place, entry)
        else:
            place = (*place, int(index) if index else name)
    return place


def faulty_entry(document: Document, kind: type, place: Place, message: str) -> str | None:
    """Return the key of the entry that has the same fault when the others are left out."""
    content = copy.deepcopy(document.value)
    mapping: dict[str, Any] = value_at(content, place)
    for key, value in list(mapping.items()):
        mapping.clear()
        mapping[key] = value
        try:
            msgspec.convert(content, kind)
        except msgspec.ValidationError as error:
            if str(error) == message:
                return key
    return None


def value_at(value: Any, place: Place) -> Any:
    for step in place:
        value = value[step]
    return value


def kinds_at(document: Document, kind: type, place: Place) -> list[Type]:
    """Return the types that are admitted at a place."""
    kinds = resolved([type_info(kind)])
    for depth, step in enumerate(place):
        inner: list[Type] = []
        for one in kinds:
            if isinstance(one, ListType | VarTupleType):
                inner.append(one.item_type)
            elif isinstance(one, DictType):
                inner.append(one.value_type)
            elif isinstance(one, StructType) and has_tag(one, value_at(document.value, place[:depth])):
                inner += [field.type for field in one.fields if field.encode_name == step]
        kinds = resolved(inner)
    return kinds


def resolved(kinds: Sequence[Type]) -> list[Type]:
    return [one for kind in kinds for one in (kind.types if isinstance(kind, UnionType) else [kind])]


def has_tag(block: StructType, value: Any) -> bool:
    """Say whether a mapping names a block by its tag; a block without tag needs none."""
    return block.tag_field is None or value.get(block.tag_field) == block.tag


def known_keys(document: Document, kind: type, place: Place) -> list[str]:
    value = value_at(document.value, place)
    blocks = [one for one in kinds_at(document, kind, place) if isinstance(one, StructType)]
    return [field.encode_name for block in blocks if has_tag(block, value) for field in block.fields]


def known_words(document: Document, kind: type, place: Place) -> list[str]:
    """Return the words of a literal, or the tags of the blocks that the value could name."""
    literals = [one for one in kinds_at(document, kind, place) if isinstance(one, LiteralType)]
    blocks = [one for one in kinds_at(document, kind, place[:-1]) if isinstance(one, StructType)]
    return [
        *(str(word) for literal in literals for word in literal.values),
        *(str(block.tag) for block in blocks if block.tag_field == place[-1]),
    ]


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
    """Put a decoder's message into plain words."""
    fault = fault.replace(" | null", "").replace("`", "").replace(" | ", " or ")
    fault = fault.replace("Invalid RFC3339 encoded datetime", "expected datetime")
    fault = re.sub(r" matching regex '.*'", " of another form", fault)
    return re.sub(r"\b(" + "|".join(WORDS) + r")\b", lambda m: WORDS[m[0]], fault[0].lower() + fault[1:])


def remedy_for(fault: str, remedies: Mapping[str, str]) -> str:
    """Say what to write instead."""
    if found := re.search(r"matching regex '(.*)'", fault):
        return remedies.get(found[1], f"it must match {found[1]}")
    if "datetime" in fault or "timezone" in fault:
        return "write a time with its zone, such as 2026-11-29T20:00:00Z"
    if fault.startswith("Expected `str") and "got" in fault:
        return "write text; a number or truth value that is meant as text needs quotes"
    if re.match(r"Expected `(int|float)\b.*got `str", fault):
        return "write a number, without quotes"
    return "correct the value"
