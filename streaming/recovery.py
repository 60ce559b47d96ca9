"""Memory from tables: the projections as far as they reach, the journal beyond them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.journal import versions_from_arrow
from streaming.moves import TopicMoves, matrices, no_replicas, roles_lookup
from streaming.schemas import ASSIGNMENTS, BROKERS, PLANS, QUARANTINE
from streaming.state import ClusterState
from streaming.tables import Tables
from streaming.version import BrokerRecord, PlanVersion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

NEVER = -1


@dataclass(slots=True)
class Memory:
    """The state of all clusters, the last batch of this query that the journal has, and what projections lack."""

    committed: int = NEVER
    clusters: dict[str, ClusterState] = field(default_factory=dict)
    behind: list[PlanVersion] = field(default_factory=list)

    def cluster(self, cluster_id: str) -> ClusterState:
        """The state of a cluster; a new one where nothing is known of it."""
        return self.clusters.setdefault(cluster_id, ClusterState(cluster_id))


def load_memory(spark: SparkSession, tables: Tables, app_id: str, batch_id: int) -> Memory:
    """Read what the journal says, as it was before ``batch_id`` of the query ``app_id``.

    What a batch put into quarantine before it was interrupted is left out: the batch will be planned again.
    """
    memory = Memory()
    brokers = tables.read(spark, BROKERS, BROKERS.schema.names)
    assignments = tables.read(spark, ASSIGNMENTS, ASSIGNMENTS.schema.names)
    _take_brokers(memory, brokers)
    _take_assignments(memory, assignments)
    brokers_at, assignments_at = _reach(brokers), _reach(assignments)
    journal = _read_journal(spark, tables, brokers_at, assignments_at)
    mine = journal.filter(pc.equal(journal["app_id"], app_id))
    memory.committed = max(mine["batch_id"].to_pylist(), default=NEVER)
    for version in versions_from_arrow(journal):
        memory.cluster(version.cluster_id).fold(version)
        reached = min(reach.get(version.cluster_id, 0) for reach in (brokers_at, assignments_at))
        if version.plan_version > reached and (version.broker_changes or version.moves):
            memory.behind.append(version)
    _take_seen(memory, spark, tables, app_id, batch_id)
    return memory


def find_version(spark: SparkSession, tables: Tables, cluster_id: str, plan_version: int) -> PlanVersion | None:
    """One version from the journal, whole."""
    found = tables.read(spark, PLANS, PLANS.schema.names, beyond=plan_version - 1, cluster=cluster_id)
    return next((v for v in versions_from_arrow(found) if v.plan_version == plan_version), None)


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
    roles = roles_lookup(*(table[name].combine_chunks() for name in ("leader", "isr", "end_offsets")))
    for lo, hi in zip(starts, [*starts[1:], table.num_rows], strict=True):
        block = TopicMoves(
            topics.dictionary[int(topic_codes[lo])].as_py(),
            partitions[lo:hi],
            no_replicas(hi - lo),
            matrices(replicas.slice(lo, hi - lo)),
            [],
            roles=roles(lo, hi),
        )
        memory.cluster(clusters.dictionary[int(cluster_codes[lo])].as_py()).apply((), (), [block])


def _reach(projection: pa.Table) -> dict[str, int]:
    """Up to which version a projection has each cluster."""
    reach = projection.group_by("cluster_id").aggregate([("plan_version", "max")])
    return dict(zip(reach["cluster_id"].to_pylist(), reach["plan_version_max"].to_pylist(), strict=True))


def _read_journal(
    spark: SparkSession, tables: Tables, brokers_at: dict[str, int], assignments_at: dict[str, int]
) -> pa.Table:
    """All versions in order; what they changed only as far as a projection may not have it yet."""
    light = [name for name in PLANS.schema.names if name not in ("moves", "broker_changes")]
    journal = tables.read(spark, PLANS, light)
    for column, reach in (("broker_changes", brokers_at), ("moves", assignments_at)):
        clusters = journal["cluster_id"].unique().to_pylist()
        beyond = min((reach.get(cluster, 0) for cluster in clusters), default=0)
        recent = tables.read(spark, PLANS, ["cluster_id", "plan_version", column], beyond=beyond)
        journal = _beside(journal, recent)
    return journal.sort_by([("cluster_id", "ascending"), ("plan_version", "ascending")])


def _beside(journal: pa.Table, recent: pa.Table) -> pa.Table:
    """Add the last column of ``recent`` to the rows that it has; an Arrow join cannot carry lists."""
    place = {key: row for row, key in enumerate(_keys(recent))}
    rows = pa.array([place.get(key) for key in _keys(journal)], pa.int64())
    return journal.append_column(recent.schema.names[-1], recent.column(-1).take(rows))


def _keys(table: pa.Table) -> Iterator[tuple[str, int]]:
    return zip(table["cluster_id"].to_pylist(), table["plan_version"].to_pylist(), strict=True)


def _take_seen(memory: Memory, spark: SparkSession, tables: Tables, app_id: str, batch_id: int) -> None:
    """Note what quarantine has, but for what this very batch put there before it was interrupted."""
    known = tables.read(spark, QUARANTINE, ["cluster_id", "event_id", "outcome", "app_id", "batch_id"])
    unfinished = pc.and_(pc.equal(known["app_id"], app_id), pc.greater_equal(known["batch_id"], batch_id))
    usable = pc.and_(pc.not_equal(known["outcome"], "malformed"), pc.is_valid(known["event_id"]))
    for row in known.filter(pc.and_not(usable, unfinished)).select(["cluster_id", "event_id"]).to_pylist():
        memory.cluster(row["cluster_id"]).seen.add(row["event_id"])
