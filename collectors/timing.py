"""What the certificate costs: the certified rows decoded by themselves, with it and without."""

from __future__ import annotations

import time
from collections.abc import Sequence

from collectors.attention import Recorder
from collectors.certified_rows import is_certified, make_certificate, radii_of_runs
from collectors.config import StudyPlan
from collectors.models import LoadedModel
from collectors.prefill import Prefill
from collectors.rows import Row, decode_rows

__all__ = ["decode_seconds"]


def decode_seconds(
    loaded: LoadedModel,
    recorder: Recorder,
    plan: StudyPlan,
    filled: Prefill,
    rows: Sequence[Row],
    fed: list[int],
    max_new_tokens: int,
) -> dict[str, float]:
    """Decode the certified rows of a batch twice, without the other rows, and time both.

    Rows that are not certified would hide the cost; replays and rankings, which are no part of it, are left
    out.

    Parameters
    ----------
    plan : StudyPlan
        Which reads are certified.
    loaded, recorder, filled, rows, fed, max_new_tokens
        As for `decode_rows`.

    Returns
    -------
    dict of str to float
        ``decode_plain`` and ``decode_certified``, in seconds for the same steps of the same rows; empty when
        no row is certified.
    """
    certified = [row for row in rows if is_certified(row)]
    if not certified:
        return {}
    seconds = {}
    observer = make_certificate(plan, certified, filled.attention.shape[:2])
    for name, watching in (("decode_plain", None), ("decode_certified", observer)):
        observers = [] if watching is None else [watching]
        began = time.perf_counter()
        generations = decode_rows(loaded, recorder, filled, certified, fed, max_new_tokens, observers)
        radii_of_runs(watching, generations)
        seconds[name] = time.perf_counter() - began
    return seconds
