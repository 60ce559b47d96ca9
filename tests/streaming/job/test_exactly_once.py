"""Repeated batches, lost checkpoints, order, and the sources: every event counts once, in its place."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession

from streaming.config import parse_config
from streaming.job.microbatch import MicroBatches
from streaming.job.query import run_job
from streaming.job.tables import Tables
from streaming.kafka.delivery import deliver
from tests.events_for import EventsFor
from tests.job_folder import JobFolder
from tests.streaming.folding import assert_projected

pytestmark = pytest.mark.spark

east, west = EventsFor("east"), EventsFor("west")
SETUP = [*east.racks({"a": [1, 2], "b": [3]}), east.created("orders", 2, 2, minute=1)]
BATCH_TIME = datetime(2026, 3, 1, 12, tzinfo=UTC)


def batch_of(spark: SparkSession, *lines: bytes) -> DataFrame:
    """A micro-batch as the source hands it over."""
    n = len(lines)
    columns = {
        "line": pa.array(lines, pa.binary()),
        "major": pa.array([0] * n, pa.int64()),
        "name": pa.array(["file:/events/sent.jsonl"] * n),
        "minor": pa.array(range(n), pa.int64()),
        "batch_time": pa.array([BATCH_TIME] * n, pa.timestamp("us", "UTC")),
    }
    return spark.createDataFrame(pa.table(columns))


@pytest.fixture
def job(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path / "job")


@pytest.fixture
def batches(spark: SparkSession, job: JobFolder) -> MicroBatches:
    """The function that foreachBatch calls, outside of a query."""
    Tables(job.config.tables.root).create(spark, job.config.tables.audit_window.time)
    job.checkpoint.mkdir()
    (job.checkpoint / "metadata").write_text(json.dumps({"id": "a-query"}))
    return MicroBatches(job.config)


def commits(job: JobFolder) -> dict[str, int]:
    return {table: job.delta(table).version() for table in ("plans", "quarantine", "plan_progress")}


def test_a_repeated_batch_does_nothing(spark: SparkSession, job: JobFolder, batches: MicroBatches) -> None:
    planned = batch_of(spark, *SETUP, b"broken", east.progress(1, "started", minute=2))
    unplanned = batch_of(spark, b"broken too", east.created("huge", 1, 9, minute=3), SETUP[0])
    batches(planned, 0)
    batches(unplanned, 1)
    before = job.rows("plans"), job.rows("quarantine"), job.rows("plan_progress"), commits(job)
    assert commits(job) == {"plans": 1, "quarantine": 2, "plan_progress": 1}

    batches(planned, 0)
    batches(unplanned, 1)
    afresh = MicroBatches(job.config)
    afresh(unplanned, 1)
    MicroBatches(job.config)(planned, 0)
    for each in (batches, afresh):
        each.close()

    assert (job.rows("plans"), job.rows("quarantine"), job.rows("plan_progress"), commits(job)) == before
    assert_projected(spark, job)


def test_after_a_repeated_batch_the_next_one_plans_on_the_same_state(
    spark: SparkSession, job: JobFolder, batches: MicroBatches
) -> None:
    batches(batch_of(spark, *SETUP), 0)
    afresh = MicroBatches(job.config)
    afresh(batch_of(spark, *SETUP), 0)
    afresh(batch_of(spark, east.deleted("orders", minute=5), *SETUP), 1)
    assert job.causes("east")[2:] == ["v3 topics: topic orders deleted"]
    assert list(job.outcomes().values()).count("duplicate") == len(SETUP)


@pytest.mark.parametrize(
    ("first", "then", "outcomes"),
    [
        (9, 1, {"joined": "applied", "broken": "malformed", "plain": "rejected", "again": "duplicate"}),
        (1, 9, {"joined": "applied", "broken": "malformed", "plain": "rejected", "again": "duplicate"}),
        (1, 2, {"joined": "applied", "broken": "malformed", "plain": "applied", "again": "duplicate"}),
    ],
)
def test_a_batch_interrupted_under_one_policy_and_planned_under_another_gives_each_line_one_outcome(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: int,
    then: int,
    outcomes: dict[str, str],
) -> None:
    jobs = [JobFolder(tmp_path / "job", policy=f"default_replication_factor = {n}") for n in (first, then)]
    job = jobs[0]
    Tables(job.config.tables.root).create(spark, job.config.tables.audit_window.time)
    job.checkpoint.mkdir()
    (job.checkpoint / "metadata").write_text(json.dumps({"id": "a-query"}))
    plain = json.loads(east.created("plain", 1, 1, minute=1))
    del plain["replication_factor"]
    line = json.dumps(plain).encode()
    lines = {"joined": east.joined(1), "more": east.joined(2), "broken": b"broken", "plain": line, "again": line}

    def interrupt(*_: object, **__: object) -> int:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(Tables, "append_to_journal", interrupt)
        MicroBatches(jobs[0].config)(batch_of(spark, *lines.values()), 0)
    assert not job.rows("plans")
    assert job.rows("quarantine")
    MicroBatches(jobs[1].config)(batch_of(spark, *lines.values()), 0)

    received = [(place, outcome) for place, _, outcome in job.received()]
    assert received == [(f"sent.jsonl:{n}", outcomes.get(name, "applied")) for n, name in enumerate(lines, 1)]


def test_a_batch_without_lines_leaves_no_trace(spark: SparkSession, job: JobFolder, batches: MicroBatches) -> None:
    batches(batch_of(spark), 0)
    assert commits(job) == {"plans": 0, "quarantine": 0, "plan_progress": 0}


def test_without_its_checkpoint_the_job_takes_every_event_for_a_duplicate(spark: SparkSession, job: JobFolder) -> None:
    job.send(*SETUP, b"broken", east.created("huge", 1, 9, minute=2))
    job.send(east.left(1, "decommissioned", minute=3), east.deleted("no such topic", minute=4), west.joined(1))
    job.run(spark)
    plans, first = job.rows("plans"), len(job.rows("quarantine"))
    layouts = job.layout("east"), job.brokers("east"), job.brokers("west")

    shutil.rmtree(job.checkpoint)
    job.run(spark)

    assert job.rows("plans") == plans
    again = job.delta("quarantine").to_pyarrow_table().sort_by([("received_at", "descending")]).to_pylist()[:-first]
    assert sorted((row["event_id"] or row["payload"], row["outcome"]) for row in again) == [
        ("broken", "malformed"),
        ("create huge @2", "duplicate"),
        ("create orders @1", "duplicate"),
        ("decommissioned 1 @3", "duplicate"),
        ("delete no such topic @4", "duplicate"),
        ("join 1 @0", "duplicate"),
        ("join 1 @0", "duplicate"),
        ("join 2 @0", "duplicate"),
        ("join 3 @0", "duplicate"),
    ]
    assert (job.layout("east"), job.brokers("east"), job.brokers("west")) == layouts

    job.play(spark, east.created("fresh", 1, 1, minute=9))
    assert ("02.jsonl:1", "create fresh @9", "applied") in job.received()


def test_files_count_by_their_time_then_by_their_name(spark: SparkSession, job: JobFolder) -> None:
    job.send(east.deleted("t", minute=1), name="a-later.jsonl", second=5)
    job.send(*SETUP, east.manual("t", {0: [1]}), name="z-first.jsonl", second=1)
    job.send(east.grown("orders", 4, minute=4), name="same-time-2.jsonl", second=3)
    job.send(east.grown("orders", 3, minute=3), name="same-time-1.jsonl", second=3)
    job.run(spark)
    assert set(job.outcomes().values()) == {"applied"}
    assert sorted(job.layout("east")) == ["orders-0", "orders-1", "orders-2", "orders-3"]


def test_file_by_file_gives_the_same_plans_as_all_at_once(spark: SparkSession, tmp_path: Path) -> None:
    jobs = [JobFolder(tmp_path / "at once"), JobFolder(tmp_path / "one by one", source="max_files_per_trigger = 1")]
    for job in jobs:
        job.send(*SETUP)
        job.send(east.created("clicks", 3, 1, minute=2), b"broken", west.joined(1))
        job.send(east.left(1, "failed", minute=3), east.created("logs", 2, 1, minute=4))
        job.send(west.joined(2, minute=40))
        job.send(east.rebalance(minute=41), SETUP[0])
        job.run(spark)
    at_once, one_by_one = jobs
    assert len(at_once.delta("plans").history()) == 2
    assert len(one_by_one.delta("plans").history()) == 5
    assert one_by_one.received() == at_once.received()
    assert one_by_one.layout("east") == at_once.layout("east")
    assert one_by_one.brokers("east") == at_once.brokers("east") == {1: "dead", 2: "alive", 3: "alive"}
    healed = [[v.digest for v in job.history.versions("east") if v.kind == "heal"] for job in jobs]
    assert len(healed[0]) == 1
    assert healed[1] == healed[0]


def test_a_delta_table_is_read_row_by_row_in_order(spark: SparkSession, tmp_path: Path, job: JobFolder) -> None:
    folder = tmp_path / "delta"
    config = parse_config(
        f"""
        source = {{type = "delta", path = "{folder}/events"}}
        tables = {{root = "{job.tables}"}}
        job = {{checkpoint = "{job.checkpoint}"}}
        """,
        "delta.toml",
    )
    deliver(config.source, b"\n".join([*SETUP, b"broken"]) + b"\n")
    write_deltalake(config.source.path, pa.table({"value": pa.array([None], pa.string())}), mode="append")
    run_job(config, once=True, spark=spark)
    deliver(config.source, east.grown("orders", 3, minute=2) + b"\n" + east.grown("orders", 4, minute=3) + b"\n")
    run_job(config, once=True, spark=spark)

    assert job.causes("east") == [
        "v1 membership: 3 events: broker 1 joined, broker 2 joined, broker 3 joined",
        "v2 topics: topic orders created with 2 partitions (balanced)",
        "v3 topics: 2 events: topic orders grown from 2 to 3 partitions, topic orders grown from 3 to 4 partitions",
    ]
    broken = {row["payload"]: row["reason"] for row in job.rows("quarantine")}
    assert broken == {"broken": "JSON is malformed: invalid character (byte 0)", "": "the line is empty"}
    assert_projected(spark, job)
