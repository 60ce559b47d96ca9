"""Many clusters at once: their states and lines travel to Spark's executors, rows of the journal travel back.

A cluster is planned by the same code on the same values, so the bytes are the same wherever it happens. What is large
travels as Arrow: there it is made once, on many cores, and appended as it comes.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from streaming.errors import PlannerError
from streaming.events import Line, PlanRolledBack, TopicEvent, decode
from streaming.job.garbage import few_collections
from streaming.planning.batch import ClusterResult, ClusterWork, plan_alone
from streaming.planning.state import ClusterState
from streaming.record.rows import versions_from_arrow, versions_to_arrow
from streaming.record.schemas import PLANS
from streaming.record.version import PlanVersion

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINE: Final = 20
"""A line takes about as long as the planner looks at so many partitions."""

_COMPRESSED: Final = pa.ipc.IpcWriteOptions(compression="lz4")
"""Rows of a journal say much the same, and are copied half a dozen times on their way."""

_WORK: Final = pa.schema([pa.field("cluster_id", pa.string()), pa.field("work", pa.binary())])
_RESULTS: Final = pa.schema(
    [pa.field("cluster_id", pa.string()), pa.field("rows", pa.binary()), pa.field("rest", pa.binary())]
)
_COLUMNS: Final = "cluster_id string, rows binary, rest binary"


def plan_on_executors(
    spark: SparkSession,
    work: Sequence[tuple[ClusterState, ClusterWork]],
    at_least: int,
    app_id: str,
    batch_id: int,
) -> dict[str, ClusterResult]:
    """Plan several clusters on the executors, if together they weigh ``at_least`` so much; else none.

    Clusters that failed there, or that need the journal, are left out: the driver plans them.
    """
    there = [(state, each) for state, each in work if not _needs_journal(each)]
    if len(there) < 2 or sum(weight(state, each) for state, each in there) < at_least:
        return {}
    packed = pa.table(
        [pa.array([each.cluster_id for _, each in there]), pa.array([_packed(*pair) for pair in there], pa.binary())],
        schema=_WORK,
    )
    frame = spark.createDataFrame(packed).repartition(_tasks(spark, len(there)))
    planned = frame.mapInArrow(partial(_plan_rows, app_id, batch_id), _COLUMNS).toArrow()
    return {
        cluster.as_py(): _unpacked(rows, rest)
        for cluster, rows, rest in zip(*planned.itercolumns(), strict=True)
        if rows.is_valid
    }


def weight(state: ClusterState, work: ClusterWork) -> int:
    """About what planning takes, in partitions that are looked at.

    News about a topic takes as long in a large cluster as in a small one; all else, and time, may move everything.
    """
    lines = LINE * len(work.lines)
    if work.lines and all(isinstance(line.event, TopicEvent) for line in work.lines):
        return lines
    return lines + int(state.counts.leaders.sum())  # every partition has one preferred leader


def _tasks(spark: SparkSession, clusters: int) -> int:
    """How many Spark partitions to make: a number that is asked for is not made smaller by adaptive execution."""
    wanted = spark.conf.get("spark.sql.shuffle.partitions") or ""
    return min(clusters, int(wanted)) if wanted.isdecimal() else clusters


def _needs_journal(work: ClusterWork) -> bool:
    return any(isinstance(line.event, PlanRolledBack) for line in work.lines)


def _packed(state: ClusterState, work: ClusterWork) -> bytes:
    """Lines travel as they were received: decoding them again takes less than packing what was decoded."""
    lines = [(line.raw, line.place, line.sequence, line.recorded) for line in work.lines]
    return pickle.dumps((state, replace(work, lines=()), lines))


def _received(raw: bytes, place: str, sequence: int, recorded: bool) -> Line:
    return decode(raw, place)._replace(sequence=sequence, recorded=recorded)


def _unpacked(rows: pa.BinaryScalar, rest: pa.BinaryScalar) -> ClusterResult:
    encoded = pa.ipc.open_stream(rows.as_buffer()).read_all()
    unplanned, progress = pickle.loads(rest.as_py())
    return ClusterResult(list(versions_from_arrow(encoded)), unplanned, progress, encoded)


def _plan_rows(app_id: str, batch_id: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on an executor: rows of packed work to rows of packed results."""
    with few_collections():
        for batch in batches:
            for cluster_id, work in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                # A batch each: together they might be more than an Arrow column holds.
                yield pa.RecordBatch.from_pylist([_plan_row(cluster_id, work, app_id, batch_id)], _RESULTS)


def _plan_row(cluster_id: str, packed: bytes, app_id: str, batch_id: int) -> dict[str, Any]:
    state, work, lines = pickle.loads(packed)
    try:
        work = replace(work, lines=[_received(*line) for line in lines])
        result = plan_alone(state, work, _no_journal)
    except Exception:
        return {"cluster_id": cluster_id}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, PLANS.schema, options=_COMPRESSED) as writer:
        writer.write_table(versions_to_arrow(result.versions, app_id, batch_id))
    rest = pickle.dumps((result.unplanned, result.progress))
    return {"cluster_id": cluster_id, "rows": sink.getvalue().to_pybytes(), "rest": rest}


def _no_journal(cluster_id: str, plan_version: int) -> PlanVersion | None:
    raise PlannerError(
        f"cluster {cluster_id}: version {plan_version} cannot be read on an executor", cluster_id=cluster_id
    )
