"""Inference: intervals and tests for statistics of clustered, weighted samples."""

from kvstats.inference.defined_share import defined_share
from kvstats.inference.design import DEFAULT_DESIGN, INTERVALS, Design
from kvstats.inference.mcnemar import mcnemar_test
from kvstats.inference.multiplicity import adjust, adjust_e_values
from kvstats.inference.result import RESULT_SCHEMA, Result, infer
from kvstats.inference.sample import Sample, samples_by
from kvstats.inference.sign_flip import sign_flip_test
from kvstats.titled_table import TitledTable

__all__ = [
    "DEFAULT_DESIGN",
    "INTERVALS",
    "RESULT_SCHEMA",
    "Design",
    "Result",
    "Sample",
    "TitledTable",
    "adjust",
    "adjust_e_values",
    "defined_share",
    "infer",
    "mcnemar_test",
    "samples_by",
    "sign_flip_test",
]
