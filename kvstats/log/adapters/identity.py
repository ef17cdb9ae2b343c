"""What tells the inputs of a file apart: their own ids, a hash of their content, or their place."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from typing import Any

import msgspec

from kvstats.log.adapters.reader import Labels
from kvstats.log.lines import REPEATED, Reject

__all__ = ["Identities", "content_hash", "id_text"]


class Identities:
    """The ids of the inputs of one file, each told once.

    Parameters
    ----------
    labels : Labels
        Whose `pair_by` says what becomes the id.

    Examples
    --------
    >>> ids = Identities(Labels(pair_by="content"))
    >>> ids.of(1, '{"answers": ["7"]}', content={"answers": ["7"]})[:12]
    'a75d07ce9cb2'
    >>> ids.of(2, '{"answers": ["7"]}', content={"answers": ["7"]}).error
    'repeats the content of line 1'
    >>> Identities(Labels()).of(1, "", content={"answers": ["7"]}).remedy
    "pass pair_by='content' or pair_by='position'"
    """

    def __init__(self, labels: Labels) -> None:
        self.pair_by = labels.pair_by
        self.lines: dict[Hashable, int] = {}

    def of(
        self,
        number: int,
        text: str,
        *,
        own: object = None,
        content: Mapping[str, Any] | None = None,
        within: Hashable = (),
        position: int | None = None,
    ) -> str | Reject:
        """Tell the id of a row's input, or what is wrong with it.

        Parameters
        ----------
        number : int
            The row's line.
        text : str
            The beginning of the line, for `Log.rejects`.
        own : object, optional
            The id that the row carries: text or a whole number; None where its format has none.
        content : mapping of str to Any, optional
            What the row says of its input, as JSON values: question, choices, references, length. Neither
            prediction nor score, which differ between arms.
        within : hashable
            What else a row may differ in from one of the same input, such as task, arm and seed.
        position : int, optional
            The row's place where that is not its line: rows of CSV may have several lines.

        Returns
        -------
        str or Reject
            The id, or the fault: rows without id, or an id that an earlier row has.
        """
        if self.pair_by == "key":
            noun = "id"
            identity = id_text(own)
            if own is None:
                remedy = "pass pair_by='content' or pair_by='position'"
                return Reject(number, "has no id to pair inputs by", text, remedy)
            if identity is None:
                return Reject(number, f"has id={own!r}, which is neither text nor a whole number", text)
        elif self.pair_by == "content":
            noun = "content"
            if not content:
                fault = "has nothing but its answer, so that no content tells its input"
                return Reject(number, fault, text, "pass pair_by='position'")
            identity = content_hash(content)
        else:
            noun = "place"
            identity = f"line {number if position is None else position}"
        before = self.lines.setdefault((identity, within), number)
        if before != number:
            shown = f" {identity!r}" if noun == "id" else ""
            fault = f"repeats the {noun}{shown} of line {before}"
            return Reject(number, fault, text, REPEATED, duplicate=True)
        return identity


def id_text(value: object) -> str | None:
    """Return an id as text, with every digit; None for what is no id.

    Examples
    --------
    >>> id_text(1344800117571260417), id_text("0012"), id_text(12.0), id_text("")
    ('1344800117571260417', '0012', None, None)
    """
    return None if isinstance(value, bool) or not isinstance(value, int | str) else str(value) or None


def content_hash(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a row's content as JSON with sorted keys, in hexadecimal digits."""
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()
