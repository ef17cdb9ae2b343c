"""What a log holds already: its complete units, and those that failed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from collectors.failure import error_of
from collectors.units import UnitKey
from kvstats.errors import InputError
from kvstats.log.records import InputRecord, Record, StudyRecord

__all__ = ["drop_failed_units", "finished_units", "written_alone"]


@contextmanager
def written_alone(file: Path) -> Iterator[None]:
    """Hold a lock beside a log, so that no second collection cuts off or repeats what this one writes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{file}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise InputError(
            f"{file}: is being written by another collection; wait for it, or name another log"
        ) from error
    try:
        yield
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def whole_lines(path: Path) -> Iterator[tuple[bytes, Record]]:
    """Yield the lines of a log with their records, up to one without its end.

    Raises
    ------
    InputError
        A line breaks the log contract.
    """
    decoder = msgspec.json.Decoder(Record)
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield line, decoder.decode(line)
            except msgspec.MsgspecError as error:
                raise InputError.line(
                    path, number, f"breaks the log contract ({error})", "repair the log"
                ) from error


def finished_units(path: Path) -> set[UnitKey]:
    """Find the complete units of a log, and cut off the incomplete one that a kill left at its end.

    A unit's block ends with its input record, so what follows the last input record is incomplete. A unit
    that failed is complete too: its block holds its error.
    """
    done: set[UnitKey] = set()
    position = complete = 0
    for line, record in whole_lines(path):
        position += len(line)
        if isinstance(record, InputRecord):
            done.add((record.task, record.input_id, record.condition))
        if isinstance(record, InputRecord | StudyRecord):
            complete = position
    os.truncate(path, complete)
    return done


def drop_failed_units(path: Path) -> int:
    """Take the blocks with errors out of a log, and what a kill left unfinished at its end.

    The log, of which the caller holds the lock, is written anew beside itself and put in its place when it
    is whole; what a kill leaves of it is written over the next time.

    Returns
    -------
    int
        How many units were taken out.
    """
    dropped = 0
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as kept:
        block: list[tuple[bytes, Record]] = []
        for line, record in whole_lines(path):
            block.append((line, record))
            if not isinstance(record, InputRecord | StudyRecord):
                continue
            if error_of(record for _, record in block) is None:
                kept.writelines(line for line, _ in block)
            else:
                dropped += 1
            block = []
        kept.flush()
        os.fsync(kept.fileno())
    part.replace(path)
    return dropped
