"""The queries of streaming/audit/sql on real Spark, each with the answer that the history must give."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streaming.audit.frames import QUERIES, Audit
from streaming.errors import HistoryError
from streaming.job.tables import Tables
from streaming.record.rows import progress_to_arrow
from streaming.record.schemas import PROGRESS
from tests.streaming.driving import Driver, at
from tests.streaming.writing import write_batches

pytestmark = pytest.mark.spark

Row = tuple[Any, ...]


def story(driver: Driver) -> list[Any]:
    """Broker 3 fails and is healed, broker 2 moves to rack a, a rebalance is proposed: versions 1 to 6."""
    return [
        driver.racks({"a": [1, 4], "b": [2], "c": [3]}),
        driver.batch(
            driver.event(
                "topic_created", topic="t", replica_assignment={"0": [1, 2], "5": [1, 4], "6": [2, 3]}, event_id="made"
            ),
            driver.event("topic_created", topic="u", replica_assignment={"0": [3], "1": [1], "2": [1], "3": [1]}),
            minute=1,
        ),
        driver.batch(driver.event("broker_left", broker_id=3, reason="failed", minute=10), minute=10),
        driver.batch(minute=41),
        driver.batch(driver.event("broker_changed", broker_id=2, rack="a", minute=50), minute=50),
        driver.batch(driver.event("rebalance_requested", event_id="even", minute=60), minute=60),
    ]


@pytest.fixture(scope="module")
def audit(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    root: Path = tmp_path_factory.mktemp("queries")
    driver = Driver('[policy]\napproval = ["rebalance"]\nsettle = "0s"\n')
    batches = story(driver)
    last = driver.journal[-1]
    named = {"plan_version": last.plan_version, "digest": last.digest}
    batches += [
        driver.batch(driver.event("plan_approved", event_id="yes", by="anna", minute=62, **named), minute=62),
        driver.batch(
            driver.event("plan_progress", plan_version=4, state="started", minute=42),
            driver.event("plan_progress", plan_version=4, state="completed", minute=45),
            minute=63,
        ),
        driver.batch(
            driver.event("plan_rolled_back", event_id="back", minute=70, plan_version=7, digest=last.digest), minute=70
        ),
    ]
    batches.append(driver.batch(driver.event("broker_joined", broker_id=5, rack="d", minute=80), minute=80))
    Tables(str(root)).create(spark, timedelta(days=7))
    write_batches(root, *batches)
    for batch in batches:
        if batch.progress:
            rows = progress_to_arrow(batch.progress, "app", batch.batch_id)
            Tables(str(root)).append(spark, PROGRESS, rows, app_id="app", batch_id=1, user_metadata="")
    return Audit(spark, str(root))


def answer(audit: Audit, name: str, *columns: str, **parameters: object) -> list[Row]:
    rows = audit.query(name, **parameters)
    return [tuple(row) for row in (rows.select(*columns) if columns else rows).collect()]


def test_who_moved_most(audit: Audit) -> None:
    whole = answer(audit, "moved_most", **{"from": at(0), "to": at(100)})
    assert whole == [("u", 3, 2, 3), ("t", 3, 2, 1)]
    assert answer(audit, "moved_most", **{"from": at(50), "to": at(65)}) == [("u", 1, 1, 1)]


def test_plans_that_undid_one_another(audit: Audit) -> None:
    assert answer(audit, "undone", "version", "undone_by", "partitions", "cause_of_undoing") == [
        (7, 8, 2, "version 7 rolled back by event back")
    ]


def test_brokers_over_their_share(audit: Audit) -> None:
    """Ten replicas; at first on four brokers, then on three, then on four again, of which the newest is empty."""
    columns = ("broker_id", "replicas", "share")
    assert answer(audit, "over_share", *columns, at=at(5)) == [(1, 5, 2.5)]
    assert answer(audit, "over_share", *columns, at=at(61)) == [(1, 5, 3.33)]
    assert answer(audit, "over_share", *columns, at=at(65)) == []
    assert answer(audit, "over_share", *columns, at=at(100)) == [(1, 5, 2.5)]


def test_partitions_without_rack_diversity(audit: Audit) -> None:
    columns = ("topic", "partition", "replicas", "racks", "since_version")
    assert answer(audit, "rack_diversity", *columns, at=at(45)) == [("t", 5, [1, 4], 1, 2)]
    assert answer(audit, "rack_diversity", *columns, at=at(75)) == [], "one rack is all that is left"
    assert answer(audit, "rack_diversity", *columns, at=at(100)) == [
        ("t", 0, [1, 2], 1, 9),
        ("t", 5, [1, 4], 1, 9),
        ("t", 6, [4, 2], 1, 9),
    ]


def test_time_from_event_to_plan_to_done(audit: Audit) -> None:
    columns = ("plan_version", "kind", "seconds_to_plan", "seconds_to_done")
    assert answer(audit, "event_to_done", *columns) == [
        (4, "heal", None, 240),
        (7, "rebalance", 0, None),
        (8, "rollback", 0, None),
    ]


def test_failures_past_their_grace(audit: Audit) -> None:
    columns = ("broker_id", "state", "replicas")
    assert answer(audit, "unhealed", *columns, at=at(39)) == []
    assert answer(audit, "unhealed", *columns, at=at(40.5)) == [(3, "failed", 2)]
    assert answer(audit, "unhealed", *columns, at=at(42)) == []


def test_approvals_and_by_whom(audit: Audit) -> None:
    columns = ("plan_version", "moved_replicas", "decision", "decided_by", "event_id", "decided_by_version")
    found = answer(audit, "approvals", *columns, "seconds_waited")
    assert found == [(6, 1, "approved", "anna", "yes", 7, 120)]


def test_leaders_per_broker(audit: Audit) -> None:
    columns = ("broker_id", "state", "leaders", "replicas")
    assert answer(audit, "leaders_at", *columns, at=at(42)) == [
        (1, "alive", 5, 5),
        (2, "alive", 1, 3),
        (3, "dead", 0, 0),
        (4, "alive", 1, 2),
    ]


def test_the_layout(audit: Audit) -> None:
    then = answer(audit, "layout_at", at=at(5))
    assert then[:4] == [("t", 0, [1, 2], 2), ("t", 5, [1, 4], 2), ("t", 6, [2, 3], 2), ("u", 0, [3], 2)]
    now = answer(audit, "layout_at", at=at(100))
    assert now[2:5] == [("t", 6, [4, 2], 4), ("u", 0, [2], 4), ("u", 1, [1], 8)]


def test_every_query_has_a_test() -> None:
    asked = set(re.findall(r'answer\(audit, "(\w+)"', Path(__file__).read_text(encoding="utf-8")))
    assert {path.stem for path in QUERIES.glob("*.sql")} == asked


def test_what_is_missing_is_said(audit: Audit) -> None:
    with pytest.raises(HistoryError, match="no query 'moved': there are: approvals, event_to_done, "):
        audit.query("moved")
    with pytest.raises(HistoryError, match="query over_share needs at"):
        audit.query("over_share")


def test_frames_for_notebooks(audit: Audit) -> None:
    why = audit.why("u", 1).select("plan_version", "before", "after", "in_effect").collect()
    assert [tuple(row) for row in why] == [
        (2, [], [1], True),
        (6, [1], [4], False),
        (7, [1], [4], True),
        (8, [4], [1], True),
    ]
    assert [row.kind for row in audit.plans().collect()][-3:] == ["rebalance", "rollback", "membership"]
    assert {(row.event_id, row.outcome) for row in audit.events().collect()} >= {
        ("yes", "applied"),
        ("made", "applied"),
    }
    assert [row.state for row in audit.progress().collect()] == ["started", "completed"]
    assert audit.verify() is None
