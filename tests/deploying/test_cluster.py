"""The job on a standalone cluster of two workers, started by ``spark-submit``, with the wheel as a py-file."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from streaming.spark.jar_manifest import listed_jars
from streaming.spark.jars import kept_jars
from streaming.spark.session import LOCAL_JAVA_OPTIONS
from tests.events_for import EventsFor
from tests.job_folder import JobFolder

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
SPARK = Path(pyspark.__file__).parent
PATIENCE = 180.0
CLUSTERS = ("east", "west", "north", "south")


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_DAEMON_JAVA_OPTS": LOCAL_JAVA_OPTIONS,  # five JVMs that live for a minute
    }


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The URL of a master that two workers have registered with."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    commands = [["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    commands += [["worker.Worker", "--cores", "1", "--memory", "1g", "--webui-port", "0", url]] * 2
    log = tmp_path / "cluster.log"
    started = []
    with log.open("wb") as out:
        for name, *arguments in commands:
            command = [SPARK / "bin/spark-class", f"{deploy}.{name}", *arguments]
            started.append(subprocess.Popen(command, env=environment(tmp_path), stdout=out, stderr=out))
        until = time.monotonic() + PATIENCE
        while log.read_text().count("Successfully registered with master") < 2:
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        yield url
        for process in started:
            process.terminate()
            process.wait()


def wheel_as_zip(folder: Path) -> Path:
    """Spark puts a file of this name on the executors' path; one that is named ``.whl`` it does not."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return Path(shutil.copy(wheel, folder / "replica_planner.zip"))


def tasks_in_arrow(log: Path) -> list[str]:
    """The executors that ran tasks of stages which map Arrow batches, from Spark's event log."""
    events: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
    stages = {
        event["Stage Info"]["Stage ID"]
        for event in events
        if event["Event"] == "SparkListenerStageSubmitted" and "MapInArrow" in json.dumps(event["Stage Info"])
    }
    ended = [event for event in events if event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in stages]
    return [event["Task Info"]["Executor ID"] for event in ended]


def test_clusters_are_planned_on_the_executors_of_a_cluster(master: str, tmp_path: Path) -> None:
    job = JobFolder(tmp_path / "job")
    job.conf.write_text(job.conf.read_text().replace("[job]", "[job]\nexecutors_from = 1"))
    for event in ("join", "topic", "leave"):
        lines = []
        for name in CLUSTERS:
            of = EventsFor(name)
            made = {
                "join": of.racks({"a": [1], "b": [2], "c": [3]}),
                "topic": [of.created("orders", 6, 2, minute=1)],
                "leave": [of.left(1, "decommissioned", minute=2)],
            }
            lines += made[event]
        job.send(*lines)
    (tmp_path / "events").mkdir()
    jars = kept_jars(listed_jars(("delta",)))
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.ui.enabled": "false",
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": LOCAL_JAVA_OPTIONS,
        "spark.executor.extraJavaOptions": LOCAL_JAVA_OPTIONS,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (tmp_path / "events").as_uri(),
    }
    job.conf.write_text(job.conf.read_text().replace("[source]", "[source]\nmax_files_per_trigger = 1"))
    submit = [SPARK / "bin/spark-submit", "--master", master, "--py-files", wheel_as_zip(tmp_path)]
    submit += ["--jars", ",".join(map(str, jars)), *(x for s in settings.items() for x in ("--conf", "=".join(s)))]
    command = [*submit, ROOT / "tools/submitted.py", "run", "--once", "--conf", job.conf]
    done = subprocess.run(command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    for name in CLUSTERS:
        assert [v.kind for v in job.history.versions(name)] == ["membership", "topics", "heal"]
    (log,) = (tmp_path / "events").iterdir()
    assert set(tasks_in_arrow(log)) <= {"0", "1"}
    assert tasks_in_arrow(log) != []
