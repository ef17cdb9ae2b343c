"""Checks of result folders: missing configurations, and printed scores that contradict their counts."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from kvstats.errors import InputError
from kvstats.log.adapters.kvpress_folder import (
    CONFIG,
    METRICS,
    PREDICTIONS,
    is_results_folder,
    kvpress_folder,
    of_nothing,
)
from kvstats.log.audits.finding import SHOWN, Finding, several
from kvstats.log.lines import Reject, json_object

__all__ = ["kvpress_findings", "result_folders", "scores_of_no_samples"]

SEVERITY = {
    "config missing": "warning",
    "config unreadable": "warning",
    "scores missing": "note",
    "scores unreadable": "warning",
    "aggregates only": "note",
}
"""Checks of a results folder of kvpress; twins by their number are told of all files and folders."""

PRINTED = re.compile(r"(metrics?|results?|scores?)(?![a-z]).*\.json", re.IGNORECASE)
"""Files that print scores."""

LARGEST = 1 << 20
"""Printed scores are small files; a larger one holds rows."""


def result_folders(files: Sequence[str], folders: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return the folders that files are in, and given ones with all folders in them, that are there."""
    found = {Path(file).parent for file in files}
    for folder in map(Path, folders):
        found |= {folder, *(Path(place) for place, _, _ in os.walk(folder))}
    return sorted(folder for folder in found if folder.is_dir())


def kvpress_findings(folders: Sequence[Path]) -> Iterator[Finding]:
    """Find results folders of kvpress that lack what belongs to them."""
    found: dict[str, list[str]] = defaultdict(list)
    for folder in folders:
        results = [name for name in (PREDICTIONS, METRICS, CONFIG) if (folder / name).is_file()]
        if PREDICTIONS not in results and not (results and is_results_folder(folder)):
            continue
        try:
            for check, message in kvpress_folder(folder).findings:
                found[check].append(message)
        except InputError as error:
            found["config unreadable"].append(str(error))
    for check, severity in SEVERITY.items():
        if messages := found[check]:
            message = f"{several(len(messages), 'results folder')} of kvpress"
            yield Finding(check, severity, len(messages), message, tuple(messages[:SHOWN]))


def scores_of_no_samples(folders: Sequence[Path]) -> Iterator[Finding]:
    """Find printed scores other than 0 whose number of samples is 0."""
    found = [
        f"{path}: {contradiction}"
        for folder in folders
        for path in sorted(folder.iterdir())
        if PRINTED.fullmatch(path.name) and path.is_file() and path.stat().st_size <= LARGEST
        # A file that is no JSON object is the business of readers.
        if not isinstance(scores := json_object(path.read_bytes(), 1), Reject)
        for contradiction in of_nothing(scores, "")
    ]
    if found:
        message = f"{several(len(found), 'printed score')} of no samples"
        yield Finding("scores of no samples", "warning", len(found), message, tuple(found[:SHOWN]))
