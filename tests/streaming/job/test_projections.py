"""Projections: thrown away, fallen behind, or up to date, they are the fold of the journal after the next run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.events_for import EventsFor
from tests.job_folder import JobFolder
from tests.streaming.folding import assert_projected

pytestmark = pytest.mark.spark

east, west = EventsFor("east"), EventsFor("west")

PAST = [
    [
        *east.racks({"a": [1, 4], "b": [2], "c": [3]}),
        east.manual("orders", {0: [1, 2, 3], 5: [2, 3, 1]}, minute=1),
        east.manual("logs", {0: [2]}, minute=1),
        west.joined(1),
        west.manual("orders", {0: [1]}, minute=1),
        east.weighed(
            {("orders", 0): 1000, ("orders", 5): 3000, ("logs", 0): 70},
            minute=1,
            brokers=[{"broker_id": 1, "disk": 9000}, {"broker_id": 2, "log_dirs": [{"path": "/d", "limit": 9}]}],
        ),
        west.weighed({("orders", 0): 10}, minute=1),
    ],
    [
        east.left(1, "unregistered", minute=2),
        east.deleted("logs", minute=3),
        west.joined(2, minute=3),
        west.deleted("orders", minute=4),
        east.weighed({("orders", 0): 2000}, minute=90, brokers=[{"broker_id": 3, "cpu": 7}]),
    ],
]
FUTURE = [
    [
        east.joined(1, "a", minute=95),
        east.rebalance(minute=96),
        east.grown("orders", 3, minute=97),
        east.weighed({("orders", 6): 500}, minute=200),
    ],
    [
        east.left(4, "decommissioned", minute=208),
        east.created("clicks", 2, 1, minute=209),
        west.created("late", minute=209),
        west.weighed({("late", 0): 5}, minute=210),
    ],
]


@pytest.fixture(scope="module")
def past(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> JobFolder:
    """Two runs, so that both projections have versions: the second one changes brokers, moves replicas, deletes."""
    job = JobFolder(tmp_path_factory.mktemp("past"))
    for lines in PAST:
        job.play(spark, *lines)
    assert_projected(spark, job)
    return job


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, past: JobFolder, tmp_path_factory: pytest.TempPathFactory) -> JobFolder:
    """What comes of the future where nobody touches the projections."""
    job = copy_of(past, tmp_path_factory.mktemp("undisturbed"))
    for lines in FUTURE:
        job.play(spark, *lines)
    return job


@pytest.fixture
def job(past: JobFolder, tmp_path: Path) -> JobFolder:
    return copy_of(past, tmp_path / "job")


def copy_of(job: JobFolder, folder: Path) -> JobFolder:
    """The same tables elsewhere, for a new checkpoint; the events stay behind, because they have been read."""
    copy = JobFolder(folder)
    shutil.copytree(job.tables, copy.tables)
    return copy


def go_back(spark: SparkSession, job: JobFolder, table: str) -> None:
    """Bring a projection back to what it was after its first merge."""
    merges = [commit["version"] for commit in job.delta(table).history() if commit["operation"] == "MERGE"]
    assert len(merges) == 2
    spark.sql(f"RESTORE TABLE delta.`{job.tables}/{table}` TO VERSION AS OF {min(merges)}")


def test_a_deleted_topic_and_a_broker_that_is_gone(spark: SparkSession, past: JobFolder) -> None:
    rows = {(row["cluster_id"], row["topic"]) for row in past.rows("assignments")}
    assert rows == {("east", "orders")}
    assert {(row["cluster_id"], row["topic"]) for row in past.rows("loads")} == {("east", "orders")}
    assert {row["broker_id"] for row in past.rows("broker_limits")} == {2, 3}
    assert {b["broker_id"]: b["state"] for b in past.rows("brokers") if b["cluster_id"] == "east"}[1] == "gone"


@pytest.mark.parametrize("removed", [("brokers", "assignments", "loads", "broker_limits"), ("assignments",)])
def test_projections_that_were_removed_are_rebuilt_without_a_new_event(
    spark: SparkSession, job: JobFolder, removed: tuple[str, ...]
) -> None:
    plans = job.rows("plans")
    for table in removed:
        shutil.rmtree(job.tables / table)
    job.run(spark)
    assert_projected(spark, job)
    assert job.rows("plans") == plans


@pytest.mark.parametrize("behind", ["brokers", "assignments", "loads"])
def test_a_projection_behind_the_other_catches_up_while_planning_goes_on(
    spark: SparkSession, job: JobFolder, undisturbed: JobFolder, behind: str
) -> None:
    go_back(spark, job, behind)
    for lines in FUTURE:
        job.play(spark, *lines)
        assert_projected(spark, job)
    assert job.layout("east") == undisturbed.layout("east")
    versions = zip(job.history.versions(), undisturbed.history.versions(), strict=True)
    assert [here.plan_version for here, there in versions if here.digest != there.digest] == []
