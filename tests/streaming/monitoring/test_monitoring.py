"""What a running job tells of itself: heartbeat, metrics, log; and what a probe makes of it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

from streaming.cli import cli
from streaming.errors import JobError
from streaming.monitoring.exporter import Exporter
from streaming.monitoring.heartbeat import Heartbeat
from streaming.monitoring.judging import judge
from streaming.monitoring.progress import progress_of
from streaming.monitoring.stops import stopped_clusters
from tests.events_for import EventsFor
from tests.job_folder import JobFolder

COMMAND = Path(sys.executable).parent / "replica-planner"
PATIENCE = 120.0
east = EventsFor("east")

T = datetime(2026, 3, 1, 12, tzinfo=UTC)
BEAT = Heartbeat(7, "node", T, T + timedelta(seconds=50), batch_id=3)
ENDED = Heartbeat(7, "node", T, T, batch_id=3, ended_at=T)
FAILED = Heartbeat(7, "node", T, T, ended_at=T, failure="No space left")
LONG = Heartbeat(7, "node", T, T + timedelta(seconds=2), batch_id=3, in_hand=4, in_hand_since=T + timedelta(seconds=5))
NOW = T + timedelta(seconds=60)
USUAL: dict[str, object] = {
    "patience": timedelta(seconds=55),
    "longest_batch": timedelta(minutes=30),
    "ends_by_itself": False,
    "locks": True,
}


@pytest.mark.parametrize(
    ("beat", "writer", "given", "alive", "state"),
    [
        (BEAT, "process 7", {}, True, "process 7 on node runs: batch 3, 10 s ago"),
        (Heartbeat(7, "node", T, T), "process 7", {}, True, "process 7 on node starts, for 60 s now"),
        (
            Heartbeat(7, "node", T, T),
            "process 7",
            {"longest_batch": timedelta(seconds=30)},
            False,
            "process 7 on node starts, for 60 s now, and has made no progress for 60 s; look at its log, then start it "
            "again",
        ),
        (LONG, "process 7", {}, True, "process 7 on node works on batch 4, for 55 s now"),
        (
            LONG,
            "process 7",
            {"longest_batch": timedelta(seconds=30)},
            False,
            "process 7 on node works on batch 4, for 55 s now, and has made no progress for 58 s; look at its log, "
            "then start it again",
        ),
        (
            LONG,
            None,
            {},
            False,
            "process 7 on node is gone, and ended without a word after 2026-03-01T12:00:02Z; start it again",
        ),
        (None, None, {}, False, "no job has run here yet; start it: replica-planner run"),
        (
            BEAT,
            "process 7",
            {"patience": timedelta(seconds=5)},
            False,
            "process 7 on node has made no progress for 10 s; look at its log, then start it again",
        ),
        (
            BEAT,
            None,
            {},
            False,
            "process 7 on node is gone, and ended without a word after 2026-03-01T12:00:50Z; start it again",
        ),
        (BEAT, None, {"locks": False}, True, "process 7 on node runs: batch 3, 10 s ago"),
        (ENDED, None, {}, False, "the job was stopped at 2026-03-01T12:00:00Z; start it: replica-planner run"),
        (ENDED, None, {"ends_by_itself": True}, True, "the last run ended at 2026-03-01T12:00:00Z"),
        (
            FAILED,
            None,
            {"ends_by_itself": True},
            False,
            "the job failed at 2026-03-01T12:00:00Z: No space left; fix that, then start it again",
        ),
    ],
)
def test_what_a_probe_is_told(
    beat: Heartbeat | None, writer: str | None, given: dict[str, object], alive: bool, state: str
) -> None:
    health = judge(beat, writer, {}, NOW, **(USUAL | given))  # type: ignore[arg-type]
    assert (health.alive, health.state) == (alive, state)


def test_a_cluster_is_stopped_until_it_is_resumed() -> None:
    rows = [
        ("east", 3, "stop", "stopped at e.jsonl:3: ValueError: bad"),
        ("east", 2, "heal", "broker 3 decommissioned"),
        ("west", 5, "resume", "resumed by event r"),
        ("west", 4, "stop", "stopped when time passed: KeyError: 4"),
        ("north", 1, "membership", "broker 1 joined"),
    ]
    columns = dict(
        zip(("cluster_id", "plan_version", "kind", "cause"), map(list, zip(*rows, strict=True)), strict=True)
    )
    stopped = stopped_clusters(pa.table(columns))
    assert stopped == {"east": "stopped at e.jsonl:3: ValueError: bad"}
    health = judge(BEAT, "process 7", stopped, NOW, **USUAL)  # type: ignore[arg-type]
    assert (health.alive, health.well) == (True, False)


def test_lines_that_wait_in_a_topic_are_told_and_ticks_are_no_lines() -> None:
    report = {
        "timestamp": "2026-03-01T12:00:00.000Z",
        "batchId": 4,
        "durationMs": {"triggerExecution": 1500},
        "sources": [
            {"description": "KafkaV2[Subscribe[e]]", "numInputRows": 9, "metrics": {"maxOffsetsBehindLatest": "70"}},
            {"description": "RatePerMicroBatchStream[rowsPerBatch=1]", "numInputRows": 1, "metrics": {}},
        ],
    }
    progress = progress_of(report)
    assert (progress.rows, progress.rows_behind, progress.seconds) == (9, 70, 1.5)
    assert progress.at == T + timedelta(seconds=1.5)


def samples(text: str) -> dict[str, float]:
    """Samples as ``name{label}``, without buckets and creation times."""
    return {
        sample.name + "".join(f"{{{value}}}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_created"))
    }


def scrape(url: str) -> dict[str, float]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return samples(answer.read().decode())


def test_a_port_that_is_taken_is_said_in_one_sentence() -> None:
    first = Exporter().serve("127.0.0.1", 0)
    port = int(first.url.split(":")[2].split("/")[0])
    with pytest.raises(JobError, match=f"cannot be served on 127.0.0.1:{port}: Address already in use; name another"):
        Exporter().serve("127.0.0.1", port)
    first.close()


@pytest.fixture(scope="module")
def played(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> JobFolder:
    """Two runs: a cluster is set up with a broken line, then a broker is drained."""
    job = JobFolder(tmp_path_factory.mktemp("played"))
    job.play(spark, *east.racks({"a": [1], "b": [2], "c": [3]}), east.created("orders", 4, 2, minute=1), b"broken")
    job.play(spark, east.left(1, "decommissioned", minute=2))
    return job


def health(job: JobFolder, *options: str) -> Result:
    return CliRunner().invoke(cli, ["health", "--conf", str(job.conf), *options])


@pytest.mark.spark
def test_each_batch_that_received_something_is_a_row_of_metrics(played: JobFolder) -> None:
    first, second = sorted(played.rows("metrics"), key=lambda row: row["batch_time"])
    assert first["events"] == {
        "applied": 4,
        "no_effect": 0,
        "held": 0,
        "duplicate": 0,
        "stale": 0,
        "rejected": 0,
        "malformed": 1,
    }
    assert (first["plans"], first["moved_replicas"], first["stopped_clusters"]) == (2, 0, [])
    heal = played.history.version("east", 3)
    assert (second["plans"], second["moved_replicas"]) == (1, heal.numbers.moved_replicas)
    assert second["moved_replicas"] > 0
    for row in (first, second):
        assert row["seconds"] > 0
        assert row["lag_seconds"] > 0
        assert (row["clusters_in_memory"], row["write_failures"]) == (1, 0)
        assert row["state_bytes"] > 0


@pytest.mark.spark
def test_after_the_run_a_probe_is_told_that_it_ended(played: JobFolder) -> None:
    answer = health(played)
    assert answer.exit_code == 1
    assert answer.stdout.startswith("the job was stopped at ")


@pytest.mark.spark
def test_a_run_that_fails_leaves_its_reason_for_the_probe(played: JobFolder, spark: SparkSession) -> None:
    broken = JobFolder(played.conf.parent / "broken")
    broken.conf.write_text(broken.conf.read_text().replace('"files"', '"delta"').replace("/events", "/nowhere"))
    with pytest.raises(JobError):
        JobFolder.run(_reloaded(broken), spark)
    answer = health(broken)
    assert answer.exit_code == 1
    assert "schema is not set" in answer.stdout


def _reloaded(job: JobFolder) -> JobFolder:
    from streaming.config import load_config

    job.config = load_config(job.conf)
    return job


Running = tuple[JobFolder, "subprocess.Popen[str]", list[dict[str, object]]]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A job as a process of its own, with everything switched on, and what it has said until it had planned."""
    job = JobFolder(tmp_path_factory.mktemp("running"))
    job.conf.write_text(job.conf.read_text() + '\n[monitoring]\nlog = "json"\nmetrics_port = 0\n')
    job.send(*east.racks({"a": [1], "b": [2]}), b"broken")
    command = [COMMAND, "run", "--conf", job.conf]
    with subprocess.Popen(command, cwd=job.conf.parent, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said: list[dict[str, object]] = []
        for line in process.stderr:
            said.append(json.loads(line))
            if said[-1].get("plan_version"):
                break
        yield job, process, said
        process.send_signal(signal.SIGTERM)
        rest = [json.loads(line) for line in process.stderr]
        assert process.wait(PATIENCE) == 0
        assert rest[-1]["message"] == "stopped"


@pytest.mark.spark
def test_every_line_of_the_log_is_an_object_that_says_what_it_is_about(running: Running) -> None:
    _, _, said = running
    about = [{k: v for k, v in line.items() if k not in ("time", "logger", "message")} for line in said]
    assert {"level": "INFO", "batch_id": 0, "outcome": "malformed", "place": "00.jsonl:3"} in about
    assert about[-1] == {"level": "INFO", "cluster_id": "east", "batch_id": 0, "plan_version": 1, "kind": "membership"}
    assert said[-1]["message"] == "east v1  2 events: broker 1 joined, broker 2 joined"


@pytest.mark.spark
def test_prometheus_finds_what_the_batch_brought(running: Running) -> None:
    _, _, said = running
    url = next(str(line["message"]).split()[-1] for line in said if "metrics on" in str(line["message"]))
    until = time.monotonic() + PATIENCE
    # Spark tells of a trigger when it has ended, the job of a batch before.
    while not (found := scrape(url))["replica_planner_last_progress_timestamp_seconds"] and time.monotonic() < until:
        time.sleep(0.05)
    assert found["replica_planner_events_total{applied}"] == 2
    assert found["replica_planner_events_total{malformed}"] == 1
    assert found["replica_planner_plans_total{membership}"] == 1
    assert found["replica_planner_batch_seconds_count"] == 1
    assert found["replica_planner_input_rows_total"] == 3
    assert found["replica_planner_write_failures"] == 0
    assert 0 <= time.time() - found["replica_planner_last_progress_timestamp_seconds"] < PATIENCE


@pytest.mark.spark
def test_a_probe_finds_the_running_job_well(running: Running) -> None:
    job, process, _ = running
    answer = health(job)
    assert answer.exit_code == 0, answer.stdout
    assert answer.stdout.startswith(f"process {process.pid} on ")
    assert json.loads(health(job, "--json").stdout)["alive"] is True
