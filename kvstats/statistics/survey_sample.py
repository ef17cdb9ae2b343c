"""A drawn sample: the inclusion probabilities that its estimators need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from kvstats.errors import InputError, nearest_name
from kvstats.statistics.design_variance import horvitz_thompson_form, poisson_form, sen_yates_grundy_form
from kvstats.statistics.designs.sampling_design import SamplingDesign, VarianceForm
from kvstats.statistics.statistic import FloatArray

__all__ = ["SurveySample"]

JOINT_TOLERANCE = 1e-5
"""Relative rounding allowed in joint probabilities, enough for single precision."""


@dataclass(frozen=True, eq=False)
class SurveySample:
    """The k units that were drawn, with their probabilities of being drawn.

    Attributes
    ----------
    inclusion_probability : array of float, shape [k]
        In (0, 1], numpy or torch; a sequence becomes a numpy array. k may be 0.
    joint_inclusion_probability : array of float, shape [k, k], optional
        Above 0, with the units' own on the diagonal; for the forms ``syg`` and ``ht``.
    variance_form : {"poisson", "syg", "ht"}, optional
        Estimator of variances: ``syg`` for designs of fixed size (default when joint probabilities are
        given), ``poisson`` for Poisson sampling (default without), ``ht`` for any design, at the risk of a
        negative one.
    strata : array-like, shape [k], optional
        Label of each unit's stratum; it matters for the degrees of freedom.

    Raises
    ------
    InputError
        When a probability is out of range, shapes do not fit, the form is not known, joint probabilities are
        missing, or ``syg`` is asked for where all pairs are independent: the sum is then 0 whatever was
        drawn, because the size is random (Poisson sampling) or every stratum has a single unit.

    Examples
    --------
    >>> SurveySample([0.5, 0.25]).weights
    array([2., 4.])
    >>> from kvstats.statistics.designs import ConditionalPoisson
    >>> design = ConditionalPoisson([0.2, 0.5, 0.5, 0.8])
    >>> sample = SurveySample.drawn(design, design.sample(np.random.default_rng(0)))
    >>> sample.inclusion_probability.size, sample.variance_form
    (2, 'syg')
    """

    inclusion_probability: Any
    joint_inclusion_probability: Any = None
    variance_form: VarianceForm | None = None
    strata: Any = None

    def __post_init__(self) -> None:
        pi, joint = as_array(self.inclusion_probability), self.joint_inclusion_probability
        form = self.variance_form or ("poisson" if joint is None else "syg")
        object.__setattr__(self, "inclusion_probability", pi)
        object.__setattr__(self, "variance_form", form)
        if joint is not None:
            object.__setattr__(self, "joint_inclusion_probability", as_array(joint))
        if self.strata is not None:
            object.__setattr__(self, "strata", np.asarray(self.strata))
        self._check_form(form)
        self._check_probabilities()
        if self.joint_inclusion_probability is not None:
            self._check_joint(form)
        if self.strata is not None and self.strata.shape != (self.size,):
            raise refused(
                "strata",
                f"array of shape {self.strata.shape}",
                f"does not fit {self.size} units",
                "pass one a unit",
            )

    @classmethod
    def drawn(cls, design: SamplingDesign, drawn: Any, *, like: Any = None) -> SurveySample:
        """Return the sample that a design drew.

        Parameters
        ----------
        design : SamplingDesign
            The design.
        drawn : array of bool, shape [n]
            What its `sample` returned.
        like : array, optional
            An array whose namespace, type and device the probabilities are to have; default numpy.

        Raises
        ------
        InputError
            When the mask does not fit the population, or the design lets some pair never be drawn together.
        """
        mask = np.asarray(drawn)
        pi = design.inclusion_probability
        if mask.dtype != np.bool_ or mask.shape != pi.shape:
            raise InputError.argument(
                "SurveySample.drawn",
                "drawn",
                f"{mask.dtype} array of shape {mask.shape}",
                f"is no mask of {pi.size} units",
                "pass what design.sample(rng) returns",
            )
        strata = getattr(design, "strata", None)
        members = np.flatnonzero(mask)
        joint = None
        if design.variance_form != "poisson":
            excluded = design.excluded_pairs
            if excluded:
                raise InputError.argument(
                    "SurveySample.drawn",
                    "design",
                    type(design).__name__,
                    f"never draws {excluded} pairs of units together, so that no "
                    "unbiased estimator of the variance exists",
                    "draw at least two units, from each stratum that is not drawn whole",
                )
            joint = design.joint_of(members)
        return cls(
            converted(pi[members], like),
            None if joint is None else converted(joint, like),
            design.variance_form,
            None if strata is None else strata[members],
        )

    @property
    def size(self) -> int:
        """Number k of units."""
        return int(self.inclusion_probability.shape[0])

    @cached_property
    def weights(self) -> Any:
        """Sampling weights 1/pi, shape [k]."""
        return 1 / self.inclusion_probability

    def variance(self, linearised: Any) -> float:
        """Estimate the variance of the weighted sum of linearised values of shape [k] or [k, d]."""
        pi, joint = self.inclusion_probability, self.joint_inclusion_probability
        if self.variance_form == "poisson":
            return poisson_form(linearised, pi)
        form = sen_yates_grundy_form if self.variance_form == "syg" else horvitz_thompson_form
        return form(linearised, pi, joint)

    def _check_form(self, form: VarianceForm) -> None:
        known = get_args(VarianceForm)
        if form not in known:
            raise refused("variance_form", form, "is not known", nearest_name(str(form), known))
        if form != "poisson" and self.joint_inclusion_probability is None:
            raise refused(
                "joint_inclusion_probability",
                None,
                f"is missing for the form {form!r}",
                "pass those of the sampled pairs, or variance_form='poisson' for Poisson sampling",
            )

    def _check_probabilities(self) -> None:
        pi = self.inclusion_probability
        if pi.ndim != 1:
            raise refused(
                "inclusion_probability",
                f"array of shape {tuple(pi.shape)}",
                "is not a vector",
                "pass one a unit",
            )
        xp = array_namespace(pi)
        if not bool(xp.all((pi > 0) & (pi <= 1))):
            raise refused(
                "inclusion_probability", "an array", "holds values outside (0, 1]", "pass the design's own"
            )

    def _check_joint(self, form: VarianceForm) -> None:
        pi, joint, k = self.inclusion_probability, self.joint_inclusion_probability, self.size
        argument = "joint_inclusion_probability"
        if tuple(joint.shape) != (k, k):
            raise refused(
                argument,
                f"array of shape {tuple(joint.shape)}",
                f"does not fit {k} units",
                "pass those of the pairs of sampled units",
            )
        xp = array_namespace(pi, joint)
        least = xp.minimum(pi[:, None], pi[None, :])
        if not bool(xp.all((joint > 0) & (joint <= least * (1 + JOINT_TOLERANCE)))):
            raise refused(
                argument,
                "an array",
                "holds values that are not above 0 and at most the smaller of the pair's own probabilities",
                "pass those of the pairs of sampled units",
            )
        diagonal = xp.linalg.diagonal(joint)
        if not bool(xp.all(xp.abs(joint - joint.T) <= JOINT_TOLERANCE * joint)) or not bool(
            xp.all(xp.abs(diagonal - pi) <= JOINT_TOLERANCE * pi)
        ):
            raise refused(
                argument,
                "an array",
                "is not symmetric with inclusion_probability on its diagonal",
                "pass those of the pairs of sampled units, in the same order",
            )
        uncertain = pi < 1
        pairs = uncertain[:, None] & uncertain[None, :] & ~xp.eye(k, dtype=xp.bool, device=pi.device)
        product = pi[:, None] * pi[None, :]
        independent = xp.all(~pairs | (xp.abs(joint - product) <= 4 * xp.finfo(pi.dtype).eps * product))
        if form == "syg" and bool(xp.any(pairs)) and bool(independent):
            raise refused(
                "variance_form",
                form,
                "is 0 for any sample where all pairs are independent",
                "pass 'poisson' for Poisson sampling; draw two units or more from each stratum",
            )


def as_array(values: Any) -> Any:
    """Return values as an array of float; what is no array becomes one of numpy."""
    if not is_array_api_obj(values):
        return np.asarray(values, dtype=np.float64)
    xp = array_namespace(values)
    return values if xp.isdtype(values.dtype, "real floating") else xp.astype(values, xp.float64)


def converted(values: FloatArray, like: Any) -> Any:
    """Return numpy values with the namespace, type and device of another array."""
    if like is None:
        return values
    return array_namespace(like).asarray(values, dtype=like.dtype, device=like.device)


def refused(argument: str, value: object, fault: str, remedy: str) -> InputError:
    """Return the error for an argument of `SurveySample`."""
    return InputError.argument("SurveySample", argument, value, fault, remedy)
