"""The commands that seal and amend registrations."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import typer

from kvstats.errors import InputError
from kvstats.prereg import amend as amend_registration
from kvstats.prereg import seal as seal_registration
from kvstats.prereg.data import in_utc
from kvstats.prereg.seal import seal_path
from kvstats.registration_commands import Registration

__all__ = ["amend", "seal"]


def seal(
    file: Registration,
    as_json: Annotated[bool, typer.Option("--json", help="Print the seal as JSON.")] = False,
) -> None:
    """Write NAME.seal.json beside a registration: its hashes and the time.

    The frozen part is everything but amendments and deviations, whatever its layout. A seal is never written
    over one of another frozen part: a changed plan is an amendment or a new registration. To seal again after
    an amendment adds the amendment.
    """
    sealed = seal_registration(file)
    if as_json:
        typer.echo(sealed.to_json(), nl=False)
        return
    typer.echo(f"seal          {seal_path(file).name}, {in_utc(sealed.sealed_at)}")
    typer.echo(f"frozen part   {sealed.frozen_sha256}")
    for number, amendment in enumerate(sealed.amendments, start=1):
        typer.echo(f"amendment {number:<3} {amendment.sha256}")
    typer.echo("Put the last of these hashes where you cannot change it, and verify with --expect-sha256.")


def amend(
    file: Registration,
    text: Annotated[str, typer.Option(metavar="TEXT", help="What changes, and why.")],
    change: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID.FIELD=VALUE",
            help="A field of a claim or guard, and its new value, text or JSON. May be repeated.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the amendment as JSON.")] = False,
) -> None:
    """Append an amendment to a registration, chained by SHA-256 to what stands before it.

    A claim that it changes rests on the records that are made afterwards.
    """
    amendment = amend_registration(file, text, changes=parse_changes(change or []))
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(amendment)).decode())
    else:
        typer.echo(f"amendment     {in_utc(amendment.at)}, appended to {file.name}")
        typer.echo(f"previous      {amendment.previous_sha256}")
        typer.echo(f"Seal it before the next record is made: kvstats seal {file}")


def parse_changes(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    r"""Read ``id.field=value``: a value that is JSON as what it is, any other as text.

    Examples
    --------
    >>> parse_changes(["harm.supported=high < -0.1", "harm.null=-0.1", "harm.by=[\"task\"]"])
    {'harm': {'supported': 'high < -0.1', 'null': -0.1, 'by': ['task']}}
    """
    changes: dict[str, dict[str, Any]] = {}
    for text in texts:
        found = re.fullmatch(r"(?s)([^.=]+)\.([^.=]+)=(.+)", text)
        if found is None:
            raise InputError.argument(
                "amend", "change", text, "is not of the form ID.FIELD=VALUE", "write harm.supported='low > 0'"
            )
        name, field, value = found.groups()
        if field in changes.setdefault(name, {}):
            raise InputError.argument("amend", "change", text, "changes a field again", "give it once")
        try:
            changes[name][field] = json.loads(value)
        except json.JSONDecodeError:
            changes[name][field] = value
    return changes
