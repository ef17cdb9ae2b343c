"""How often intervals hold the truth, for clusters of correlated rows; an undefined interval does not."""

import math
import re
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kvstats.inference import Design, samples_by
from kvstats.inference.cell import infer_cell
from kvstats.inference.contrast import difference_sample
from kvstats.inference.design import BOOTSTRAPS
from kvstats.inference.p_values import cell_p_value
from kvstats.inference.sample import Sample
from kvstats.statistics import AUC, Mean, RankCorrelation

pytestmark = pytest.mark.slow

CHOICES = runpy.run_path(str(Path(__file__).with_name("statistical_choices.py")))
"""The simulation behind the page on statistical choices."""

REPLICATIONS = CHOICES["REPLICATIONS"]
SIZE = CHOICES["SIZE"]


def tolerance(coverage):
    """Three and a half binomial standard deviations of a simulated coverage."""
    return 3.5 * math.sqrt(coverage * (1 - coverage) / REPLICATIONS)


def sample_of(statistic, n_clusters, kind, names=None):
    codes = np.repeat(np.arange(n_clusters), statistic.n // n_clusters)
    names = range(n_clusters) if names is None else names
    clusters = tuple((f"{name:04}",) for name in names)
    return Sample((), statistic, np.ones(statistic.n), codes, clusters, kind)


def share_that_holds(samples, truth, **design):
    held = 0
    for sample in samples:
        cell = infer_cell("simulation", sample, Design(n_resamples=399, **design))
        held += cell.low is not None and cell.low <= truth <= cell.high
    return held / REPLICATIONS


@pytest.fixture(scope="module")
def tables():
    return CHOICES["simulate"]()


def undercovering(columns, name):
    """Return the columns in which an interval undercovers."""
    return {column for column, found in columns.items() if CHOICES["undercovers"](found[name][0])}


def test_the_page_shows_what_is_simulated(tables):
    written, simulated = CHOICES["PAGE"].read_text(), CHOICES["page"](tables)
    number = r"\d\.\d{3}"
    bare = [re.sub(rf"\*\*({number})\*\*", r"\1", text) for text in (written, simulated)]
    # The last digits may differ between processors; words and the layout may not.
    shapes = [re.sub(rf"({number})( \(\d\.\d\d\))?", "#", text) for text in bare]
    assert shapes[0] == shapes[1]
    figures = [[float(figure) for figure in re.findall(number, text)] for text in bare]
    np.testing.assert_allclose(*figures, atol=0.006)


RARE_AND_FEW = {"10, p = 0.02", "40, p = 0.02"}
EVERYWHERE = {f"{n}, p = {p}" for n in (10, 40, 200) for p in (0.02, 0.2, 0.5)}


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("korn_graubard", set()),
        ("wilson", set()),
        ("linear", RARE_AND_FEW | {"200, p = 0.02", "10, p = 0.2"}),
        ("jackknife", RARE_AND_FEW | {"200, p = 0.02", "10, p = 0.2"}),
        ("percentile", RARE_AND_FEW | {"10, p = 0.2", "10, p = 0.5"}),
        ("basic", RARE_AND_FEW | {"200, p = 0.02", "10, p = 0.2", "40, p = 0.2", "10, p = 0.5"}),
        ("bca", RARE_AND_FEW),
        ("studentized", RARE_AND_FEW | {"10, p = 0.2"}),
        ("korn_graubard, rows", EVERYWHERE - RARE_AND_FEW),
        ("Wald", EVERYWHERE),
    ],
)
def test_intervals_of_a_clustered_rate_undercover_where_the_page_says(tables, name, columns):
    found = {c: t[name][0] for c, t in tables["rates"].items()}
    # What lies within the noise of the bound may fall on either side.
    near = {c for c, coverage in found.items() if abs(coverage - 0.926) < 0.004}
    assert undercovering(tables["rates"], name) - near == columns - near


def test_intervals_of_rates_of_unequal_clusters_and_weights(tables):
    found = {name: undercovering(tables["unequal"], name) for name in ("korn_graubard", "wilson", "linear")}
    assert found["linear"] == set(tables["unequal"])
    twenty = {f"20 clusters, {spread}" for spread in (0.5, 1.0, 1.5)}
    assert found["korn_graubard"] <= twenty
    assert found["wilson"] <= twenty
    for column, kinds in tables["unequal"].items():
        assert kinds["korn_graubard"][0] >= 0.89, column
        assert kinds["korn_graubard"][0] >= kinds["linear"][0] + 0.04, column


