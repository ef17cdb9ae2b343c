"""How often each interval holds the truth, as a page of documentation.

``python tests/simulation/statistical_choices.py --write`` writes ``notebooks/statistical-choices.md``;
without ``--write`` the page is printed. The seeds are fixed: the page changes only where the library does.
"""

import argparse
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import special, stats

from kvstats.inference import Design
from kvstats.inference.bootstrap import studentized_bootstrap
from kvstats.inference.bootstrap_interval import distribution_of
from kvstats.inference.cell import ROUNDING, bootstrap_bounds, infer_cell
from kvstats.inference.contrast import difference_sample
from kvstats.inference.design import BOOTSTRAPS
from kvstats.inference.linear import cluster_totals
from kvstats.inference.sample import Sample
from kvstats.statistics import AUC, Mean, Quantile

PAGE = Path(__file__).parents[2] / "notebooks" / "statistical-choices.md"
REPLICATIONS = 1000
N_RESAMPLES = 999
SIZE = 4
"""Rows of a cluster."""
CORRELATION = 0.3
"""Correlation of the rows of a cluster."""
CLUSTERS = (10, 40, 200)
RATES = (0.02, 0.2, 0.5)
RATE_INTERVALS = (
    "korn_graubard",
    "wilson",
    "linear",
    "jackknife",
    *BOOTSTRAPS,
    "korn_graubard, rows",
    "Wald",
)
MEAN_INTERVALS = ("linear", "jackknife", *BOOTSTRAPS)
PLAIN_INTERVALS = ("korn_graubard", "wilson", "linear", "jackknife")
T_INTERVALS = ("linear", "jackknife")
QUANTILE_INTERVALS = ("percentile", "linear")
ROW_INTERVALS = ("clopper_pearson", "korn_graubard", "wilson", "linear", "Wald")


def tolerance(coverage):
    """Three and a half binomial standard deviations of a simulated coverage."""
    return 3.5 * math.sqrt(coverage * (1 - coverage) / REPLICATIONS)


