"""Many clusters at once: their states travel to Spark's executors, the plan versions travel back.

A cluster is planned by the same code on the same values, so the bytes are the same wherever it happens.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from streaming.batch import ClusterResult, ClusterWork, plan_alone
from streaming.errors import PlannerError
from streaming.events import PlanRolledBack
from streaming.state import ClusterState
from streaming.version import PlanVersion

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS: Final = pa.schema([pa.field("cluster_id", pa.string()), pa.field("content", pa.binary())])
_COLUMNS: Final = "cluster_id string, content binary"


def plan_on_executors(
    spark: SparkSession, work: Sequence[tuple[ClusterState, ClusterWork]], at_least: int
) -> dict[str, ClusterResult]:
    """Plan several clusters on the executors, if together they have ``at_least`` partitions; else none.

    Clusters that failed there, or that need the journal, are left out: the driver plans them.
    """
    there = [(state, each) for state, each in work if not _needs_journal(each)]
    if len(there) < 2 or sum(_partitions(state) for state, _ in there) < at_least:
        return {}
    rows = pa.table(
        [pa.array([each.cluster_id for _, each in there]), pa.array([pickle.dumps(pair) for pair in there])],
        schema=_ROWS,
    )
    frame = spark.createDataFrame(rows).repartition("cluster_id")
    planned = frame.mapInArrow(_plan_rows, _COLUMNS).toArrow()
    return {
        cluster: pickle.loads(content)
        for cluster, content in zip(planned["cluster_id"].to_pylist(), planned["content"].to_pylist(), strict=True)
        if content is not None
    }


def _partitions(state: ClusterState) -> int:
    return sum(layout.partitions.size for layout in state.topics.values())


def _needs_journal(work: ClusterWork) -> bool:
    return any(isinstance(line.event, PlanRolledBack) for line in work.lines)


def _plan_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on an executor: rows of pickled state and work to rows of pickled results."""
    for batch in batches:
        contents = [_plan_row(content) for content in batch.column("content").to_pylist()]
        yield pa.record_batch([batch.column("cluster_id"), pa.array(contents, pa.binary())], schema=_ROWS)


def _plan_row(content: bytes) -> bytes | None:
    state, work = pickle.loads(content)
    try:
        return pickle.dumps(plan_alone(state, work, _no_journal))
    except Exception:
        return None


def _no_journal(cluster_id: str, plan_version: int) -> PlanVersion | None:
    raise PlannerError(
        f"cluster {cluster_id}: version {plan_version} cannot be read on an executor", cluster_id=cluster_id
    )
