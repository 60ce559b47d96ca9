"""Two jobs never write to the same tables."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from streaming.config import parse_config
from streaming.errors import JobError
from streaming.guard import only_writer
from streaming.history.tables import History
from streaming.job.microbatch import MicroBatches
from streaming.job.tables import Tables
from tests.events_for import EventsFor


def test_a_second_job_is_told_who_the_first_is(tmp_path: Path) -> None:
    program = f"""
        from streaming.guard import only_writer
        with only_writer({str(tmp_path)!r}):
            print("mine", flush=True)
            input()
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "mine\n"
        said = rf"another job writes to these tables \(process {first.pid} on"
        with pytest.raises(JobError, match=said), only_writer(str(tmp_path)):
            pass
        first.kill()
    with only_writer(str(tmp_path)):
        pass


def query(folder: Path, name: str) -> MicroBatches:
    """The function that foreachBatch calls in a query of this name, on tables behind a URL."""
    checkpoint = folder / name
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text(json.dumps({"id": name}))
    conf = f'[tables]\nroot = "file://{folder}/tables"\n[job]\ncheckpoint = "{checkpoint}"\n'
    return MicroBatches(parse_config(conf, "test"))


def lines(spark: SparkSession, *events: bytes) -> DataFrame:
    rows = [(event, 0, "file:/e.jsonl", n, datetime(2026, 3, 2, tzinfo=UTC)) for n, event in enumerate(events)]
    return spark.createDataFrame(rows, "line binary, major long, name string, minor long, batch_time timestamp")


@pytest.mark.spark
def test_behind_a_url_the_job_that_comes_too_late_writes_nothing_and_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    east = EventsFor("east")
    tables = Tables(f"file://{tmp_path}/tables")
    tables.create(spark, timedelta(days=30))
    first, second = query(tmp_path, "first"), query(tmp_path, "second")
    first(lines(spark, *east.racks({"a": [1, 2]})), 0)
    first(lines(spark, east.created("orders", 2, 2, minute=1)), 1)
    second(lines(spark, east.created("logs", 2, 2, minute=2)), 0)
    with pytest.raises(JobError, match=r"another job writes plans to these tables \(.*second.*\), so this one has"):
        first(lines(spark, east.created("late", 2, 2, minute=3)), 2)
    for batches in (first, second):
        batches.close()
    history = History(str(tmp_path / "tables"))
    assert [v.cause for v in history.versions("east")][1:] == [
        "topic orders created with 2 partitions (balanced)",
        "topic logs created with 2 partitions (balanced)",
    ]


def test_a_folder_that_cannot_be_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JobError, match="the tables cannot be written here"), only_writer(str(tmp_path / "file")):
        pass


def test_what_inherits_the_lock_holds_it_until_it_ends(tmp_path: Path) -> None:
    """As a JVM does that outlives the Python process which started it."""
    program = f"""
        import os, subprocess, sys
        from streaming.guard import only_writer
        with only_writer({str(tmp_path)!r}) as lock:
            quiet = {{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}}
            child = subprocess.Popen(["sleep", "60"], pass_fds=[lock], **quiet)
            print(child.pid, flush=True)
            os.kill(os.getpid(), 9)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False
    )
    child = int(ended.stdout)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: only_writer(str(tmp_path)).__enter__())
        time.sleep(1.0)
        assert not waiting.done()
        os.kill(child, signal.SIGKILL)
        assert waiting.result(10) is not None


def test_a_lock_that_was_left_on_the_ordinary_way_is_free_though_a_child_inherited_it(tmp_path: Path) -> None:
    with only_writer(str(tmp_path)) as lock:
        assert lock is not None
        child = subprocess.Popen(["sleep", "60"], pass_fds=[lock])
    try:
        with only_writer(str(tmp_path)):
            pass
    finally:
        child.kill()
        child.wait()
