"""What a survey sample holds and refuses."""

import re
import tracemalloc

import numpy as np
import pytest
import torch

from kvstats.errors import InputError
from kvstats.statistics.designs import (
    ConditionalPoisson,
    Poisson,
    Sampford,
    SimpleRandom,
    Stratified,
    SystematicPPS,
)
from kvstats.statistics.survey_sample import SurveySample

PAIR = np.array([[0.5, 0.2], [0.2, 0.5]])


def test_forms_follow_from_what_is_given():
    assert SurveySample([0.5, 0.5]).variance_form == "poisson"
    assert SurveySample([0.5, 0.5], PAIR).variance_form == "syg"
    assert SurveySample([0.5, 0.5], PAIR, "ht").variance_form == "ht"
    np.testing.assert_array_equal(SurveySample([0.5, 0.25]).weights, [2.0, 4.0])


def test_drawn_takes_probabilities_pairs_form_and_strata_from_the_design():
    design = ConditionalPoisson([0.2, 0.5, 0.5, 0.8])
    drawn = np.array([True, False, True, False])
    sample = SurveySample.drawn(design, drawn)
    np.testing.assert_array_equal(sample.inclusion_probability, design.inclusion_probability[[0, 2]])
    np.testing.assert_array_equal(
        sample.joint_inclusion_probability, design.joint_inclusion_probability[[0, 2]][:, [0, 2]]
    )
    assert (sample.size, sample.variance_form, sample.strata) == (2, "syg", None)
    poisson = SurveySample.drawn(Poisson([0.2, 0.5]), np.array([False, False]))
    assert (poisson.size, poisson.variance_form, poisson.joint_inclusion_probability) == (0, "poisson", None)
    design = Stratified(["a", "a", "b", "b", "b"], {"a": 2, "b": 2})
    sample = SurveySample.drawn(design, np.array([True, True, False, True, True]))
    assert sample.strata.tolist() == ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    "design",
    [
        Poisson([0.2, 0.5, 1.0, 0.8, 0.1, 0.4]),
        SimpleRandom(6, 1),
        SimpleRandom(6, 3),
        SimpleRandom(1, 1),
        Stratified([3, 1, 3, 1, 1, 2, 2], {1: 2, 2: 1, 3: 2}),
        ConditionalPoisson([0.2, 0.5, 0.5, 0.8]),
        Sampford([0.2, 0.5, 0.5, 0.8]),
        SystematicPPS([0.9, 0.9, 0.6, 0.6]),
    ],
    ids=lambda design: type(design).__name__,
)
def test_pairs_of_some_units_are_those_of_the_whole_matrix(design):
    whole = design.joint_inclusion_probability
    n = whole.shape[0]
    assert design.excluded_pairs == sum(whole[i, j] == 0 for i in range(n) for j in range(i))
    for members in (np.arange(n), np.array([n - 1, 0][: min(n, 2)]), np.array([], dtype=np.int64)):
        found = design.joint_of(members)
        assert found.shape == (members.size, members.size)
        for a, i in enumerate(members):
            for b, j in enumerate(members):
                assert found[a, b] == whole[i, j]


@pytest.mark.parametrize(
    "design",
    [SimpleRandom(50_000, 50), Stratified(np.repeat(np.arange(10), 5000), dict.fromkeys(range(10), 5))],
    ids=lambda design: type(design).__name__,
)
def test_a_small_sample_of_a_large_population_needs_little_memory(design):
    drawn = design.sample(np.random.default_rng(0))
    assert design.inclusion_probability.size == 50_000
    tracemalloc.start()
    sample = SurveySample.drawn(design, drawn)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The pairs of 50 units take 20 kB, those of all units 20 GB.
    assert (sample.size, sample.joint_inclusion_probability.shape) == (50, (50, 50))
    assert peak < 500_000


def test_drawn_in_the_kind_of_another_array():
    design = ConditionalPoisson([0.2, 0.5, 0.5, 0.8])
    drawn = np.array([True, False, True, False])
    sample = SurveySample.drawn(design, drawn, like=torch.zeros(1, dtype=torch.float32))
    assert sample.inclusion_probability.dtype == torch.float32
    assert sample.joint_inclusion_probability.shape == (2, 2)


