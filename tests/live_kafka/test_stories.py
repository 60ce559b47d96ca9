"""The whole loop on a real cluster: what happens is collected, planned by the job, applied, and seen again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from pyspark.sql import SparkSession

from examples.local_kafka import LocalKafka
from tests.live_kafka.cluster import RACKS, wait_until
from tests.live_kafka.loop import PATIENCE, Loop
from tests.live_kafka.planned import held, in_order, layout, planned_layout, settles, throttles
from tests.live_kafka.traffic import AT_LEAST, Traffic
from tests.live_kafka.watched import CLUSTER

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@pytest.fixture
def loop(kafka: LocalKafka, tmp_path: Path, spark: SparkSession) -> Iterator[Loop]:
    loop = Loop(tmp_path, kafka.bootstrap_servers(), spark)
    loop.start()
    yield loop
    loop.stop()


def moved(before: dict[str, list[int]], after: dict[str, list[int]]) -> int:
    return sum(len(set(after[place]) - set(before[place])) for place in after)


def test_a_year_of_a_cluster(loop: Loop, kafka: LocalKafka, admin: KafkaAdminClient) -> None:
    loop.version(lambda v: any(b.broker_id == 5 for b in v.broker_changes), "the brokers are collected")

    # A topic is asked for; the plan creates it, and its being there is no news.
    loop.submit("topic_created", topic="orders", partitions=12, replication_factor=3)
    created = loop.version(lambda v: v.kind == "topics", "the topic is planned")
    loop.apply()
    settles(admin, planned_layout(created))
    loop.watched.told("topic_created", topic="orders")

    with Traffic(loop.servers, "orders", 12) as traffic:
        # A broker dies for good: what it held is copied elsewhere, while records are written and read.
        wait_until(lambda: traffic.acknowledged > 2_000, "records flow", PATIENCE)
        kafka.kill_broker(5)
        heal = loop.version(lambda v: v.kind == "heal", "broker 5 is healed")
        loop.apply()
        settles(admin, planned_layout(created) | planned_layout(heal))
        healed = layout(admin)
        assert moved(planned_layout(created), healed) == heal.numbers.moved_replicas > 0
        assert not any(5 in replicas for replicas in healed.values())
        in_order(admin)
        traffic.finish()
    assert traffic.failures == []
    assert traffic.sent >= AT_LEAST
    assert traffic.received == Counter(range(traffic.sent)), "a record is lost, or there twice"

    # It returns, another one joins, and a rebalance that was approved fills both.
    kafka.start_broker(5)
    kafka.add_broker(6, "c")
    loop.version(lambda v: any(b.broker_id == 6 for b in v.broker_changes), "broker 6 is collected")
    loop.version(
        lambda v: any((b.broker_id, b.state) == (5, "alive") for b in v.broker_changes[-1:]), "broker 5 is back"
    )
    loop.submit("rebalance_requested")
    proposal = loop.version(lambda v: v.approval == "proposed", "the rebalance is proposed")
    assert layout(admin) == healed
    loop.run("approve", CLUSTER, str(proposal.plan_version), "--digest", proposal.digest)
    approved = loop.version(lambda v: v.approval == "approved", "the rebalance is approved")
    loop.apply()
    settles(admin, healed | planned_layout(approved))
    balanced = layout(admin)
    assert moved(healed, balanced) == approved.numbers.moved_replicas > 0
    counts = Counter(broker for replicas in balanced.values() for broker in replicas)
    assert set(counts) == {*RACKS, 6}
    assert (min(counts.values()), max(counts.values())) == (
        approved.numbers.after.replicas_min,
        approved.numbers.after.replicas_max,
    )

    # A broker is taken out of service, and holds nothing in the end.
    loop.submit("broker_left", broker_id=1, reason="decommissioned")
    drained = loop.version(lambda v: v.kind == "heal" and v is not heal, "broker 1 is drained")
    loop.apply()
    settles(admin, balanced | planned_layout(drained))
    assert moved(balanced, layout(admin)) == drained.numbers.moved_replicas > 0
    in_order(admin)
    wait_until(lambda: held(admin, 1) == {1: {}}, "broker 1 holds nothing", PATIENCE)

    # The journal has the cluster as it is, nothing drifted, every plan is reported as carried out.
    plans = {v.plan_version for v in (created, heal, approved, drained)}
    wait_until(lambda: plans <= loop.completed(), "the plans are reported as carried out", PATIENCE)
    wait_until(lambda: loop.planned() == layout(admin), "the journal has what the cluster has", PATIENCE)
    assert [
        v.cause for v in loop.versions if v.kind == "drift" or ("corrected" in v.cause and " 0 corr" not in v.cause)
    ] == []
    with KafkaAdminClient(bootstrap_servers=loop.servers) as fresh:  # which knows all brokers
        assert throttles(fresh, [*RACKS, 6]) == {}
    loop.run("verify")