def sample_of(statistic, n_clusters, kind):
    codes = np.repeat(np.arange(n_clusters), statistic.n // n_clusters)
    clusters = tuple((f"{number:04}",) for number in range(n_clusters))
    return Sample((), statistic, np.ones(statistic.n), codes, clusters, kind)


def rates(n_clusters, p):
    """Draw rates of beta-binomial clusters."""
    random = np.random.default_rng([n_clusters, round(100 * p)])
    spread = (1 - CORRELATION) / CORRELATION
    chances = random.beta(p * spread, (1 - p) * spread, (REPLICATIONS, n_clusters, 1))
    events = random.uniform(size=(REPLICATIONS, n_clusters, SIZE)) < chances
    return [sample_of(Mean(y.ravel()), n_clusters, "rate") for y in events]


def skewed_differences(n_clusters):
    """Draw paired differences of mean 0 that are skewed: most inputs lose a little, few win much."""
    random = np.random.default_rng(n_clusters)
    shift = random.exponential(1, (REPLICATIONS, n_clusters, 1)) - 1
    y = shift + random.normal(0, 1, (REPLICATIONS, n_clusters, SIZE))
    return [sample_of(Mean(row.ravel()), n_clusters, "paired") for row in y]


def normal_differences(n_clusters):
    """Draw paired differences of mean 0 that are normal."""
    random = np.random.default_rng(n_clusters + 1)
    shift = random.normal(0, 0.5, (REPLICATIONS, n_clusters, 1))
    y = shift + random.normal(0, 1, (REPLICATIONS, n_clusters, SIZE))
    return [sample_of(Mean(row.ravel()), n_clusters, "paired") for row in y]


def named(numbers):
    return tuple((f"{number:05}",) for number in numbers)


def unequal_clusters(n_clusters, spread, p=0.1):
    """Draw rates of clusters whose log sizes have a standard deviation, with a correlation of 0.5 within."""
    random = np.random.default_rng([n_clusters, round(10 * spread)])
    samples = []
    for _ in range(REPLICATIONS):
        sizes = np.maximum(1, random.lognormal(1.5, spread, n_clusters).astype(int))
        codes = np.repeat(np.arange(n_clusters), sizes)
        shared = random.uniform(size=codes.size) < math.sqrt(0.5)
        alone = random.uniform(size=codes.size) < p
        y = np.where(shared, (random.uniform(size=n_clusters) < p)[codes], alone)
        samples.append(Sample((), Mean(y), np.ones(codes.size), codes, named(range(n_clusters)), "rate"))
    return samples


def unequal_weights(n, spread, p=0.1):
    """Draw rates of independent rows whose log weights have a standard deviation."""
    random = np.random.default_rng([n, round(10 * spread)])
    samples = []
    for _ in range(REPLICATIONS):
        y, weights = random.uniform(size=n) < p, random.lognormal(0, spread, n)
        samples.append(Sample((), Mean(y), weights, np.arange(n), named(range(n)), "rate"))
    return samples


def rare_differences(n_clusters, discordance):
    """Draw paired differences of four rows a cluster: harm in three quarters of the discordant pairs."""
    random = np.random.default_rng([n_clusters, round(100 * discordance)])
    place = random.uniform(size=(REPLICATIONS, n_clusters * SIZE)) / discordance
    y = np.where(place < 0.75, -1.0, np.where(place < 1, 1.0, 0.0))
    return [sample_of(Mean(row), n_clusters, "paired") for row in y]


def contrasts(n_clusters, first, second, *, shared):
    """Draw contrasts of two rates of one row a cluster."""
    random = np.random.default_rng([n_clusters, round(100 * first), round(100 * second), shared])
    begin = 0 if shared else n_clusters
    samples = []
    for _ in range(REPLICATIONS):
        sides = [
            Sample(
                (),
                Mean(random.uniform(size=n_clusters) < p),
                np.ones(n_clusters),
                np.arange(n_clusters),
                named(range(start, start + n_clusters)),
                "rate",
            )
            for p, start in ((first, 0), (second, begin))
        ]
        samples.append(difference_sample((), *sides))
    return samples


def areas(n_clusters, area, share):
    """Draw areas of normal scores of one row a cluster, of which a share is positive."""
    random = np.random.default_rng([n_clusters, round(100 * area)])
    label = random.uniform(size=(REPLICATIONS, n_clusters)) < share
    score = random.normal(size=label.shape) + math.sqrt(2) * special.ndtri(area) * label
    return [sample_of(AUC(s, y), n_clusters, "auc") for s, y in zip(score, label, strict=True)]


def quantiles(n_clusters, p):
    """Draw quantiles of normal values, and what they are of: of variance 1, as correlated as the rates."""
    random = np.random.default_rng([n_clusters, round(100 * p)])
    shift = random.normal(0, math.sqrt(CORRELATION), (REPLICATIONS, n_clusters, 1))
    y = shift + random.normal(0, math.sqrt(1 - CORRELATION), (REPLICATIONS, n_clusters, SIZE))
    return [sample_of(Quantile(row.ravel(), p), n_clusters, "quantile") for row in y], special.ndtri(p)


def coverage_by_cluster(documents, spread):
    """Return coverage and mean width, in widths by input, where a cluster is a row, an input or a document.

    Five inputs are of each document, and each has four rows: means of paired differences, with effects of
    inputs, and effects of documents of the given standard deviation.
    """
    random = np.random.default_rng([documents, round(10 * spread)])
    sizes = {"row": 1, "input": SIZE, "document": 5 * SIZE}
    held, widths = dict.fromkeys(sizes, 0), dict.fromkeys(sizes, 0.0)
    for _ in range(REPLICATIONS):
        y = random.normal(0, spread, (documents, 1, 1)) + random.normal(0, 0.6, (documents, 5, 1))
        y = (y + random.normal(0, 1, (documents, 5, SIZE))).ravel()
        for name, size in sizes.items():
            cell = infer_cell("simulation", sample_of(Mean(y), y.size // size, "paired"), Design())
            held[name] += cell.low <= 0 <= cell.high
            widths[name] += cell.high - cell.low
    return {name: (held[name] / REPLICATIONS, widths[name] / widths["input"]) for name in sizes}


def hard_cases():
    """Return what is hard for a t interval: the name of a column to samples and truth."""
    cases = {f"delta, {n}": (rare_differences(n, 0.02), -0.01) for n in CLUSTERS}
    cases |= {f"rates, shared, {n}": (contrasts(n, 0.02, 0.05, shared=True), -0.03) for n in (40, 200)}
    cases |= {f"rates, apart, {n}": (contrasts(n, 0.02, 0.02, shared=False), 0.0) for n in (40, 200)}
    return cases | {f"area, {n}": (areas(n, 0.95, 0.1), 0.95) for n in (40, 200)}


def wald(p, n):
    """Return the textbook interval of a rate of independent rows, None where it has no width."""
    half = -special.ndtri(0.025) * math.sqrt(p * (1 - p) / n)
    return (p - half, p + half) if half else None


def intervals_of(sample, names):
    """Return the 95% interval of each kind, None where it is undefined; one bootstrap serves all."""
    found = {}
    for name in names:
        if name == "korn_graubard, rows":
            n = sample.statistic.n
            rows = replace(sample, codes=np.arange(n), clusters=named(range(n)))
            cell = infer_cell("simulation", rows, Design(interval="korn_graubard"))
            found[name] = (cell.low, cell.high)
        elif name == "Wald":
            found[name] = wald(sample.statistic.value(sample.weights), sample.statistic.n)
        elif name not in BOOTSTRAPS or sample.kind == "quantile":
            cell = infer_cell("simulation", sample, Design(interval=name, n_resamples=399))
            found[name] = None if cell.low is None else (cell.low, cell.high)
    if set(found) == set(names):
        return found
    estimate, totals = sample.statistic.value(sample.weights), cluster_totals(sample)
    if totals.error()[0] <= ROUNDING:
        return found | dict.fromkeys((name for name in names if name in BOOTSTRAPS), None)
    replicates, errors = studentized_bootstrap("simulation", sample, N_RESAMPLES, 0)
    for name in BOOTSTRAPS:
        distribution = distribution_of(replicates, errors, estimate, totals, name)
        found[name] = None
        if distribution is not None:
            status, low, high = bootstrap_bounds(distribution, sample.kind, 0.95)
            found[name] = (low, high) if status == "ok" else None
    return found


def coverage_of(samples, truth, names):
    """Return for each kind the shares of samples whose interval holds the truth, and without interval."""
    held, missing = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for sample in samples:
        for name, bounds in intervals_of(sample, names).items():
            missing[name] += bounds is None
            held[name] += bounds is not None and bounds[0] <= truth <= bounds[1]
    return {name: (held[name] / len(samples), missing[name] / len(samples)) for name in names}


def coverage_of_independent_rows(n, p):
    """Return the same for n independent rows, exactly: over all numbers of events."""
    held, missing = dict.fromkeys(ROW_INTERVALS, 0.0), dict.fromkeys(ROW_INTERVALS, 0.0)
    for events in range(n + 1):
        chance = stats.binom.pmf(events, n, p)
        sample = sample_of(Mean(np.arange(n) < events), n, "rate")
        for name in ROW_INTERVALS:
            if name == "Wald":
                bounds = wald(events / n, n)
            else:
                cell = infer_cell("rows", sample, Design(interval=name))
                bounds = None if cell.low is None else (cell.low, cell.high)
            missing[name] += chance * (bounds is None)
            held[name] += chance * (bounds is not None and bounds[0] <= p <= bounds[1])
    return {name: (held[name], missing[name]) for name in ROW_INTERVALS}


def simulate():
    """Return the tables: the name of a column to what `coverage_of` found there."""
    return {
        "rates": {
            f"{n}, p = {p}": coverage_of(rates(n, p), p, RATE_INTERVALS) for p in RATES for n in CLUSTERS
        },
        "unequal": {
            f"{n} clusters, {spread}": coverage_of(unequal_clusters(n, spread), 0.1, PLAIN_INTERVALS)
            for spread in (0.5, 1.0, 1.5)
            for n in (20, 60)
        }
        | {
            f"100 weights, {spread}": coverage_of(unequal_weights(100, spread), 0.1, PLAIN_INTERVALS)
            for spread in (0.5, 1.0, 1.5)
        },
        "hard": {name: coverage_of(*case, T_INTERVALS) for name, case in hard_cases().items()},
        "differences": {
            f"{n}, {shape}": coverage_of(draw(n), 0.0, MEAN_INTERVALS)
            for shape, draw in (("normal", normal_differences), ("skewed", skewed_differences))
            for n in CLUSTERS
        },
        "quantiles": {
            f"{n}, p = {p}": coverage_of(*quantiles(n, p), QUANTILE_INTERVALS)
            for n, p in ((10, 0.5), (40, 0.5), (40, 0.9))
        },
        "clusters": {
            f"{documents} documents, {effect}": coverage_by_cluster(documents, spread)
            for effect, spread in (("all alike", 0.0), ("some harder", 0.5))
            for documents in (10, 40)
        },
        "rows": {f"{n}, p = {p}": coverage_of_independent_rows(n, p) for p in RATES for n in CLUSTERS},
    }


def undercovers(coverage):
    return coverage < 0.95 - tolerance(0.95)


def table(columns):
    """Return one simulation as Markdown: what undercovers bold, shares without interval in brackets."""
    names = list(next(iter(columns.values())))
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for name in names:
        cells = []
        for column in columns.values():
            coverage, missing = column[name]
            text = f"**{coverage:.3f}**" if undercovers(coverage) else f"{coverage:.3f}"
            cells.append(text + (f" ({missing:.2f})" if missing >= 0.005 else ""))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cluster_table(columns):
    """Return the table of clusters: coverage, and width in brackets."""
    lines = ["| a cluster is | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for name in next(iter(columns.values())):
        cells = []
        for column in columns.values():
            coverage, width = column[name]
            text = f"**{coverage:.3f}**" if undercovers(coverage) else f"{coverage:.3f}"
            cells.append(f"{text} (width {width:.3f})")
        lines.append(f"| a {name} | ".replace("a input", "an input") + " | ".join(cells) + " |")
    return "\n".join(lines)


def page(tables):
    text = Path(__file__).with_suffix(".md").read_text()
    for name, columns in tables.items():
        shown = cluster_table(columns) if name == "clusters" else table(columns)
        text = text.replace(f"{{{{ {name} }}}}", shown)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name} instead of printing it")
    arguments = parser.parse_args()
    text = page(simulate())
    if arguments.write:
        PAGE.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
