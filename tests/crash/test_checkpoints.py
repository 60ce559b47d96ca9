"""Checkpoints and tables that are damaged, deleted, set back or not of one kind: refused by name, with nothing lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from streaming.config import load_config
from streaming.errors import JobError
from streaming.job.query import run_job
from streaming.kafka.delivery import deliver
from tests.events_for import EventsFor
from tests.job_folder import JobFolder

pytestmark = [pytest.mark.spark, pytest.mark.crash]

east = EventsFor("east")
FILES = [[*east.racks({"a": [1, 2], "b": [3]}), b"broken"], [east.created("t", 2, 2, minute=1)]]
LATER = east.created("later", 2, 2, minute=2)
START_OVER = (
    r"name a new folder in \[job\] checkpoint: the source is then read from its beginning, and events that are known"
)


@pytest.fixture(scope="module")
def planned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> JobFolder:
    """A job that has planned two files, one a batch."""
    job = JobFolder(tmp_path_factory.mktemp("planned") / "job", source="max_files_per_trigger = 1")
    for lines in FILES:
        job.send(*lines)
    job.run(spark)
    return job


@pytest.fixture
def job(planned: JobFolder) -> Iterator[JobFolder]:
    """The same job, to be damaged: it is put back afterwards."""
    folder = planned.conf.parent
    kept = folder.with_name("kept")
    shutil.copytree(folder, kept)
    yield planned
    shutil.rmtree(folder)
    kept.rename(folder)


def newest(folder: Path, pattern: str = "[0-9]*") -> Path:
    found = max(folder.glob(pattern), key=lambda path: int(path.name.partition(".")[0]))
    folder.joinpath(f".{found.name}.crc").unlink(missing_ok=True)
    return found


Damage = Callable[[JobFolder], object]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda job: newest(job.checkpoint / "offsets").write_text("v1\n{"), rf"checkpoint/offsets/1: .*{START_OVER}"),
        (lambda job: newest(job.checkpoint / "offsets").write_text(""), r"checkpoint/offsets/1"),
        (lambda job: newest(job.checkpoint / "commits").write_text("v1\n{"), rf"checkpoint/commits/1: .*{START_OVER}"),
        (lambda job: (job.checkpoint / "metadata").write_text("{"), rf"checkpoint/metadata: .*{START_OVER}"),
        (lambda job: (job.checkpoint / "files.jsonl").write_text("{\n"), rf"checkpoint/files.jsonl: .*{START_OVER}"),
        (lambda job: (job.checkpoint / "files.jsonl").unlink(), rf"checkpoint: this checkpoint was not .*{START_OVER}"),
        (lambda job: (job.checkpoint / "planned.json").write_text("{"), rf"checkpoint/planned.json: .*{START_OVER}"),
        (lambda job: newest(job.tables / "plans" / "_delta_log", "*.json").write_text("{"), "/tables/plans"),
        (lambda job: newest(job.tables / "quarantine" / "_delta_log", "*.json").write_text("{"), "/tables/quarantine"),
        (lambda job: shutil.rmtree(job.tables), rf"plans and quarantine and plan_progress are not what .*{START_OVER}"),
        (lambda job: shutil.rmtree(job.tables / "plans"), rf": plans is not what the checkpoint .*{START_OVER}"),
        (lambda job: shutil.rmtree(job.tables / "quarantine"), rf": quarantine is not what .*{START_OVER}"),
        (lambda job: newer(job, "kind"), "rows of kind 'from the future', which this release does not know"),
        (lambda job: newer(job, "approval"), "rows of approval 'from the future', which this release does not know"),
    ],
)  # fmt: skip
def test_what_stops_the_job_is_named(spark: SparkSession, job: JobFolder, damage: Damage, said: str) -> None:
    damage(job)
    job.send(LATER)
    with pytest.raises(JobError, match=said):
        job.run(spark)


def test_projections_of_tables_that_are_refused_are_not_mended(spark: SparkSession, job: JobFolder) -> None:
    shutil.rmtree(job.tables / "plans")
    projections = ("brokers", "assignments")
    before = [job.delta(name).version() for name in projections]
    with pytest.raises(JobError, match="plans is not what the checkpoint"):
        job.run(spark)
    assert [job.delta(name).version() for name in projections] == before


def newer(job: JobFolder, column: str) -> None:
    """Let a newer release write a row."""
    rows = job.delta("plans").to_pyarrow_table().slice(0, 1).to_pylist()
    rows[0] |= {column: "from the future", "plan_version": 3}
    schema = job.delta("plans").to_pyarrow_table().schema
    write_deltalake(
        job.tables / "plans", type(job.delta("plans").to_pyarrow_table()).from_pylist(rows, schema), mode="append"
    )


def test_the_obvious_repair_of_a_damaged_batch_loses_nothing(spark: SparkSession, job: JobFolder) -> None:
    for log in ("offsets", "commits"):
        newest(job.checkpoint / log).unlink()
    job.send(LATER)
    job.run(spark)
    assert len(job.received()) == 6
    assert "create later @2" in job.outcomes()


def test_tables_that_were_set_back_are_refused_and_a_new_checkpoint_goes_on(
    spark: SparkSession, job: JobFolder, tmp_path: Path
) -> None:
    shutil.copytree(job.tables, tmp_path / "backup")
    job.send(LATER)
    job.run(spark)
    shutil.rmtree(job.tables)
    shutil.copytree(tmp_path / "backup", job.tables)
    with pytest.raises(
        JobError, match=rf"has planned up to batch 2, of which these tables have none after 1; .*{START_OVER}"
    ):
        job.run(spark)
    shutil.rmtree(job.checkpoint)
    job.run(spark)
    assert ("create later @2", "applied") in [(event, outcome) for _, event, outcome in job.received()]


def test_other_lines_under_a_known_number_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A Delta source: what Spark gives to a batch is then the journal's only clue."""
    job = JobFolder(tmp_path / "job", source="max_files_per_trigger = 10")
    job.conf.write_text(job.conf.read_text().replace('"files"', '"delta"'))
    config = load_config(job.conf)
    job.events.rmdir()
    for lines in FILES:
        deliver(config.source, b"\n".join(lines) + b"\n")
        run_job(config, once=True, spark=spark)
    before = job.rows("plans"), job.rows("quarantine")
    newest(job.checkpoint / "commits").unlink()
    run_job(config, once=True, spark=spark)  # the batch comes again as it was
    assert (job.rows("plans"), job.rows("quarantine")) == before

    last = json.loads((job.checkpoint / "planned.json").read_text())["batch"]
    for log in ("offsets", "commits"):
        for path in job.checkpoint.glob(f"{log}/[0-9]*"):
            if int(path.name) >= last:
                path.unlink()
                path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    deliver(config.source, LATER + b"\n")
    with pytest.raises(JobError, match=f"have a batch {last} of this checkpoint that has read something else"):
        run_job(config, once=True, spark=spark)
    assert (job.rows("plans"), job.rows("quarantine")) == before
    shutil.rmtree(job.checkpoint)
    run_job(config, once=True, spark=spark)
    assert ("create later @2", "applied") in [(event, outcome) for _, event, outcome in job.received()]
