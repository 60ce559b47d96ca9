"""A collector beside the live cluster, the job, and the commands that people use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from streaming.cli.main import cli
from streaming.config import load_config
from streaming.history.tables import History
from streaming.job.query import run_job
from streaming.planning.batch import BatchResult
from streaming.record.version import PlanVersion
from tests.live_kafka.cluster import wait_until
from tests.live_kafka.watched import CLUSTER, Watched

PATIENCE = 120.0
CONF = """\
[tables]
root = "{folder}/tables"

[job]
checkpoint = "{folder}/checkpoint"
interval = "200ms"

[policy]
grace = "3s"
wave_moves = 5
approval = ["rebalance"]
"""


class Loop:
    """All of it in one folder; ``collect`` goes into that section of the conf, ``more`` at its end."""

    def __init__(self, folder: Path, servers: str, spark: SparkSession, collect: str = "", more: str = "") -> None:
        self.servers = servers
        self.watched = Watched(folder, servers, collect + CONF.format(folder=folder) + more)
        self.config = load_config(self.watched.conf)
        self.history = History(self.config.tables.root)
        self.versions: list[PlanVersion] = []
        self._stop = threading.Event()
        self._job = threading.Thread(
            target=run_job,
            args=(self.config,),
            kwargs={"spark": spark, "observer": self._observe, "stop": self._stop},
        )

    def _observe(self, result: BatchResult) -> None:
        self.versions += result.versions

    def start(self) -> None:
        self._job.start()
        self.watched.start()

    def stop(self) -> None:
        self.watched.kill()
        self._stop.set()
        self._job.join(60)

    def run(self, *arguments: str) -> str:
        done = CliRunner().invoke(cli, [*arguments, "--conf", str(self.watched.conf)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    def submit(self, kind: str, **fields: Any) -> None:
        options = [part for name, value in fields.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        self.run("submit", "--type", kind, "--cluster", CLUSTER, *options)

    def version(self, reached: Callable[[PlanVersion], bool], what: str) -> PlanVersion:
        return wait_until(lambda: next(filter(reached, list(self.versions)), None), what, PATIENCE)  # type: ignore[return-value]

    def apply(self, *options: str) -> str:
        return self.run("apply", "--bootstrap-server", self.servers, CLUSTER, *options)

    def planned(self) -> dict[str, list[int]]:
        """Where the journal has each partition."""
        topics = History(self.config.tables.root).state(CLUSTER).topics
        return {
            f"{name}-{p}": row
            for name, topic in sorted(topics.items())
            if not name.startswith("__")
            for p, row in zip(topic.partitions.tolist(), topic.replicas.tolist(), strict=True)
        }

    def completed(self) -> set[int]:
        rows = DeltaTable(f"{self.config.tables.root}/plan_progress").to_pyarrow_table().to_pylist()
        return {row["plan_version"] for row in rows if row["state"] == "completed"}
