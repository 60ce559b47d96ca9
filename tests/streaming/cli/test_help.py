"""Help teaches by examples, and shells complete."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from streaming.cli import cli

COMMAND = Path(sys.executable).parent / "replica-planner"
CONTEXT = click.Context(cli, info_name="replica-planner")
NAMES = cli.list_commands(CONTEXT)


def command(name: str) -> click.Command:
    found = cli.get_command(CONTEXT, name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", NAMES)
def test_help_has_examples_with_options_that_there_are(name: str) -> None:
    shown = command(name)
    text = shown.get_help(click.Context(shown, info_name=name, parent=CONTEXT))
    examples = re.findall(rf"^ +replica-planner {name}\b(.*)$", text.partition("Example")[2], re.MULTILINE)
    assert examples
    known = {option for parameter in shown.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for example in examples:
        used = {word.partition("=")[0] for word in shlex.split(example) if word.startswith("--")}
        assert used <= known


def test_the_bare_command_prints_its_help() -> None:
    bare, asked = (CliRunner().invoke(cli, words, prog_name="replica-planner") for words in ([], ["--help"]))
    assert bare.exit_code == 0
    assert bare.stdout == asked.stdout
    assert len(bare.stdout.splitlines()) > len(NAMES)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["replica-planner", "pl"], {"plans", "place"}),
        (["replica-planner", "show", "--fo"], {"--format"}),
        (["replica-planner", "show", "--format", "kafka"], {"kafka-json"}),
    ],
)
def test_bash_completes(words: list[str], offered: set[str]) -> None:
    environment = {
        **os.environ,
        "_REPLICA_PLANNER_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run([COMMAND], env=environment, capture_output=True, text=True, check=True)
    assert {line.partition(",")[2] for line in done.stdout.splitlines()} == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script(shell: str) -> None:
    environment = {**os.environ, "_REPLICA_PLANNER_COMPLETE": f"{shell}_source"}
    done = subprocess.run([COMMAND], env=environment, capture_output=True, text=True, check=False)
    assert "_REPLICA_PLANNER_COMPLETE" in done.stdout
