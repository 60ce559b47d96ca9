"""A job in a folder of its own: its conf, the events it is sent, and what stands in its tables afterwards."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from streaming.config import load_config
from streaming.history.tables import History
from streaming.job.query import run_job
from streaming.job.tables import Tables
from tests.events_for import T0

CONF = """\
[source]
type = "files"
path = "{folder}/events"
{source}

[tables]
root = "{folder}/tables"

[job]
checkpoint = "{folder}/checkpoint"
interval = "100ms"
projection_interval = "1ms"

[policy]
{policy}
"""

RUN_DEPENDENT = ("app_id", "created_at", "received_at", "seal")
"""Columns that two runs over the same events may fill differently."""


@cache
def _empty_tables(spark: SparkSession, window: timedelta) -> Path:
    """The tables as a job creates them, once a session."""
    folder = tempfile.mkdtemp(prefix="empty-tables-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Tables(folder).create(spark, window)
    return Path(folder)


class JobFolder:
    def __init__(self, folder: Path, *, policy: str = "", source: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.events = folder / "events"
        self.tables = folder / "tables"
        self.checkpoint = folder / "checkpoint"
        self.conf = folder / "conf.toml"
        self.conf.write_text(CONF.format(folder=folder, source=source, policy=policy))
        self.config = load_config(self.conf)
        self.events.mkdir(exist_ok=True)

    def send(self, *lines: bytes, name: str = "", second: int | None = None) -> None:
        """Put lines into the source as one file, whole when its name appears; later files have later times."""
        number = len(list(self.events.glob("*.jsonl")))
        hidden = self.events / ".writing"
        hidden.write_bytes(b"".join(line + b"\n" for line in lines))
        time = T0.timestamp() + (number if second is None else second)
        os.utime(hidden, (time, time))
        hidden.rename(self.events / (name or f"{number:02}.jsonl"))

    def prepare(self, spark: SparkSession) -> None:
        """Give a new job its empty tables as a copy: creating them takes most of a short run."""
        if not self.tables.exists() and not self.checkpoint.exists():
            shutil.copytree(_empty_tables(spark, self.config.tables.audit_window.time), self.tables)

    def run(self, spark: SparkSession) -> None:
        """Take what is there, then stop."""
        self.prepare(spark)
        run_job(self.config, once=True, spark=spark)

    def play(self, spark: SparkSession, *lines: bytes) -> None:
        self.send(*lines)
        self.run(spark)

    @property
    def history(self) -> History:
        return History(str(self.tables))

    def delta(self, table: str) -> DeltaTable:
        return DeltaTable(self.tables / table)

    def rows(self, table: str, *, batches: bool = True) -> list[dict[str, Any]]:
        """The rows without what depends on the run, in an order that does not; on request without their batches."""
        rows = self.delta(table).to_pyarrow_table().to_pylist()
        dependent = RUN_DEPENDENT if batches else (*RUN_DEPENDENT, "batch_id")
        kept = [{name: value for name, value in row.items() if name not in dependent} for row in rows]
        return sorted(kept, key=lambda row: json.dumps(row, default=str, sort_keys=True))

    def received(self) -> list[tuple[str, str, str]]:
        """``(place, event id, outcome)`` of every line received, by place."""
        planned = [event for row in self.rows("plans") for event in row["events"]]
        return sorted((e["place"], e["event_id"] or "", e["outcome"]) for e in [*planned, *self.rows("quarantine")])

    def outcomes(self) -> dict[str, str]:
        """The outcome of every event by its id, of lines without one by their place, of repeats as ``id again``."""
        found = [
            (f"{event_id} again" if outcome == "duplicate" else event_id or place, outcome)
            for place, event_id, outcome in self.received()
        ]
        assert len(dict(found)) == len(found), "two outcomes for one event"
        return dict(found)

    def layout(self, cluster: str) -> dict[str, list[int]]:
        """Replicas by partition, such as ``{"orders-0": [1, 2]}``, as folded from the journal."""
        return {
            f"{name}-{partition}": [b for b in replicas if b >= 0]
            for name, topic in sorted(self.history.state(cluster).topics.items())
            for partition, replicas in zip(topic.partitions.tolist(), topic.replicas.tolist(), strict=True)
        }

    def brokers(self, cluster: str) -> dict[int, str]:
        """State by broker id, as folded from the journal."""
        return {b: record.state for b, record in sorted(self.history.state(cluster).brokers.items())}

    def causes(self, cluster: str) -> list[str]:
        """One line a version: number, kind, approval where there is any, cause."""
        return [
            f"v{v.plan_version} {v.kind}{'' if v.approval == 'not_required' else ' ' + v.approval}: {v.cause}"
            for v in self.history.versions(cluster)
        ]

    def plan(self, cluster: str, version: int) -> list[str]:
        """The whole plan, one line a changed partition, such as ``orders-0 [1, 2] → [3, 2] lost``."""
        return [
            f"{block.topic}-{partition} {before} → {after} {reason}"
            for block in self.history.version(cluster, version).moves
            for partition, before, after, reason in block.rows()
        ]