@pytest.mark.parametrize(
    "design",
    [SimpleRandom(4, 1), Stratified([0, 0, 1, 1], {0: 1, 1: 2}), ConditionalPoisson([0.25] * 4)],
    ids=lambda design: type(design).__name__,
)
def test_designs_that_never_draw_some_pair_are_refused(design):
    drawn = design.sample(np.random.default_rng(0))
    message = (
        f"SurveySample.drawn: design={type(design).__name__!r} never draws [0-9]+ pairs of units together"
    )
    with pytest.raises(InputError, match=message):
        SurveySample.drawn(design, drawn)


def test_systematic_samples_are_refused():
    design = SystematicPPS([0.2, 0.5, 0.3, 0.6, 0.4])
    with pytest.raises(InputError, match="6 of 10 pairs of units are never drawn together"):
        SurveySample.drawn(design, design.sample(np.random.default_rng(0)))


def test_single_precision_joint_probabilities_are_accepted():
    design = ConditionalPoisson(np.arange(1, 21) * 8 / 210)
    drawn = design.sample(np.random.default_rng(0))
    like = torch.zeros(1, dtype=torch.float32)
    assert SurveySample.drawn(design, drawn, like=like).variance_form == "syg"


def test_a_census_needs_no_pairs():
    ones = np.ones((3, 3))
    assert SurveySample(np.ones(3), ones).variance_form == "syg"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SurveySample([0.5, 0.0]), "inclusion_probability='an array' holds values outside (0, 1]"),
        (lambda: SurveySample([0.5, 1.1]), "holds values outside (0, 1]; pass the design's own"),
        (lambda: SurveySample([0.5, np.nan]), "holds values outside (0, 1]"),
        (lambda: SurveySample([[0.5]]), "inclusion_probability='array of shape (1, 1)' is not a vector"),
        (
            lambda: SurveySample([0.5, 0.5], PAIR, "yg"),
            "variance_form='yg' is not known; did you mean 'syg'?",
        ),
        (
            lambda: SurveySample([0.5, 0.5], None, "syg"),
            "joint_inclusion_probability=None is missing for the form 'syg'; pass those of the sampled pairs",
        ),
        (
            lambda: SurveySample([0.5], PAIR),
            "joint_inclusion_probability='array of shape (2, 2)' does not fit 1",
        ),
        (
            lambda: SurveySample([0.5, 0.5], PAIR * [[1, 0], [0, 1]]),
            "holds values that are not above 0 and at most the smaller of the pair's own probabilities",
        ),
        (
            lambda: SurveySample([0.5, 0.5], PAIR + np.array([[0, 0.4], [0.4, 0]])),
            "at most the smaller of the pair's",
        ),
        (
            lambda: SurveySample([0.5, 0.5], PAIR + np.array([[0, 0.1], [0, 0]])),
            "is not symmetric with inclusion_prob",
        ),
        (
            lambda: SurveySample([0.5, 0.6], PAIR),
            "is not symmetric with inclusion_probability on its diagonal",
        ),
        (
            lambda: SurveySample([0.5, 0.4], [[0.5, 0.2], [0.2, 0.4]]),
            "variance_form='syg' is 0 for any sample where all pairs are independent; pass 'poisson' for",
        ),
        (lambda: SurveySample([0.5], strata=["a", "b"]), "strata='array of shape (2,)' does not fit 1 units"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(InputError, match=re.escape("SurveySample: ") + ".*" + re.escape(message)):
        make()


@pytest.mark.parametrize("drawn", [np.array([True]), np.array([0, 1]), np.array([1.0, 0.0, 1.0, 0.0])])
def test_what_is_no_mask_is_refused(drawn):
    message = f"SurveySample.drawn: drawn='{drawn.dtype} array of shape {drawn.shape}' is no mask of 4 units"
    with pytest.raises(InputError, match=re.escape(message)):
        SurveySample.drawn(Poisson([0.5] * 4), drawn)
