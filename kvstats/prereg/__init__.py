"""Registrations and their verification."""

from kvstats.prereg.amend import amend
from kvstats.prereg.bundle import write_bundle
from kvstats.prereg.lint import Lint, lint
from kvstats.prereg.outcome import ClaimOutcome, GuardOutcome
from kvstats.prereg.report import Report
from kvstats.prereg.seal import Seal, seal
from kvstats.prereg.standing import RegistrationFacts
from kvstats.prereg.verify import verify

__all__ = [
    "ClaimOutcome",
    "GuardOutcome",
    "Lint",
    "RegistrationFacts",
    "Report",
    "Seal",
    "amend",
    "lint",
    "seal",
    "verify",
    "write_bundle",
]
