import numpy as np
import pytest

from kvstats.inference import Design
from kvstats.inference.bootstrap import bootstrap
from kvstats.inference.cell import infer_cell
from kvstats.inference.joint import JointResampling, joint_samples
from kvstats.inference.sample import Sample
from kvstats.statistics import AUC, Combination, Mean, Quotient, TopShareMean

RANDOM = np.random.default_rng(5)
N, CLUSTERS = 60, 15
CODES = np.arange(N) % CLUSTERS
FIRST, SECOND = RANDOM.normal(size=(2, N))
LABEL = (FIRST + RANDOM.normal(size=N) > 0).astype(float)


def sample_of(statistic, weights=None, strata=None):
    names = tuple((f"{i:02}",) for i in range(CLUSTERS))
    return Sample(
        (), statistic, np.ones(N) if weights is None else weights, CODES, names, "mean", strata=strata
    )


@pytest.mark.parametrize("stratified", [False, True])
def test_the_draws_are_those_of_a_sample_of_its_own(stratified):
    strata = tuple((str(i % 2),) for i in range(CLUSTERS)) if stratified else None
    area = AUC(FIRST, LABEL)
    sample = sample_of(area, RANDOM.uniform(1, 2, N), strata)
    (joined,) = joint_samples("x", sample, [((), area, "auc")])
    assert (bootstrap("other", joined, 150, 3) == bootstrap("x", sample, 150, 3)).all()


def test_composed_statistics_are_composed_of_their_parts_replicates():
    areas = [AUC(FIRST, LABEL), AUC(SECOND, LABEL)]
    gain = TopShareMean(FIRST, LABEL, np.zeros(N), 0.25)
    difference = Combination([1.0, -1.0], areas)
    ratio = Quotient(gain, Combination([0.5], [Mean(LABEL)]))
    joint = JointResampling("x", sample_of(areas[0]), [*areas, difference, ratio])
    first, second, between, quotient, top = (
        joint.replicates(statistic, 120, 1) for statistic in (*areas, difference, ratio, gain)
    )
    assert (between == first - second).all()
    alone = bootstrap("x", sample_of(ratio), 120, 1)
    assert quotient == pytest.approx(alone, abs=1e-12)
    assert top == pytest.approx(bootstrap("x", sample_of(gain), 120, 1), abs=1e-12)


def test_other_seeds_and_numbers_draw_anew():
    area = AUC(FIRST, LABEL)
    joint = JointResampling("x", sample_of(area), [area])
    once = joint.replicates(area, 100, 0)
    assert (joint.replicates(area, 100, 0) == once).all()
    assert joint.replicates(area, 120, 0).size == 120
    assert (joint.replicates(area, 100, 1) != once).any()
    assert (joint.replicates(area, 100, 0) == once).all()


def test_a_statistic_that_it_does_not_know_is_an_error():
    area = AUC(FIRST, LABEL)
    with pytest.raises(KeyError):
        JointResampling("x", sample_of(area), [area]).replicates(AUC(SECOND, LABEL), 100, 0)


@pytest.mark.parametrize("interval", ["percentile", "basic", "bca", "studentized"])
def test_every_bootstrap_interval_is_that_of_a_sample_of_its_own(interval):
    area = AUC(FIRST, LABEL)
    sample = sample_of(area)
    (joined,) = joint_samples("x", sample, [((), area, "mean")])
    design = Design(interval=interval, n_resamples=200)
    # A studentized one needs the errors of its own resamples, and is drawn under the name of the cell.
    assert infer_cell("x", joined, design) == infer_cell("x", sample, design)
