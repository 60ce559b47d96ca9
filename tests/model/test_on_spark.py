"""One history on real Spark: the job's tables say what the pure planner says, after restarts, evictions and faults."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from streaming.config import parse_config
from streaming.events import Line
from streaming.job.microbatch import MicroBatches
from streaming.job.tables import Tables
from streaming.planning.batch import BatchResult
from streaming.record.version import EventRecord
from tests.job_folder import JobFolder
from tests.model.history import play
from tests.model.machine import Machine
from tests.streaming.folding import assert_projected

pytestmark = pytest.mark.spark


@dataclass(slots=True, kw_only=True)
class OnSpark(Machine):
    """Plans every batch with the job as well, on real tables; of its memory it keeps one cluster."""

    spark: SparkSession
    job: MicroBatches = field(init=False)
    unplanned: list[EventRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with new tables and a checkpoint."""
        Machine.__post_init__(self)
        Tables(self.config.tables.root).create(self.spark, self.config.tables.audit_window.time)
        checkpoint = Path(self.config.job.checkpoint)
        checkpoint.mkdir(parents=True)
        (checkpoint / "metadata").write_text(json.dumps({"id": "a-query"}))
        self.job = MicroBatches(self.config)

    def restart(self) -> None:
        """Begin anew with what the tables say."""
        self.job.close()
        self.job = MicroBatches(self.config)
        Machine.restart(self)

    def planned(self, raw: Sequence[bytes], lines: Sequence[Line]) -> BatchResult:
        """Plan the lines as one batch, here and there."""
        self.job(_batch_of(self.spark, raw, self.now), self.batches)
        result = Machine.planned(self, raw, lines)
        self.unplanned += result.unplanned
        return result

    def finish(self) -> None:
        """End the job as well."""
        self.job.close()
        Machine.finish(self)


def _batch_of(spark: SparkSession, lines: Sequence[bytes], now: datetime) -> DataFrame:
    """A micro-batch as the source hands it over, with a tick, which has no line."""
    n = len(lines) + 1
    columns = {
        "line": pa.array([*lines, None], pa.binary()),
        "major": pa.array([0] * n, pa.int64()),
        "name": pa.array(["file:/h"] * n),
        "minor": pa.array(range(n), pa.int64()),
        "batch_time": pa.array([now] * n, pa.timestamp("us", "UTC")),
    }
    return spark.createDataFrame(pa.table(columns))


def test_the_job_records_what_the_pure_planner_plans(spark: SparkSession, tmp_path: Path) -> None:
    """Two clusters, one with a hostile name; both are stopped by faults, and resumed."""
    machines: list[OnSpark] = []
    folder = JobFolder(tmp_path / "job")
    base = (
        f'source = {{type = "files", path = "{tmp_path / "none"}"}}\n'
        f'tables = {{root = "{folder.config.tables.root}"}}\n'
        f'job = {{checkpoint = "{folder.checkpoint}", memory = "1KB"}}\n'
    )

    def new(conf: str) -> Machine:
        machines.append(OnSpark(parse_config(base + conf, "history.toml"), base, spark=spark))
        return machines[-1]

    played = play(SEED, events=250, counts=(0, 8, 16), new=new)
    assert not played.broken
    (machine,) = machines
    kinds = {v.kind for cluster in machine.clusters.values() for v in cluster.versions.values()}
    assert {"heal", "stop", "resume"} <= kinds
    assert len(machine.clusters) == 2
    for name, cluster in machine.clusters.items():
        recorded = [version.seal for version in folder.history.versions(name)]
        assert recorded == [version.seal for version in cluster.versions.values()]
    rows = folder.delta("quarantine").to_pyarrow_table().to_pylist()
    columns = ("event_id", "cluster_id", "outcome", "reason", "payload", "sequence")
    assert sorted(repr([row[c] for c in columns]) for row in rows) == sorted(
        repr([getattr(event, c) for c in columns]) for event in machine.unplanned
    )
    assert_projected(spark, folder)


SEED = 0
