"""The figures of both studies: functions of a log, each drawn from the estimators that it names."""

import kvstats.report.plots  # noqa: F401  First of all: it says what to install where matplotlib is missing.
from kvstats.report.figures.accuracy_budget import accuracy_against_budget
from kvstats.report.figures.accuracy_kept import accuracy_against_kept
from kvstats.report.figures.agreement_layers import agreement_profiles
from kvstats.report.figures.drop_tasks import drop_by_task
from kvstats.report.figures.gate_thresholds import tau_sensitivity
from kvstats.report.figures.headroom import recovery_against_headroom
from kvstats.report.figures.layer_head import layer_head_map
from kvstats.report.figures.matrix import delta_matrix
from kvstats.report.figures.mixture import mixture_curve
from kvstats.report.figures.operating import operating_curve
from kvstats.report.figures.questions import three_questions
from kvstats.report.figures.recomputation import gated_recomputation
from kvstats.report.figures.recovery import recovery_histogram
from kvstats.report.figures.signal_areas import signal_panel
from kvstats.report.figures.sweep import budget_sweep

__all__ = [
    "accuracy_against_budget",
    "accuracy_against_kept",
    "agreement_profiles",
    "budget_sweep",
    "delta_matrix",
    "drop_by_task",
    "gated_recomputation",
    "layer_head_map",
    "mixture_curve",
    "operating_curve",
    "recovery_against_headroom",
    "recovery_histogram",
    "signal_panel",
    "tau_sensitivity",
    "three_questions",
]
