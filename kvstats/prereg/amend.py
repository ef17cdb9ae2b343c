"""Amendments: appended to a registration, each chained to what stands before it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from kvstats.document import Document, parse_document, read_document
from kvstats.errors import InputError
from kvstats.prereg.chain import untimely
from kvstats.prereg.data import in_utc
from kvstats.prereg.plan import plan_document
from kvstats.prereg.schema import Amendment
from kvstats.prereg.seal import broken_seal, read_seal, seal_path, with_zone

__all__ = ["amend"]


def amend(
    path: str | os.PathLike[str],
    text: str,
    *,
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    at: datetime | None = None,
) -> Amendment:
    """Append an amendment to a registration; nothing that stands in the file is touched.

    Parameters
    ----------
    path : str or path-like
        The registration, a YAML file. `amendments`, where it has any, must be its last key, in lines of
        ``- ``.
    text : str
        What changes, and why.
    changes : mapping of str to mapping, optional
        By the id of a claim or guard: the fields that replace those registered, such as
        ``{"harm": {"supported": "high < -0.1"}}``.
    at : datetime, optional
        The time, with its zone; default: now, to the second.

    Returns
    -------
    Amendment

    Raises
    ------
    InputError
        When the registration is faulty, its chain or seal broken, or its amendments not the last key; when
        the amended plan is faulty: in that case the file is left as it was.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kvstats.prereg.chain import chain_of
    >>> plan = '''
    ... study: toy
    ... registered_at: 2026-01-01T12:00:00Z
    ... data: {runs: [a.jsonl]}
    ... claims:
    ...   - {id: harm, statement: a, estimator: delta, arguments: {arm: evict}, supported: high < 0}
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "plan.yaml")
    ...     _ = file.write_text(plan)
    ...     frozen = chain_of(read_document(file)).frozen_sha256
    ...     amendment = amend(file, "One point is no harm.", changes={"harm": {"supported": "high < -0.01"}})
    ...     after = chain_of(read_document(file))
    >>> amendment.previous_sha256 == frozen == after.frozen_sha256, after.findings
    (True, ())
    """
    document = read_document(path)
    plan = plan_document(document)
    clock = datetime.now(UTC).replace(microsecond=0)
    findings = [*plan.chain.findings, *untimely(plan.registration, clock)]
    sealed = read_seal(document.path)
    if sealed is not None:
        findings += broken_seal(sealed, seal_path(document.path), plan.chain, plan.registration, clock)
    if findings:
        raise InputError(f"{document.path}: {findings[0]}; restore it before it is amended")
    moment = clock if at is None else with_zone("amend", at)
    entry: dict[str, Any] = {"at": in_utc(moment), "text": text}
    if changes:
        entry["changes"] = {name: dict(fields) for name, fields in changes.items()}
    entry["previous_sha256"] = plan.chain.links[-1]
    content = document.path.read_bytes()
    amended = appended(document, content, entry)
    checked = plan_document(parse_document(document.path, amended))
    for finding in untimely(checked.registration, clock):
        raise InputError(f"{document.path}: {finding}; give the time when it was written")
    try:
        with document.path.open("ab") as stream:
            stream.write(amended[len(content) :])
    except OSError as error:
        raise InputError(f"{document.path}: cannot be written ({error.strerror}); check the file") from error
    return checked.registration.amendments[-1]


def appended(document: Document, content: bytes, entry: dict[str, Any]) -> bytes:
    """Return the bytes of a file with one more amendment, having made sure that nothing else changes."""
    before = document.value.get("amendments", [])
    indent, block = "  ", b""
    if before:
        line = content.decode("utf-8-sig").splitlines()[document.line(("amendments", 0)) - 1]
        indent = line[: len(line) - len(line.lstrip(" "))]
    else:
        block = b"amendments:\n"
    fields = [f"{name}: {flow(value)}" for name, value in entry.items()]
    block += "".join(
        f"{indent}{'- ' if index == 0 else '  '}{field}\n" for index, field in enumerate(fields)
    ).encode()
    amended = content + (b"" if content.endswith(b"\n") else b"\n") + block
    expected = {**document.value, "amendments": [*before, entry]}
    fault = "an amendment cannot be appended to the end of the file"
    remedy = f"make 'amendments' its last key, in lines of '- ', or write it there: {flow(entry)}"
    try:
        value = parse_document(document.path, amended).value
    except InputError as error:
        raise document.error(("amendments",), f"{fault} ({error})", remedy) from error
    if value != expected:
        raise document.error(("amendments",), fault, remedy)
    return amended


def flow(value: Any) -> str:
    """Write a value in one line of YAML that can be read in one way only."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(str(key))}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, float):
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else f"{text}.0"
    if value is None or isinstance(value, str | int):
        return json.dumps(value, ensure_ascii=False)
    raise InputError.argument(
        "amend", "changes", value, "is no value of a registration", "pass text, numbers, lists and mappings"
    )
