"""Clustered means, ratios and rates against R's survey package (clusters/clusters.R)."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kvstats.inference import Design, samples_by
from kvstats.inference.cell import infer_cell
from kvstats.inference.intervals import korn_graubard_interval
from kvstats.inference.linear import linear_error
from kvstats.statistics import Mean, Ratio

R = json.loads((Path(__file__).parent / "clusters" / "clusters.json").read_text())
FRAME = pl.DataFrame(R["columns"], strict=False)
DOMAIN = FRAME.filter(pl.col("domain") == 1)
NAMES = ["clusters", "weights", "strata", "strata_weights"]
EQUAL = ["clusters", "strata"]
"""Designs of equal weights: of clusters of equal size too, but for their domains."""


def mean_of(column):
    return lambda part: (Mean(part[column].to_numpy()), "mean")


def rate_of(column):
    return lambda part: (Mean(part[column].to_numpy()), "rate")


def ratio(part):
    return Ratio(part["y"].to_numpy(), part["x"].to_numpy()), "mean"


BUILD = {"mean": mean_of("y"), "rate": mean_of("event"), "ratio": ratio}


def design_of(name, **arguments):
    return Design(
        cluster="cluster",
        strata="stratum" if "strata" in name else None,
        weight="weight" if "weights" in name else None,
        **arguments,
    )


def sample_of(name, build, frame=FRAME):
    (sample,) = samples_by("f", frame, (), design_of(name), build, FRAME)
    return sample


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("statistic", BUILD)
def test_estimates_standard_errors_and_degrees_of_freedom(name, statistic):
    sample, expected = sample_of(name, BUILD[statistic]), R["designs"][name][statistic]
    close(sample.statistic.value(sample.weights), expected["estimate"])
    close(linear_error(sample), (expected["se"], expected["df"]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("statistic", BUILD)
def test_domains(name, statistic):
    sample, expected = sample_of(name, BUILD[statistic], DOMAIN), R["domains"][name][statistic]
    close(sample.statistic.value(sample.weights), expected["estimate"])
    se, df = linear_error(sample)
    # Without strata only the clusters with rows in the domain count, 16 of 24, in the factor C / (C - 1): the
    # total over all clusters is 0 whichever belong. R counts all.
    factor = 1.0 if "strata" in name else np.sqrt((16 / 15) / (24 / 23))
    close((se, df), (factor * expected["se"], expected["df"]))


@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.parametrize(("column", "level"), [("event", 0.95), ("event", 0.9), ("rare", 0.95)])
def test_korn_graubard_intervals(name, column, level):
    cell = infer_cell("f", sample_of(name, rate_of(column)), design_of(name, level=level))
    key = column if level == 0.95 else f"{column}_90"
    close((cell.low, cell.high), R["designs"][name]["beta"][key])


@pytest.mark.parametrize("name", ["weights", "strata_weights"])
@pytest.mark.parametrize(("column", "level"), [("event", 0.95), ("event", 0.9), ("rare", 0.95)])
def test_korn_graubard_intervals_of_unequal_weights_are_wider_on_purpose(name, column, level):
    sample = sample_of(name, rate_of(column))
    cell = infer_cell("f", sample, design_of(name, level=level))
    expected = R["designs"][name]["beta"][column if level == 0.95 else f"{column}_90"]
    # R's interval counts rows and clusters whatever they weigh, and is then too narrow.
    close(korn_graubard_interval(cell.estimate, cell.se, 72, 24, cell.df, level), expected)
    assert cell.low < expected[0]
    assert cell.high > expected[1]


@pytest.mark.parametrize("level", [0.95, 0.9])
def test_korn_graubard_intervals_of_a_domain_are_wider_on_purpose(level):
    sample = sample_of("strata", rate_of("event"), DOMAIN)
    cell = infer_cell("f", sample, design_of("strata", level=level))
    expected = R["domains"]["strata"]["beta"]["event" if level == 0.95 else "event_90"]
    # The clusters of the domain differ in size.
    close(korn_graubard_interval(cell.estimate, cell.se, 37, 16, cell.df, level), expected)
    assert cell.low < expected[0]
    assert cell.high > expected[1]
