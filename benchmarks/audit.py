"""What it takes to ask a long journal: every reading command as a whole process, on 1,000 plans and 100,000 partitions.

    python -m benchmarks.audit [FOLDER]

The history is planned and written by the job's own function on real Spark, one append a plan, from a seed. It is asked
twice: as it was written, 1,000 files and commits, and after the job's housekeeping. That takes a quarter of an hour;
with a FOLDER the history is kept there, and asked again the next time without being written again.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks.control_plane import LINES, T0, Bench
from streaming.history.tables import History
from streaming.job.maintenance import maintain
from streaming.job.tables import Tables
from streaming.spark.session import spark_session

PLANS, PARTITIONS, BROKERS, RACKS = 1_000, 100_000, 100, 5
ROUNDS = 3
COMMAND = Path(sys.executable).with_name("replica-planner")
QUESTIONS = (
    ("plans",),
    ("why", "east", "t500", "50"),
    ("diff", "east", "200", "900"),
    ("status", "east"),
    ("status", "east", "--as-of", "500"),
    ("status", "east", "--as-of", "2026-01-08T00:00:00Z"),
    ("describe", "--topic", "t500"),
    ("describe", "--topic", "t500", "--as-of", "500"),
    ("show", "east", "900"),
)


class Chronicle(Bench):
    """Writes the history: a batch every twenty minutes, most of them answered by a plan."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        super().__init__(spark, folder, '[policy]\napproval = []\nsettle = "0s"\n')
        self._random = random.Random(20_260_101)
        self._small: dict[str, int] = {}
        self._out: list[int] = []

    def frame(self, lines: Iterable[bytes]) -> DataFrame:
        now = T0 + timedelta(minutes=20 * (self.batch_id + 2))
        rows = [(line, 0, "benchmark", n, now) for n, line in enumerate(lines)]
        table = pa.table([pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), LINES, strict=True)], LINES)
        return self.spark.createDataFrame(table)

    def batches_of_lines(self) -> Iterator[list[bytes]]:
        yield self.cluster("east", brokers=BROKERS, racks=RACKS)
        topics, each = PARTITIONS // 100, 10
        for first in range(0, topics, each):
            yield [
                self.event("east", "topic_created", topic=f"t{t}", partitions=100, replication_factor=3)
                for t in range(first, first + each)
            ]
        number = 0
        while self._version() < PLANS:
            yield [self._something(number)]
            number += 1

    def _version(self) -> int:
        memory = self.batches._memory
        assert memory is not None
        return memory.clusters["east"].version

    def _something(self, number: int) -> bytes:
        """A broker leaves or returns, the cluster is evened out, a small topic comes, grows or goes."""
        kind = self._random.random()
        if kind < 0.06 and len(self._out) < 5:
            broker = self._random.choice(sorted(set(range(BROKERS)) - set(self._out)))
            self._out.append(broker)
            return self.event("east", "broker_left", broker_id=broker, reason="decommissioned")
        if kind < 0.12 and self._out:
            broker = self._out.pop(0)
            return self.event("east", "broker_joined", broker_id=broker, rack=f"r{broker % RACKS}")
        if kind < 0.18:
            return self.event("east", "rebalance_requested")
        if kind < 0.4 and self._small:
            topic = self._random.choice(sorted(self._small))
            self._small[topic] += 6
            return self.event("east", "partitions_added", topic=topic, partitions=self._small[topic])
        if kind < 0.55 and self._small:
            topic = self._random.choice(sorted(self._small))
            del self._small[topic]
            return self.event("east", "topic_deleted", topic=topic)
        topic = f"small-{number}"
        self._small[topic] = 6
        return self.event("east", "topic_created", topic=topic, partitions=6, replication_factor=3)


def write_histories(folder: Path) -> None:
    """``written`` and ``compacted`` below the folder, unless they are there."""
    if (folder / "compacted").exists():
        return
    spark = spark_session("benchmark", settings={"spark.driver.memory": "2g"})
    chronicle = Chronicle(spark, folder / "written")
    for lines in chronicle.batches_of_lines():
        chronicle.run(lines)
    chronicle.batches.close()
    shutil.copytree(folder / "written", folder / "unfinished")
    maintain(spark, Tables(str(folder / "unfinished" / "tables")))
    (folder / "unfinished").rename(folder / "compacted")
    spark.stop()


@dataclass(frozen=True)
class Cost:
    """Seconds of a whole process and its children."""

    cpu: float
    wall: float


def ask(question: tuple[str, ...], conf: Path, rounds: int) -> Cost:
    """Medians of some runs of a command."""
    environment = os.environ | {"REPLICA_PLANNER_CONF": str(conf)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as a user's shell has it
    costs = []
    for _ in range(rounds):
        before, start = _cpu(), time.perf_counter()
        subprocess.run([COMMAND, *question], env=environment, stdout=subprocess.DEVNULL, check=True)
        costs.append(Cost(_cpu() - before, time.perf_counter() - start))
    return Cost(statistics.median(c.cpu for c in costs), statistics.median(c.wall for c in costs))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ask_all(folder: Path) -> None:
    confs = []
    for name in ("written", "compacted"):
        root = folder / name / "tables"
        confs.append(folder / f"{name}.toml")
        confs[-1].write_text(f'[tables]\nroot = "{root}"\n', encoding="utf-8")
        history = History(str(root))
        state = history.state("east")
        files = len(list((root / "plans").glob("*.parquet")))
        partitions = sum(layout.partitions.size for layout in state.topics.values())
        print(f"{name}: {state.version:,} plans, {partitions:,} partitions, {files:,} files of plans on disk")
    print("\n| command | as written, CPU s | wall s | compacted, CPU s | wall s |\n| --- | --- | --- | --- | --- |")
    asked = [question for plain in QUESTIONS for question in (plain, (*plain, "--json"))]
    for question in QUESTIONS:
        ask(question, confs[0], 1)  # compiles what it imports
    for question in [*asked, ("verify",)]:
        costs = [ask(question, conf, 1 if question == ("verify",) else ROUNDS) for conf in confs]
        cells = " | ".join(f"{cost.cpu:.2f} | {cost.wall:.2f}" for cost in costs)
        print(f"| `{' '.join(question)}` | {cells} |", flush=True)


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(names[0] if names else temporary).absolute()
        write_histories(folder)
        ask_all(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
