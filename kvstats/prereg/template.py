"""New registrations, from a commented template or a shipped example."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

from kvstats.errors import InputError, nearest_name

__all__ = ["TEMPLATE", "example_names", "example_text", "new_registration"]

TEMPLATE = "template"
"""Name of the example that explains every block."""

REGISTERED = re.compile(r"(?m)^registered_at: .*$")


def example_names() -> list[str]:
    """Return the names of the registrations that ship with the library.

    Examples
    --------
    >>> "template" in example_names()
    True
    """
    folder = resources.files("kvstats.prereg").joinpath("examples")
    return sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))


def example_text(name: str) -> str:
    """Return a registration that ships with the library.

    Parameters
    ----------
    name : str
        One of `example_names`.

    Returns
    -------
    str
        YAML.

    Raises
    ------
    InputError
        When there is none of this name.

    Examples
    --------
    >>> example_text("templat")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    kvstats.errors.InputError: new_registration: example='templat' is no example; did you mean 'template'?
    """
    known = example_names()
    if name not in known:
        raise InputError.argument(
            "new_registration", "example", name, "is no example", nearest_name(name, known)
        )
    return resources.files("kvstats.prereg").joinpath("examples", f"{name}.yaml").read_text("utf-8")


def new_registration(
    path: str | os.PathLike[str], *, example: str = TEMPLATE, now: datetime | None = None
) -> None:
    """Write a registration to start from.

    Parameters
    ----------
    path : str or path-like
        Where it is to be; no file may be there.
    example : str, default "template"
        Which; see `example_names`.
    now : datetime, optional
        The time of the registration, with its zone. Default: the present, to the second.

    Raises
    ------
    InputError
        When a file is there already, it cannot be written, or there is no such example.

    Examples
    --------
    >>> import tempfile
    >>> from kvstats.prereg.plan import load_plan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     new_registration(f"{folder}/plan.yaml")
    ...     len(load_plan(f"{folder}/plan.yaml").claims)
    3
    """
    time = (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = REGISTERED.sub(f"registered_at: {time}", example_text(example), count=1)
    try:
        with Path(path).open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise InputError.argument(
            "new_registration", "path", str(path), "is there already", "name another file"
        ) from error
    except OSError as error:
        raise InputError.argument(
            "new_registration",
            "path",
            str(path),
            f"cannot be written ({error.strerror})",
            "check the path",
        ) from error
