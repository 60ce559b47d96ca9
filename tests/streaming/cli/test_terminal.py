"""On a terminal output is drawn and coloured, and long work shows a bar; in a pipe everything is plain."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from deltalake import write_deltalake

from streaming.cli.screens.drawing import drawn
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


def on_terminal(
    folder: Path, *arguments: str, piped: bool = False, columns: int = 100, more: Mapping[str, str] = {}
) -> tuple[str, str]:
    """What the terminal shows, and what standard output brings where it is no terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), **more}
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


CAUSE = "version 6 approved by event demo-19: rebalance requested by event demo-18"
PLANS = (
    ["version", "kind", "cause", "moves", "bound", "replicas", "leaders", "approval"],
    [
        ["1", "membership", "9 events: broker 1 joined, broker 2 joined", "0", "0", "0..0", "0..0", "-"],
        ["7", "rebalance", CAUSE, "29", "29", "0..35 → 25..28", "0..13 → 11..12", "approved"],
    ],
)


def test_words_go_under_their_row_where_the_terminal_is_narrow() -> None:
    assert (
        drawn(*PLANS, 80).plain
        == """\
 version  kind        moves  bound  replicas        leaders         approval
          cause
 ───────────────────────────────────────────────────────────────────────────
       1  membership      0      0  0..0            0..0            -
          9 events: broker 1 joined, broker 2 joined
       7  rebalance      29     29  0..35 → 25..28  0..13 → 11..12  approved
          version 6 approved by event demo-19: rebalance requested by event
          demo-18"""
    )


def test_words_are_folded_where_there_is_room_for_them() -> None:
    assert (
        drawn(*PLANS, 121).plain
        == """\
 version  kind        cause                                       moves  bound  replicas        leaders         approval
 ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
       1  membership  9 events: broker 1 joined, broker 2 joined      0      0  0..0            0..0            -
       7  rebalance   version 6 approved by event demo-19:           29     29  0..35 → 25..28  0..13 → 11..12  approved
                      rebalance requested by event demo-18"""
    )


def test_names_of_columns_give_way_before_anything_else_does() -> None:
    header, row = ["broker", "state", "planned_replicas", "planned_leaders"], ["1", "alive", "25", "12"]
    assert drawn(header, [row], 60).plain.splitlines()[0] == " broker  state  planned replicas  planned leaders"
    assert (
        drawn(header, [row], 40).plain
        == """\
 broker  state   planned  planned
                replicas  leaders
 ────────────────────────────────
      1  alive        25       12"""
    )


@pytest.mark.parametrize("width", [10, 20, 40, 79, 80, 81, 100, 140, 200])
def test_no_word_is_lost_at_any_width(width: int) -> None:
    words = sorted("".join(cell for row in PLANS[1] for cell in row).replace(" ", ""))
    text = drawn(*PLANS, width).plain.split("─\n")[1]
    assert sorted(re.sub(r"\s", "", text)) == words
    if width >= 80:
        assert max(map(len, drawn(*PLANS, width).plain.splitlines())) <= width


@pytest.mark.parametrize("columns", [80, 140])
def test_a_screen_is_never_wider_than_the_terminal(folder: Path, columns: int) -> None:
    for command in (["plans"], ["status"], ["why", "c", "t", "0"]):
        shown, _ = on_terminal(folder, *command, columns=columns)
        plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown).replace("\r", "")
        assert max(map(len, plain.splitlines())) <= columns, plain


def test_no_colour_is_used_where_none_is_wanted(folder: Path) -> None:
    shown, _ = on_terminal(folder, "plans", more={"NO_COLOR": "1"})
    assert not re.search(r"\x1b\[[\d;]*3\dm", shown)


def test_names_that_command_terminals_or_end_lines_do_neither(tmp_path: Path) -> None:
    name = "\x1b[31mred\nline"
    driver = Driver()
    joined = driver.batch(driver.event("broker_joined", cluster=name, broker_id=1))
    other = driver.batch(driver.event("broker_joined", cluster="c", broker_id=1))
    for number, batch in enumerate((joined, other)):
        write_deltalake(
            tmp_path / ".data/tables/plans", versions_to_arrow(batch.versions, "app", number), mode="append"
        )
    for command in (["plans"], ["status", name], ["show", name, "1"], ["show", name, "2"]):
        shown, _ = on_terminal(tmp_path, *command)
        assert "red" in shown
        assert not re.search(r"\x1b\[[\d;]*3\dm", shown)
    _, piped = on_terminal(tmp_path, "plans", piped=True)
    assert [line.split("\t")[0] for line in piped.splitlines()] == ["cluster", r"\x1b[31mred\nline", "c"]
    _, heading = on_terminal(tmp_path, "status", name, piped=True)
    assert heading.splitlines()[0] == r"\x1b[31mred\nline at version 1"
    shown, _ = on_terminal(tmp_path, "show", name, "2")
    assert shown.count("\n") == 1
