import re

import numpy as np
import pytest

from kvstats import Design, certificate_coverage
from kvstats.errors import InputError
from kvstats.estimators.replay import looseness, permutation_range, read_error
from kvstats.log import ReplayRecord, log_from_records


def cell(i, layer, error, *, design="poisson", radius=0.3, permutation=0, retained="a", budget=0.5):
    return ReplayRecord(
        suite="s",
        model="m",
        task="t",
        input_id=f"{i:02}",
        arm=design.split("_")[0],
        design=design,
        budget=budget,
        layer=layer,
        head=0,
        step=0,
        variance_estimate=0.1,
        radius=radius,
        true_error=error,
        delta=None if radius is None else 0.1,
        permutation=permutation,
        retained_hash=retained * 64,
    )


def made():
    rng = np.random.default_rng(3)
    return log_from_records(
        [
            cell(i, layer, float(rng.exponential() * scale), design=design, radius=radius)
            for i in range(15)
            for layer in range(3)
            for design, scale, radius in (
                ("poisson", 0.1, 0.4),
                ("poisson_without_offset", 0.3, None),
                ("deterministic", 0.2, None),
            )
        ]
    )


def test_errors_by_design():
    log = made()
    means = read_error(log, by=["arm", "design"]).frame
    medians = read_error(log, by=["arm", "design"], median=True).frame
    for row, middle in zip(means.to_dicts(), medians.to_dicts(), strict=True):
        errors = [r["true_error"] for r in log.replays.to_dicts() if r["design"] == row["design"]]
        assert row["estimate"] == pytest.approx(np.mean(errors))
        assert middle["estimate"] == pytest.approx(np.median(errors))
        assert (row["n"], row["clusters"]) == (45, 15)
    assert means.height == 3
    with pytest.raises(InputError, match=r"read_error: the rows differ in design \(poisson, poisson_without"):
        read_error(log, where="arm = 'poisson'")


def test_looseness_is_a_ratio_of_means():
    log = made()
    row = looseness(log, where="design = 'poisson'").frame.row(0, named=True)
    errors = [r["true_error"] for r in log.replays.to_dicts() if r["design"] == "poisson"]
    assert row["estimate"] == pytest.approx(0.4 / np.mean(errors))
    # A ratio above 0: its interval is symmetric on the scale of the logarithm.
    assert row["low"] * row["high"] == pytest.approx(row["estimate"] ** 2)
    with pytest.raises(InputError, match="looseness: radius is null in 45 of 45 rows"):
        looseness(log, where="design = 'deterministic'")
    exact = log_from_records([cell(i, 0, 0.0) for i in range(5)])
    assert looseness(exact).frame.select("estimate", "status").row(0) == (None, "undefined")


def permuted():
    return [
        cell(
            i,
            layer,
            0.1 + (0.0 if layer == 1 else 0.05 * p),
            design="deterministic",
            radius=None,
            permutation=p,
        )
        for i in range(10)
        for layer in range(2)
        for p in range(4)
    ]


def test_what_permuting_moves():
    log = log_from_records([*permuted(), cell(0, 7, 0.4, design="deterministic", radius=None)])
    result = permutation_range(log, by="layer").frame
    found = {(r["layer"], r["quantity"]): r for r in result.to_dicts()}
    assert {key: row["estimate"] for key, row in found.items()} == pytest.approx(
        {
            (0, "error_moves"): 1.0,
            (0, "error_range"): 0.15,
            (0, "relative_range"): 1.5,
            (0, "retained_identical"): 1.0,
            (1, "error_moves"): 0.0,
            (1, "error_range"): 0.0,
            (1, "relative_range"): 0.0,
            (1, "retained_identical"): 1.0,
        }
    )
    assert {row["n"] for row in found.values()} == {10}
    # No event in ten clusters is no certainty.
    assert found[1, "error_moves"]["high"] > 0.1


def test_a_retained_statistic_that_moved_is_seen():
    records = permuted()
    records[5] = cell(0, 1, 0.1, design="deterministic", radius=None, permutation=1, retained="b")
    result = permutation_range(log_from_records(records)).frame
    assert result.filter(quantity="retained_identical")["estimate"].item() == pytest.approx(19 / 20)


def test_permutations_are_no_cells_of_other_estimators():
    log = log_from_records([cell(i, 0, 0.1 + 0.5 * p, permutation=p) for i in range(8) for p in range(3)])
    for result in (read_error(log), looseness(log), certificate_coverage(log)):
        assert result.frame["n"].item() == 8
    assert certificate_coverage(log).frame["estimate"].item() == 1


def test_degenerate_permutations():
    only = log_from_records([cell(i, 0, 0.1) for i in range(4)])
    assert permutation_range(only).frame.select("estimate", "status").unique().row(0) == (None, "no rows")
    with pytest.raises(InputError, match=re.escape("10 permuted cells have no replay in true order")):
        permutation_range(log_from_records(permuted()), where="permutation > 0 AND layer = 0")
    one = log_from_records(permuted()[:8])
    assert permutation_range(one, design=Design()).frame["low"].is_null().all()
