"""Loads through the real job: over restarts, sent again, and as a table with time travel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.audit.frames import Audit
from streaming.audit.journal import verify_clusters
from streaming.job.microbatch import MicroBatches
from streaming.job.tables import Tables
from tests.events_for import EventsFor
from tests.job_folder import JobFolder
from tests.streaming.folding import assert_projected
from tests.streaming.job.test_exactly_once import batch_of

pytestmark = pytest.mark.spark

east = EventsFor("east")
POLICY = '[policy.loads]\nplan = true\non_skew = "rebalance"\nweight = 0.5'
PARTITIONS = 24


def sizes(heavy: int) -> dict[tuple[str, int], int]:
    """The first partitions weigh more."""
    return {("orders", p): 90_000 if p < heavy else 10_000 for p in range(PARTITIONS)}


def brokers() -> list[bytes]:
    """Broker 1 holds and leads what is heavy."""
    layout = {p: [1, 3] if p < 8 else [[2, 4], [4, 2], [3, 1]][p % 3] for p in range(PARTITIONS)}
    return [*east.racks({"a": [1, 2], "b": [3, 4]}), east.manual("orders", layout, minute=1)]


def test_loads_survive_restarts_and_what_follows_is_that_of_one_run(spark: SparkSession, tmp_path: Path) -> None:
    runs = [[*brokers(), east.weighed(sizes(8), minute=2)], [east.weighed(sizes(9), minute=70)]]
    job, whole = JobFolder(tmp_path / "job", policy=POLICY), JobFolder(tmp_path / "whole", policy=POLICY)
    for lines in runs:
        job.play(spark, *lines)
        assert_projected(spark, job)
    whole.play(spark, *(line for lines in runs for line in lines))
    assert [cause.partition(":")[0] for cause in job.causes("east")] == [
        "v1 membership", "v2 topics", "v3 loads", "v4 rebalance proposed", "v5 loads", "v6 loads",
    ]  # fmt: skip
    assert job.rows("loads") == whole.rows("loads")
    proposal = job.history.version("east", 4)
    assert proposal.numbers.loads is not None
    approval = east.decided("approved", 4, proposal.digest, minute=80)
    job.play(spark, approval)
    assert job.causes("east")[-1].startswith("v7 rebalance approved: version 4 approved")
    (found,) = verify_clusters(job.history, ["east"])
    assert (found.difference, found.versions) == (None, 7)

    audit = Audit(spark, str(job.tables))
    then = {row.partition: row.size for row in audit.loads_as_of(4).collect()}
    now = {row.partition: row.size for row in spark.table("loads").collect()}
    assert (then[8], now[8]) == (9984, 49920)
    assert then | {8: 0} == now | {8: 0}


def test_loads_that_come_again_count_once(spark: SparkSession, tmp_path: Path) -> None:
    job = JobFolder(tmp_path / "job", policy=POLICY)
    Tables(job.config.tables.root).create(spark, job.config.tables.audit_window.time)
    job.checkpoint.mkdir()
    (job.checkpoint / "metadata").write_text(json.dumps({"id": "a-query"}))
    first = batch_of(spark, *brokers(), east.weighed({("orders", 0): 1000}, minute=2))
    second = batch_of(
        spark, east.weighed({("orders", 0): 2000}, minute=100), east.weighed({("orders", 0): 1000}, minute=2)
    )
    for number, batch in ((0, first), (0, first), (1, second), (1, second)):
        afresh = MicroBatches(job.config)
        afresh(batch, number)
        afresh.close()
    assert_projected(spark, job)
    assert [row["size"] for row in job.rows("loads")] == [1504]  # halfway, in steps of eight bits
    assert list(job.outcomes().values()).count("duplicate") == 1
