"""What changed, and why: the story of one partition, and the difference between two versions of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise, starmap
from operator import attrgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from placement.model import NO_BROKER, Int32Array
from streaming.errors import HistoryError
from streaming.history.pruning import Span
from streaming.history.scanning import kept
from streaming.history.tables import History, some
from streaming.record.folding import FlatMoves, first_rows, flat_moves, last_rows, places
from streaming.record.moves import matrices, unpadded
from streaming.record.rows import in_effect
from streaming.record.version import EFFECTIVE, MEMBERS, BrokerRecord

_MOVE: Final = ("topic", "partition", "before", "after", "reason", "wave")
_CAUSE: Final = ("created_at", "kind", "cause", "approval")
_EVENT: Final = ("event_id", "type", "outcome")


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """One version that moved a partition, or proposes to; ``in_effect`` tells which.

    ``events`` are the ids and types of the events that the version answers; a deadline answers none. ``bytes`` are what
    is copied, by the size that was known then; ``None`` where none was.
    """

    plan_version: int
    created_at: datetime
    kind: str
    approval: str
    in_effect: bool
    cause: str
    before: list[int]
    after: list[int]
    reason: str
    wave: int | None
    events: list[dict[str, str | None]]
    bytes: int | None = None


def partition_changes(history: History, cluster: str, topic: str, partition: int) -> list[PartitionChange]:
    """Every version that concerned a partition, oldest first.

    Raises:
        HistoryError: no version ever did; says which topics or partitions there were.
    """
    known = flat_moves(history.plans(["moves.topic", "moves.partition"], Span(cluster)))
    if topic not in known.topics:
        listed = some(sorted(known.topics))
        raise HistoryError(f"cluster {cluster} has no topic {topic!r}: there are: {listed}", path=history.root)
    of_topic = known.topic == list(known.topics).index(topic)
    concerned = of_topic & (known.partition == partition)
    if not concerned.any():
        ids = np.unique(known.partition[of_topic])
        listed = f"there are {ids.size}, from {ids[0]} to {ids[-1]}"
        raise HistoryError(f"topic {topic} of {cluster} has no partition {partition}: {listed}", path=history.root)
    span = Span(cluster, among=np.unique(known.version[concerned]).tolist())
    columns = [*_CAUSE, *(f"events.{part}" for part in _EVENT), *(f"moves.{part}" for part in _MOVE)]
    table = history.plans(columns, span)
    moves = flat_moves(table)
    rows = np.flatnonzero((moves.topic == list(moves.topics).index(topic)) & (moves.partition == partition))
    found = moves.take(rows)
    headers = {row["plan_version"]: row for row in table.drop_columns(["moves"]).to_pylist()}
    sizes = _sizes(history, cluster, topic, partition)
    return [
        _change(headers[version], move, next((size for number, size in sizes if number <= version), None))
        for version, move in zip(found.version.tolist(), found.moves.to_pylist(), strict=True)
    ]


def _sizes(history: History, cluster: str, topic: str, partition: int) -> list[tuple[int, int | None]]:
    """The sizes that were recorded of a partition, each with its version, newest first."""
    found: list[tuple[int, int | None]] = []
    for table in history.load_changes(cluster, columns=("topic", "partition", "size")):
        changes = flat_moves(table, "load_changes")
        if topic in changes.topics:
            mine = (changes.topic == list(changes.topics).index(topic)) & (changes.partition == partition)
            rows = changes.take(np.flatnonzero(mine))
            found += zip(rows.version.tolist(), rows.moves.field("size").to_pylist(), strict=True)
    return found[::-1]


def _change(header: dict[str, Any], move: dict[str, Any], size: int | None) -> PartitionChange:
    copied = len(set(move["after"]) - set(move["before"]))
    return PartitionChange(
        plan_version=header["plan_version"],
        created_at=header["created_at"],
        kind=header["kind"],
        approval=header["approval"],
        in_effect=header["approval"] in EFFECTIVE,
        cause=header["cause"],
        before=move["before"],
        after=move["after"],
        reason=move["reason"],
        wave=move["wave"],
        events=[
            {"event_id": event["event_id"], "type": event["type"]}
            for event in header["events"]
            if event["outcome"] == "applied" and event["type"] != "plan_progress"
        ],
        bytes=None if size is None else size * copied,
    )


@dataclass(frozen=True, slots=True)
class PartitionDifference:
    """A partition that is not the same at both versions; ``versions`` changed it in between."""

    topic: str
    partition: int
    before: list[int]
    after: list[int]
    versions: list[int]


@dataclass(frozen=True, slots=True)
class Difference:
    """What is different at ``second`` from what was at ``first``.

    ``brokers`` has the two records of each broker that is not the same, ``None`` where it was not known;
    ``moved_replicas`` counts the replicas that are on a broker where they were not before.
    """

    cluster_id: str
    first: int
    second: int
    partitions: list[PartitionDifference]
    brokers: list[tuple[BrokerRecord | None, BrokerRecord | None]]
    moved_replicas: int
    leader_changes: int


def difference(history: History, cluster: str, first: int, second: int) -> Difference:
    """Compare the cluster after two of its versions, in either order.

    Raises:
        HistoryError: one of them does not exist.
    """
    for version in (first, second):
        history.version_at(cluster, version)
    low, high = sorted((first, second))
    columns = ["approval", "broker_changes", *(f"moves.{part}" for part in ("topic", "partition", "before", "after"))]
    table = _effective(history.plans(columns, Span(cluster, low + 1, high)))
    between, changed = _moves_between(flat_moves(table)), _brokers(table)
    then = _brokers(_effective(history.plans(columns[:2], Span(cluster, last=low)))) if changed else {}
    brokers: list[tuple[BrokerRecord | None, BrokerRecord | None]] = [
        (then.get(b), changed[b]) for b in sorted(changed) if _shown(then.get(b)) != _shown(changed[b])
    ]
    if first > second:
        between = replace(between, before=between.after, after=between.before)
        brokers = [(new, old) for old, new in brokers]
    return Difference(
        cluster,
        first,
        second,
        between.partitions(),
        brokers,
        moved_replicas=between.moved_replicas(),
        leader_changes=between.leader_changes(),
    )


@dataclass(frozen=True, slots=True)
class _Between:
    """The partitions that differ, in columns: names, ids, replicas padded with ``NO_BROKER``, and who moved them."""

    topics: list[str]
    partition: list[int]
    before: Int32Array
    after: Int32Array
    versions: list[list[int]]

    def partitions(self) -> list[PartitionDifference]:
        """By topic and partition id."""
        rows = zip(self.topics, self.partition, _lists(self.before), _lists(self.after), self.versions, strict=True)
        return sorted(starmap(PartitionDifference, rows), key=attrgetter("topic", "partition"))

    def moved_replicas(self) -> int:
        """Replicas that are new, on partitions that there were before and are after."""
        new = ~(self.after[:, :, None] == self.before[:, None, :]).any(axis=2) & (self.after != NO_BROKER)
        return int(new[self._stayed()].sum())

    def leader_changes(self) -> int:
        """Partitions with another preferred leader."""
        stayed = self._stayed()
        return int((self.after[stayed, :1] != self.before[stayed, :1]).sum())

    def _stayed(self) -> NDArray[np.bool_]:
        there, still = ((side != NO_BROKER).any(axis=1) for side in (self.before, self.after))
        return np.asarray(there & still)


def _lists(replicas: Int32Array) -> list[list[int]]:
    if not (replicas == NO_BROKER).any():
        return list(replicas.tolist())
    return [unpadded(row) for row in replicas.tolist()]


def _effective(table: pa.Table) -> pa.Table:
    return kept(table, in_effect(table))


def _moves_between(moves: FlatMoves) -> _Between:
    """The first ``before`` and the last ``after`` of each partition, where they differ."""
    place = places(moves)
    first, last = first_rows(place), last_rows(place)
    old, new = matrices(moves.moves.field("before").take(first)), matrices(moves.moves.field("after").take(last))
    width = max(old.shape[1], new.shape[1])
    old, new = (np.pad(m, ((0, 0), (0, width - m.shape[1])), constant_values=NO_BROKER) for m in (old, new))
    changed = (old != new).any(axis=1)
    rows = last[changed]
    return _Between(
        [moves.topics[topic] for topic in moves.topic[rows].tolist()],
        moves.partition[rows].tolist(),
        old[changed],
        new[changed],
        _versions(moves, place, rows),
    )


def _versions(moves: FlatMoves, place: NDArray[np.int64], rows: NDArray[np.int64]) -> list[list[int]]:
    """For the partition of each row, the versions that moved it."""
    wanted = np.zeros(int(place.max(initial=0)) + 1, np.bool_)
    wanted[place[rows]] = True
    found = np.flatnonzero(wanted[place])
    found = found[np.argsort(place[found], kind="stable")]
    starts = np.flatnonzero(np.diff(place[found], prepend=-1)).tolist()
    versions = moves.version[found].tolist()
    return [versions[lo:hi] for lo, hi in pairwise([*starts, len(versions)])]


def _brokers(table: pa.Table) -> dict[int, BrokerRecord]:
    """The last record of each broker that these versions changed."""
    changes = (change for changes in table["broker_changes"].to_pylist() for change in changes)
    return {change["broker_id"]: BrokerRecord(**change) for change in changes}


def _shown(broker: BrokerRecord | None) -> tuple[object, ...] | None:
    """What a cluster looks like: a broker that is gone is as one that never was."""
    if broker is None or broker.state not in MEMBERS:
        return None
    return broker.rack, broker.capacity, broker.state
