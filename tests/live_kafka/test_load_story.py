"""By load, on a real cluster: what was produced is observed, planned, applied, and then where the plan said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from pyspark.sql import SparkSession

from examples.local_kafka import LocalKafka
from streaming.history.tables import History
from streaming.record.version import PlanVersion
from tests.live_kafka.cluster import RACKS, wait_until
from tests.live_kafka.loop import PATIENCE, Loop
from tests.live_kafka.planned import fill, in_order, layout, planned_layout, settles, throttles
from tests.live_kafka.traffic import AT_LEAST, Traffic
from tests.live_kafka.watched import CLUSTER, create

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

NEAR = 0.05
"""How far disks may end from what was predicted, as a fraction."""

COLLECT = 'loads = "2s"\n'
BY_LOAD = """
[policy.loads]
plan = true
every = "1s"
weight = 1
disk_fill = 1
"""
BIG, MEDIUM = 12, 2
"""Megabytes in a partition of these topics; the third one holds what producers write meanwhile."""


@pytest.fixture
def loop(kafka: LocalKafka, tmp_path: Path, spark: SparkSession) -> Iterator[Loop]:
    loop = Loop(tmp_path, kafka.bootstrap_servers(), spark, COLLECT, BY_LOAD)
    loop.start()
    yield loop
    loop.stop()


def on_disk(admin: KafkaAdminClient) -> dict[int, dict[str, dict[str, int]]]:
    """Bytes by broker, log directory and partition."""
    return {
        answer["broker"]: {
            log_dir["log_dir"]: {
                f"{topic['name']}-{p['partition_index']}": p["partition_size"]
                for topic in log_dir["topics"]
                for p in topic["partitions"]
            }
            for log_dir in answer["log_dirs"]
        }
        for answer in admin.describe_log_dirs(brokers=sorted(RACKS))
    }


def totals(disks: dict[int, dict[str, dict[str, int]]]) -> dict[int, int]:
    return {broker: sum(sum(logs.values()) for logs in dirs.values()) for broker, dirs in disks.items()}


def recorded_sizes(loop: Loop) -> dict[str, int]:
    """The sizes that the journal has."""
    known = History(loop.config.tables.root).loads(CLUSTER)
    return {f"{topic}-{p}": size for topic, block in known.topics.items() for _, p, size, _, _ in block.rows()}


def predicted(
    disks: dict[int, dict[str, dict[str, int]]], plan: PlanVersion, sizes: dict[str, int]
) -> dict[int, dict[str, int]]:
    """Bytes by broker and log directory once the plan is carried out."""
    found = {broker: {path: dict(logs) for path, logs in dirs.items()} for broker, dirs in disks.items()}
    for block in plan.moves:
        named = block.log_dirs or [["any"] * block.after.shape[1]] * block.partitions.size
        for (p, before, after, _), paths in zip(block.rows(), named, strict=True):
            place = f"{block.topic}-{p}"
            for broker in set(before) - set(after):
                for logs in found[broker].values():
                    logs.pop(place, None)
            for broker, path in zip(after, paths, strict=True):
                if broker not in before:
                    found[broker][path][place] = sizes[place]
    return {broker: {path: sum(logs.values()) for path, logs in dirs.items()} for broker, dirs in found.items()}


def said(dry: str) -> float:
    """What the waves of a dry run say that they copy, in bytes."""
    units = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
    return sum(float(n) * units[unit] for n, unit in re.findall(r"replicas? of ([\d.]+) (B|KiB|MiB) in all", dry))


def test_disks_end_as_even_as_the_plan_by_load_says(loop: Loop, kafka: LocalKafka, admin: KafkaAdminClient) -> None:
    loop.version(lambda v: any(b.broker_id == 5 for b in v.broker_changes), "the brokers are collected")
    ring = [[1, 2], [2, 3], [3, 4], [4, 5], [5, 1]]
    create(admin, "big", *[[1, 2], [2, 1], [1, 2], [2, 1], [1, 2]])
    create(admin, "medium", *ring, *ring)
    create(admin, "small", *ring, *ring, *ring, *ring)
    fill(loop.servers, "big", 5, BIG)
    fill(loop.servers, "medium", 10, MEDIUM)

    with Traffic(loop.servers, "small", 20) as traffic:
        wait_until(lambda: traffic.acknowledged > 2_000, "records flow", PATIENCE)
        full = {f"big-{p}": BIG for p in range(5)} | {f"medium-{p}": MEDIUM for p in range(10)}
        wait_until(
            lambda: all(recorded_sizes(loop).get(place, 0) > mb * 990_000 for place, mb in full.items()),
            "all that was produced is recorded",
            PATIENCE,
        )
        before, skewed = on_disk(admin), layout(admin)
        assert max(totals(before).values()) > 3 * min(totals(before).values())

        loop.submit("rebalance_requested")
        proposal = loop.version(lambda v: v.approval == "proposed", "the rebalance is proposed")
        sizes = recorded_sizes(loop)
        loop.run("approve", CLUSTER, str(proposal.plan_version), "--digest", proposal.digest)
        plan = loop.version(lambda v: v.approval == "approved", "the rebalance is approved")
        assert plan.numbers.loads is not None
        dry = loop.apply("--dry-run", "--throttle", "50000000", "--wave-bytes", "30000000")
        loop.apply("--throttle", "50000000", "--wave-bytes", "30000000")
        settles(admin, skewed | planned_layout(plan))
        after = on_disk(admin)

        moved = sum(sizes[place] * len(set(row) - set(skewed[place])) for place, row in planned_layout(plan).items())
        assert plan.numbers.loads.moved_bytes == pytest.approx(moved, rel=NEAR)
        assert said(dry) == pytest.approx(moved, rel=NEAR), dry
        promised = predicted(before, plan, sizes)
        for broker, dirs in promised.items():
            assert totals(after)[broker] == pytest.approx(sum(dirs.values()), rel=NEAR)
            for path, size in dirs.items():
                assert sum(after[broker][path].values()) == pytest.approx(size, rel=NEAR, abs=300_000), path
        mean = sum(totals(after).values()) / len(RACKS)
        assert all(abs(size - mean) < 0.15 * mean for size in totals(after).values()), totals(after)
        traffic.finish()
    assert traffic.failures == []
    assert traffic.sent >= AT_LEAST
    assert traffic.received == Counter(range(traffic.sent)), "a record is lost, or there twice"
    in_order(admin)
    assert throttles(admin, sorted(RACKS)) == {}
    wait_until(lambda: plan.plan_version in loop.completed(), "the plan is reported as carried out", PATIENCE)
    wait_until(lambda: loop.planned() == layout(admin), "the journal has what the cluster has", PATIENCE)
    loop.run("verify")
