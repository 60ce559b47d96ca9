"""The job reads its events from a topic of a real cluster: in order, once, and past the death of a broker."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from pyspark.sql import SparkSession

from examples.local_kafka import LocalKafka
from streaming.config import parse_config
from streaming.job.query import run_job
from streaming.kafka.delivery import deliver
from streaming.planning.batch import BatchResult
from tests.events_for import EventsFor
from tests.job_folder import JobFolder
from tests.live_kafka.cluster import wait_until
from tests.live_kafka.watched import create

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

TOPIC = "events"
SECONDS_NOT_A_MINUTE = 30.0
"""With Spark's own timeouts the source stands still for 61 seconds; with ours for about six, more on a busy machine."""

east, west = EventsFor("east"), EventsFor("west")


class KafkaJob(JobFolder):
    """A job that reads the topic, with tables in a folder."""

    def __init__(self, folder: Path, servers: str) -> None:
        super().__init__(folder)
        self.servers = servers
        self.config = parse_config(
            f"""
            source = {{type = "kafka", bootstrap_servers = "{servers}", topic = "{TOPIC}"}}
            tables = {{root = "{self.tables}"}}
            job = {{checkpoint = "{self.checkpoint}", interval = "200ms", projection_interval = "1ms"}}
            """,
            "kafka.toml",
        )

    def deliver(self, *lines: bytes) -> None:
        deliver(self.config.source, b"".join(line + b"\n" for line in lines))


@pytest.fixture
def job(kafka: LocalKafka, admin: KafkaAdminClient, tmp_path: Path) -> KafkaJob:
    create(admin, TOPIC, [1, 2, 3], [4, 5, 3], [2, 3, 4])
    return KafkaJob(tmp_path / "job", kafka.bootstrap_servers())


def test_clusters_keep_their_order_and_a_restart_goes_on_where_the_job_was(job: KafkaJob, spark: SparkSession) -> None:
    for cluster in (east, west):
        job.deliver(*cluster.racks({"a": [1], "b": [2], "c": [3]}))
    job.deliver(east.created("t", 1, 2, minute=1), west.created("t", 2, 3, minute=1))
    for total in range(3, 7):
        job.deliver(east.grown("t", total, minute=total), west.grown("t", total, minute=total), b"broken %d" % total)
    job.run(spark)
    for total in range(7, 10):
        job.deliver(east.grown("t", total, minute=total), west.grown("t", total, minute=total))
    with KafkaProducer(bootstrap_servers=job.servers) as producer:
        producer.send(TOPIC, value=None, key=b"east")
    job.run(spark)

    outcomes = Counter(outcome for _, _, outcome in job.received())
    assert outcomes == {"applied": 2 * (3 + 1 + 4 + 3), "malformed": 5}
    assert sorted(row["payload"] for row in job.rows("quarantine")) == ["", *(f"broken {n}" for n in range(3, 7))]
    for name in ("east", "west"):
        # Grown out of order, a topic would have been asked to shrink.
        assert [f"t-{p}" for p in range(9)] == list(job.layout(name))


def test_a_dead_broker_costs_seconds(kafka: LocalKafka, job: KafkaJob, spark: SparkSession) -> None:
    """It led the partition with the cluster's events."""
    planned: list[str] = []
    stop = threading.Event()

    def observe(result: BatchResult) -> None:
        planned.extend(version.cause for version in result.versions)

    job.deliver(*east.racks({"a": [1], "b": [2], "c": [3]}))
    running = threading.Thread(
        target=run_job, args=(job.config,), kwargs={"spark": spark, "observer": observe, "stop": stop}
    )
    running.start()
    try:
        wait_until(lambda: planned, "the brokers have joined", patience=60)
        for minute, broker in enumerate((1, 2), start=1):
            kafka.kill_broker(broker)
            began = time.monotonic()
            job.deliver(east.created(f"t{broker}", 2, 3, minute=minute))
            wait_until(lambda b=broker: any(f"topic t{b} created" in cause for cause in planned), "it is planned", 90)
            assert time.monotonic() - began < SECONDS_NOT_A_MINUTE
            kafka.start_broker(broker)
        assert running.is_alive()
    finally:
        stop.set()
        running.join(60)
    assert set(job.outcomes().values()) == {"applied"}
