"""Text of registrations and logs as text of a page: shown, never obeyed."""

from __future__ import annotations

import re
from html import escape

__all__ = ["markup"]

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Control characters, marks that turn the direction of writing, and what is no character."""


def markup(value: object) -> str:
    r"""Return a value as the content of an element, or of an attribute in quotes.

    Characters that a page must not have, or that make text look like another, are written as escapes.

    Examples
    --------
    >>> markup("a < b & <script>")
    'a &lt; b &amp; &lt;script&gt;'
    >>> markup('" onclick="')
    '&quot; onclick=&quot;'
    >>> markup("killed\u202e" + chr(0))
    'killed\\u202e\\u0000'
    """
    return escape(UNSEEN.sub(lambda match: f"\\u{ord(match.group()):04x}", str(value)))