def test_a_cluster_too_narrow_undercovers_and_one_too_wide_costs_little(tables):
    for column, found in tables["clusters"].items():
        short = {name for name, (coverage, _) in found.items() if CHOICES["undercovers"](coverage)}
        assert short == ({"row"} if column.endswith("all alike") else {"row", "input"})
    for documents, most in ((10, 1.13), (40, 1.04)):
        assert 1 < tables["clusters"][f"{documents} documents, all alike"]["document"][1] < most


def test_intervals_of_quantiles_fall_short_where_the_page_says(tables):
    assert undercovering(tables["quantiles"], "linear") == set()
    assert undercovering(tables["quantiles"], "percentile") == {"10, p = 0.5", "40, p = 0.9"}


def test_t_intervals_fall_short_where_the_page_says(tables):
    short = {"delta, 10", "delta, 40", "rates, shared, 40", "rates, apart, 40", "area, 40", "area, 200"}
    for name in ("linear", "jackknife"):
        assert undercovering(tables["hard"], name) == short
    coverage, missing = tables["hard"]["area, 40"]["linear"]
    assert coverage / (1 - missing) > 0.95


def test_korn_graubard_is_not_wastefully_wide_with_many_clusters(tables):
    for n, most in ((40, 0.995), (200, 0.975)):
        for p in (0.02, 0.2, 0.5):
            assert tables["rates"][f"{n}, p = {p}"]["korn_graubard"][0] <= most


@pytest.mark.parametrize("name", ["linear", "jackknife", "studentized"])
def test_intervals_of_a_paired_difference_that_hold_their_level(tables, name):
    assert undercovering(tables["differences"], name) == set()
    for column, found in tables["differences"].items():
        assert found[name][0] <= 0.95 + tolerance(0.95), column


@pytest.mark.parametrize("name", ["percentile", "basic", "bca"])
def test_intervals_of_a_paired_difference_that_are_too_narrow_with_few_clusters(tables, name):
    expected = {"10, normal", "10, skewed", "40, skewed"}
    assert undercovering(tables["differences"], name) == expected


def test_clopper_pearson_of_independent_rows_is_exact_and_korn_graubard_covers_alike(tables):
    for column, found in tables["rows"].items():
        assert found["clopper_pearson"][0] >= 0.95, column
        assert found["clopper_pearson"][1] == found["korn_graubard"][1] == 0, column
        assert found["korn_graubard"][0] == pytest.approx(found["clopper_pearson"][0]), column
    coverage, missing = tables["rows"]["10, p = 0.02"]["Wald"]
    assert missing == pytest.approx(0.98**10 + 0.02**10)
    assert coverage == pytest.approx(1 - missing, abs=0.002)


@pytest.mark.parametrize("name", BOOTSTRAPS)
def test_one_bootstrap_for_all_kinds_is_what_a_result_shows(name):
    for sample in CHOICES["rates"](10, 0.2)[:20] + CHOICES["skewed_differences"](10)[:20]:
        cell = infer_cell("simulation", sample, Design(interval=name, n_resamples=CHOICES["N_RESAMPLES"]))
        shown = None if cell.low is None else (cell.low, cell.high)
        assert CHOICES["intervals_of"](sample, (name,))[name] == shown


@pytest.mark.parametrize(("n_clusters", "interval"), [(40, "linear"), (200, "linear"), (40, "percentile")])
def test_intervals_of_an_area(n_clusters, interval):
    random = np.random.default_rng(n_clusters)
    label = np.tile(np.arange(n_clusters)[:, None] % 2 == 0, (REPLICATIONS, 1, SIZE))
    effect = random.normal(0, 0.6, (REPLICATIONS, n_clusters, 1))
    score = label + effect + random.normal(0, 0.8, label.shape)
    truth = 0.5 * math.erfc(-1 / 2)  # normal scores of variance 1, one apart: Phi(1 / sqrt 2)
    samples = [
        sample_of(AUC(s.ravel(), y.ravel()), n_clusters, "auc") for s, y in zip(score, label, strict=True)
    ]
    coverage = share_that_holds(samples, truth, interval=interval)
    assert abs(coverage - 0.95) <= tolerance(0.95)


