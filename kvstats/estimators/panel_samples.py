"""The samples of a panel of signals: what is estimated of each outcome, part and signal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from kvstats.estimators.population import drawn_rows, narrowed, numbers
from kvstats.estimators.signal_pairs import strata_of
from kvstats.inference.design import Design
from kvstats.inference.joint import Member, joint_samples
from kvstats.inference.sample import BoolArray, Kind, Sample, samples_by
from kvstats.log.frames import Log
from kvstats.statistics.auc import AUC
from kvstats.statistics.ratios import Mean
from kvstats.statistics.same_rows import Combination
from kvstats.statistics.statistic import Statistic
from kvstats.statistics.stratified_auc import StratifiedAUC

__all__ = ["Panel", "panel_samples"]


class Panel(NamedTuple):
    """What is to be estimated of each outcome."""

    shown: list[str]
    used: list[str]
    reference: str | None
    higher: dict[str, str]
    strata: tuple[str, ...]
    shared: bool
    quantities: list[str]


def panel_samples(
    function: str,
    log: Log,
    population: pl.DataFrame,
    outcome: str,
    names: Sequence[str],
    design: Design,
    panel: Panel,
) -> list[Sample]:
    """Return the samples of one outcome: its share, and areas, differences and missing shares of signals."""
    parts: list[pl.DataFrame] = []

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        parts.append(part)
        return Mean(numbers(part, outcome)), "rate"

    found = samples_by(function, population, names, design, build, drawn_rows(log, design))
    samples = []
    for everything, part in zip(found, parts, strict=True):
        samples += part_samples(f"{function}: {outcome}", everything, part, outcome, panel)
    return samples


def part_samples(
    label: str, everything: Sample, part: pl.DataFrame, outcome: str, panel: Panel
) -> list[Sample]:
    """Return the samples of one outcome in one part."""
    key = everything.key
    known = {name: part[name].is_not_null().to_numpy() for name in panel.used}
    common: BoolArray = np.logical_and.reduce(list(known.values()))
    has = dict.fromkeys(panel.used, common) if panel.shared else known
    areas = PreparedAreas(part, outcome, panel)
    samples = []
    groups: dict[bytes, tuple[BoolArray, list[Member]]] = {}

    def add(rows: BoolArray, name: str, quantity: str, statistic: Statistic, kind: Kind) -> None:
        named = (*key, outcome, name, panel.higher[name], quantity)
        groups.setdefault(rows.tobytes(), (rows, []))[1].append((named, statistic, kind))

    if "share" in panel.quantities:
        samples.append(replace(everything, key=(*key, outcome, None, None, "share")))
    for name in panel.shown:
        if "auc" in panel.quantities:
            add(has[name], name, "auc", areas.of(name, has[name]), "auc")
        if "missing" in panel.quantities:
            lacking = (*key, outcome, name, panel.higher[name], "missing")
            samples.append(replace(everything, key=lacking, statistic=Mean(~known[name])))
        if "difference" in panel.quantities and panel.reference not in (None, name):
            both = has[name] & has[panel.reference]
            sides = [areas.of(side, both) for side in (name, panel.reference)]
            add(both, name, "difference", Combination([1.0, -1.0], sides), "paired")
    for rows, members in groups.values():
        base = narrowed(everything, rows, members[0][1], "auc")
        samples += joint_samples(f"{label}, {key!r}, {int(rows.sum())} rows", base, members)
    return samples


class PreparedAreas:
    """Areas of signals on rows of one part, each sorted once."""

    def __init__(self, part: pl.DataFrame, outcome: str, panel: Panel) -> None:
        self._part = part
        self._panel = panel
        self._label = numbers(part, outcome)
        self._stratum = strata_of(part, panel.strata) if panel.strata else None
        self._found: dict[tuple[str, bytes], StratifiedAUC] = {}

    def of(self, name: str, rows: BoolArray) -> StratifiedAUC:
        """Return the area of a signal on some rows."""
        at = (name, rows.tobytes())
        if at not in self._found:
            sign = 1.0 if self._panel.higher[name] == "positive" else -1.0
            score, label = sign * numbers(self._part, name)[rows], self._label[rows]
            self._found[at] = (
                AUC(score, label)
                if self._stratum is None
                else StratifiedAUC(score, label, self._stratum[rows])
            )
        return self._found[at]
