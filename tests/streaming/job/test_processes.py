"""The command as a process: asked to stop, it ends the batch in hand, and the next start goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.events_for import EventsFor
from tests.job_folder import JobFolder
from tests.streaming.folding import assert_projected

pytestmark = pytest.mark.spark

COMMAND = Path(sys.executable).parent / "replica-planner"
PATIENCE = 120.0
TOPICS = 12
east = EventsFor("east")

Start = Callable[[JobFolder, Path], "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts the job; one that a failed test leaves behind is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def run(job: JobFolder, screen: Path) -> subprocess.Popen[bytes]:
        with screen.open("wb") as out:
            command = [COMMAND, "run", "--conf", job.conf]
            started.append(subprocess.Popen(command, cwd=screen.parent, stdout=out, stderr=subprocess.STDOUT))
        return started[-1]

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


def wait_for(text: str, screen: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE
    while text not in screen.read_text():
        assert process.poll() is None, screen.read_text()
        assert time.monotonic() < until, screen.read_text()
        time.sleep(0.02)


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_the_job_ends_its_batch_and_the_next_start_goes_on(
    spark: SparkSession, tmp_path: Path, start: Start, asked: signal.Signals
) -> None:
    job = JobFolder(tmp_path / "job", source="max_files_per_trigger = 1")
    job.send(*east.racks({"a": [1], "b": [2]}))
    for n in range(TOPICS):
        job.send(east.created(f"t{n}", 2, 2, minute=n), f"broken {n}".encode())
    screen = tmp_path / "screen"
    process = start(job, screen)
    wait_for("east v2 ", screen, process)

    process.send_signal(asked)

    assert process.wait(PATIENCE) == 0
    said = screen.read_text()
    assert said.splitlines()[-1] == "stopped"
    assert "stopping; the batch in hand ends first" in said
    assert [word for word in ("StackOverflow", "Traceback", "ERROR", "Exception") if word in said] == []
    versions = len(job.history.versions("east"))
    assert 2 <= versions < TOPICS
    assert f"east v{versions} " in said
    broken = [row["payload"] for row in job.rows("quarantine")]
    assert sorted(broken) == sorted(f"broken {n}" for n in range(versions - 1))
    assert_projected(spark, job)

    job.run(spark)
    assert [v.plan_version for v in job.history.versions("east")] == list(range(1, TOPICS + 2))
    assert sorted(row["payload"] for row in job.rows("quarantine")) == sorted(f"broken {n}" for n in range(TOPICS))
    assert len(job.received()) == 2 + 2 * TOPICS
    assert_projected(spark, job)


def test_while_no_event_arrives_the_running_job_lets_deadlines_pass(tmp_path: Path, start: Start) -> None:
    job = JobFolder(tmp_path / "job", policy='grace = "1s"')
    job.send(*east.racks({"a": [1, 4], "b": [2]}), east.manual("orders", {0: [1, 2]}, minute=1))
    job.send(east.left(1, "failed", minute=2))
    screen = tmp_path / "screen"
    process = start(job, screen)
    wait_for("grace of broker 1 over at 2026-03-01T10:02:01Z", screen, process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0
    assert job.plan("east", 4) == ["orders-0 [1, 2] → [2, 4] lost"]


def test_a_lost_jvm_ends_the_job_in_one_sentence(tmp_path: Path, start: Start) -> None:
    job = JobFolder(tmp_path / "job")
    job.send(*east.racks({"a": [1], "b": [2]}))
    screen = tmp_path / "screen"
    process = start(job, screen)
    wait_for("east v1 ", screen, process)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    (jvm,) = (int(child) for child in children if Path(f"/proc/{child}/comm").read_text() == "java\n")
    os.kill(jvm, signal.SIGKILL)
    assert process.wait(PATIENCE) == 2
    said = screen.read_text()
    (ended,) = (line for line in said.splitlines() if line.startswith("replica-planner: "))
    assert ended.startswith("replica-planner: the JVM in which Spark runs is gone: ")
    assert [word for word in ("Traceback", "ERROR", "py4j.") if word in said] == [], said
