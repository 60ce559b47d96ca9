"""Runs the job on a conf, and kills the whole process group at a chosen point, or Python alone.

``python runner.py CONF POINT BATCH``: the points are the functions of this module, and ``BATCH`` is the micro-batch
that journal points strike in. The job's own functions run; what is added stands before or after them.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkContext

from streaming.config import load_config
from streaming.job import projections
from streaming.job.folder_log import FolderLog, Part
from streaming.job.query import run_job
from streaming.job.tables import Tables
from streaming.record.schemas import ASSIGNMENTS, BROKERS, PLANS, Table
from streaming.record.version import PlanVersion

append = Tables.append
note = FolderLog.append
merge = projections.merge
merge_statement = projections.merge_statement


def kill() -> None:
    if os.getpgrp() != os.getpid():
        raise RuntimeError("start this in a session of its own: it kills its process group")
    os.killpg(os.getpgrp(), signal.SIGKILL)
    time.sleep(60)


def parquet_files(table: Path) -> set[str]:
    return {path.name for path in table.glob("*.parquet")}


def kill_python_alone() -> None:
    """Leave a JVM that is stopped in the middle of what it does; its process id stands beside the conf."""
    jvm = SparkContext._gateway.proc.pid
    os.kill(jvm, signal.SIGSTOP)
    Path(sys.argv[1]).with_name("jvm").write_text(str(jvm))
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def at_first_new_file(table: Path, strike: Callable[[], None] = kill) -> None:
    """From now on, strike as soon as Spark begins to write into the table: its commit comes a good deal later."""
    before = parquet_files(table)

    def watch() -> None:
        while parquet_files(table) == before:
            time.sleep(0.001)
        strike()

    threading.Thread(target=watch, daemon=True).start()


def at_append(batch: int, strike: Callable[[Path], None], *, after: bool = False, ticks: bool = False) -> None:
    """Strike when the journal gets this batch, or this tick."""

    def wrapped(self: Tables, spark: Any, table: Table, rows: pa.Table, *, user_metadata: str, **options: Any) -> None:
        told = json.loads(user_metadata or "{}")
        mine = table is PLANS and told["batch"] == batch and told["app"].endswith("/ticks") == ticks
        if mine and not after:
            strike(Path(self.path(table)))
        append(self, spark, table, rows, user_metadata=user_metadata, **options)
        if mine and after:
            strike(Path(self.path(table)))

    Tables.append = wrapped  # type: ignore[method-assign]


def before_journal(batch: int) -> None:
    at_append(batch, lambda _: kill())


def inside_journal(batch: int) -> None:
    at_append(batch, at_first_new_file)


def after_journal(batch: int) -> None:
    at_append(batch, lambda _: kill(), after=True)


def at_note(batch: int, strike: Callable[[FolderLog, Sequence[Part]], None], *, after: bool = False) -> None:
    """Strike when the checkpoint gets to know what the batch reads."""

    def wrapped(self: FolderLog, number: int, parts: Sequence[Part]) -> None:
        if number == batch and not after:
            strike(self, parts)
        note(self, number, parts)
        if number == batch:
            strike(self, parts)

    FolderLog.append = wrapped  # type: ignore[method-assign]


def before_note(batch: int) -> None:
    at_note(batch, lambda *_: kill())


def after_note(batch: int) -> None:
    at_note(batch, lambda *_: kill(), after=True)


def inside_note(batch: int) -> None:
    def half(log: FolderLog, _: Sequence[Part]) -> None:
        content = log.path.read_bytes()
        log.path.write_bytes(content[: content.rfind(b"\n", 0, -1) + 20])
        kill()

    at_note(batch, half, after=True)


def orphan_jvm(batch: int) -> None:
    at_append(batch, lambda plans: at_first_new_file(plans, kill_python_alone))


def before_tick(tick: int) -> None:
    at_append(tick, lambda _: kill(), ticks=True)


def inside_tick(tick: int) -> None:
    at_append(tick, at_first_new_file, ticks=True)


def after_tick(tick: int) -> None:
    at_append(tick, lambda _: kill(), after=True, ticks=True)


def rows_for(table: Table, versions: Sequence[PlanVersion]) -> int:
    rows = projections.broker_rows if table is BROKERS else projections.assignment_rows
    return int(rows(versions).num_rows)


def at_second_merge(table: Table, strike: Callable[[Path], None]) -> None:
    """Strike when the table, which has versions already, is about to get newer ones."""
    merged = 0

    def wrapped(tables: Tables, target: Table, source: str) -> str:
        nonlocal merged
        merged += target is table
        if target is table and merged == 2:
            strike(Path(tables.path(table)))
        return merge_statement(tables, target, source)

    projections.merge_statement = wrapped


def inside_brokers(_: int) -> None:
    at_second_merge(BROKERS, at_first_new_file)


def inside_assignments(_: int) -> None:
    at_second_merge(ASSIGNMENTS, at_first_new_file)


def between_projections(_: int) -> None:
    """Strike when brokers have got versions that assignments are about to get, too."""
    newer = False

    def noting(spark: Any, tables: Tables, versions: Sequence[PlanVersion]) -> None:
        nonlocal newer
        newer = all(rows_for(table, versions) for table in (BROKERS, ASSIGNMENTS)) and has_rows(tables)
        merge(spark, tables, versions)

    def wrapped(tables: Tables, target: Table, source: str) -> str:
        if target is ASSIGNMENTS and newer:
            kill()
        return merge_statement(tables, target, source)

    projections.merge = noting
    projections.merge_statement = wrapped


def has_rows(tables: Tables) -> bool:
    return bool(parquet_files(Path(tables.path(ASSIGNMENTS))))


if __name__ == "__main__":
    conf, point, number = sys.argv[1:]
    globals()[point](int(number))
    run_job(load_config(conf), once=True)
