"""``collect`` on a real cluster: what happens there is told, once, in order, and soon."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition

from examples.local_kafka import LocalKafka
from examples.local_kafka.cluster import SESSION_TIMEOUT
from streaming.collect.collector import Collector, watch
from streaming.config import Kafka
from streaming.errors import InputError
from streaming.kafka.connection import Connection
from tests.live_kafka.cluster import RACKS, wait_until
from tests.live_kafka.planned import layout
from tests.live_kafka.watched import CLUSTER, Watched, as_planned, create
from tests.streaming.driving import Driver, outcomes

pytestmark = pytest.mark.kafka

SOON = 3.0
"""Seconds in which news has to be there, also on a busy machine; on one that is not it takes one."""


@pytest.fixture
def watched(kafka: LocalKafka, tmp_path: Path) -> Iterator[Watched]:
    """It is given one broker's address, and that broker is the one that goes."""
    watched = Watched(tmp_path, f"localhost:{kafka.bootstrap_servers().split(',')[-1].partition(':')[2]}")
    yield watched
    watched.kill()


def test_a_day_in_the_life_of_a_cluster(kafka: LocalKafka, admin: KafkaAdminClient, watched: Watched) -> None:
    """And the planner, told all of it, has the cluster as it is."""
    create(admin, "old", [1, 2], [2, 3])
    watched.start()
    adopted = watched.told("assignment_observed")["partitions"]
    assert [(p["topic"], p["partition"], p["replicas"]) for p in adopted] == [("old", 0, [1, 2]), ("old", 1, [2, 3])]
    joined = [(e["broker_id"], e["rack"]) for e in watched.events() if e["type"] == "broker_joined"]
    assert joined == list(RACKS.items())

    began = time.monotonic()
    create(admin, "t", [1, 2, 3], [4, 5, 3])
    watched.told("topic_created", topic="t", replica_assignment={"0": [1, 2, 3], "1": [4, 5, 3]})
    assert time.monotonic() - began < SOON

    admin.create_partitions({"t": {"count": 3, "assignments": [[5, 3, 1]]}})
    watched.told("partitions_added", topic="t", partitions=3, replica_assignment={"2": [5, 3, 1]})

    admin.delete_topics(["old"])
    wait_until(lambda: "old" not in admin.list_topics(), "the topic is gone")
    create(admin, "old", [4, 5])
    watched.told("topic_deleted", topic="old")
    watched.told("topic_created", topic="old", replica_assignment={"0": [4, 5]})

    skip = len(watched.lines())
    admin.alter_partition_reassignments({TopicPartition("old", 0): [1, 3]})
    moved = watched.told("assignment_observed", skip)["partitions"]
    assert [(p["topic"], p["partition"], p["replicas"]) for p in moved] == [("old", 0, [1, 3])]

    began = time.monotonic()
    kafka.kill_broker(5)
    watched.told("broker_left", broker_id=5, reason="failed")
    assert time.monotonic() - began < SESSION_TIMEOUT + SOON
    skip = len(watched.lines())
    kafka.start_broker(5)
    watched.told("broker_joined", skip, broker_id=5, rack="b")

    kafka.add_broker(6, "c")
    watched.told("broker_joined", broker_id=6, rack="c")
    kafka.unregister(6)
    watched.told("broker_left", broker_id=6, reason="unregistered")

    wait_until(lambda: as_told(watched)[0] == layout(admin), "the planner has what the cluster has")
    assert as_told(watched)[1] <= {"applied", "no_effect"}
    assert watched.stop() == 0
    assert watched.said()[-1] == "stopped"


def as_told(watched: Watched) -> tuple[dict[str, list[int]], set[str]]:
    """The layout that a planner has which was told all of it, and the outcomes of what it was told."""
    driver = Driver()
    result = driver.batch(*watched.lines())
    return as_planned(driver), set(outcomes(result).values())


def test_after_a_restart_it_tells_what_happened_meanwhile(
    kafka: LocalKafka, admin: KafkaAdminClient, watched: Watched
) -> None:
    create(admin, "stays", [1, 2])
    create(admin, "goes", [2, 3])
    watched.start()
    watched.told("assignment_observed")
    assert watched.stop(signal.SIGKILL) == -signal.SIGKILL
    before = watched.lines()
    admin.delete_topics(["goes"])
    create(admin, "comes", [3, 1])
    watched.start()
    watched.told("topic_deleted", len(before), topic="goes")
    # Killed after it had sent lines, and before it had noted that, it has sent the very same ones again.
    news = [json.loads(line) for line in watched.lines() if line not in before]
    assert sorted(event["type"] for event in news) == ["assignment_observed", "topic_created", "topic_deleted"]
    assert as_told(watched)[0] == layout(admin)
    assert watched.stop(signal.SIGINT) == 0

    done = watched.once()
    assert (done.exit_code, done.output) == (0, f"{CLUSTER}: nothing is different\n")


