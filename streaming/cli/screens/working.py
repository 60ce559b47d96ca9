"""Long work without a screen of its own: on a terminal a bar says that it goes on, and for how long already."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def working(text: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Show a bar on standard error while this lasts; nothing where that is no terminal.

    Args:
        text: what is going on.
        total: how many steps there are; where it is not known the bar only moves.

    Yields:
        A function to call after each step.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    # What is printed meanwhile goes above the bar, if it goes to a terminal; into a pipe it goes as it is.
    above = sys.stdout.isatty()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=above) as progress:
        task = progress.add_task(text, total=total)
        yield lambda: progress.advance(task)
