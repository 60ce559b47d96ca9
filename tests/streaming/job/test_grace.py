"""Deadlines: they pass by the time that events tell, by the clock once the source is quiet, and survive a restart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.job.microbatch import MicroBatches
from tests.events_for import EventsFor
from tests.job_folder import JobFolder
from tests.streaming.folding import assert_projected

pytestmark = pytest.mark.spark

east, west = EventsFor("east"), EventsFor("west")


def setup_of(cluster: EventsFor) -> list[bytes]:
    """Broker 4 is the only one that can take over what broker 1 holds."""
    return [*cluster.racks({"a": [1, 4], "b": [2]}), cluster.manual("orders", {0: [1, 2]}, minute=1)]


HEALED = ["orders-0 [1, 2] → [2, 4] lost"]


@pytest.fixture
def job(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path / "job", source="max_files_per_trigger = 1")


def test_a_grace_that_is_over_when_the_source_is_used_up_is_healed_at_the_end(
    spark: SparkSession, job: JobFolder
) -> None:
    job.play(spark, *setup_of(east), east.left(1, "failed", minute=10))
    assert job.causes("east")[2:] == [
        "v3 membership: broker 1 failed; to be healed at 2026-03-01T10:40:00Z unless it returns",
        "v4 heal: grace of broker 1 over at 2026-03-01T10:40:00Z",
    ]
    assert job.plan("east", 4) == HEALED
    assert_projected(spark, job)
    job.run(spark)
    assert len(job.causes("east")) == 4


def test_a_return_within_the_grace_calls_healing_off_however_late_it_is_read(
    spark: SparkSession, job: JobFolder
) -> None:
    job.send(*setup_of(east), east.left(1, "failed", minute=10))
    job.send(east.joined(1, "a", minute=39))
    job.send(east.created("later", 1, 1, minute=90))
    job.run(spark)
    assert [version.kind for version in job.history.versions("east")] == ["membership", "topics", "membership",
                                                                          "membership", "topics"]  # fmt: skip
    assert job.layout("east")["orders-0"] == [1, 2]


def test_events_of_another_cluster_tell_the_time_too(spark: SparkSession, job: JobFolder) -> None:
    job.send(*setup_of(east), east.left(1, "failed", minute=10))
    job.send(west.joined(1, minute=39))
    job.send(west.joined(2, minute=41))
    job.run(spark)
    batches = {row["plan_version"]: row["batch_id"] for row in job.rows("plans") if row["cluster_id"] == "east"}
    assert job.plan("east", 4) == HEALED
    assert batches == {1: 0, 2: 0, 3: 0, 4: 2}


def test_a_deadline_outlives_the_process_and_passes_once(spark: SparkSession, job: JobFolder) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    today = EventsFor("east", start=now - timedelta(minutes=10))
    job.play(spark, *setup_of(today), today.left(1, "failed", minute=10))
    assert job.brokers("east")[1] == "failed"

    restarted = MicroBatches(job.config)
    restarted.tick(spark, now + timedelta(minutes=29))
    restarted.close()
    assert job.brokers("east")[1] == "failed"

    again = MicroBatches(job.config)
    again.tick(spark, now + timedelta(minutes=30))
    again.tick(spark, now + timedelta(minutes=31))
    again.close()
    assert job.brokers("east") == {1: "dead", 2: "alive", 4: "alive"}
    assert job.plan("east", 4) == HEALED
    assert len(job.causes("east")) == 4
    assert_projected(spark, job)


def test_events_that_claim_to_come_from_the_future_let_no_grace_pass(spark: SparkSession, job: JobFolder) -> None:
    today = datetime.now(UTC) - timedelta(minutes=10)
    there, elsewhere = EventsFor("east", today), EventsFor("west", today)
    job.play(spark, *setup_of(there), there.left(1, "failed", minute=9), there.joined(9, minute=10_000),
             elsewhere.joined(9, minute=10_000))  # fmt: skip
    assert job.brokers("east")[1] == "failed"
    assert job.layout("east")["orders-0"] == [1, 2]
