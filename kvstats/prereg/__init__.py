"""Registrations and their verification."""

from kvstats.prereg.outcome import ClaimOutcome, GuardOutcome, RegistrationFacts, Report
from kvstats.prereg.verify import verify

__all__ = ["ClaimOutcome", "GuardOutcome", "RegistrationFacts", "Report", "verify"]
