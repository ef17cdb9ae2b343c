"""Scores by task that a file of results prints, held against those of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["ScoreDifference", "score_differences"]

NOISE = 1e-9
"""What two sums of the same scores may differ by, in per cent."""


@dataclass(frozen=True)
class ScoreDifference:
    """A task whose printed score is not that of its rows.

    Attributes
    ----------
    task : str
        The task.
    printed : float or None
        In per cent; None where the file has no such task.
    recomputed : float or None
        Mean of the rows' scores, in per cent; None where there is no row.
    rows : int
        How many rows there are.
    """

    task: str
    printed: float | None
    recomputed: float | None
    rows: int

    def __str__(self) -> str:
        if self.recomputed is None:
            return f"{self.task} printed {self.printed:g}, without a row"
        told = "not printed" if self.printed is None else f"printed {self.printed:g}"
        noun = "row" if self.rows == 1 else "rows"
        return f"{self.task} {told}, recomputed {self.recomputed:.2f} from {self.rows:,} {noun}"


def score_differences(
    printed: Mapping[str, float], scores: Mapping[str, Sequence[float]], digits: int = 2
) -> Iterator[ScoreDifference]:
    """Yield the tasks in which printed and recomputed scores differ, beyond what rounding explains.

    Parameters
    ----------
    printed : mapping of str to float
        Score by task in per cent, rounded.
    scores : mapping of str to sequence of float
        Scores of the rows by task, from 0 to 1.
    digits : int
        How many digits after the point the printed scores were rounded to.

    Examples
    --------
    >>> for found in score_differences({"cwe": 66.67, "vt": 50.0}, {"cwe": [1, 1, 0], "vt": [1, 1]}):
    ...     print(found)
    vt printed 50, recomputed 100.00 from 2 rows
    """
    for task in sorted(printed.keys() | scores.keys()):
        rows = scores.get(task, ())
        recomputed = 100 * sum(rows) / len(rows) if rows else None
        told = printed.get(task)
        near = 0.5 * 10.0**-digits + NOISE
        if told is None or recomputed is None or not abs(told - recomputed) <= near:
            yield ScoreDifference(task, told, recomputed, len(rows))
