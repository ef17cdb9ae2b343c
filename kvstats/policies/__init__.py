"""Policies: rules that choose, for each input, between arms that were run, as arms of their own."""

from kvstats.policies.calibrated_gates import midpoint_gate, risk_controlled_gate, z_gate
from kvstats.policies.calibration import midpoint_threshold, z_threshold
from kvstats.policies.escalate import escalate
from kvstats.policies.gate import gate
from kvstats.policies.oracle import input_oracle, task_oracle
from kvstats.policies.random_gate import random_gate
from kvstats.policies.recompute import recompute
from kvstats.policies.registry import POLICIES, POLICY_COLUMNS, policy
from kvstats.policies.retrieve import retrieve
from kvstats.policies.risk_control import harm_bounds, risk_controlled_threshold
from kvstats.policies.threshold import Threshold, without_pilot
from kvstats.policies.two_draws import two_draws

__all__ = [
    "POLICIES",
    "POLICY_COLUMNS",
    "Threshold",
    "escalate",
    "gate",
    "harm_bounds",
    "input_oracle",
    "midpoint_gate",
    "midpoint_threshold",
    "policy",
    "random_gate",
    "recompute",
    "retrieve",
    "risk_controlled_gate",
    "risk_controlled_threshold",
    "task_oracle",
    "two_draws",
    "without_pilot",
    "z_gate",
    "z_threshold",
]
