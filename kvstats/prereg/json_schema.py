"""The JSON Schema of registrations."""

from __future__ import annotations

from typing import Any

import msgspec

from kvstats.prereg.schema import Registration

__all__ = ["registration_schema"]


def registration_schema() -> dict[str, Any]:
    """Return the JSON Schema of a registration, for editors and other programs.

    Returns
    -------
    dict
        JSON Schema (draft 2020-12). It knows keys, types and ranges; that estimators exist, that their
        arguments fit and that rules can be computed, `kvstats.prereg.lint` and `kvstats.verify` check.

    Examples
    --------
    >>> registration_schema()["$defs"]["Registration"]["required"]
    ['study', 'registered_at', 'data', 'claims']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "kvstats registration",
        **msgspec.json.schema(Registration),
    }
