"""What commands are told of the logs that they read."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal

import typer

from kvstats.errors import InputError, nearest_name
from kvstats.log import Log, read_log
from kvstats.log.adapters import OWN_FORMAT, READERS
from kvstats.log.adapters.reader import LABELS
from kvstats.report.progress import progress_bar

__all__ = ["Format", "Labels", "Logs", "named_values", "read_logs"]


def formats(incomplete: str) -> list[str]:
    """Return the formats whose names begin so, for completion."""
    return [name for name in (OWN_FORMAT, *READERS) if name.startswith(incomplete)]


def labels(incomplete: str) -> list[str]:
    """Return the labels whose names begin so, for completion."""
    return [f"{name}=" for name in LABELS if name.startswith(incomplete)]


Logs = Annotated[
    list[str], typer.Argument(metavar="LOG", help="Logs: files, patterns that match them, or folders.")
]
Format = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=f"Format of the files: {', '.join((OWN_FORMAT, *READERS))}.",
        show_default="told from each file",
        autocompletion=formats,
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="NAME=VALUE",
        help="What files of other formats do not say: arm=snapkv for all of them, or "
        """'arm={"a": "full", "b": "snapkv"}' by name of file or folder. """
        f"Names: {', '.join(LABELS)}. May be repeated.",
        autocompletion=labels,
    ),
]


def read_logs(
    command: str,
    paths: Sequence[str],
    format: str,
    labels: Sequence[str] | None,
    *,
    on_error: Literal["raise", "skip"] = "raise",
) -> Log:
    """Read the logs of a command, with a bar on a terminal.

    Parameters
    ----------
    command : str
        Its name, for messages.
    paths, format, labels
        What was typed for `Logs`, `Format` and `Labels`.
    on_error : {"raise", "skip"}
        As for `kvstats.read_log`.

    Returns
    -------
    Log
    """
    given = named_values(command, "label", labels or [], example="arm=snapkv")
    for name in given:
        if name not in LABELS:
            raise InputError.argument(command, "label", name, "is no label", nearest_name(name, LABELS))
    with progress_bar(sys.stderr) as progress:
        return read_log(list(paths), format=format, on_error=on_error, progress=progress, **given)


def named_values(
    command: str, option: str, texts: Sequence[str], *, example: str, taken: Collection[str] = ()
) -> dict[str, Any]:
    r"""Return what was typed as NAME=VALUE: a value that is JSON as what it is, any other as text.

    Parameters
    ----------
    command, option : str
        For messages.
    texts : sequence of str
        What was typed.
    example : str
        What a message shows as the right form.
    taken : collection of str
        Names that were given otherwise.

    Examples
    --------
    >>> texts = ["tasks=[\"qa\"]", "tau=0.05", "outcome=success"]
    >>> named_values("plot", "set", texts, example="tau=0.05")
    {'tasks': ['qa'], 'tau': 0.05, 'outcome': 'success'}
    """
    values: dict[str, Any] = {}
    for text in texts:
        found = re.fullmatch(r"(?s)([^=]+)=(.+)", text)
        if found is None:
            raise InputError.argument(
                command, option, text, "is not of the form NAME=VALUE", f"write {example}"
            )
        name, value = found.groups()
        if name in values or name in taken:
            raise InputError.argument(command, option, text, "names an argument again", "give it once")
        try:
            values[name] = json.loads(value)
        except json.JSONDecodeError:
            values[name] = value
    return values
