"""Policies: rules that choose, for each input, between arms that were run, as arms of their own."""

from kvstats.policies.gate import gate
from kvstats.policies.registry import POLICIES, POLICY_COLUMNS, policy

__all__ = ["POLICIES", "POLICY_COLUMNS", "gate", "policy"]
