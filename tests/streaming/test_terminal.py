"""On a terminal output is drawn and coloured, and long work shows a bar; in a pipe everything is plain."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import write_deltalake

from streaming.record.rows import versions_to_arrow
from tests.streaming.driving import Driver

COMMAND = Path(sys.executable).parent / "replica-planner"
ESCAPE = "\x1b["
BARS = set("━╺╸")


@pytest.fixture
def folder(tmp_path: Path, six: Driver) -> Path:
    """The plans of a small cluster."""
    for number, version in enumerate(six.journal):
        rows = versions_to_arrow([version], "app", number)
        write_deltalake(tmp_path / ".data/tables/plans", rows, mode="append")
    return tmp_path


def on_terminal(folder: Path, *arguments: str, piped: bool = False) -> tuple[str, str]:
    """What the terminal shows, and what standard output brings where it is no terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    output = folder / "output"
    with output.open("wb") as file:
        out = file if piped else theirs
        command = [COMMAND, *arguments]
        process = subprocess.Popen(command, cwd=folder, env=environment, stdin=theirs, stdout=out, stderr=theirs)
    os.close(theirs)
    shown = bytearray()
    while part := read(ours):
        shown += part
    process.wait()
    os.close(ours)
    return shown.decode(), output.read_text()


def read(terminal: int) -> bytes:
    """What comes next; nothing where the other end is closed."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def test_a_table_is_drawn_on_a_terminal_and_separated_by_tabs_in_a_pipe(folder: Path) -> None:
    shown, _ = on_terminal(folder, "plans")
    assert "─" in shown
    assert "\t" not in shown
    nothing, piped = on_terminal(folder, "plans", piped=True)
    assert nothing == ""
    assert piped.splitlines()[0].split("\t")[:3] == ["version", "kind", "cause"]
    assert ESCAPE not in piped


def test_long_work_shows_a_bar_on_the_terminal_and_nothing_of_it_in_the_pipe(folder: Path) -> None:
    shown, piped = on_terminal(folder, "report", "c", "--out", "-", piped=True)
    assert "drawing" in shown
    assert BARS & set(shown)
    assert piped.lstrip().startswith("<!doctype html>")
    assert ESCAPE not in piped
