"""What a results folder of kvpress says beside its rows: configuration, name, and printed scores."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kvstats.errors import InputError
from kvstats.log.lines import Reject, json_object

__all__ = ["CONFIG", "METRICS", "PREDICTIONS", "KvpressFolder", "is_results_folder", "kvpress_folder"]

PREDICTIONS = "predictions.csv"
METRICS = "metrics.json"
CONFIG = "config.yaml"

RATIO = re.compile(r"[01]\.\d+")
NUMBERED = re.compile(r"(?P<first>.+)__\d+")
PARTS = {
    "query_aware": re.compile(r"(query_aware|compressed_questions)"),
    "max_context_length": re.compile(r"max_context(\d+)"),
    "needle_depth": re.compile(r"needle_depth(\d+)"),
}
"""What the parts of a folder's name after the fraction removed say."""

COUNTS = ("total", "samples", "n_samples", "num_samples", "count")
"""Names under which files of scores say how many answers they rest on."""


@dataclass(frozen=True)
class KvpressFolder:
    """A results folder of kvpress.

    Attributes
    ----------
    path : Path
        The folder.
    told : dict of str to Any
        Settings of the run by the name that kvpress gives them, from ``config.yaml`` and, where that is not
        there, from the folder's name.
    scores : dict of str to Any
        Content of ``metrics.json``; empty where there is none.
    findings : tuple of (str, str)
        Name of a check and what it found: ``config missing``, ``numbered twin``, ``scores missing``,
        ``scores unreadable``, ``aggregates only``, ``scores of no samples``.
    """

    path: Path
    told: dict[str, Any]
    scores: dict[str, Any]
    findings: tuple[tuple[str, str], ...]

    @property
    def suite(self) -> str | None:
        """Data set, its part, and what cuts or changes its contexts: ``ruler_4096``."""
        parts = [self.told.get(name) for name in ("dataset", "data_dir")]
        for name, text in (("max_context_length", "max_context"), ("needle_depth", "needle_depth")):
            value = self.told.get(name)
            parts.append(None if value is None else f"{text}{value}")
        return "_".join(str(part) for part in parts if part not in (None, "")) or None

    @property
    def arm(self) -> str | None:
        """The press, or ``full`` where there was none."""
        press = self.told.get("press_name")
        return "full" if press == "no_press" else press

    @property
    def condition(self) -> str | None:
        """``aware`` where the question was part of what was compressed, ``stream`` where it was not."""
        asked = self.told.get("query_aware", self.told.get("compress_questions"))
        return None if asked is None else "aware" if asked else "stream"

    @property
    def printed(self) -> dict[str, float]:
        """Scores of RULER tasks in ``metrics.json``, in per cent."""
        return {
            task: float(score)
            for task, metrics in self.scores.items()
            if isinstance(metrics, dict) and isinstance(score := metrics.get("string_match"), int | float)
        }


def is_results_folder(path: Path) -> bool:
    """Say whether a configuration, or else the name, is that of a results folder."""
    if (path / CONFIG).is_file():
        return b"press_name:" in (path / CONFIG).read_bytes()
    return bool(settings_in_name(path.name))


def kvpress_folder(path: Path) -> KvpressFolder:
    """Read what a results folder says beside its rows.

    Raises
    ------
    InputError
        When there is a configuration that is no mapping in YAML.
    """
    findings: list[tuple[str, str]] = []
    told: dict[str, Any]
    if (path / CONFIG).is_file():
        told = settings_in_file(path / CONFIG)
    else:
        told = settings_in_name(path.parent.name if path.name.isdigit() else path.name)
        message = f"{path}: has no {CONFIG}, which is written last: the run may not have ended"
        findings.append(("config missing", message))
    first = twin_of(path)
    if first is not None:
        message = f"{path}: has a number because {first} was there before it; read one of the two"
        findings.append(("numbered twin", message))
    scores: dict[str, Any] = {}
    if not (path / METRICS).is_file():
        findings.append(("scores missing", f"{path}: has no {METRICS} to hold its rows against"))
    elif isinstance(read := json_object((path / METRICS).read_bytes(), 1), Reject):
        findings.append(("scores unreadable", f"{path / METRICS}: {read.error}"))
    else:
        scores = read
    if scores and not (path / PREDICTIONS).is_file():
        message = f"{path}: has scores by task, and no {PREDICTIONS} with the rows behind them"
        findings.append(("aggregates only", message))
    findings += [("scores of no samples", f"{path / METRICS}: {what}") for what in of_nothing(scores, "")]
    return KvpressFolder(path, told, scores, tuple(findings))


def settings_in_file(file: Path) -> dict[str, Any]:
    """Read a configuration. PyYAML wrote it, so that its own reading is what was meant."""
    try:
        settings = yaml.safe_load(file.read_bytes())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: is no YAML ({error}); repair it, or remove it") from error
    if not isinstance(settings, dict):
        raise InputError(f"{file}: has no settings; repair it, or remove it")
    return settings


def settings_in_name(name: str) -> dict[str, Any]:
    """Take a folder's name apart: data set, its part, model, press, fraction removed, and more.

    Examples
    --------
    >>> settings_in_name("ruler__4096__meta--Llama__knorm__0.50__query_aware")["press_name"]
    'knorm'
    >>> settings_in_name("results")
    {}
    """
    parts = name.split("__")
    places = [place for place, part in enumerate(parts) if place >= 3 and RATIO.fullmatch(part)]
    if not places:
        return {}
    *of_data, model, press = parts[: places[0]]
    told: dict[str, Any] = {
        "dataset": of_data[0],
        "data_dir": "__".join(of_data[1:]),
        "model": model.replace("--", "/"),
        "press_name": press,
        "compression_ratio": parts[places[0]],
        "query_aware": False,
    }
    for part in parts[places[0] + 1 :]:
        for setting, pattern in PARTS.items():
            if found := pattern.fullmatch(part):
                told[setting] = True if setting == "query_aware" else found[1]
    return told


def twin_of(path: Path) -> Path | None:
    """Return the folder that a numbered one was made beside: ``name/1`` or ``name__1`` beside ``name``."""
    if path.name.isdigit() and any((path.parent / name).is_file() for name in (PREDICTIONS, METRICS, CONFIG)):
        return path.parent
    numbered = NUMBERED.fullmatch(path.name)
    return None if numbered is None else path.with_name(numbered["first"])


def of_nothing(scores: dict[str, Any], where: str) -> Iterator[str]:
    """Say where a score is given although its number of samples is 0."""
    samples = [name for name in COUNTS if scores.get(name) == 0]
    for name, value in scores.items():
        if isinstance(value, dict):
            yield from of_nothing(value, f"{where}{name}: ")
        elif samples and isinstance(value, float) and value != 0:
            yield f"{where}{name} is {value:g}, of {samples[0]}=0"
