"""YAML that must not be composed: told from the parser's events, before anything is built of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kvstats.errors import InputError

__all__ = ["LOADER", "refuse_hostile"]

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_DEPTH = 16
MAX_VALUES = 20_000


def refuse_hostile(path: Path, text: str) -> None:
    """Go through the parser's events, which needs no recursion, and refuse what must not be composed."""
    depth = documents = values = 0
    event: Any
    for event in yaml.parse(text, LOADER):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise InputError.line(path, line, "has an anchor or alias", "write the value out")
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise InputError.line(path, line, "begins a second document", "keep one document a file")
        if isinstance(event, yaml.NodeEvent):
            values += 1
            if values > MAX_VALUES:
                raise InputError.line(
                    path, line, f"has more than {MAX_VALUES:,} keys and values", "write a shorter file"
                )
        if getattr(event, "tag", None):
            raise InputError.line(path, line, f"has the tag {event.tag!r}", "remove the tag")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise InputError.line(
                    path, line, f"is nested more than {MAX_DEPTH} levels deep", "nest less deeply"
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
