"""The job on real Spark and Delta: what a batch costs beside a trivial append, throughput, fleets, growth.

Run ``python -m benchmarks.control_plane [batch|size|throughput|fleet|growth ...]``. Everything is measured in turns in
one process, and printed as ratios.
"""

from __future__ import annotations

import gc
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from streaming.config import Config, parse_config
from streaming.job.microbatch import MicroBatches
from streaming.job.query import run_job
from streaming.job.tables import Tables
from streaming.kafka.delivery import deliver
from streaming.spark.session import spark_session

T0 = datetime(2026, 1, 1, tzinfo=UTC)
LINES = pa.schema(
    [
        ("line", pa.binary()),
        ("major", pa.int64()),
        ("name", pa.string()),
        ("minor", pa.int64()),
        ("batch_time", pa.timestamp("us", tz="UTC")),
    ]
)


class Bench:
    """Tables of their own, and batches handed to the function that ``foreachBatch`` calls."""

    def __init__(self, spark: SparkSession, folder: Path, conf: str = "") -> None:
        self.spark = spark
        self.config: Config = parse_config(
            f'[source]\ntype = "files"\npath = "{folder}/events"\n[tables]\nroot = "{folder}/tables"\n'
            f'[job]\ncheckpoint = "{folder}/checkpoint"\nprojection_interval = "1h"\n{conf}',
            "benchmark",
        )
        checkpoint = Path(self.config.job.checkpoint)
        checkpoint.mkdir(parents=True)
        (checkpoint / "metadata").write_text('{"id": "benchmark"}')
        Tables(self.config.tables.root).create(spark, self.config.tables.audit_window.time)
        self.batches = MicroBatches(self.config)
        self.events = 0
        self.batch_id = -1

    def event(self, cluster: str, kind: str, **fields: object) -> bytes:
        self.events += 1
        moment = (T0 + timedelta(seconds=self.events)).isoformat()
        head = {"event_id": f"e{self.events}", "cluster_id": cluster, "type": kind, "occurred_at": moment}
        return json.dumps(head | fields).encode()

    def frame(self, lines: Iterable[bytes]) -> DataFrame:
        rows = [(line, 0, "benchmark", n, T0 + timedelta(days=1)) for n, line in enumerate(lines)]
        table = pa.table([pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), LINES, strict=True)], LINES)
        return self.spark.createDataFrame(table)

    def run(self, lines: Iterable[bytes]) -> float:
        """Seconds that the job's function takes for a batch of these lines."""
        frame = self.frame(lines)
        self.batch_id += 1
        began = time.perf_counter()
        self.batches(frame, self.batch_id)
        return time.perf_counter() - began

    def cluster(self, name: str, brokers: int = 12, racks: int = 3) -> list[bytes]:
        return [self.event(name, "broker_joined", broker_id=b, rack=f"r{b % racks}") for b in range(brokers)]

    def trivial(self, path: Path) -> Callable[[Iterable[bytes]], float]:
        """The yardstick: a function that collects the batch and appends one row to a Delta table."""

        def run(lines: Iterable[bytes]) -> float:
            frame = self.frame(lines)
            began = time.perf_counter()
            n = frame.toArrow().num_rows
            one = self.spark.createDataFrame(pa.table({"n": pa.array([n], pa.int64())})).coalesce(1)
            one.write.format("delta").mode("append").save(str(path))
            return time.perf_counter() - began

        return run


def batch(spark: SparkSession, folder: Path, rounds: int = 15) -> None:
    """A batch of 1, 10 or 100 clusters' events beside a trivial append."""
    bench = Bench(spark, folder)
    for c in range(100):
        bench.run(bench.cluster(f"c{c}"))
    trivial = bench.trivial(folder / "trivial")
    for clusters in (1, 10, 100):
        ours, theirs = [], []
        for number in range(rounds + 3):
            lines = [
                bench.event(f"c{c}", "topic_created", topic=f"t{clusters}-{number}", partitions=6)
                for c in range(clusters)
            ]
            theirs.append(trivial(lines))
            ours.append(bench.run(lines))
        report(f"batch of {clusters} clusters", ours[3:], theirs[3:], 1.3)


