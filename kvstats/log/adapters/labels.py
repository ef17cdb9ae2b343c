"""Which labels the caller gives to which file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from kvstats.errors import InputError, nearest_name
from kvstats.log.adapters.reader import Labels, PairBy, Reader, stem

__all__ = ["GivenLabels"]

FULL = "full"


@dataclass(frozen=True)
class GivenLabels:
    """What the caller says of the files that are read.

    Attributes
    ----------
    given : mapping of str to Any
        By name of the label, one value for all files, or a mapping whose keys are each the name of a file
        without its extension or of a folder that it lies in. Labels that are None are not given, nor is
        ``pair_by="key"``, which is what all formats do without being told.
    readers : mapping of Path to Reader
        The files that are not in this library's own format, which carries everything.
    """

    given: Mapping[str, Any]
    readers: Mapping[Path, Reader]

    def __post_init__(self) -> None:
        for name, value in self.given.items():
            if value is None or (name, value) == ("pair_by", "key"):
                continue
            files = [file for file, reader in self.readers.items() if name in reader.takes]
            if not files:
                raise error(name, value, "is not needed: the records carry it", "leave it out")
            if isinstance(value, Mapping):
                check_mapping(name, value, files)
            for one in value.values() if isinstance(value, Mapping) else [value]:
                check_value(name, value, one)

    def of(self, file: Path) -> Labels:
        """Return what was said of a file."""
        reader = self.readers[file]
        labels: dict[str, Any] = {}
        for name in reader.takes:
            value = self.given.get(name)
            if isinstance(value, Mapping):
                (key,) = keys_of(file, value)
                value = value[key]
            if value is not None:
                labels[name] = float(value) if name == "budget" else value
        for name in reader.requires:
            if labels.get(name) is None:
                fault = f"is told by nothing in {file}, which has format {reader.name}"
                raise error(name, None, fault, f"pass {name}, or a mapping by name of file or folder")
        if labels.get("arm") == FULL and labels.get("budget", 1.0) != 1.0:
            fault = f"is not that of the full cache, which is the arm of {file}"
            raise error("budget", labels["budget"], fault, "pass 1")
        return Labels(**labels)


def keys_of(file: Path, keys: Iterable[str]) -> list[str]:
    """Return the keys that name a file, or a folder that it lies in."""
    names = {stem(file), *file.parts[:-1]}
    return [key for key in keys if key in names]


def check_mapping(name: str, mapping: Mapping[str, Any], files: Sequence[Path]) -> None:
    """Refuse a mapping that does not say one thing of each file, or names what is no file."""
    for key in mapping:
        if not any(keys_of(file, [key]) for file in files):
            known = {stem(file) for file in files} | {file.parent.name for file in files} - {""}
            fault = f"names {key!r}, which is no file that needs it among those read, nor a folder of one"
            raise error(name, dict(mapping), fault, nearest_name(str(key), known))
    for file in files:
        keys = keys_of(file, mapping)
        if not keys:
            raise error(name, dict(mapping), f"lacks {stem(file)!r}", "name every file, or its folder")
        if len(keys) > 1:
            fault = f"names {file} twice, by {keys[0]!r} and {keys[1]!r}"
            raise error(name, dict(mapping), fault, "name either the file or one of its folders")


def check_value(name: str, given: Any, value: Any) -> None:
    """Refuse what cannot be a label."""
    shown = dict(given) if isinstance(given, Mapping) else given
    if name == "budget":
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 < value <= 1:
            raise error(name, shown, "is no fraction kept", "pass a number above 0 and up to 1")
    elif name == "pair_by":
        if value not in get_args(PairBy):
            raise error(name, shown, "is unknown", "pass 'key', 'content' or 'position'")
    elif not isinstance(value, str) or not value:
        raise error(name, shown, "is not a name", "pass text that is not empty")


def error(argument: str, value: object, fault: str, remedy: str) -> InputError:
    """Build the error for an argument of `read_log`."""
    return InputError.argument("read_log", argument, value, fault, remedy)
