"""A small cluster that many tests begin with, and commands as a test runs them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from streaming.cli import cli
from tests.streaming.driving import RACKS, Driver


@pytest.fixture
def six() -> Driver:
    """Six brokers in three racks, with one topic of six partitions on all of them."""
    driver = Driver()
    driver.racks(RACKS)
    driver.batch(driver.event("topic_created", topic="t", partitions=6, replication_factor=3))
    return driver


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs a command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REPLICA_PLANNER_CONF", raising=False)
    return lambda *args, **more: CliRunner().invoke(cli, [str(arg) for arg in args], catch_exceptions=False, **more)
