"""Memory from tables: the projections as far as they reach, the journal beyond them.

A projection is believed where its content has the digest that a version of the journal leaves: then it is the fold up
to that version. Everything else (ghosts of a journal that was restored, a folder that was copied back, a row that
somebody changed) is folded from the journal anew, and written again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.errors import JobError
from streaming.history.pruning import narrowed
from streaming.job.projections import PROJECTIONS, Rebuilt
from streaming.job.tables import Tables
from streaming.planning.batch import NEVER, Memory, Partial
from streaming.planning.state import ClusterState
from streaming.record.kinds import kinds_where
from streaming.record.load_columns import LOAD_TYPE, limits_from_rows, loads_from_arrow
from streaming.record.moves import Matrices, TopicMoves, encoded, no_replicas, roles_lookup
from streaming.record.rows import are_held, are_suspect, is_in, refuse_newer, still_stopped, versions_from_arrow
from streaming.record.schemas import (
    ASSIGNMENTS,
    BROKER_LIMITS,
    BROKERS,
    EVENT_TYPE,
    LOADS,
    PLANS,
    PROGRESS,
    QUARANTINE,
    Table,
)
from streaming.record.version import NO_DIGESTS, BrokerRecord, FoldDigests, PlanVersion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


_log: Final = logging.getLogger(__name__)

_CHANGES: Final = {
    "broker_changes": BROKERS,
    "moves": ASSIGNMENTS,
    "load_changes": LOADS,
    "limit_changes": BROKER_LIMITS,
}
"""What versions change, and the projection that has the last of it."""

_HEADS: Final = [name for name in PLANS.schema.names if name not in (*_CHANGES, "events", "topic_changes")]
_EVENTS: Final = [f"events.{field.name}" for field in EVENT_TYPE if field.name != "payload"]
"""What the state has of events; the lines themselves may be long, and nobody asks for them again."""

_LIGHT: Final = [*_HEADS, "topic_changes", *_EVENTS]


def load_memory(
    spark: SparkSession, tables: Tables, app_id: str, batch_id: int, rebuild: Callable[[Rebuilt], None]
) -> Memory:
    """What must be known before ``batch_id`` of the query ``app_id``; clusters are loaded when they are needed.

    ``rebuild`` takes the projections that turn out to be wrong.
    """
    memory = Memory(partial(load_states, spark, tables, app_id, rebuild), in_hand=batch_id)
    known = ["cluster_id", "plan_version", "kind", "approval", "app_id", "batch_id", "broker_changes", "load_deadline"]
    journal = tables.read(spark, PLANS, known)
    refuse_newer(journal)
    mine = _of_query(journal, app_id)
    memory.committed = _newest(mine)
    memory.ticked = _newest(_of_query(journal, ticks_of(app_id)))
    memory.deadlines = _deadlines(journal)
    last = _reach(journal)
    reach = {t.name: _reach(_projection(spark, tables, t, ["cluster_id", "plan_version"])) for t in PROJECTIONS}
    # With versions that the journal does not have it is none of it: loading the cluster finds all that is wrong.
    memory.need(sorted({name for of in reach.values() for name, at in of.items() if at > last.get(name, 0)}))
    memory.behind = _behind(spark, tables, last, reach)
    progress = _of_query(tables.read(spark, PROGRESS, ["app_id", "batch_id"]), app_id)
    quarantine = tables.read(spark, QUARANTINE, ["sequence", "outcome", "app_id", "batch_id"])
    refuse_newer(quarantine)
    quarantine = _of_query(quarantine, app_id)
    memory.partial = _left_by(progress, quarantine, batch_id)
    memory.reached = max(map(_newest, (mine, progress, quarantine)))
    return memory


def ticks_of(app_id: str) -> str:
    """What a query is called when it lets time pass without a batch: such transactions are numbered by themselves."""
    return f"{app_id}/ticks"


def _of_query(rows: pa.Table, app_id: str) -> pa.Table:
    return rows.filter(pc.equal(rows["app_id"], app_id))


def _newest(rows: pa.Table) -> int:
    """The last batch that there is of a query."""
    last = pc.max(rows["batch_id"]).as_py()
    return NEVER if last is None else int(last)


def _left_by(progress: pa.Table, quarantine: pa.Table, batch_id: int) -> Partial:
    """What an interrupted attempt at the batch has appended already, out of what its query has."""
    left, recorded = (rows.filter(pc.equal(rows["batch_id"], batch_id)) for rows in (progress, quarantine))
    return Partial(batch_id, bool(left.num_rows), frozenset(recorded["sequence"].to_pylist()))


def load_states(
    spark: SparkSession,
    tables: Tables,
    app_id: str,
    rebuild: Callable[[Rebuilt], None],
    names: Sequence[str],
    batch_id: int,
) -> dict[str, ClusterState]:
    """The states of some clusters before a batch: the projections as far as they reach, folded with the journal beyond.

    What a batch put into quarantine before it was interrupted is left out: the batch will be planned again. Projections
    that no version of the journal leaves so are not believed, and handed to ``rebuild``.
    """
    light = tables.read(spark, PLANS, _LIGHT, clusters=names)
    content = {t.name: _projection(spark, tables, t, t.schema.names, names) for t in PROJECTIONS}
    states = _projected(names, content) or {}
    found = {name: states[name].digests() if name in states else NO_DIGESTS for name in names}
    reach = _proved(found, light)
    wrong: dict[str, list[PlanVersion]] = {name: [] for name in names if name not in reach}
    states |= {name: ClusterState(name) for name in wrong}
    for version in versions_from_arrow(_journal(spark, tables, light, reach)):
        states[version.cluster_id].fold(version)
        if version.cluster_id in wrong:
            wrong[version.cluster_id].append(version)
    for name, state in states.items():
        state.complete_proposal(partial(find_version, spark, tables), reach.get(name, {}).get(ASSIGNMENTS.name, 0))
    for name, versions in wrong.items():
        for table, before, after in zip(PROJECTIONS, found[name], states[name].digests(), strict=True):
            if before != after:
                _log.warning("cluster %s: the table %s differs from the journal and is rebuilt", name, table.name)
                rebuild(Rebuilt(name, table, versions))
    _take_seen(states, spark, tables, app_id, batch_id)
    return states


def _projected(names: Sequence[str], content: Mapping[str, pa.Table]) -> dict[str, ClusterState] | None:
    """The clusters as the projections have them, whatever that is; ``None`` where somebody made nonsense of them."""
    states = {name: ClusterState(name) for name in names}
    try:
        _take_brokers(states, content[BROKERS.name])
        _take_assignments(states, content[ASSIGNMENTS.name])
        _take_loads(states, content[LOADS.name], content[BROKER_LIMITS.name])
    except (ValueError, TypeError, ArithmeticError, LookupError):
        _log.exception("what the projections have of clusters %s cannot be taken", ", ".join(names))
        return None
    once = content[ASSIGNMENTS.name].num_rows == sum(_partitions(state) for state in states.values())
    return states if once else None


def _partitions(state: ClusterState) -> int:
    return sum(layout.partitions.size for layout in state.topics.values())


def _proved(found: Mapping[str, FoldDigests], journal: pa.Table) -> dict[str, dict[str, int]]:
    """Up to which version the projections have each cluster, by the digests of their content.

    Clusters of which any projection has what no version leaves are left out.
    """
    reach: dict[str, dict[str, int | None]] = {name: {} for name in found}
    for table, nothing in ClusterState("").digests()._asdict().items():
        versions = {(name, nothing): 0 for name in found}
        kept = pc.struct_field(journal["fold"], table).to_pylist()
        for name, version, digest in zip(
            journal["cluster_id"].to_pylist(), journal["plan_version"].to_pylist(), kept, strict=True
        ):
            versions[name, digest] = max(version, versions.get((name, digest), 0))
        for name, digests in found.items():
            reach[name][table] = versions.get((name, getattr(digests, table)))
    known = {name: {table: at for table, at in of.items() if at is not None} for name, of in reach.items()}
    return {name: of for name, of in known.items() if len(of) == len(FoldDigests._fields)}


def _changes(version: PlanVersion) -> bool:
    return any((version.broker_changes, version.moves, version.load_changes, version.limit_changes))


def _behind(
    spark: SparkSession, tables: Tables, last: dict[str, int], reach: Mapping[str, Mapping[str, int]]
) -> list[PlanVersion]:
    """Versions that changed something which a projection does not have yet, with that change only.

    ``last`` is the last version of each cluster, ``reach`` the last that each projection has of it.
    """
    behind: list[PlanVersion] = []
    for column, table in _CHANGES.items():
        of = reach[table.name]
        clusters = sorted(name for name, version in last.items() if of.get(name, 0) < version)
        if clusters:
            beyond = min(of.get(name, 0) for name in clusters)
            rows = tables.read(spark, PLANS, [*_HEADS, column], beyond=beyond, clusters=clusters)
            versions = (v for v in versions_from_arrow(rows) if v.plan_version > of.get(v.cluster_id, 0))
            behind += [v for v in versions if v.effective and _changes(v)]
    return sorted(behind, key=lambda v: (v.cluster_id, v.plan_version))


def _projection(
    spark: SparkSession, tables: Tables, table: Table, columns: Sequence[str], clusters: Sequence[str] | None = None
) -> pa.Table:
    """Columns of a projection; of one in a folder that cannot be read nothing is left, so that it is written again."""
    try:
        return tables.read(spark, table, columns, clusters=clusters)
    except JobError as error:
        _log.warning("%s; it is emptied and rebuilt", error)
        tables.empty(spark, table)
        return narrowed(table.schema, columns).empty_table()


def _deadlines(journal: pa.Table) -> dict[str, datetime]:
    """The earliest deadline of every cluster that has one and is not stopped."""
    brokers: dict[tuple[str, int], datetime | None] = {}
    ordered = journal.select(["cluster_id", "plan_version", "kind", "broker_changes", "load_deadline"]).sort_by(
        [("cluster_id", "ascending"), ("plan_version", "ascending")]
    )
    for cluster, changed in zip(ordered["cluster_id"].to_pylist(), ordered["broker_changes"].to_pylist(), strict=True):
        for broker in changed:
            brokers[cluster, broker["broker_id"]] = broker["deadline"]
    settling = ordered.filter(is_in(ordered["kind"], kinds_where(lambda kind: kind.sets_load_deadline)))
    loads = dict(zip(settling["cluster_id"].to_pylist(), settling["load_deadline"].to_pylist(), strict=True))
    earliest: dict[str, datetime] = {}
    for cluster, deadline in [*((name, found) for (name, _), found in brokers.items()), *loads.items()]:
        if deadline is not None:
            earliest[cluster] = min(deadline, earliest.get(cluster, deadline))
    stopped = set(still_stopped(journal)["cluster_id"].to_pylist())
    return {cluster: deadline for cluster, deadline in earliest.items() if cluster not in stopped}


def find_version(spark: SparkSession, tables: Tables, cluster_id: str, plan_version: int) -> PlanVersion | None:
    """One version from the journal, whole but for its loads."""
    columns = [name for name in PLANS.schema.names if name not in ("load_changes", "limit_changes")]
    found = tables.read(spark, PLANS, columns, beyond=plan_version - 1, clusters=[cluster_id])
    return next((v for v in versions_from_arrow(found) if v.plan_version == plan_version), None)


def _take_brokers(states: dict[str, ClusterState], table: pa.Table) -> None:
    for row in table.drop_columns(["plan_version"]).to_pylist():
        broker = BrokerRecord(**{key: value for key, value in row.items() if key != "cluster_id"})
        states[row["cluster_id"]].apply([broker], (), ())


def _take_assignments(states: dict[str, ClusterState], table: pa.Table) -> None:
    table = table.sort_by([("cluster_id", "ascending"), ("topic", "ascending"), ("partition", "ascending")])
    table = table.combine_chunks()
    if not table.num_rows:
        return
    clusters, cluster_codes = encoded(table["cluster_id"].combine_chunks())
    topics, topic_codes = encoded(table["topic"].combine_chunks())
    changed = (cluster_codes[1:] != cluster_codes[:-1]) | (topic_codes[1:] != topic_codes[:-1])
    starts = np.r_[0, np.flatnonzero(changed) + 1].tolist()
    partitions = np.asarray(table["partition"].combine_chunks())
    replicas = Matrices(table["replicas"].combine_chunks())
    roles = roles_lookup(*(table[name].combine_chunks() for name in ("leader", "isr", "end_offsets")))
    blocks: dict[int, list[TopicMoves]] = {}
    for lo, hi in zip(starts, [*starts[1:], table.num_rows], strict=True):
        block = TopicMoves(
            topics[topic_codes[lo]],
            partitions[lo:hi],
            no_replicas(hi - lo),
            replicas.rows(lo, hi),
            [],
            roles=roles(lo, hi),
        )
        blocks.setdefault(int(cluster_codes[lo]), []).append(block)
    for code, of_cluster in blocks.items():
        states[clusters[code]].apply((), (), of_cluster)


def _take_loads(states: dict[str, ClusterState], loads: pa.Table, limits: pa.Table) -> None:
    ordered = loads.sort_by([("cluster_id", "ascending"), ("topic", "ascending"), ("partition", "ascending")])
    for name, state in states.items():
        own = ordered.filter(pc.equal(ordered["cluster_id"], name)).combine_chunks()
        columns = [own[field.name].combine_chunks() for field in LOAD_TYPE]
        changes = pa.StructArray.from_arrays(columns, fields=list(LOAD_TYPE))
        rows = limits.filter(pc.equal(limits["cluster_id"], name)).to_pylist()
        state.loads.take(loads_from_arrow(changes), limits_from_rows(rows))


def _reach(projection: pa.Table) -> dict[str, int]:
    """Up to which version a projection has each cluster."""
    reach = projection.group_by("cluster_id").aggregate([("plan_version", "max")])
    return dict(zip(reach["cluster_id"].to_pylist(), reach["plan_version_max"].to_pylist(), strict=True))


def _journal(spark: SparkSession, tables: Tables, light: pa.Table, reach: Mapping[str, Mapping[str, int]]) -> pa.Table:
    """All versions in order; what they changed only as far as a projection may not have it yet.

    ``reach`` says how far the projections have each cluster that is to be believed.
    """
    journal, last = light, _reach(light)
    for column, table in _CHANGES.items():
        beyond = {name: reach[name][table.name] if name in reach else 0 for name in last}
        behind = [name for name, version in last.items() if beyond[name] < version]
        columns = ["cluster_id", "plan_version", column]
        if behind:
            least = min(beyond[name] for name in behind)
            recent = tables.read(spark, PLANS, columns, beyond=least, clusters=behind)
        else:
            recent = narrowed(PLANS.schema, columns).empty_table()
        journal = _beside(journal, recent)
    return journal.sort_by([("cluster_id", "ascending"), ("plan_version", "ascending")])


def _beside(journal: pa.Table, recent: pa.Table) -> pa.Table:
    """Add the last column of ``recent`` to the rows that it has; an Arrow join cannot carry lists."""
    place = {key: row for row, key in enumerate(_keys(recent))}
    rows = pa.array([place.get(key) for key in _keys(journal)], pa.int64())
    return journal.append_column(recent.schema.names[-1], recent.column(-1).take(rows))


def _keys(table: pa.Table) -> Iterator[tuple[str, int]]:
    return zip(table["cluster_id"].to_pylist(), table["plan_version"].to_pylist(), strict=True)


def _take_seen(
    states: dict[str, ClusterState], spark: SparkSession, tables: Tables, app_id: str, batch_id: int
) -> None:
    """Note what quarantine has, but for what this very batch put there before it was interrupted."""
    columns = ["cluster_id", "event_id", "outcome", "reason", "app_id", "batch_id"]
    known = tables.read(spark, QUARANTINE, columns, clusters=list(states))
    unfinished = pc.and_(pc.equal(known["app_id"], app_id), pc.greater_equal(known["batch_id"], batch_id))
    usable = pc.and_not(pc.is_valid(known["event_id"]), unfinished)
    again = pc.or_(pc.equal(known["outcome"], "malformed"), are_held(known))
    suspect = are_suspect(known)
    seen = _ids(known.filter(pc.and_not(usable, again)))
    suspects = _ids(known.filter(pc.and_(usable, suspect)))
    for name, state in states.items():
        state.know_events(seen.get(name, ()), suspects.get(name, ()))


def _ids(events: pa.Table) -> dict[str, list[str]]:
    """The ids of events by cluster."""
    found: dict[str, list[str]] = {}
    for cluster, event_id in zip(events["cluster_id"].to_pylist(), events["event_id"].to_pylist(), strict=True):
        found.setdefault(cluster, []).append(event_id)
    return found