def size(spark: SparkSession, folder: Path, rounds: int = 12) -> None:
    """A topic for a cluster of 1k, 100k or 1M partitions beside a trivial append."""
    bench = Bench(spark, folder)
    trivial = bench.trivial(folder / "trivial")
    for partitions in (1_000, 100_000, 1_000_000):
        name = f"p{partitions}"
        bench.run(bench.cluster(name, brokers=60))
        topics = [
            bench.event(name, "topic_created", topic=f"t{t}", partitions=1_000, replication_factor=3)
            for t in range(partitions // 1_000)
        ]
        bench.run(topics)
        ours, theirs = [], []
        for number in range(rounds + 3):
            lines = [bench.event(name, "topic_created", topic=f"n{number}", partitions=6, replication_factor=3)]
            theirs.append(trivial(lines))
            ours.append(bench.run(lines))
        report(f"cluster of {partitions:,} partitions", ours[3:], theirs[3:], 1.5)


def throughput(spark: SparkSession, folder: Path) -> None:
    """100,000 topics of 10 partitions in 50 clusters, beside Spark parsing and appending the lines."""
    bench = Bench(spark, folder)
    deliver(bench.config.source, b"".join(e + b"\n" for c in range(50) for e in bench.cluster(f"c{c}")))
    config = parse_config(
        f'[source]\ntype = "files"\npath = "{folder}/events"\n[tables]\nroot = "{folder}/tables"\n'
        f'[job]\ncheckpoint = "{folder}/checkpoint-backlog"\nprojection_interval = "1h"\n',
        "benchmark",
    )
    run_job(config, once=True, spark=spark)
    lines = [
        bench.event(f"c{n % 50}", "topic_created", topic=f"t{n}", partitions=10, replication_factor=3)
        for n in range(100_000)
    ]
    backlog = folder / "backlog"
    backlog.mkdir()
    (backlog / "lines.jsonl").write_bytes(b"\n".join(lines))
    schema = "event_id string, cluster_id string, type string, occurred_at string, topic string, partitions int"
    for _ in range(2):
        began = time.perf_counter()
        plain = spark.readStream.schema(schema).json(str(backlog)).writeStream.format("delta")
        target = tempfile.mkdtemp(dir=folder)
        query = plain.option("checkpointLocation", f"{target}/c").trigger(availableNow=True).start(f"{target}/t")
        query.awaitTermination()
        parsed = time.perf_counter() - began
    deliver(bench.config.source, b"\n".join(lines) + b"\n")
    planned: list[float] = []
    began = time.perf_counter()
    run_job(config, once=True, spark=spark, observer=lambda _: planned.append(time.perf_counter() - began))
    report("backlog of 100,000 topics, to the journal", planned[:1], [parsed], 3.0)


def fleet(spark: SparkSession, folder: Path) -> None:
    """100 and 1,000 clusters of 1,000 partitions lose a broker in one batch."""
    seconds = {}
    for clusters in (100, 1_000):
        bench = Bench(spark, folder / str(clusters), 'memory = "8GB"\n')
        for first in range(0, clusters, 100):
            names = [f"c{c}" for c in range(first, first + 100)]
            bench.run([line for name in names for line in bench.cluster(name)])
            topics = [
                bench.event(name, "topic_created", topic=f"t{t}", partitions=100, replication_factor=3)
                for name in names
                for t in range(10)
            ]
            bench.run(topics)
        lost = [bench.event(f"c{c}", "broker_left", broker_id=3, reason="decommissioned") for c in range(clusters)]
        seconds[clusters] = bench.run(lost)
        memory = bench.batches._memory
        assert memory is not None
        healed = sum(3 not in state.counts.ids[state.counts.replicas > 0] for state in memory.clusters.values())
        print(f"{clusters} clusters lose a broker: {seconds[clusters]:.2f} s, {healed} healed")
    growth = seconds[1_000] / seconds[100]
    print(f"from 100 to 1,000 clusters: {growth:.1f} times the time (at most 10 allowed)")


def growth(spark: SparkSession, folder: Path, rounds: int = 1_000) -> None:
    """1,000 batches: the last hundred beside the second hundred; memory after warm-up.

    The trivial append is made in turn with them: what it grows by is Delta's log and the machine, not the job.
    """
    bench = Bench(spark, folder)
    bench.run(bench.cluster("c"))
    trivial = bench.trivial(folder / "trivial")
    ours, theirs, resident, heap = [], [], [], []
    for number in range(rounds):
        lines = [bench.event("c", "topic_created", topic=f"t{number}", partitions=3, replication_factor=3)]
        theirs.append(trivial(lines))
        ours.append(bench.run(lines))
        if number % 100 == 99:
            gc.collect()
            resident.append(resident_megabytes())
            heap.append(heap_megabytes(spark))
    grown, yardstick = (statistics.median(s[-100:]) / statistics.median(s[100:200]) for s in (ours, theirs))
    print(
        f"{rounds} batches: the last hundred take {grown:.2f} of the second hundred (at most 1.2 allowed); "
        f"trivial appends {yardstick:.2f}"
    )
    print(f"resident memory of the driver's Python after each hundred, MB: {resident}")
    print(f"heap of the driver's JVM after each hundred, collected, MB: {heap}")


def resident_megabytes() -> int:
    """What this process holds now, not the most it ever held."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() >> 20


def heap_megabytes(spark: SparkSession) -> int:
    """What is left of the JVM's heap after a collection."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory()) >> 20


def report(what: str, ours: list[float], theirs: list[float], allowed: float) -> None:
    mine, yardstick = statistics.median(ours), statistics.median(theirs)
    print(
        f"{what}: {mine:.3f} s, yardstick {yardstick:.3f} s, ratio {mine / yardstick:.2f} (at most {allowed} allowed)"
    )


CLAIMS = {"batch": batch, "size": size, "throughput": throughput, "fleet": fleet, "growth": growth}


def main(names: list[str]) -> None:
    spark = spark_session("benchmark", settings={"spark.driver.memory": "4g"})
    for name in names or CLAIMS:
        with tempfile.TemporaryDirectory() as folder:
            CLAIMS[name](spark, Path(folder) / name)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
