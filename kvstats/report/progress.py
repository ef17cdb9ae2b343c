"""How far a long command is, on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(file: IO[str]) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar with what is being done, and take it away at the end.

    Parameters
    ----------
    file : text file
        Where to, such as `sys.stderr`. Where it is no terminal nothing is written.

    Yields
    ------
    callable
        To be called with what is done now, how many steps of this kind are done, and how many there are.
    """
    if not file.isatty():
        yield lambda text, done, total: None
        return
    columns = (
        SpinnerColumn(),
        TextColumn(
            "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")
        ),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    console = Console(file=file, highlight=False, markup=False, emoji=False)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda text, done, total: bar.update(task, description=text, completed=done, total=total)
