"""What an audit found, as text."""

from __future__ import annotations

import textwrap
from typing import TextIO

from kvstats.log.audit import Audit

__all__ = ["print_audit"]

WIDTH = 100


def print_audit(found: Audit, stream: TextIO) -> None:
    """Print each finding with what it would bias and examples, below what was found in all.

    Examples
    --------
    >>> import sys
    >>> from kvstats.log.audit import Finding
    >>> finding = Finding("identical arms", "warning", 600, "arms a and b give the same on all 600 rows")
    >>> print_audit(Audit((finding,), 1800, 1800, 0), sys.stdout)
    audit, 1 warning; 1,800 runs: 1,800 scored, 0 with an error, 0 not scored
    <BLANKLINE>
    warning: identical arms: arms a and b give the same on all 600 rows
      would bias: one arm may be the other under two names, and their difference is none
    """
    stream.write(f"{found.title}\n")
    for finding in found.findings:
        stream.write("\n")
        write(stream, f"{finding.severity}: {finding.check}: {finding.message}", "")
        write(stream, f"would bias: {finding.bias}", "  ")
        for example in finding.examples:
            write(stream, f"such as {example}", "  ")


def write(stream: TextIO, text: str, indent: str) -> None:
    """Write a paragraph; paths and keys are never broken."""
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    stream.write("\n".join(lines) + "\n")