def test_what_was_sent_but_not_noted_is_sent_again_byte_for_byte(
    kafka: LocalKafka, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    """The job takes the second copy for what it is: duplicates."""
    sent: list[bytes] = []

    def broken(lines: bytes) -> None:
        sent.append(lines)
        raise InputError("the disk is full", path="x")

    connection = Connection.to(kafka.bootstrap_servers(), Kafka())
    with Collector(connection, CLUSTER, str(tmp_path), broken) as collector:
        with pytest.raises(InputError, match="the disk is full"):
            collector.poll()
        create(admin, "t", [1, 2])
        with pytest.raises(InputError, match="the disk is full"):
            collector.poll()
    with Collector(connection, CLUSTER, str(tmp_path), sent.append) as collector:
        later = collector.poll()
    assert sent[0] == sent[1] == sent[2]
    assert [event.type for event in later] == ["topic_created", "assignment_observed"]
    driver = Driver()
    driver.batch(*sent[0].splitlines())
    assert set(outcomes(driver.batch(*sent[1].splitlines())).values()) == {"duplicate"}


def test_what_fails_is_said_once_and_tried_until_it_works(kafka: LocalKafka, tmp_path: Path) -> None:
    said: list[str] = []
    attempts: list[bytes] = []
    stop = threading.Event()

    def broken_at_first(lines: bytes) -> None:
        attempts.append(lines)
        if len(attempts) < 4:
            raise InputError("the disk is full", path="x")
        stop.set()

    with Collector(Connection.to(kafka.bootstrap_servers(), Kafka()), CLUSTER, str(tmp_path), broken_at_first) as it:
        watch(it, 0.05, stop, lambda _: None, said.append)
    assert said == ["the disk is full; trying again", "all is well again"]
    assert len(set(attempts)) == 1


def test_what_was_planned_and_carried_out_is_no_drift(
    kafka: LocalKafka, admin: KafkaAdminClient, watched: Watched
) -> None:
    """Created, grown and moved as planned, nothing drifts; what somebody else moves does."""
    driver = Driver('[policy]\non_drift = "report"')
    watched.once()
    driver.batch(*watched.lines())

    def planned(*lines: bytes) -> list[list[int]]:
        driver.batch(*lines)
        return driver.layout(CLUSTER)["t"]

    def collected() -> list[str]:
        skip = len(watched.lines())
        watched.once()
        result = driver.batch(*watched.lines()[skip:])
        assert set(outcomes(result).values()) <= {"applied", "no_effect"}
        return [version.kind for version in result.versions]

    created = planned(driver.event("topic_created", cluster=CLUSTER, topic="t", partitions=3, replication_factor=2))
    create(admin, "t", *created)
    assert collected() == ["observation"]  # the leaders and the ISR: nobody knew them before

    grown = planned(driver.event("partitions_added", cluster=CLUSTER, topic="t", partitions=4))
    admin.create_partitions({"t": {"count": 4, "assignments": grown[3:]}})
    assert collected() == ["observation"]

    moved = planned(driver.event("replication_factor_changed", cluster=CLUSTER, topic="t", replication_factor=3))
    admin.alter_partition_reassignments({TopicPartition("t", p): row for p, row in enumerate(moved)})
    assert set(collected()) <= {"observation"}
    wait_until(lambda: not admin.list_partition_reassignments(), "the moves are done")
    assert set(collected()) <= {"observation"}
    assert as_planned(driver) == layout(admin)

    admin.alter_partition_reassignments({TopicPartition("t", 0): [b for b in RACKS if b not in moved[0]]})
    assert "drift" in collected()


def test_two_collectors_and_two_clusters_are_kept_apart(kafka: LocalKafka, watched: Watched) -> None:
    watched.start()
    second = watched.once()
    assert second.exit_code == 2
    assert "another collector watches this cluster (process" in second.output
    assert watched.stop() == 0

    known = admin_id(watched)
    watched.memory.write_text(watched.memory.read_text().replace(known, "another"))
    refused = watched.once()
    assert refused.exit_code == 2
    assert f"is cluster {known}, and east was cluster another so far: give another --cluster" in refused.output


def admin_id(watched: Watched) -> str:
    with Connection.to(watched.servers, Kafka()).admin() as admin:
        return str(admin.describe_cluster()["cluster_id"])
