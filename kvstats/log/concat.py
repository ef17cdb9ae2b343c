"""Joining logs that were read one by one."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from kvstats.log.frames import INPUT_SCHEMA, RUN_SCHEMA, Log

__all__ = ["concat_logs"]


def concat_logs(logs: Sequence[Log]) -> Log:
    """Return one log with the rows of several, as if their files had been read together.

    Parameters
    ----------
    logs : sequence of Log
        The logs, in any order. A signal that only some of them have is null in the rows of the others.

    Returns
    -------
    Log

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> def one(input_id: str, signals: dict[str, float | None]) -> Log:
    ...     run = RunRecord(suite="s", model="m", task="t", input_id=input_id, arm="full", signals=signals)
    ...     return log_from_records([run])
    >>> both = concat_logs([one("2", {"margin": 0.5}), one("1", {"logprob": -1.0})])
    >>> both.run_signals, both.runs.select("input_id", "logprob", "margin").rows()
    (('logprob', 'margin'), [('1', -1.0, None), ('2', None, 0.5)])
    """
    if len(logs) == 1:
        return logs[0]
    run_signals = tuple(sorted({name for log in logs for name in log.run_signals}))
    input_signals = tuple(sorted({name for log in logs for name in log.input_signals}))
    return Log(
        runs=stacked([log.runs for log in logs], (*RUN_SCHEMA, *run_signals)),
        inputs=stacked([log.inputs for log in logs], (*INPUT_SCHEMA, *input_signals)),
        replays=pl.concat([log.replays for log in logs]),
        studies=pl.concat([log.studies for log in logs]),
        rejects=pl.concat([log.rejects for log in logs]),
        files=pl.concat([log.files for log in logs]),
        run_signals=run_signals,
        input_signals=input_signals,
        virtual_arms=tuple(sorted({name for log in logs for name in log.virtual_arms})),
    )


def stacked(frames: Sequence[pl.DataFrame], columns: Sequence[str]) -> pl.DataFrame:
    """Stack frames, with the columns in one order: it decides how rows of the same key are sorted."""
    return pl.concat(frames, how="diagonal").select(columns)
