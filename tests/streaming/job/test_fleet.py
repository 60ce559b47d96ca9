"""Clusters that are planned on Spark's executors: the same rows, the same memory, and only where it is worth it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from streaming.config import parse_config
from streaming.events import decode
from streaming.job import tables as tables_module
from streaming.job.executors import LINE, plan_on_executors, weight
from streaming.job.tables import Tables, in_files
from streaming.planning.batch import ClusterResult, ClusterWork
from streaming.planning.state import ClusterState
from streaming.record.rows import batch_to_arrow
from streaming.record.schemas import PLANS
from tests.streaming.driving import RACKS, T0, Driver, outcomes, reasons
from tests.streaming.record.test_journal import facts

CLUSTERS = ("east", "north", "west")


def history(driver: Driver) -> list[list[bytes]]:
    """Batches in which all that can become of an event becomes of one, in three clusters."""

    def everywhere(kind: str, minute: float, **fields: object) -> list[bytes]:
        return [driver.event(kind, cluster=name, minute=minute, **fields) for name in CLUSTERS]

    racks = [
        line
        for rack, ids in RACKS.items()
        for broker in ids
        for line in everywhere("broker_joined", 0, broker_id=broker, rack=rack)
    ]
    mixed = [
        *everywhere("broker_left", 2, broker_id=3, reason="decommissioned"),
        *everywhere("broker_joined", 2, broker_id=9, rack="b"),
        *everywhere("rebalance_requested", 3),
        driver.event("topic_deleted", cluster="east", topic="nope", minute=3),
        driver.event("broker_joined", cluster="west", broker_id=1, rack="a", minute=-1),
        driver.event("plan_progress", cluster="west", plan_version=3, state="started", minute=4),
    ]
    topics = everywhere("topic_created", 1, topic="t", partitions=12, replication_factor=3)
    again = [*topics, *everywhere("topic_created", 1, topic="u", replica_assignment={0: [1, 2], 1: [2]})]
    return [racks, topics, [*again, b"{", *mixed], everywhere("broker_left", 5, broker_id=6, reason="failed"), []]


@pytest.mark.spark
def test_executors_and_driver_write_the_same_rows_and_remember_the_same(spark: SparkSession) -> None:
    here, there = Driver(), Driver()
    for number, lines in enumerate(history(here), start=1):
        plan_many = partial(plan_on_executors, spark, at_least=1, app_id="app", batch_id=number)
        minute = None if lines else 99
        direct, remote = here.batch(*lines, minute=minute), there.batch(*lines, minute=minute, plan_many=plan_many)
        assert set(remote.encoded) == set(CLUSTERS)
        rows = batch_to_arrow(remote.versions, remote.encoded, "app", number)
        assert rows.equals(batch_to_arrow(direct.versions, {}, "app", number))
        assert [v.seal for v in remote.versions] == [v.seal for v in direct.versions]
        assert (outcomes(remote), reasons(remote)) == (outcomes(direct), reasons(direct))
        assert remote.progress == direct.progress
        for name in CLUSTERS:
            assert facts(there.memory.clusters[name]) == facts(here.memory.clusters[name])
    assert {v.kind for v in here.journal} == {"membership", "topics", "heal", "rebalance"}
    assert sorted(set(outcomes(here.batch(*history(Driver())[2])).values())) == ["duplicate", "malformed"]


@pytest.mark.spark
def test_what_needs_the_journal_is_planned_in_the_driver(spark: SparkSession) -> None:
    driver = Driver()
    for lines in history(driver)[:3]:
        driver.batch(*lines)
    healed = next(v for v in driver.journal if v.kind == "heal" and v.cluster_id == "north")
    undone = {"plan_version": healed.plan_version, "digest": healed.digest}
    lines = [
        driver.event("plan_rolled_back", cluster="north", minute=9, **undone),
        *(driver.event("topic_deleted", cluster=name, topic="t", minute=9) for name in ("east", "west")),
    ]
    plan_many = partial(plan_on_executors, spark, at_least=1, app_id="app", batch_id=9)
    result = driver.batch(*lines, plan_many=plan_many)
    assert set(result.encoded) == {"east", "west"}
    assert {e.cluster_id for v in result.versions for e in v.events} | {e.cluster_id for e in result.unplanned} == set(
        CLUSTERS
    )
    rows = batch_to_arrow(result.versions, result.encoded, "app", 9)
    assert rows.equals(batch_to_arrow(result.versions, {}, "app", 9))


@pytest.mark.spark
def test_one_cluster_and_little_work_stay_in_the_driver(spark: SparkSession) -> None:
    driver = Driver()
    for lines in history(driver)[:2]:
        driver.batch(*lines)
    asked: list[dict[str, ClusterResult]] = []

    def plan_many(work: Sequence[tuple[ClusterState, ClusterWork]], at_least: int) -> dict[str, ClusterResult]:
        asked.append(plan_on_executors(spark, work, at_least, "app", 3))
        return asked[-1]

    all_of_them = [driver.event("broker_left", cluster=n, broker_id=1, reason="failed", minute=2) for n in CLUSTERS]
    driver.batch(all_of_them[0], plan_many=partial(plan_many, at_least=1))
    driver.batch(*all_of_them[1:], plan_many=partial(plan_many, at_least=2 * (LINE + 12) + 1))
    assert asked == [{}, {}]


def work_of(*events: bytes) -> ClusterWork:
    lines = [decode(event) for event in events]
    return ClusterWork("c", lines, T0, T0 + timedelta(hours=1), parse_config("", "test").policy)


def test_news_of_a_topic_weighs_as_much_in_a_large_cluster_as_in_a_small_one(six: Driver) -> None:
    state = six.memory.clusters["c"]
    topic = six.event("topic_created", topic="u", partitions=3)
    broker = six.event("broker_joined", broker_id=9, rack="a")
    assert weight(state, work_of(topic)) == LINE
    assert weight(state, work_of(topic, topic)) == 2 * LINE
    assert weight(state, work_of(topic, broker)) == 2 * LINE + 6
    assert weight(state, work_of()) == 6  # only time has passed, which may heal


def journal_of(sizes: Sequence[int]) -> pa.Table:
    """A version for each number of partitions; three in a row belong to one cluster."""
    driver = Driver()
    for number, partitions in enumerate(sizes):
        cluster = f"c{number // 3}"
        driver.batch(driver.event("broker_joined", cluster=cluster, broker_id=number))
        driver.batch(driver.event("topic_created", cluster=cluster, topic=f"t{number}", partitions=partitions))
    by_cluster = sorted(driver.journal, key=lambda v: (v.cluster_id, v.plan_version))
    return batch_to_arrow(by_cluster, {}, "app", 1)


@given(st.lists(st.integers(1, 200), min_size=1, max_size=12), st.integers(200, 40_000))
def test_much_is_cut_between_clusters_and_little_is_not(sizes: list[int], file: int) -> None:
    rows = journal_of(sizes)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tables_module, "_FILE", file)
        cut = in_files(rows)
    assert cut.equals(rows)
    if rows.nbytes < 2 * file:
        assert cut is rows
        return
    clusters = [set(chunk.to_pylist()) for chunk in cut["cluster_id"].chunks]
    assert sum(map(len, clusters)) == len(set(rows["cluster_id"].to_pylist()))
    assert 1 <= len(clusters) <= rows.nbytes // file


@pytest.mark.spark
def test_files_that_are_written_side_by_side_hold_what_one_would(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Tables(str(tmp_path))
    tables.create(spark, timedelta(days=7))
    rows = journal_of([20] * 12)
    monkeypatch.setattr(tables_module, "_FILE", rows.nbytes // 2)
    tables.append_to_journal(spark, rows, known=0, user_metadata="{}")
    assert len(list((tmp_path / "plans").glob("*.parquet"))) == 2
    written = tables.read(spark, PLANS, PLANS.schema.names)
    assert written.sort_by([("cluster_id", "ascending"), ("plan_version", "ascending")]).equals(rows.combine_chunks())
