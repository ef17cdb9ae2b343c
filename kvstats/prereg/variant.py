"""A claim as it would be judged under another choice than the registered one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Variant"]


@dataclass(frozen=True)
class Variant:
    """A claim under another choice.

    Attributes
    ----------
    name : str
        What was chosen otherwise, such as ``interval: percentile``.
    verdict : str
        What the rules then say.
    reason : str
        Why.
    note : str or None
        What is to be kept in mind, such as that there are few clusters.
    rows : tuple of dict
        For each row ``row`` (the values of its by-columns as text), estimate, low, high, clusters, status and
        p_value.
    """

    name: str
    verdict: str
    reason: str
    note: str | None
    rows: tuple[dict[str, Any], ...]