@pytest.mark.parametrize("interval", ["linear", "jackknife"])
def test_intervals_of_an_area_with_strata_in_one_of_which_the_positives_lie_low(interval):
    random = np.random.default_rng(11)
    stratum = np.repeat([0, 1], 60)
    strata = tuple((str(s),) for s in stratum)
    shift = np.array([-1.0, 2.5])
    # A positive and a negative of any strata: normal scores of variance 2 apart by the positive's shift.
    truth = np.mean([0.5 * math.erfc(-s / 2) for s in shift])
    held = 0
    for _ in range(REPLICATIONS):
        label = random.uniform(size=120) < 0.3
        score = random.normal(size=120) + np.where(label, shift[stratum], 0.0)
        sample = replace(sample_of(AUC(score, label), 120, "auc"), strata=strata)
        cell = infer_cell("simulation", sample, Design(interval=interval))
        held += cell.low <= truth <= cell.high
    assert abs(held / REPLICATIONS - 0.95) <= tolerance(0.95)


def mean_of_y(part):
    return Mean(part["y"].to_numpy()), "mean"


def test_the_interval_of_a_mean_in_a_domain_of_a_sample_with_strata():
    random = np.random.default_rng(12)
    design = Design(cluster="id", strata="task")
    task, names = np.repeat(["a", "b"], 60), [f"{i:03}" for i in range(120)]
    held = {"domain": 0, "selected": 0}
    for _ in range(REPLICATIONS // 2):
        y = random.normal(np.where(task == "a", 0.1, 0.8), 0.1)
        frame = pl.DataFrame({"id": names, "task": task, "y": y})
        inside = frame.filter(random.uniform(size=120) < 0.5)
        for name, drawn in (("domain", frame), ("selected", inside)):
            (sample,) = samples_by("simulation", inside, (), design, mean_of_y, drawn)
            cell = infer_cell("simulation", sample, design)
            held[name] += cell.low <= 0.45 <= cell.high
    shares = {name: count / (REPLICATIONS // 2) for name, count in held.items()}
    assert shares["domain"] >= 0.95 - math.sqrt(2) * tolerance(0.95)
    # Strata that are counted after the selection, which is random within them, claim far too much.
    assert shares["selected"] < 0.75


@pytest.mark.parametrize("n_clusters", [40, 200])
def test_the_linear_interval_of_a_rank_correlation(n_clusters):
    random = np.random.default_rng(n_clusters)
    effects = random.normal(0, 0.6, (2, REPLICATIONS, n_clusters, 1))
    x, z = effects + random.normal(0, 0.8, (2, REPLICATIONS, n_clusters, SIZE))
    y = 0.6 * x + 0.8 * z
    truth = 6 / math.pi * math.asin(0.6 / 2)
    samples = [
        sample_of(RankCorrelation(a.ravel(), b.ravel()), n_clusters, "correlation")
        for a, b in zip(x, y, strict=True)
    ]
    coverage = share_that_holds(samples, truth)
    assert abs(coverage - 0.95) <= tolerance(0.95)


@pytest.mark.parametrize("shared", [0, 4, 8])
def test_contrasts_of_small_sides_of_unequal_spread(shared):
    random = np.random.default_rng(shared)
    effects = random.normal(0, 1, (REPLICATIONS, 30, 1))
    first = effects[:, :8] + random.normal(0, 3, (REPLICATIONS, 8, SIZE))
    second = effects[:, 8 - shared : 28 - shared] + random.normal(0, 1, (REPLICATIONS, 20, SIZE))
    samples = [
        difference_sample(
            (),
            sample_of(Mean(a.ravel()), 8, "mean"),
            sample_of(Mean(b.ravel()), 20, "mean", range(8 - shared, 28 - shared)),
        )
        for a, b in zip(first, second, strict=True)
    ]
    coverage = share_that_holds(samples, 0.0)
    assert abs(coverage - 0.95) <= tolerance(0.95)
    pretended = [
        infer_cell("simulation", s, Design()).estimate / infer_cell("simulation", s, Design()).se
        for s in samples
    ]
    # A normal quantile in place of Student's would reject too often.
    assert np.mean(np.abs(pretended) > 1.96) > 0.05


@pytest.mark.parametrize("interval", ["linear", *BOOTSTRAPS])
def test_tests_of_no_difference_reject_as_often_as_they_say(interval):
    random = np.random.default_rng(5)
    y = random.normal(0, 0.5, (REPLICATIONS, 60, 1)) + random.normal(0, 1, (REPLICATIONS, 60, SIZE))
    design = Design(interval=interval, n_resamples=399)
    p_values = []
    for row in y:
        sample = sample_of(Mean(row.ravel()), 60, "paired")
        cell = infer_cell("simulation", sample, design)
        p_values.append(cell_p_value("simulation", sample, design, cell, 0.0, "two-sided"))
    for level in (0.05, 0.2, 0.5):
        assert abs(np.mean(np.array(p_values) <= level) - level) <= tolerance(level) + 0.01
