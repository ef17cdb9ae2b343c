"""Manifests of one claim in the format PRML 0.1 (Pre-Registered ML Manifest): reading and hashing."""

from __future__ import annotations

import hashlib
import math
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec import Meta

from kvstats.decoding import decode
from kvstats.document import Document, Place, dotted, read_document
from kvstats.prereg.schema import Digest, Strict, Text

__all__ = [
    "VERSION",
    "Manifest",
    "ManifestFields",
    "canonical_bytes",
    "read_manifest",
    "refuse_not_portable",
]

VERSION = "prml/0.1"
LARGEST_SEED = 2**64 - 1
UUID7 = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-7[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$"
RFC3339 = "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$"
REMEDIES = {
    UUID7: "write a UUID of version 7",
    RFC3339: "write a time such as '2026-05-01T12:00:00Z', in quotes",
    "^[0-9a-f]{64}$": "write the 64 hexadecimal digits of a SHA-256, in lower case",
}
NOT_PORTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
"""Characters that implementations write differently, so that hashes would differ."""


class Dataset(Strict, frozen=True):
    """The data of the evaluation."""

    id: Text
    hash: Digest
    uri: Text | None = None


class Producer(Strict, frozen=True):
    """Who made the manifest."""

    id: Text
    signature: Text | None = None


class ManifestFields(Strict, frozen=True):
    """The keys of a manifest."""

    version: Literal["prml/0.1"]
    claim_id: Annotated[str, Meta(pattern=UUID7)]
    created_at: Annotated[str, Meta(pattern=RFC3339)]
    metric: Annotated[str, Meta(min_length=1, max_length=256)]
    comparator: Literal[">=", ">", "==", "<=", "<"]
    threshold: float
    dataset: Dataset
    seed: Annotated[int, Meta(ge=0)]
    producer: Producer
    metric_args: dict[str, Any] = msgspec.field(default_factory=dict)
    model: dict[str, Any] = msgspec.field(default_factory=dict)
    code: dict[str, Any] = msgspec.field(default_factory=dict)
    compute_envelope: dict[str, Any] = msgspec.field(default_factory=dict)
    prior_hash: Digest | None = None
    notes: Annotated[str, Meta(max_length=4096)] | None = None


@dataclass(frozen=True)
class Manifest:
    """A manifest that was read and checked.

    Attributes
    ----------
    document : Document
        The file.
    fields : ManifestFields
        Its keys.
    """

    document: Document
    fields: ManifestFields

    @property
    def canonical(self) -> bytes:
        """The bytes that are hashed."""
        return canonical_bytes(self.document.value)

    @property
    def sha256(self) -> str:
        """The hash that identifies it."""
        return hashlib.sha256(self.canonical).hexdigest()


def canonical_bytes(fields: Mapping[str, Any]) -> bytes:
    r"""Return the canonical form of a manifest: its keys sorted, in block style, UTF-8, one last line end.

    Parameters
    ----------
    fields : mapping of str to object
        The keys of the manifest. The threshold is written as a floating-point number.

    Returns
    -------
    bytes

    References
    ----------
    .. [1] PRML 0.1, sections 3 and 4.

    Examples
    --------
    >>> canonical_bytes({"threshold": 90, "metric": "accuracy", "comparator": ">="})
    b"comparator: '>='\nmetric: accuracy\nthreshold: 90.0\n"
    """
    written = dict(fields)
    if isinstance(written.get("threshold"), int):
        written["threshold"] = float(written["threshold"])
    text = yaml.dump(
        written,
        Dumper=yaml.SafeDumper,
        default_flow_style=False,
        sort_keys=True,
        width=math.inf,
        allow_unicode=True,
    )
    return (text.rstrip() + "\n").encode()


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Read a manifest and check it.

    Parameters
    ----------
    path : str or path-like
        The YAML file.

    Returns
    -------
    Manifest

    Raises
    ------
    InputError
        ``{file}:{line}: {fault}; {remedy}`` for what is no manifest of PRML 0.1, and for text that other
        implementations would write, and so hash, differently.
    """
    document = read_document(path, largest=LARGEST_SEED)
    fields = decode(document, ManifestFields, REMEDIES)
    refuse_not_portable(document, document.value)
    return Manifest(document, fields)


def texts(value: Any, place: Place) -> Iterator[tuple[Place, str]]:
    """Yield every text in a value, keys among them, with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield (*place, key), key
            yield from texts(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from texts(item, (*place, index))


def refuse_not_portable(document: Document, value: Any, within: Place = ()) -> None:
    """Refuse text, and so hashes, that not all implementations write alike."""
    for place, text in texts(value, within):
        if found := NOT_PORTABLE.search(text):
            raise document.error(place, f"{dotted(place)} has the character {found.group()!r}", "remove it")
        if not unicodedata.is_normalized("NFC", text):
            raise document.error(
                place, f"{dotted(place)} is not in Unicode's form NFC", "normalise it to NFC"
            )
