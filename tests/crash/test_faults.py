"""What the machine does to a job: the disk full, the tables read-only, no source. It says why, and resumes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.config import load_config
from streaming.errors import JobError
from streaming.job.query import run_job
from streaming.spark.failures import reason_of
from tests.events_for import EventsFor
from tests.job_folder import JobFolder

pytestmark = [pytest.mark.spark, pytest.mark.crash]

east = EventsFor("east")
FILES = [east.racks({"a": [1, 2], "b": [3, 4]}),
         *([east.created(f"t{n}", 50, 2, minute=n)] for n in range(1, 7)),
         [east.left(2, "decommissioned", minute=30)]]  # fmt: skip


@dataclass(frozen=True)
class Disk:
    """A file system of its own, in memory."""

    path: Path

    def mount(self, options: str) -> None:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.path)]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("mounting a file system needs root")

    def remount(self, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", str(self.path)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path / "disk")
    disk.path.mkdir()
    yield disk
    subprocess.run(["umount", "--lazy", str(disk.path)], check=False, capture_output=True)


def job_on(folder: Path) -> JobFolder:
    job = JobFolder(folder, source="max_files_per_trigger = 1")
    for lines in FILES:
        job.send(*lines)
    return job


def assert_as_undisturbed(job: JobFolder, spark: SparkSession, folder: Path) -> None:
    calm = job_on(folder)
    calm.run(spark)
    for table in ("plans", "quarantine", "brokers", "assignments"):
        assert job.rows(table) == calm.rows(table), table
    assert len(job.causes("east")) == len(FILES)


def test_a_full_disk(spark: SparkSession, tmp_path: Path, disk: Disk) -> None:
    disk.mount("size=300k")
    job = job_on(disk.path / "job")
    with pytest.raises(JobError, match=r"job stopped \(reading .*/events, writing .*/tables\): .*No space left"):
        job.run(spark)
    disk.remount("size=50m")
    job.run(spark)
    assert_as_undisturbed(job, spark, tmp_path / "calm")


def test_tables_that_became_read_only(spark: SparkSession, tmp_path: Path, disk: Disk) -> None:
    disk.mount("size=50m")
    job = JobFolder(disk.path / "job", source="max_files_per_trigger = 1")
    for lines in FILES[:3]:
        job.send(*lines)
    job.run(spark)
    for lines in FILES[3:]:
        job.send(*lines)
    disk.remount("ro")
    with pytest.raises(JobError, match=r"the tables cannot be written here: Read-only file system"):
        job.run(spark)
    disk.remount("rw")
    job.run(spark)
    assert_as_undisturbed(job, spark, tmp_path / "calm")


def test_a_source_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    job = JobFolder(tmp_path)
    job.conf.write_text(job.conf.read_text().replace('"files"', '"delta"').replace("/events", "/nowhere"))
    with pytest.raises(JobError, match=r"job stopped \(reading .*/nowhere, writing .*\): .*schema is not set"):
        run_job(load_config(job.conf), once=True, spark=spark)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("No space left", "No space left"),
        ("An error\n  at a.B\nCaused by: a.b.Outer: java.io.IOException: No space left\n\tat x", "No space left"),
        ("Outer\nCaused by: a.B: first\nCaused by: org.x.Y: the disk is gone.\n ... 3 more", "the disk is gone"),
        ("org.apache.X: cannot\n at y", "cannot"),
        ("Two queries use it.\nLogical Plan:\n~Union\n   :- ~Project\n   :  +- ~Scan\n", "Two queries use it"),
        ("x: [FAILED] while reading file file:/t/1.json.  S\nCaused by: a.B: bad", "file:/t/1.json: bad"),
        ('An error occurred while calling o9.sql.\n: a.B: No FileSystem for "s3"\n\tat c.D', 'No FileSystem for "s3"'),
        ("", "ValueError"),
    ],
)
def test_the_reason_is_the_innermost_cause(text: str, reason: str) -> None:
    assert reason_of(ValueError(text)) == reason
