"""Where a command that takes its time shows how far it is: a bar on a terminal, lines when piped."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column
from rich.text import Text

from streaming.apply.carry_out import Screen
from streaming.apply.progress import Progress as WaveProgress

_BAR: Final = 12
"""Characters of the bar: the words say more."""

_EVERY: Final = 5.0
"""Seconds between two lines about the same wave, when piped."""


@contextmanager
def progress_screen() -> Iterator[Screen]:
    """A screen on standard output."""
    if not sys.stdout.isatty():
        yield _Lines()
        return
    words = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True))
    with Progress(BarColumn(_BAR), words, console=Console(), transient=True, expand=True) as progress:
        yield _Bar(progress)


class _Lines:
    """Plain lines."""

    def __init__(self) -> None:
        self._wave = 0
        self._last = 0.0

    def say(self, text: str) -> None:
        """A line that stays."""
        click.echo(text)

    def show(self, progress: WaveProgress) -> None:
        """A line for each wave, and then one every few seconds."""
        now = time.monotonic()
        if progress.wave != self._wave or now - self._last >= _EVERY or progress.in_sync == progress.replicas:
            self._wave, self._last = progress.wave, now
            click.echo(f"  {progress.text}")


class _Bar:
    """A bar for the present wave, with lines above it."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._bar = progress.add_task("", total=None, visible=False)

    def say(self, text: str) -> None:
        """A line that stays."""
        self._progress.update(self._bar, visible=False)
        self._progress.console.print(Text(text), soft_wrap=True)

    def show(self, progress: WaveProgress) -> None:
        """The bar, and beside it the same in words."""
        self._progress.update(
            self._bar,
            description=progress.text,
            total=max(progress.replicas, 1),
            completed=progress.in_sync,
            visible=True,
        )
