"""Inference: intervals and tests for statistics of clustered, weighted samples."""

from kvstats.inference.design import DEFAULT_DESIGN, INTERVALS, Design
from kvstats.inference.multiplicity import adjust
from kvstats.inference.result import RESULT_SCHEMA, Result, infer
from kvstats.inference.sample import Sample, samples_by

__all__ = [
    "DEFAULT_DESIGN",
    "INTERVALS",
    "RESULT_SCHEMA",
    "Design",
    "Result",
    "Sample",
    "adjust",
    "infer",
    "samples_by",
]
