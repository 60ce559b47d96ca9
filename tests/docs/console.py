"""Runs what the documentation shows: ``console`` blocks of a page, in order, in a folder of their own.

A page that says ``<!-- begins with: PAGE -->`` goes on where that page ends. A fenced block with ``title="NAME"`` is a
file that the page shows; it is written before the commands that follow it. In what a command prints, ``...`` stands
for any text. In a block ``console run`` the output is not shown: its commands must do, no more.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from click.testing import CliRunner

from streaming.cli import cli

COMMAND: Final = "replica-planner"
FOLLOWED: Final = ("submit", "approve", "reject", "rollback", "resume")
"""Commands that hand something to the job: where a page has one running, it takes that up."""

_FENCE: Final = re.compile(r"^( *)```(\w+)([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_TITLE: Final = re.compile(r'title="([^"]+)"')
_BEGINS: Final = re.compile(r"<!-- begins with: (\S+) -->")
_SHELL: Final = set("|>&;$*")


@dataclass(frozen=True, slots=True)
class Step:
    """A command, what the page says it prints, and where in the page that stands; ``None`` where it does not say."""

    command: str
    expected: str | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class File:
    """A file that the page shows."""

    name: str
    content: str


def steps(page: str) -> Iterator[Step | File]:
    """The commands and files of a page, in order."""
    for fence in _FENCE.finditer(page):
        language, attributes = fence[2], fence[3]
        if language == "console":
            shown = attributes.strip() != "run"
            yield from (step if shown else replace(step, expected=None) for step in _commands(fence[4], fence.start(4)))
        elif title := _TITLE.search(attributes):
            yield File(title[1], fence[4])


def _commands(block: str, offset: int) -> Iterator[Step]:
    starts = [match.start() for match in re.finditer(r"^ *\$ ", block, re.MULTILINE)]
    for start, end in zip(starts, [*starts[1:], len(block)], strict=True):
        line, _, output = block[start:end].partition("\n")
        command = line.strip().removeprefix("$ ").partition("  #")[0].strip()
        yield Step(command, output, offset + start + len(line) + 1, offset + end)


def beginning(page: str) -> str | None:
    """The page whose commands come before those of this one."""
    named = _BEGINS.search(page)
    return named[1] if named else None


def matches(expected: str, actual: str) -> bool:
    """Whether this is what the page says, ``...`` standing for any text; spaces at the end of a line do not count."""
    return (
        re.fullmatch(".*?".join(map(re.escape, _plain(expected).split("..."))), _plain(actual), re.DOTALL) is not None
    )


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


class Terminal:
    """A person at the folder of a page. ``job`` runs the job until its source is used up."""

    def __init__(self, folder: Path, job: Callable[[], None]) -> None:
        self.folder = folder
        self._job = job
        self._running = False

    def run(self, command: str) -> str:
        """What a command prints, on both channels; the exit code is said where it is not 0."""
        words = shlex.split(command)
        words[0] = words[0].removeprefix(".venv/bin/")
        if words[0] == "cd":
            return ""
        if words[:2] == [COMMAND, "run"] and "--once" not in words:
            self._running = True
            self._job()
            return ""
        if words[0] == COMMAND and not _SHELL & set(command):
            result = CliRunner().invoke(cli, words[1:], prog_name=COMMAND)
            printed, code = result.output, result.exit_code
        else:
            text = command.replace(".venv/bin/", "")
            path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
            done = subprocess.run(
                ["sh", "-c", text],
                cwd=self.folder,
                env={**os.environ, "PATH": path, "PYTHONPATH": str(Path(__file__).parents[2])},
                capture_output=True,
                text=True,
                check=False,
            )
            printed, code = done.stdout + done.stderr, done.returncode
        if self._running and words[:1] == [COMMAND] and words[1] in FOLLOWED:
            self._job()
        return printed + (f"(exit code {code})\n" if code else "")


def play(page: str, terminal: Terminal, left_out: Callable[[str], bool]) -> tuple[list[str], str]:
    """Run the page: what is different from what it says, and the page with what was really printed."""
    differences, shift = [], 0
    for step in list(steps(page)):
        if isinstance(step, File):
            (terminal.folder / step.name).write_text(step.content)
            continue
        if left_out(step.command):
            continue
        printed = terminal.run(step.command)
        if step.expected is None:
            if "(exit code" in printed:
                differences.append(f"$ {step.command}\n{printed}")
        elif not matches(step.expected, printed):
            differences.append(f"$ {step.command}\n{printed}--- but the page says\n{step.expected}")
            page = page[: step.start + shift] + printed + page[step.end + shift :]
            shift += len(printed) - (step.end - step.start)
    return differences, page
