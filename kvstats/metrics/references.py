"""The check that all metrics make of their references."""

from __future__ import annotations

from collections.abc import Sequence

from kvstats.errors import InputError

__all__ = ["require_references"]


def require_references(function: str, references: Sequence[str]) -> None:
    """Refuse references that are no sequence of texts, or none at all."""
    if isinstance(references, str) or not references or not all(isinstance(one, str) for one in references):
        raise InputError.argument(
            function, "references", references, "is not a list of texts", "pass at least one reference"
        )
