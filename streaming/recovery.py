"""Memory from tables: the projections as far as they reach, the journal beyond them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's users know

from streaming.journal import versions_from_arrow
from streaming.moves import TopicMoves, matrices, no_replicas
from streaming.schemas import ASSIGNMENTS, BROKERS, PLANS, QUARANTINE
from streaming.state import ClusterState
from streaming.tables import Tables
from streaming.version import BrokerRecord, PlanVersion

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

NEVER = -1


@dataclass(slots=True)
class Memory:
    """The state of all clusters, and the last batch of this query that the journal has."""

    committed: int = NEVER
    clusters: dict[str, ClusterState] = field(default_factory=dict)

    def cluster(self, cluster_id: str) -> ClusterState:
        """The state of a cluster; a new one where nothing is known of it."""
        return self.clusters.setdefault(cluster_id, ClusterState(cluster_id))


def load_memory(spark: SparkSession, tables: Tables, app_id: str, batch_id: int) -> Memory:
    """Read what the journal says, as it was before ``batch_id`` of the query ``app_id``.

    What a batch put into quarantine before it was interrupted is left out: the batch will be planned again.
    """
    memory = Memory()
    brokers = tables.read(spark, BROKERS)
    assignments = tables.read(spark, ASSIGNMENTS)
    _take_brokers(memory, brokers.toArrow())
    _take_assignments(memory, assignments.toArrow())
    rows = _versions(tables.read(spark, PLANS), brokers, assignments)
    table = rows.toArrow()
    mine = table.filter(pa.compute.equal(table["app_id"], app_id))
    memory.committed = max(mine["batch_id"].to_pylist(), default=NEVER)
    for version in versions_from_arrow(table.drop_columns(["app_id", "batch_id"])):
        memory.cluster(version.cluster_id).fold(version)
    _take_seen(memory, tables.read(spark, QUARANTINE), app_id, batch_id)
    return memory


def find_version(spark: SparkSession, tables: Tables, cluster_id: str, plan_version: int) -> PlanVersion | None:
    """One version from the journal, whole."""
    found = tables.read(spark, PLANS).where(
        (F.col("cluster_id") == cluster_id) & (F.col("plan_version") == plan_version)
    )
    return next(versions_from_arrow(found.drop("app_id", "batch_id").toArrow()), None)


def _take_brokers(memory: Memory, table: pa.Table) -> None:
    for row in table.drop_columns(["plan_version"]).to_pylist():
        broker = BrokerRecord(**{key: value for key, value in row.items() if key != "cluster_id"})
        memory.cluster(row["cluster_id"]).apply([broker], (), ())


def _take_assignments(memory: Memory, table: pa.Table) -> None:
    table = table.sort_by([("cluster_id", "ascending"), ("topic", "ascending"), ("partition", "ascending")])
    table = table.combine_chunks()
    if not table.num_rows:
        return
    clusters, topics = (table[name].combine_chunks().dictionary_encode() for name in ("cluster_id", "topic"))
    cluster_codes, topic_codes = np.asarray(clusters.indices), np.asarray(topics.indices)
    changed = (cluster_codes[1:] != cluster_codes[:-1]) | (topic_codes[1:] != topic_codes[:-1])
    starts = np.r_[0, np.flatnonzero(changed) + 1].tolist()
    partitions = np.asarray(table["partition"].combine_chunks())
    replicas = table["replicas"].combine_chunks()
    for lo, hi in zip(starts, [*starts[1:], table.num_rows], strict=True):
        block = TopicMoves(
            topics.dictionary[int(topic_codes[lo])].as_py(),
            partitions[lo:hi],
            no_replicas(hi - lo),
            matrices(replicas.slice(lo, hi - lo)),
            [],
        )
        memory.cluster(clusters.dictionary[int(cluster_codes[lo])].as_py()).apply((), (), [block])


def _versions(plans: DataFrame, brokers: DataFrame, assignments: DataFrame) -> DataFrame:
    """All versions in order; changes only where the projection does not have them yet, payloads nowhere."""
    has_brokers = _reach(brokers, "brokers_at")
    has_assignments = _reach(assignments, "assignments_at")
    event = "named_struct('event_id', e.event_id, 'type', e.type, 'outcome', e.outcome, 'reason', '', 'payload', '', "
    event += "'occurred_at', e.occurred_at, 'entity', e.entity, 'place', '')"
    return (
        plans.join(F.broadcast(has_brokers), "cluster_id", "left")
        .join(F.broadcast(has_assignments), "cluster_id", "left")
        .withColumn("moves", _beyond("moves", "assignments_at"))
        .withColumn("broker_changes", _beyond("broker_changes", "brokers_at"))
        .withColumn("events", F.expr(f"transform(events, e -> {event})"))
        .drop("assignments_at", "brokers_at")
        .orderBy("cluster_id", "plan_version")
    )


def _reach(projection: DataFrame, name: str) -> DataFrame:
    return projection.groupBy("cluster_id").agg(F.max("plan_version").alias(name))


def _beyond(column: str, reach: str) -> Column:
    return F.when(F.col("plan_version") > F.coalesce(F.col(reach), F.lit(0)), F.col(column))


def _take_seen(memory: Memory, quarantine: DataFrame, app_id: str, batch_id: int) -> None:
    unfinished = (F.col("app_id") == app_id) & (F.col("batch_id") >= batch_id)
    known = quarantine.where(~unfinished & (F.col("outcome") != "malformed") & F.col("event_id").isNotNull())
    for row in known.select("cluster_id", "event_id").toArrow().to_pylist():
        memory.cluster(row["cluster_id"]).seen.add(row["event_id"])
