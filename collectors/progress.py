"""How far a collection is: a bar on a terminal, else a plain line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["Pace", "duration", "shown_progress"]

SECONDS_BETWEEN_LINES = 60.0


def duration(seconds: float) -> str:
    """Write a time in its two largest units.

    Examples
    --------
    >>> duration(7.4), duration(95), duration(3 * 3600 + 125), duration(51 * 3600)
    ('7 s', '1 min 35 s', '3 h 2 min', '2 d 3 h')
    """
    whole = round(seconds)
    for size, unit, small, small_unit in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // small} {small_unit}"
    return f"{whole} s"


class Pace:
    """How fast inputs are finished; those that a log held at the start do not count.

    Parameters
    ----------
    clock : callable
        The time in seconds.

    Examples
    --------
    >>> times = iter([0.0, 0.0, 30.0])
    >>> pace = Pace(lambda: next(times))
    >>> pace.text(10, 20), pace.text(15, 20)
    ('', '10 a minute, 30 s left')
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.began = clock()
        self.held: int | None = None

    def text(self, done: int, total: int) -> str:
        """Return rate and remaining time; empty before the first input is finished."""
        if self.held is None:
            self.held = done
        passed, added = self.clock() - self.began, done - self.held
        if added == 0 or passed <= 0:
            return ""
        rate = added / passed
        shown = f"{rate * 60:.3g} a minute" if rate * 60 >= 1 else f"{rate * 3600:.3g} an hour"
        return f"{shown}, {duration((total - done) / rate)} left"


@contextmanager
def shown_progress(name: str, console: Console) -> Iterator[Callable[[int, int], None]]:
    """Yield what is to be called with the numbers of finished and of all inputs.

    Parameters
    ----------
    name : str
        Stands before the numbers.
    console : rich.console.Console
        Where they are shown. When it is no terminal, a line is written at the start, once a minute, and at
        the end.
    """
    pace = Pace()
    if not console.is_terminal:
        written: list[float] = []

        def write(done: int, total: int) -> None:
            note = pace.text(done, total)
            now = time.monotonic()
            if not written or done == total or now - written[-1] >= SECONDS_BETWEEN_LINES:
                written.append(now)
                line = f"{name}: {done} of {total} inputs"
                console.file.write(f"{line}, {note}\n" if note else f"{line}\n")
                console.file.flush()

        yield write
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("inputs,"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(name, total=None, note="")

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, note=pace.text(done, total))

        yield show
