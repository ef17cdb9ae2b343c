"""Strict reading of YAML: values as they are written, each with its line, and nothing guessed."""

from __future__ import annotations

import errno
import hashlib
import math
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kvstats.errors import InputError
from kvstats.yaml_events import LOADER, refuse_hostile

__all__ = ["Document", "Place", "dotted", "parse_document", "read_document", "shortened"]

Place = tuple[str | int, ...]
"""Where a value stands: keys and positions from the top, such as ``("claims", 0, "id")``."""

MAX_BYTES = 1 << 20
MAX_KEY = 1000
"""Characters of a key; the longest are paths of files."""

SHOWN = 100
"""Characters of a value that messages show."""

LARGEST = 2**63 - 1
"""Largest whole number, the largest that columns of a log hold."""

WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
REAL = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+][0-9]+)?")
TURNING = "\u202a-\u202e\u2066-\u2069"
"""Characters that change in which direction those around them are shown, on a whole line."""

HIDDEN = re.compile(
    rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2060-\u2064{TURNING}"
    r"\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Characters that are not seen, or that change how those around them are seen.

The joiners U+200C and U+200D are not among them: they belong to the spelling of languages.
"""

LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
NUMBER_ELSEWHERE = re.compile(r"[-+]?(0x[0-9a-f_]+|0o[0-7_]+|0b[01_]+|[0-9][0-9_]*)", re.IGNORECASE)


@dataclass(frozen=True)
class Document:
    """A YAML file that was read.

    Attributes
    ----------
    path : Path
        The file.
    sha256 : str
        SHA-256 of its bytes, in hexadecimal.
    value : dict
        Its content: dictionaries, lists, text, numbers and truth values.
    lines : dict of tuple to int
        Line of each value, by its place.
    """

    path: Path
    sha256: str
    value: dict[str, Any]
    lines: dict[Place, int]

    def line(self, place: Sequence[str | int]) -> int:
        """Return the line of a value, or of the nearest value around it."""
        known = tuple(place)
        while known not in self.lines:
            known = known[:-1]
        return self.lines[known]

    def at(self, place: Sequence[str | int]) -> str:
        """Return ``{file}:{line}`` of a value."""
        return f"{self.path}:{self.line(place)}"

    def error(self, place: Sequence[str | int], fault: str, remedy: str) -> InputError:
        """Build the error for a value, worded ``{file}:{line}: {fault}; {remedy}``."""
        return InputError.line(self.path, self.line(place), fault, remedy)


def dotted(place: Sequence[str | int]) -> str:
    """Write a place as a path.

    Examples
    --------
    >>> dotted(("claims", 0, "id")), dotted(())
    ('claims[0].id', 'the file')
    """
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return text.removeprefix(".") or "the file"


def read_document(path: str | os.PathLike[str], *, largest: int = LARGEST) -> Document:
    r"""Read a YAML file whose top is a mapping.

    Parameters
    ----------
    path : str or path-like
        The file, UTF-8, at most 1 MiB, at most 16 levels deep, with at most 20,000 keys and values.
    largest : int, default 2**63 - 1
        Largest whole number that it may have, of either sign.

    Returns
    -------
    Document

    Raises
    ------
    InputError
        When the file cannot be read or is no YAML; at a duplicate key, an anchor or alias, a tag, an empty
        value, a character that is not seen; and at a plain scalar that versions of YAML read differently:
        ``no`` (a truth value or text), ``5e-2`` (text or a number), ``010``, ``1:30``, ``1_000``, a bare
        date.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.yaml").write_text("study: needles\nlevels: [0.9, 0.95]\n")
    ...     document = read_document(f"{folder}/a.yaml")
    >>> document.value
    {'study': 'needles', 'levels': [0.9, 0.95]}
    >>> document.line(("levels", 1))
    2
    """
    path = Path(path)
    try:
        status = path.stat()
        # Reading a pipe or a device may never end, and folders are not read at all.
        regular = stat.S_ISREG(status.st_mode)
        content = b""
        if regular and status.st_size <= MAX_BYTES:
            with path.open("rb") as stream:
                content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    except ValueError as error:
        raise InputError(f"{str(path)!r}: cannot be read ({error}); check the path") from error
    if not regular:
        fault = os.strerror(errno.EISDIR) if stat.S_ISDIR(status.st_mode) else "is no regular file"
        raise InputError(f"{path}: cannot be read ({fault}); check the path")
    if status.st_size > MAX_BYTES:
        raise InputError(f"{path}: has {status.st_size:,} bytes; write at most {MAX_BYTES:,}")
    return parse_document(path, content, largest=largest)


def parse_document(path: Path, content: bytes, *, largest: int = LARGEST) -> Document:
    """Read the bytes of a YAML file as `read_document` does; the path is for messages.

    Examples
    --------
    >>> parse_document(Path("a.yaml"), b"levels: [0.9, 0.95]").value
    {'levels': [0.9, 0.95]}
    """
    if len(content) > MAX_BYTES:
        raise InputError(f"{path}: has {len(content):,} bytes; write at most {MAX_BYTES:,}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError.line(path, line, "is not UTF-8", "save the file as UTF-8") from error
    try:
        refuse_hostile(path, text)
        root = yaml.compose(text, LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(filter(None, (error.context, error.problem)))
        raise InputError.line(
            path,
            1 if mark is None else mark.line + 1,
            f"is not YAML ({problem})",
            remedy_for(text, mark),
        ) from error
    except yaml.YAMLError as error:
        fault = " ".join(str(error).split())
        raise InputError(f"{path}: is not YAML ({fault}); save it as plain text") from error
    if not isinstance(root, yaml.MappingNode):
        raise InputError.line(path, 1, "is not a mapping of keys to values", "write lines of 'key: value'")
    lines: dict[Place, int] = {}
    value = convert(path, root, (), lines, largest)
    if found := re.search(f"[{TURNING}]", text):
        # What is left is in a comment, which can show the value before it as another one.
        line = len(LINE_BREAK.findall(text, 0, found.start())) + 1
        raise InputError.line(path, line, f"has the hidden character {found.group()!a}", "remove it")
    return Document(path=path, sha256=hashlib.sha256(content).hexdigest(), value=value, lines=lines)


def remedy_for(text: str, mark: yaml.Mark | None) -> str:
    """Say what to do about a line that cannot be parsed."""
    faulty = LINE_BREAK.split(text)[mark.line : mark.line + 1] if mark is not None else []
    if any("\t" in line[: len(line) - len(line.lstrip(" \t"))] for line in faulty):
        return "replace the tab: indentation is made of spaces"
    return "correct the line; text with ': ' or ' #' in it needs quotes"


def convert(path: Path, node: Any, place: Place, lines: dict[Place, int], largest: int) -> Any:
    """Return the value of a node, and note the lines of everything in it."""
    lines.setdefault(place, line_of(node))
    if isinstance(node, yaml.SequenceNode):
        return [convert(path, item, (*place, index), lines, largest) for index, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_text(path, key_node)
            line = line_of(key_node)
            if key in mapping:
                first = lines[(*place, key)]
                raise InputError.line(
                    path, line, f"has the key {key!r} again, first on line {first}", "keep one of them"
                )
            lines[(*place, key)] = line
            mapping[key] = convert(path, value_node, (*place, key), lines, largest)
        return mapping
    return scalar(path, node, place, largest)


def line_of(node: Any) -> int:
    return int(node.start_mark.line) + 1


def key_text(path: Path, node: yaml.Node) -> str:
    """Return a key as text: keys are names, whatever YAML would make of them."""
    line = line_of(node)
    if not isinstance(node, yaml.ScalarNode):
        raise InputError.line(path, line, "has a key that is not plain text", "use a name as the key")
    if node.tag == "tag:yaml.org,2002:merge":
        raise InputError.line(path, line, "has a merge key '<<'", "write the values out")
    key = str(node.value)
    if len(key) > MAX_KEY:
        raise InputError.line(
            path, line, f"has a key of {len(key):,} characters", f"write at most {MAX_KEY:,}"
        )
    if found := HIDDEN.search(key):
        raise InputError.line(path, line, f"has the hidden character {found.group()!a} in a key", "remove it")
    return key


def scalar(path: Path, node: yaml.ScalarNode, place: Place, largest: int) -> Any:
    """Return text, a number or a truth value; refuse what is ambiguous."""
    text, kind = str(node.value), node.tag.rpartition(":")[2]

    def refuse(fault: str, remedy: str) -> InputError:
        return InputError.line(path, line_of(node), f"{dotted(place)} {fault}", remedy)

    if found := HIDDEN.search(text):
        raise refuse(f"has the hidden character {found.group()!a}", "remove it")
    if node.style:
        return text
    if kind == "null":
        raise refuse("is empty", "give the value, or remove the key")
    if kind == "bool" or text.lower() in ("y", "n"):
        if text in ("true", "false"):
            return text == "true"
        raise refuse(
            f"is {text}, which YAML may read as a truth value", f'write true or false, or quote it: "{text}"'
        )
    if kind == "timestamp" and "T" not in text.upper() and ":" not in text:
        raise refuse(
            f"is the bare date {text}",
            f'quote it if it is text: "{text}"; a time is written {text}T20:00:00Z',
        )
    if WHOLE.fullmatch(text):
        if len(text) > len(str(largest)) + 1 or abs(int(text)) > largest:
            raise refuse(f"is {shortened(text)}, which is too large for a number", "write a smaller one")
        return int(text)
    if REAL.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise refuse(f"is {shortened(text)}, which is too large for a number", "write a smaller one")
        return number
    if kind in ("int", "float", "value") or number_elsewhere(text):
        raise refuse(
            f"is {shortened(text)}, which is a number in some versions of YAML and text in others",
            f'write a plain decimal number such as 0.05, or quote it if it is text: "{shortened(text)}"',
        )
    return text


def shortened(text: str) -> str:
    """Return text for a message, with its middle left out where it is long."""
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]}...{text[-SHOWN // 2 :]}"


def number_elsewhere(text: str) -> bool:
    """Say whether other versions of YAML, or people, would take plain text for a number."""
    if NUMBER_ELSEWHERE.fullmatch(text):
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True
