import numpy as np
import polars as pl
import pytest

from kvstats.inference import Design, Sample, defined_share, infer
from kvstats.inference.bootstrap import bootstrap
from kvstats.statistics import Mean, Ratio


def sample_of(statistic, key=()):
    clusters = tuple((str(i),) for i in range(statistic.n))
    return Sample(key, statistic, np.ones(statistic.n), np.arange(statistic.n), clusters, "mean")


def test_it_is_the_share_of_the_replicates_of_the_interval():
    sample = sample_of(Ratio([1.0, 1.0, 0.0], [1.0, 0.0, 0.0]))
    result = infer("r", [sample], Design(n_resamples=500, seed=3))
    replicates = bootstrap("r", sample, 500, 3)
    assert defined_share(result).rows() == [(500, pytest.approx(np.isfinite(replicates).mean()))]
    assert 0.6 < defined_share(result)["defined"].item() < 0.8  # 1 - (2/3) ** 3 is 0.70


def test_each_row_has_its_own_and_empty_rows_none():
    samples = [sample_of(Mean([1.0, 2.0]), ("a",)), sample_of(Mean([]), ("b",))]
    result = infer("m", samples, Design(), {"task": pl.String()})
    assert defined_share(result).rows() == [("a", 2000, 1.0), ("b", 2000, None)]
