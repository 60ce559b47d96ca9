"""A plan by load that drains a broker whose replicas are to go into certain log directories."""

from __future__ import annotations

from pathlib import Path

from examples.local_kafka import LocalKafka
from streaming.record.version import PlanVersion
from tests.live_kafka.planned import Planned, fill

BY_LOAD = """
[policy.loads]
plan = true
every = "1s"
disk_fill = 1
"""

Directories = dict[int, list[dict[str, object]]]
"""What is observed of the log directories of each broker."""


def second_ones(kafka: LocalKafka) -> Directories:
    """The first directory of each broker is full, the second one is not."""
    full, roomy = {"limit": 10_000_000, "used": 9_900_000}, {"limit": 90_000_000, "used": 0}
    paths = {broker: node.log_dirs for broker, node in kafka.brokers.items()}
    return {b: [{"path": str(first)} | full, {"path": str(second)} | roomy] for b, (first, second) in paths.items()}


def drained_by_load(planned: Planned, directories: Directories) -> PlanVersion:
    """Six partitions of 1 MB on broker 5 and another one; the plan that drains broker 5."""
    planned.plan("topic_created", topic="t", replica_assignment={p: [5, 1 + p % 3] for p in range(6)})
    assert planned.apply().exit_code == 0
    fill(planned.servers, "t", 6, megabytes=1)
    loads = [{"topic": "t", "partition": p, "size": 1_000_000, "bytes_in": 1} for p in range(6)]
    limits = [{"broker_id": broker, "log_dirs": dirs} for broker, dirs in directories.items()]
    planned.plan("load_observed", partitions=loads, brokers=limits)
    return planned.plan("broker_left", broker_id=5, reason="decommissioned")


def incoming(version: PlanVersion) -> dict[str, int]:
    """The broker that gets a new replica of each partition."""
    rows = [
        (f"{block.topic}-{p}", set(after) - set(before))
        for block in version.moves
        for p, before, after, _ in block.rows()
    ]
    return {place: broker for place, (broker,) in rows}


def elsewhere(kafka: LocalKafka, version: PlanVersion) -> list[Path]:
    """Where new replicas should be, and are not: in the second directories."""
    wanted = [kafka.brokers[broker].log_dirs[1] / place for place, broker in incoming(version).items()]
    assert wanted
    return [path for path in wanted if not path.is_dir()]
