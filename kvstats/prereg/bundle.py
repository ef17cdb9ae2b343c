"""Release bundles: a folder with everything that others need to verify a study."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from kvstats.errors import InputError
from kvstats.log.dictionary import data_dictionary
from kvstats.log.frames import Log
from kvstats.prereg.checksums import CHECKSUMS, sha256_of, write_checksums
from kvstats.prereg.data import data_files, in_utc
from kvstats.prereg.evidence import read_evidence
from kvstats.prereg.plan import Plan, load_plan
from kvstats.prereg.seal import seal_path

__all__ = ["write_bundle"]

README = "README.md"


def write_bundle(
    folder: str | os.PathLike[str],
    registration: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
) -> Path:
    """Write a folder with a registration, its seal, its logs, a data dictionary and checksums.

    Parameters
    ----------
    folder : str or path-like
        The folder, which must not exist. It appears complete or not at all.
    registration : str or path-like
        The registration, a YAML file. Its seal is the one beside it, where there is one.
    data : str or path-like, optional
        The folder that paths of logs are relative to, instead of the registration's.

    Returns
    -------
    Path
        The copy of the registration: what ``kvstats verify`` takes, wherever the folder is moved to.

    Raises
    ------
    InputError
        When the registration is faulty, a pattern matches no file, a line of a log cannot be read, a file is
        not as registered, or the folder exists.

    Notes
    -----
    ``README.md`` says how to verify, lists the logs, and gives for each field of each kind of record its
    meaning and how often it is null. ``SHA256SUMS`` has the hash of each file, in the form that ``sha256sum
    -c`` takes; a verification in the folder is not intact where one differs, or where a log is not listed.
    Checksums show accidents: who changes a file can write them anew. The hash of the registration must stand
    where its author cannot change it, see `seal`.

    Examples
    --------
    >>> import datetime, tempfile
    >>> from kvstats.log import LogWriter, RunRecord, StudyRecord
    >>> study = StudyRecord(schema_version=1, suite="s", model="m", dtype="float32", attention="sdpa",
    ...     versions={}, host="x86_64", settings={}, template_hash="0",
    ...     started_at=datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC))
    >>> plan = '''
    ... study: toy
    ... registered_at: 2026-01-01T12:00:00Z
    ... data: {runs: [a.jsonl]}
    ... claims:
    ...   - {id: full, statement: a, estimator: accuracy, arguments: {arm: full}, supported: estimate > 0}
    ... '''
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = Path(here, "plan.yaml").write_text(plan)
    ...     with LogWriter(f"{here}/a.jsonl", study) as log:
    ...         key = dict(suite="s", model="m", task="t", input_id="1")
    ...         log.append([RunRecord(**key, arm="full", budget=1.0, score=1.0)])
    ...     released = write_bundle(f"{here}/release", f"{here}/plan.yaml")
    ...     sorted(file.name for file in released.parent.iterdir())
    ['README.md', 'SHA256SUMS', 'a.jsonl', 'plan.yaml']
    """
    target = Path(folder)
    if target.exists() or not target.parent.is_dir():
        fault = "exists" if target.exists() else "lies in no folder"
        raise InputError.argument("write_bundle", "folder", str(folder), fault, "name a new folder")
    plan = load_plan(registration)
    path = plan.document.path
    _, files = data_files(plan.document, plan.registration.data, data)
    evidence = read_evidence(plan.document, plan.registration, data)
    if evidence.findings:
        raise InputError(f"write_bundle: {'; '.join(evidence.findings)}; correct it before it is released")
    texts = [file for file in (path, seal_path(path)) if file.is_file()]
    taken = {file.name for file in texts} | {*files}
    if len(taken) < len(texts) + len(files) or taken & {README, CHECKSUMS}:
        fault = f"has data named {README}, {CHECKSUMS} or as the registration or its seal"
        raise InputError.argument("write_bundle", "registration", str(registration), fault, "rename the data")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as temporary:
        whole = Path(temporary, "bundle")
        for name, file in [*((file.name, file) for file in texts), *files.items()]:
            copy = whole / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        (whole / README).write_text("\n".join(readme(plan, whole, evidence.whole, files)) + "\n")
        write_checksums(whole)
        whole.rename(target)
    return target / path.name


def readme(plan: Plan, folder: Path, log: Log, files: Iterable[str]) -> Iterator[str]:
    """Yield the lines of the page that says what the folder holds."""
    study, name = plan.registration, plan.document.path.name
    yield f"# {study.study}"
    yield ""
    if study.description:
        yield f"{study.description.strip()}\n"
    yield f"Registered at {in_utc(study.registered_at)}; the last hash of its chain is"
    yield f"`{plan.chain.links[-1]}`."
    yield ""
    yield f"```bash\nsha256sum -c {CHECKSUMS}\nkvstats verify {name}\n```"
    yield ""
    yield "## Logs\n\n| file | bytes | SHA-256 |\n| --- | ---: | --- |"
    for file in sorted(files):
        yield f"| {cell(file)} | {(folder / file).stat().st_size:,} | `{sha256_of(folder / file)}` |"
    yield ""
    yield "## Fields"
    table = data_dictionary(log)
    for kind in table["record"].unique(maintain_order=True):
        part = table.filter(pl.col("record") == kind)
        yield f"\n### {kind}: {part['rows'][0]:,} records\n\n| field | type | nulls | meaning |"
        yield "| --- | --- | ---: | --- |"
        for row in part.iter_rows(named=True):
            yield f"| {cell(row['field'])} | {row['type']} | {row['nulls']:,} | {cell(row['meaning'])} |"


def cell(text: str) -> str:
    """Return text as a cell of a table in Markdown."""
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`")
