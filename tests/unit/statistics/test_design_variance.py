"""The three forms of the variance against their double sums, on numpy and on torch."""

import itertools

import numpy as np
import pytest
import torch

from kvstats.statistics.design_variance import horvitz_thompson_form, poisson_form, sen_yates_grundy_form
from kvstats.statistics.designs import ConditionalPoisson

DESIGN = ConditionalPoisson(np.arange(1, 11) * 5 / 55)
DRAWN = np.array([1, 4, 6, 7, 9])
PI = DESIGN.inclusion_probability[DRAWN]
JOINT = DESIGN.joint_inclusion_probability[np.ix_(DRAWN, DRAWN)]
Y = np.random.default_rng(0).normal(size=(5, 3))


def double_sum(y, term):
    return sum(term(i, j, y[i] / PI[i], y[j] / PI[j]) for i, j in itertools.product(range(5), repeat=2))


def syg_term(i, j, a, b):
    return (PI[i] * PI[j] - JOINT[i, j]) / JOINT[i, j] * np.sum((a - b) ** 2) / 2


def ht_term(i, j, a, b):
    return (JOINT[i, j] - PI[i] * PI[j]) / JOINT[i, j] * np.sum(a * b)


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("y", [Y, Y[:, 0]], ids=["vectors", "scalars"])
def test_forms_are_their_sums(y, kind):
    arguments = kind(y), kind(PI), kind(JOINT)
    assert sen_yates_grundy_form(*arguments) == pytest.approx(double_sum(y, syg_term), rel=1e-12)
    assert horvitz_thompson_form(*arguments) == pytest.approx(double_sum(y, ht_term), rel=1e-12)
    single = sum((1 - p) / p**2 * np.sum(row**2) for p, row in zip(PI, y, strict=True))
    assert poisson_form(*arguments[:2]) == pytest.approx(single, rel=1e-13)
    assert isinstance(poisson_form(*arguments[:2]), float)


def test_vectors_of_one_component_are_scalars():
    for form in (sen_yates_grundy_form, horvitz_thompson_form):
        assert form(Y[:, :1], PI, JOINT) == form(Y[:, 0], PI, JOINT)
    assert poisson_form(Y[:, :1], PI) == poisson_form(Y[:, 0], PI)


def test_the_variance_of_vectors_is_the_sum_over_their_components():
    for form in (sen_yates_grundy_form, horvitz_thompson_form):
        assert form(Y, PI, JOINT) == pytest.approx(sum(form(Y[:, c], PI, JOINT) for c in range(3)), rel=1e-12)


def test_proportional_values_have_no_variance_under_a_fixed_size():
    assert sen_yates_grundy_form(3 * PI, PI, JOINT) == pytest.approx(0, abs=1e-28)


def test_certain_units_add_nothing():
    pi = np.array([1.0, 0.4, 0.6])
    joint = np.array([[1.0, 0.4, 0.6], [0.4, 0.4, 0.2], [0.6, 0.2, 0.6]])
    for y in ([5.0, 1.0, 2.0], [-80.0, 1.0, 2.0]):
        y = np.array(y)
        for form in (sen_yates_grundy_form, horvitz_thompson_form):
            assert form(y, pi, joint) == pytest.approx(form(y[1:], pi[1:], joint[1:, 1:]), rel=1e-12)
        assert poisson_form(y, pi) == poisson_form(y[1:], pi[1:])


def test_empty_samples_sum_to_nothing():
    empty, pairs = np.zeros(0), np.zeros((0, 0))
    assert poisson_form(empty, empty) == 0
    assert sen_yates_grundy_form(empty, empty, pairs) == 0
    assert horvitz_thompson_form(empty, empty, pairs) == 0
