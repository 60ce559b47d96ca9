"""The job is killed with everything that it started, at every point where it writes; then it is started again.

What comes out must be what an undisturbed run makes of the same files: the same plans, the same state, the same
projections, versions without gaps, and for every line exactly one outcome.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.errors import JobError
from streaming.record.seal import seal_of
from tests.events_for import EventsFor
from tests.job_folder import JobFolder
from tests.streaming.folding import assert_projected

pytestmark = [pytest.mark.spark, pytest.mark.crash]

RUNNER = Path(__file__).parent / "runner.py"
east, west = EventsFor("east"), EventsFor("west")

SETUP = [*east.racks({"a": [1, 2], "b": [3, 4], "c": [5, 6]}), west.joined(1)]
TOPICS = [east.created("orders", 6, 3, minute=1), east.manual("logs", {0: [1], 7: [3]}, minute=1),
          west.created("orders", minute=1)]  # fmt: skip
FILES = [
    [*SETUP, *TOPICS],
    [b"broken", east.created("huge", 1, 9, minute=2), east.joined(1, "a", minute=2)],
    [east.progress(1, "started", minute=3), east.left(77, "failed", minute=3), b"broken too", west.deleted("none"),
     east.left(5, "failed", minute=3), TOPICS[0], east.grown("orders", 8, minute=4)],
    [east.deleted("logs", minute=5), west.grown("orders", 4, minute=5), west.joined(2, minute=40),
     east.joined(7, "c", minute=40)],
    [east.rebalance(minute=41), *SETUP, b"broken for good", east.left(2, "decommissioned", minute=42),
     east.created("late", 2, 1, minute=43)],
]  # fmt: skip
BATCH = 2
"""The batch that is struck: it appends to plan_progress, to quarantine and to the journal."""


def job_in(folder: Path, spark: SparkSession) -> JobFolder:
    job = JobFolder(folder, policy="approval = []", source="max_files_per_trigger = 1")
    job.prepare(spark)
    for lines in FILES:
        job.send(*lines)
    return job


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> JobFolder:
    job = job_in(tmp_path_factory.mktemp("undisturbed"), spark)
    job.run(spark)
    return job


def kill_at(point: str, job: JobFolder, elsewhere: Path, batch: int = BATCH) -> None:
    """Run the job in a process group of its own until it is killed at the point."""
    command = [sys.executable, str(RUNNER), str(job.conf), point, str(batch)]
    ended = subprocess.run(command, cwd=elsewhere, start_new_session=True, check=False, timeout=300)
    assert ended.returncode == -signal.SIGKILL


def last_batch(job: JobFolder, table: str) -> int:
    return max(job.delta(table).to_pyarrow_table()["batch_id"].to_pylist(), default=-1)


def last_commit(job: JobFolder) -> int:
    return max((int(path.name) for path in (job.checkpoint / "commits").glob("[0-9]*")), default=-1)


def half_written(job: JobFolder) -> set[str]:
    """Tables with a file that no commit knows."""
    found = set()
    for table in job.tables.iterdir():
        log = "".join(path.read_text() for path in (table / "_delta_log").glob("*.json"))
        if any(path.name not in log for path in table.glob("*.parquet")):
            found.add(table.name)
    return found


def assert_same(job: JobFolder, undisturbed: JobFolder) -> None:
    for table in ("plans", "quarantine", "plan_progress", "brokers", "assignments"):
        assert job.rows(table) == undisturbed.rows(table), table
    for cluster in ("east", "west"):
        versions = [v.plan_version for v in job.history.versions(cluster)]
        assert versions == list(range(1, len(versions) + 1))
        seals = ["", *(job.history.version(cluster, n).seal for n in versions)]
        assert [seal_of(job.history.version(cluster, n), seals[n - 1]) for n in versions] == seals[1:]
        assert job.layout(cluster) == undisturbed.layout(cluster)
    lines = [f"{n:02}.jsonl:{line}" for n, sent in enumerate(FILES) for line in range(1, len(sent) + 1)]
    assert [place for place, _, _ in job.received()] == sorted(lines)


def test_the_undisturbed_run_takes_every_kind_of_write(spark: SparkSession, undisturbed: JobFolder) -> None:
    kinds = [f"{v.cluster_id} {v.kind}" for v in undisturbed.history.versions()]
    assert kinds == [
        "east membership",
        "east topics",
        "east membership",
        "east topics",
        "east topics",
        "east heal",
        "east membership",
        "east rebalance",
        "east heal",
        "east topics",
        "west membership",
        "west topics",
        "west topics",
        "west membership",
    ]
    assert_same(undisturbed, undisturbed)
    assert_projected(spark, undisturbed)


@pytest.mark.parametrize(
    ("point", "in_journal", "half"),
    [("before_journal", False, set()), ("inside_journal", False, {"plans"}), ("after_journal", True, set())],
)
def test_killed_around_the_journal(
    spark: SparkSession, tmp_path: Path, undisturbed: JobFolder, point: str, in_journal: bool, half: set[str]
) -> None:
    job = job_in(tmp_path / "job", spark)
    kill_at(point, job, tmp_path)
    assert last_batch(job, "quarantine") == last_batch(job, "plan_progress") == BATCH
    assert (last_batch(job, "plans") == BATCH) == in_journal
    assert last_commit(job) == BATCH - 1
    assert half_written(job) - {"brokers", "assignments"} == half
    job.run(spark)
    assert_same(job, undisturbed)
    assert_projected(spark, job)


@pytest.mark.parametrize("point", ["before_note", "inside_note", "after_note"])
def test_killed_around_the_note_of_what_a_batch_reads(
    spark: SparkSession, tmp_path: Path, undisturbed: JobFolder, point: str
) -> None:
    job = job_in(tmp_path / "job", spark)
    kill_at(point, job, tmp_path)
    assert last_batch(job, "quarantine") == last_commit(job) == BATCH - 1
    noted = (job.checkpoint / "files.jsonl").read_bytes()
    assert noted.endswith(b"\n") == (point != "inside_note")
    assert (f'"batch":{BATCH}'.encode() in noted) == (point != "before_note")
    job.run(spark)
    assert_same(job, undisturbed)


@pytest.mark.parametrize("table", ["brokers", "assignments"])
def test_killed_inside_the_write_of_a_projection(
    spark: SparkSession, tmp_path: Path, undisturbed: JobFolder, table: str
) -> None:
    job = job_in(tmp_path / "job", spark)
    kill_at(f"inside_{table}", job, tmp_path)
    assert table in half_written(job)
    job.run(spark)
    assert_same(job, undisturbed)
    assert_projected(spark, job)


def test_killed_between_the_projections(spark: SparkSession, tmp_path: Path, undisturbed: JobFolder) -> None:
    job = job_in(tmp_path / "job", spark)
    kill_at("between_projections", job, tmp_path)
    reached = {name: max(row["plan_version"] for row in job.rows(name)) for name in ("brokers", "assignments")}
    assert reached["brokers"] > reached["assignments"] > 0
    job.run(spark)
    assert_same(job, undisturbed)
    assert_projected(spark, job)


def test_a_jvm_that_outlives_python_keeps_a_second_job_out(
    spark: SparkSession, tmp_path: Path, undisturbed: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python is killed while the JVM is in the middle of the journal's commit, and stands still there."""
    job = job_in(tmp_path / "job", spark)
    kill_at("orphan_jvm", job, tmp_path)
    jvm = int((job.conf.parent / "jvm").read_text())
    try:
        with monkeypatch.context() as impatient:
            impatient.setattr("streaming.guard._LAST_COMMIT", 0.1)
            with pytest.raises(JobError, match=r"another job writes .* which died; the JVM that it started has not"):
                job.run(spark)
    finally:
        os.kill(jvm, signal.SIGCONT)
    job.run(spark)
    assert_same(job, undisturbed)
    assert_projected(spark, job)


@pytest.mark.parametrize("point", ["before_tick", "inside_tick", "after_tick"])
def test_killed_while_time_passes_without_a_batch(spark: SparkSession, tmp_path: Path, point: str) -> None:
    """The source is used up, and the grace of a broker is over: the heal is one version, whenever the job is killed."""
    jobs = [JobFolder(tmp_path / name, policy="approval = []") for name in ("calm", "job")]
    for job in jobs:
        job.send(*east.racks({"a": [1, 2], "b": [3, 4]}), east.created("orders", 6, 2, minute=1),
                 east.left(1, "failed", minute=2))  # fmt: skip
    calm, job = jobs
    calm.run(spark)
    kill_at(point, job, tmp_path, batch=0)
    assert [v.kind for v in job.history.versions()][3:] == (["heal"] if point == "after_tick" else [])
    job.run(spark)
    job.run(spark)
    for table in ("plans", "quarantine", "brokers", "assignments"):
        # Where it was killed before the commit, the next start's first batch is already quiet, and heals.
        assert job.rows(table, batches=False) == calm.rows(table, batches=False), table
    assert [(row["kind"], row["batch_id"]) for row in calm.rows("plans")][-1] == ("heal", 0)
    assert_projected(spark, job)
