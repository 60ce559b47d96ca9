"""Time travel in three ways that agree: Delta's, by plan version, and by the clock."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from streaming.audit.frames import Audit, table_version
from streaming.errors import HistoryError
from streaming.history.tables import History
from streaming.job.projections import merge
from streaming.job.tables import Tables
from streaming.planning.known_loads import KnownLoads
from streaming.planning.state import ClusterState
from streaming.record.load_columns import loads_to_arrow
from streaming.record.schemas import ASSIGNMENTS, BROKERS, PROGRESS, QUARANTINE
from tests.streaming.audit.random_histories import random_history
from tests.streaming.writing import write_batches

pytestmark = pytest.mark.spark

Layout = dict[str, list[int]]


def layout_of(state: ClusterState) -> Layout:
    return {
        f"{name}-{partition}": [b for b in replicas if b >= 0]
        for name, topic in state.topics.items()
        for partition, replicas in zip(topic.partitions.tolist(), topic.replicas.tolist(), strict=True)
    }


def layout_in(rows: DataFrame) -> Layout:
    return {f"{row.topic}-{row.partition}": list(row.replicas) for row in rows.collect()}


def brokers_of(state: ClusterState) -> dict[int, str]:
    return {b: record.state for b, record in state.brokers.items()}


def brokers_in(rows: DataFrame) -> dict[int, str]:
    return {row.broker_id: row.state for row in rows.collect()}


def loads_in(rows: DataFrame) -> set[tuple[object, ...]]:
    return {(row.topic, row.partition, row.size, row.bytes_in, row.bytes_out) for row in rows.collect()}


def listed(known: KnownLoads) -> set[tuple[object, ...]]:
    rows = loads_to_arrow(list(known.topics.values())).to_pylist()
    return {tuple(row.values()) for row in rows}


@pytest.fixture(scope="module")
def audit(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """A random history whose projections were merged version by version."""
    root = tmp_path_factory.mktemp("travel")
    _, results = random_history(seed=14, batches=22)
    Tables(str(root)).create(spark, timedelta(days=7))
    own = spark.newSession()
    for batch in results:
        write_batches(root, batch)
        for version in batch.versions:
            merge(own, Tables(str(root)), [version])
    return Audit(spark, str(root))


def version_numbers(audit: Audit) -> list[int]:
    numbers = [v.plan_version for v in audit.history.headlines(audit.cluster)]
    assert len(numbers) >= 10
    assert audit.history.loads(audit.cluster).topics
    return numbers


def test_three_ways_give_the_same_layout_at_every_version(audit: Audit) -> None:
    headlines = {v.plan_version: v for v in audit.history.headlines(audit.cluster)}
    for number in version_numbers(audit):
        state = audit.history.state(audit.cluster, number)
        assert layout_in(audit.assignments_as_of(number)) == layout_of(state), number
        assert brokers_in(audit.brokers_as_of(number)) == brokers_of(state), number
        assert loads_in(audit.loads_as_of(number)) == listed(audit.history.loads(audit.cluster, number)), number
        created = headlines[number].created_at
        if number + 1 not in headlines or headlines[number + 1].created_at > created:
            by_clock = audit.history.state(audit.cluster, created + timedelta(microseconds=1))
            assert layout_of(by_clock) == layout_of(state)
            assert layout_in(audit.layout(created)) == layout_of(state)


def test_timestamp_as_of_is_version_as_of(audit: Audit, spark: SparkSession) -> None:
    commits = audit.history.commits(ASSIGNMENTS)
    spark.sql(f"CREATE TABLE IF NOT EXISTS travelled USING delta LOCATION '{audit.tables.path(ASSIGNMENTS)}'")
    committed = spark.sql("DESCRIBE HISTORY travelled").selectExpr("version", "CAST(timestamp AS STRING) AS at")
    times = {row.version: row["at"] for row in committed.collect()}
    for number in version_numbers(audit)[::4]:
        version = table_version(commits, audit.cluster, number)
        by_time = spark.sql(f"SELECT * FROM travelled TIMESTAMP AS OF '{times[version]}'")
        by_version = spark.sql(f"SELECT * FROM travelled VERSION AS OF {version}")
        assert layout_in(by_time) == layout_in(by_version) == layout_of(audit.history.state(audit.cluster, number))
    spark.sql("DROP TABLE travelled")


def test_housekeeping_inside_the_window_changes_no_answer(audit: Audit, spark: SparkSession) -> None:
    asked = version_numbers(audit)[::4]
    before = [layout_in(audit.assignments_as_of(number)) for number in asked]
    for table in (ASSIGNMENTS, BROKERS):
        spark.sql(f"OPTIMIZE {audit.tables.identifier(table)}")
        spark.sql(f"VACUUM {audit.tables.identifier(table)}")
    assert [layout_in(audit.assignments_as_of(number)) for number in asked] == before
    assert before == [layout_of(audit.history.state(audit.cluster, number)) for number in asked]


def test_past_the_window_the_journal_still_answers(audit: Audit, spark: SparkSession) -> None:
    first, last = version_numbers(audit)[2], version_numbers(audit)[-1]
    expected = layout_of(audit.history.state(audit.cluster, first))
    own = spark.newSession()
    own.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    own.sql(f"VACUUM {audit.tables.identifier(ASSIGNMENTS)} RETAIN 0 HOURS")
    with pytest.raises(Exception, match=r"FAILED_READ_FILE|does not exist|FileNotFound"):
        audit.assignments_as_of(first).collect()
    assert layout_of(History(audit.tables.root).state(audit.cluster, first)) == expected
    headline = next(v for v in audit.history.headlines(audit.cluster) if v.plan_version == first)
    assert layout_in(audit.layout(headline.created_at)) == expected
    now = spark.read.format("delta").load(audit.tables.path(ASSIGNMENTS))
    assert layout_in(now) == layout_of(audit.history.state(audit.cluster, last))


def test_versions_that_came_together_are_told_apart_by_the_journal_only() -> None:
    commits = [
        {"version": 2, "userMetadata": "east:1-3 west:1"},
        {"version": 3, "userMetadata": "west:2"},
        {"version": 4, "userMetadata": '{"plans": {"east": [4, 4]}}'},
        {"version": 5, "operation": "OPTIMIZE"},
    ]
    assert [table_version(commits, "east", v) for v in (3, 4, 9)] == [2, 4, 4]
    assert table_version(commits, "west", 1) == 2
    with pytest.raises(
        HistoryError, match="brought plan versions 1 to 3 of east at once: ask the journal for version 2"
    ):
        table_version(commits, "east", 2)
    with pytest.raises(HistoryError, match="does not reach back to version 7 of north"):
        table_version(commits, "north", 7)


def test_tables_without_rows_can_be_asked(audit: Audit, tmp_path: Path) -> None:
    assert audit.progress().count() == audit.spark.table(PROGRESS.name).count() == 0
    assert (
        audit.events().where("outcome = 'rejected'").count()
        == audit.spark.table(QUARANTINE.name).where("outcome = 'rejected'").count()
    )
