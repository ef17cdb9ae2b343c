"""What linting says of a registration, as text."""

from __future__ import annotations

import textwrap
from typing import TextIO

from kvstats.prereg.lint import Lint

__all__ = ["print_lint"]

WIDTH = 100


def print_lint(found: Lint, stream: TextIO) -> None:
    """Print each claim with its power and its warnings, and how many warnings there are.

    Examples
    --------
    >>> import sys
    >>> from kvstats.prereg.lint import ClaimLint
    >>> from kvstats.prereg.power import ClaimPower
    >>> claim = ClaimLint("gain", 9, ClaimPower(False, "cannot be told"), ("no rule kills it",))
    >>> print_lint(Lint("plan.yaml", "0", "toy", (), (claim,)), sys.stdout)
    toy (plan.yaml): no errors, 1 warning
    <BLANKLINE>
    gain (line 9)
      power: cannot be told
      warning: no rule kills it
    """
    count = len(found.warnings) + sum(len(claim.warnings) for claim in found.claims)
    counted = f"{count} warning{'' if count == 1 else 's'}" if count else "no warnings"
    stream.write(f"{found.study} ({found.file}): no errors, {counted}\n")
    for warning in found.warnings:
        write(stream, f"warning: {warning}", "")
    for claim in found.claims:
        stream.write(f"\n{claim.id} (line {claim.line})\n")
        write(stream, f"power: {claim.power.text}", "  ")
        for warning in claim.warnings:
            write(stream, f"warning: {warning}", "  ")


def write(stream: TextIO, text: str, indent: str) -> None:
    stream.write(
        textwrap.fill(
            text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False
        )
        + "\n"
    )
