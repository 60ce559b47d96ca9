"""Tables that were restored, copied back, half deleted or edited: planning goes on from what the journal says."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from streaming.history.tables import History
from streaming.job.microbatch import NO_BATCH
from streaming.job.projections import PROJECTIONS, Rebuilt
from streaming.job.recovery import load_memory
from streaming.job.tables import Tables
from streaming.planning.batch import Memory
from streaming.planning.state import ClusterState
from streaming.record.rows import versions_to_arrow
from streaming.record.schemas import PROGRESS
from streaming.record.version import FoldDigests
from tests.events_for import EventsFor
from tests.job_folder import JobFolder
from tests.streaming.audit.random_histories import BY_LOAD, random_history
from tests.streaming.driving import Driver
from tests.streaming.folding import assert_projected
from tests.streaming.writing import project, rewrite, write_batches

NO_SPARK = cast("Any", None)
"""Tables in a folder are read without it."""

Row = dict[str, Any]


@pytest.fixture(scope="module")
def played() -> tuple[Driver, list[Any]]:
    return random_history(9, 25, BY_LOAD)


@pytest.fixture
def root(tmp_path: Path, played: tuple[Driver, list[Any]]) -> Path:
    driver, results = played
    write_batches(tmp_path, *results)
    write_deltalake(tmp_path / PROGRESS.name, PROGRESS.schema.empty_table())
    project(tmp_path, driver.journal)
    return tmp_path


def started(root: Path) -> tuple[Memory, list[Rebuilt]]:
    """What a job knows at its start, and what it writes again."""
    rebuilt: list[Rebuilt] = []
    memory = load_memory(NO_SPARK, Tables(str(root)), "app", NO_BATCH, rebuilt.append)
    memory.cluster("c")
    return memory, rebuilt


def folded(driver: Driver, last: int) -> ClusterState:
    state = ClusterState("c")
    for version in driver.journal[:last]:
        state.fold(version)
    return state


def from_scratch(state: ClusterState) -> FoldDigests:
    """The digests of what the state has, whatever it was told that they are."""
    copy = ClusterState("c")
    copy.apply(state.brokers.values(), (), ())
    for name, layout in state.topics.items():
        copy._keep(name, layout)
    copy.loads.take(state.loads.topics.values(), state.loads.limits.values())
    return copy.digests()


def test_versions_keep_the_digests_of_what_they_leave(played: tuple[Driver, list[Any]]) -> None:
    driver, _ = played
    for version in driver.journal:
        state = folded(driver, version.plan_version)
        assert from_scratch(state) == state.digests() == version.fold
    assert len({version.fold for version in driver.journal}) > len(driver.journal) / 2


@pytest.mark.parametrize("reached", [0, 1, 5, 9])
def test_projections_that_are_behind_are_believed_as_far_as_they_reach(
    root: Path, played: tuple[Driver, list[Any]], reached: int
) -> None:
    driver, _ = played
    ahead = shutil.copytree(root / "brokers", root / "brokers ahead")
    project(root, driver.journal[:reached])
    shutil.rmtree(root / "brokers")
    ahead.rename(root / "brokers")
    memory, rebuilt = started(root)
    assert rebuilt == []
    assert from_scratch(memory.cluster("c")) == driver.journal[-1].fold


@pytest.mark.parametrize("last", [1, 6, 12])
def test_a_journal_that_was_restored_makes_ghosts_of_what_is_ahead_of_it(
    root: Path, played: tuple[Driver, list[Any]], last: int
) -> None:
    """With other projections than the last one folded: nothing of the versions that are no more is planned on."""
    driver, _ = played
    shutil.rmtree(root / "plans")
    write_deltalake(root / "plans", versions_to_arrow(driver.journal[:last], "app", 0))
    memory, rebuilt = started(root)
    state = memory.cluster("c")
    assert (state.version, from_scratch(state)) == (last, driver.journal[last - 1].fold)
    named = zip(PROJECTIONS, driver.journal[-1].fold, driver.journal[last - 1].fold, strict=True)
    assert {r.table.name for r in rebuilt} >= {table.name for table, ahead, now in named if ahead != now}
    assert all([v.plan_version for v in r.versions] == list(range(1, last + 1)) for r in rebuilt)


def test_of_a_cluster_that_the_journal_does_not_know_nothing_is_left(
    root: Path, played: tuple[Driver, list[Any]]
) -> None:
    shutil.rmtree(root / "plans")
    write_deltalake(root / "plans", versions_to_arrow([], "app", 0))
    memory, rebuilt = started(root)
    assert memory.cluster("c").brokers == {}
    assert {(r.table.name, len(r.versions)) for r in rebuilt} >= {("brokers", 0), ("assignments", 0)}


EDITS: dict[str, tuple[str, Callable[[list[Row]], list[Row]]]] = {
    "a broker's state": ("brokers", lambda rows: [rows[0] | {"state": "draining"}, *rows[1:]]),
    "a broker less": ("brokers", lambda rows: rows[1:]),
    "a broker more": ("brokers", lambda rows: [*rows, rows[0] | {"broker_id": 99}]),
    "replicas": ("assignments", lambda rows: [rows[0] | {"replicas": [*rows[0]["replicas"][::-1], 77]}, *rows[1:]]),
    "half of the partitions": ("assignments", lambda rows: rows[::2]),
    "a partition twice": ("assignments", lambda rows: [*rows, rows[0]]),
    "no partition id": ("assignments", lambda rows: [rows[0] | {"partition": None}, *rows[1:]]),
    "an observed leader": ("assignments", lambda rows: [rows[0] | {"leader": 5}, *rows[1:]]),
    "an observed ISR": ("assignments", lambda rows: [rows[0] | {"isr": [5]}, *rows[1:]]),
    "a load": ("loads", lambda rows: [rows[0] | {"size": 1}, *rows[1:]]),
    "a limit": ("broker_limits", lambda rows: [rows[0] | {"disk": 1}, *rows[1:]]),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_projection_that_was_edited_is_not_believed(
    root: Path, played: tuple[Driver, list[Any]], edit: str, caplog: pytest.LogCaptureFixture
) -> None:
    driver, _ = played
    table, change = EDITS[edit]
    rewrite(root, table, change)
    memory, rebuilt = started(root)
    assert from_scratch(memory.cluster("c")) == driver.journal[-1].fold
    assert table in {r.table.name for r in rebuilt}
    assert f"the table {table} differs from the journal and is rebuilt" in caplog.text


def test_projections_of_a_journal_without_digests_are_compared_with_its_fold(
    root: Path, played: tuple[Driver, list[Any]]
) -> None:
    """As earlier releases wrote it: the fold is made from the journal, and what is the same is left alone."""
    driver, _ = played
    rows = DeltaTable(root / "plans").to_pyarrow_table()
    write_deltalake(root / "plans", rows.drop_columns(["fold"]), mode="overwrite", schema_mode="overwrite")
    memory, rebuilt = started(root)
    assert (from_scratch(memory.cluster("c")), rebuilt) == (driver.journal[-1].fold, [])
    rewrite(root, *EDITS["replicas"])
    memory, rebuilt = started(root)
    assert from_scratch(memory.cluster("c")) == driver.journal[-1].fold
    assert [r.table.name for r in rebuilt] == ["assignments"]


@pytest.mark.spark
def test_a_job_on_restored_tables_writes_its_projections_again(spark: SparkSession, tmp_path: Path) -> None:
    """The journal is put back to a copy, the projections are ahead; a file of one is lost; names are hostile."""
    one, other = EventsFor("o'ne\\"), EventsFor("other")
    job = JobFolder(tmp_path / "job")
    job.play(spark, *one.racks({"a": [1, 2], "b": [3, 4]}), *other.racks({"a": [1, 2]}), other.created("kept", 4, 2))
    kept = shutil.copytree(job.tables, tmp_path / "copy")
    job.play(spark, one.created("ghost", 8, 2, minute=1), one.left(4, "decommissioned", minute=2))
    for table in ("plans", "quarantine", "plan_progress"):
        shutil.rmtree(job.tables / table)
        shutil.copytree(kept / table, job.tables / table)
    shutil.rmtree(job.checkpoint)
    for path in job.events.iterdir():
        path.unlink()
    job.play(spark, one.created("real", 4, 2, minute=3), one.left(3, "decommissioned", minute=4))
    assert sorted({name.rpartition("-")[0] for name in job.layout("o'ne\\")}) == ["real"]
    assert job.brokers("o'ne\\") == {1: "alive", 2: "alive", 3: "draining", 4: "alive"}
    assert_projected(spark, job)

    before = job.rows("assignments")
    spark.sql(f"RESTORE TABLE delta.`{job.tables}/brokers` TO VERSION AS OF 1")
    for path in DeltaTable(job.tables / "assignments").file_uris():
        Path(path).unlink()
    job.play(spark, other.created("late", 1, 1, minute=5), one.joined(9, "a", minute=5))
    assert_projected(spark, job)
    assert len(job.rows("assignments")) == len(before) + 1
    assert History(str(job.tables)).state("other").topics.keys() == {"kept", "late"}
