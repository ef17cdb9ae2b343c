"""What a long command is doing, on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from rich.console import Console
from rich.text import Text

__all__ = ["progress_line"]


@contextmanager
def progress_line(file: IO[str]) -> Iterator[Callable[[str], None]]:
    """Show one line that says what is being done, and take it away at the end.

    Parameters
    ----------
    file : text file
        Where to, such as `sys.stderr`. Where it is no terminal nothing is written.

    Yields
    ------
    callable
        To be called with what is done now.
    """
    if not file.isatty():
        yield lambda text: None
        return
    with Console(file=file, highlight=False, markup=False, emoji=False).status(Text("")) as status:
        yield lambda text: status.update(Text(text))
