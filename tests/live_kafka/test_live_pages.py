"""The commands of the pages about real clusters, as they stand there, on a real cluster."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from examples.local_kafka import LocalKafka
from tests.docs.console import Step, steps
from tests.live_kafka.cluster import wait_until
from tests.live_kafka.planned import Planned, layout, planned_layout, settles
from tests.live_kafka.watched import create

pytestmark = pytest.mark.kafka

DOCS = Path(__file__).parents[2] / "docs"
THERE = "localhost:9092"
"""The address that the pages give."""


def commands(page: str, servers: str, version: int = 4) -> list[list[str]]:
    """The commands of a page, with the address of the cluster that is here and a version that is in its journal."""
    found = [shlex.split(step.command) for step in steps((DOCS / page).read_text()) if isinstance(step, Step)]
    words = {
        THERE: servers,
        "4": str(version),
        ".venv/bin/replica-planner": str(Path(sys.executable).parent / "replica-planner"),
    }
    return [[words.get(word, word) for word in command] for command in found]


def start(command: list[str], planned: Planned) -> subprocess.Popen[str]:
    environment = os.environ | {"REPLICA_PLANNER_CONF": str(planned.conf)}
    return subprocess.Popen(
        command, cwd=planned.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def done(command: list[str], planned: Planned) -> str:
    """What a command prints that ends by itself, and well."""
    process = start(command, planned)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0, printed
    return printed


def test_the_page_about_watching(kafka: LocalKafka, admin: KafkaAdminClient, tmp_path: Path) -> None:
    create(admin, "t", [1, 2])
    planned = Planned(tmp_path, kafka.bootstrap_servers())
    until_interrupted, once = commands("collect.md", planned.servers)
    process = start(until_interrupted, planned)
    try:
        wait_until(planned.reports, "the first look is told")
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0, printed
    told = len(planned.reports())
    done(once, planned)
    assert len(planned.reports()) == told, "the second one goes on where the first one was"


def test_the_page_about_carrying_out(kafka: LocalKafka, admin: KafkaAdminClient, tmp_path: Path) -> None:
    planned = Planned(tmp_path, kafka.bootstrap_servers())
    first = planned.plan("topic_created", topic="t", partitions=2, replication_factor=2)
    dry_run, everything, _ = commands("apply.md", planned.servers)
    assert "t" in done(dry_run, planned)
    assert layout(admin) == {}
    done(everything, planned)
    settles(admin, planned_layout(first))

    second = planned.plan("replication_factor_changed", topic="t", replication_factor=3)
    *_, throttled = commands("apply.md", planned.servers, second.plan_version)
    done(throttled, planned)
    settles(admin, planned_layout(first) | planned_layout(second))
