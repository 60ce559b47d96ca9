"""Tables that the first release wrote are taken over as they are."""

from __future__ import annotations

import tarfile
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from streaming.audit.frames import Audit
from streaming.config import parse_config
from streaming.history.tables import History
from streaming.job.query import run_job
from streaming.job.tables import Tables, present_columns
from streaming.kafka.delivery import deliver
from streaming.record.comments import TABLE_COMMENTS
from streaming.record.schemas import ASSIGNMENTS, BROKER_LIMITS, LOADS, PLANS, TABLES, column_paths, comment_of

pytestmark = pytest.mark.spark

FIRST_RELEASE = Path(__file__).parents[2] / "cases/tables-0.1.0.tar.gz"


def test_a_job_goes_on_with_tables_of_the_first_release(spark: SparkSession, tmp_path: Path) -> None:
    with tarfile.open(FIRST_RELEASE) as archive:
        archive.extractall(tmp_path, filter="data")
    conf = f"""
        [source]
        type = "files"
        path = "{tmp_path}/events"
        [tables]
        root = "{tmp_path}/tables"
        [job]
        checkpoint = "{tmp_path}/checkpoint"
    """
    config = parse_config(conf, "test.toml")
    before = History(config.tables.root).state("east")
    assert before.version == 6
    assert Audit(spark, config.tables.root).plans().count() == 6  # it had no table of loads
    event = {
        "event_id": "new",
        "cluster_id": "east",
        "type": "assignment_observed",
        "occurred_at": "2026-02-01T00:00:00Z",
        "partitions": [{"topic": "audit", "partition": 7, "replicas": [4, 2], "leader": 2, "isr": [2]}],
    }
    weighed = event | {"event_id": "weighed", "type": "load_observed"}
    weighed["partitions"] = [{"topic": "audit", "partition": 7, "size": 1000}]
    deliver(config.source, b"".join(msgspec.json.encode(line) + b"\n" for line in (event, weighed)))
    run_job(config, once=True, spark=spark)
    after = History(config.tables.root).state("east")
    assert after.version == 8
    assert History(config.tables.root).loads("east").topics["audit"].values.tolist() == [[1000, -1, -1]]
    assert after.topics["orders"].replicas.tolist() == before.topics["orders"].replicas.tolist()
    assert after.topics["audit"].replicas.tolist()[1] == [4, 2]
    for table in (PLANS, ASSIGNMENTS, LOADS, BROKER_LIMITS):
        columns = spark.read.format("delta").load(f"{config.tables.root}/{table.name}").columns
        assert set(columns) == set(table.schema.names)
    assert_described(spark, Tables(config.tables.root))
    row = (
        spark.read.format("delta").load(f"{config.tables.root}/assignments").where("topic = 'audit' and partition = 7")
    )
    assert [(r.replicas, r.leader, r.isr) for r in row.collect()] == [([4, 2], 2, [2])]


def test_new_tables_explain_themselves_and_a_start_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(str(tmp_path / "it's"))
    for _ in range(2):
        tables.create(spark, timedelta(days=7))
        assert_described(spark, tables)
    assert {len(tables.commits(spark, table, 9)) for table in TABLES} == {1}


def assert_described(spark: SparkSession, tables: Tables) -> None:
    """Every table, column and field has its comment."""
    for table in TABLES:
        columns = spark.read.format("delta").load(tables.path(table)).schema
        described = {name: field.metadata.get("comment") for name, field in present_columns(columns)}
        assert described == {name: comment_of(name) for name, _ in column_paths(table.schema)}
        detail = spark.sql(f"DESCRIBE DETAIL {tables.identifier(table)}").collect()[0]
        assert detail["description"] == TABLE_COMMENTS[table.name]
