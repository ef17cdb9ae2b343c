"""What was logged against what came out now: the same, moved a little, or something else."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kvstats.log.build import log_from_records
from kvstats.log.compared_logs import Verdict, where_texts
from kvstats.log.comparison import compare_logs
from kvstats.log.records import Record

__all__ = ["Comparison", "Offender", "Tally", "Verdict", "compare_records"]


class Tally(msgspec.Struct, frozen=True):
    """How often a quantity came out the same, and how far it was off at most."""

    quantity: str
    reproduced: int
    drifted: int
    different: int
    largest: float


class Offender(msgspec.Struct, frozen=True):
    """A quantity of one input or run that did not come out the same.

    Attributes
    ----------
    where : str
        The input, and the run if it is of one.
    quantity : str
        What was compared.
    logged, found : str
        What was logged, and what came out now.
    distance : float
        How far they are apart, see `kvstats.compare_logs`.
    verdict : {"drifted", "different"}
        What that is called.
    """

    where: str
    quantity: str
    logged: str
    found: str
    distance: float
    verdict: Verdict


class Comparison(msgspec.Struct, frozen=True):
    """The records of some units against those of their repetition.

    Attributes
    ----------
    verdict : {"reproduced", "drifted", "different"}
        That of `kvstats.compare_logs`; different where a run is on one side only.
    runs : int
        How many runs are on both sides.
    tallies : list of Tally
        By quantity.
    offenders : list of Offender
        The worst first.
    """

    verdict: Verdict
    runs: int
    tallies: list[Tally]
    offenders: list[Offender]


def compare_records(logged: Sequence[Record], found: Sequence[Record], tau: float) -> Comparison:
    """Compare the records of units with those of their repetition.

    Parameters
    ----------
    logged, found : sequence of records
        Runs and input records of the same units.
    tau : float
        Threshold of the gate decision.

    Returns
    -------
    Comparison
        A repetition runs what was planned then, so a run on one side only is a difference.
    """
    new, reference = log_from_records(found), log_from_records(logged)
    held = compare_logs(new, reference, tau=tau)
    columns = ("field", "reproduced", "drifted", "different", "distance")
    tallies = [Tally(*row) for row in held.frame.select(columns).rows()]
    offenders = [
        Offender(where, field, before, after, distance, verdict)
        for field, where, before, after, distance, verdict in held.offenders.rows()
    ]
    alone = [
        Offender(where, "run", before, after, 1.0, "different")
        for rows, before, after in (
            (held.only_reference, "logged", "not planned"),
            (held.only_new, "missing", "planned"),
        )
        for where in where_texts(rows, reference.runs)
    ]
    if alone:
        tallies.append(Tally("run", held.runs, 0, len(alone), 1.0))
    return Comparison("different" if alone else held.verdict, held.runs, tallies, [*alone, *offenders])
