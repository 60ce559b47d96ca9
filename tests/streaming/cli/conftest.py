"""Commands as a test runs them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from streaming.cli import cli

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REPLICA_PLANNER_CONF", raising=False)
    return lambda *args, **kwargs: CliRunner().invoke(cli, [str(arg) for arg in args], **kwargs)
