"""What changed, and why: the story of one partition, and the difference between two versions of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from placement.model import NO_BROKER
from streaming.errors import HistoryError
from streaming.folding import FlatMoves, first_rows, flat_moves, last_rows, places
from streaming.history import MAX_NAMED, History
from streaming.moves import matrices, unpadded
from streaming.pruning import Span
from streaming.version import EFFECTIVE, MEMBERS, BrokerRecord

_MOVE: Final = ("topic", "partition", "before", "after", "reason", "wave")
_CAUSE: Final = ("created_at", "kind", "cause", "approval", "base_version", "digest")


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """One version that moved a partition, or proposes to; ``in_effect`` tells which.

    ``events`` are the ids and types of the events that the version answers; a deadline answers none.
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


def partition_changes(history: History, cluster: str, topic: str, partition: int) -> list[PartitionChange]:
    """Every version that concerned a partition, oldest first.

    Raises:
        HistoryError: no version ever did; says which topics or partitions there were.
    """
    table = history.plans([*_CAUSE, *(f"moves.{part}" for part in _MOVE)], Span(cluster))
    moves = flat_moves(table)
    if topic not in moves.topics:
        raise HistoryError(_unknown("topic", topic, cluster, sorted(moves.topics)), path=history.root)
    of_topic = moves.topic == list(moves.topics).index(topic)
    rows = np.flatnonzero(of_topic & (moves.partition == partition))
    if not rows.size:
        ids = np.unique(moves.partition[of_topic])
        known = f"there are {ids.size}, from {ids[0]} to {ids[-1]}"
        raise HistoryError(f"topic {topic} of {cluster} has no partition {partition}: {known}", path=history.root)
    found = moves.take(rows)
    headers = {row["plan_version"]: row for row in _rows_of(table, found.version.tolist())}
    events = _events(history, cluster, found.version.tolist())
    return [
        _change(headers[version], move, events.get(version, []))
        for version, move in zip(found.version.tolist(), found.moves.to_pylist(), strict=True)
    ]


def _unknown(what: str, name: str, cluster: str, known: Sequence[str]) -> str:
    listed = ", ".join(known[:MAX_NAMED]) + (f" and {len(known) - MAX_NAMED} more" if len(known) > MAX_NAMED else "")
    return f"cluster {cluster} has no {what} {name!r}: there are: {listed or 'none'}"


def _rows_of(table: pa.Table, versions: Sequence[int]) -> list[dict[str, Any]]:
    kept = table.filter(pc.is_in(table["plan_version"], pa.array(versions, pa.int64())))
    return list(kept.drop_columns(["moves"]).to_pylist())


def _events(history: History, cluster: str, versions: Sequence[int]) -> dict[int, list[dict[str, str | None]]]:
    """The events that led to these versions: those that were applied."""
    columns = [f"events.{part}" for part in ("event_id", "type", "outcome")]
    table = history.plans(columns, Span(cluster, min(versions), max(versions)))
    return {
        row["plan_version"]: [
            {"event_id": event["event_id"], "type": event["type"]}
            for event in row["events"]
            if event["outcome"] == "applied" and event["type"] != "plan_progress"
        ]
        for row in table.filter(pc.is_in(table["plan_version"], pa.array(versions, pa.int64()))).to_pylist()
    }


def _change(header: dict[str, Any], move: dict[str, Any], events: list[dict[str, str | None]]) -> PartitionChange:
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
        events=events,
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
    partitions = _partitions_between(history, cluster, low, high)
    brokers = _brokers_between(history, cluster, low, high)
    if first > second:
        partitions = [PartitionDifference(p.topic, p.partition, p.after, p.before, p.versions) for p in partitions]
        brokers = [(new, old) for old, new in brokers]
    kept = [p for p in partitions if p.before and p.after]
    return Difference(
        cluster,
        first,
        second,
        partitions,
        brokers,
        moved_replicas=sum(len(set(p.after) - set(p.before)) for p in kept),
        leader_changes=sum(p.after[0] != p.before[0] for p in kept),
    )


def _partitions_between(history: History, cluster: str, low: int, high: int) -> list[PartitionDifference]:
    """Of the moves in between, the first ``before`` and the last ``after`` of each partition, where they differ."""
    columns = ["approval", *(f"moves.{part}" for part in ("topic", "partition", "before", "after"))]
    table = history.plans(columns, Span(cluster, low + 1, high))
    moves = flat_moves(table.filter(pc.is_in(table["approval"], pa.array(EFFECTIVE))))
    place = places(moves)
    first, last = first_rows(place), last_rows(place)
    old, new = matrices(moves.moves.field("before").take(first)), matrices(moves.moves.field("after").take(last))
    width = max(old.shape[1], new.shape[1])
    old, new = (np.pad(m, ((0, 0), (0, width - m.shape[1])), constant_values=NO_BROKER) for m in (old, new))
    changed = (old != new).any(axis=1)
    rows = last[changed]
    found_columns = (
        moves.topic[rows].tolist(),
        moves.partition[rows].tolist(),
        old[changed].tolist(),
        new[changed].tolist(),
    )
    found = [
        PartitionDifference(moves.topics[topic], partition, unpadded(before), unpadded(after), versions)
        for topic, partition, before, after, versions in zip(*found_columns, _versions(moves, place, rows), strict=True)
    ]
    return sorted(found, key=lambda p: (p.topic, p.partition))


def _versions(moves: FlatMoves, place: NDArray[np.int64], rows: NDArray[np.int64]) -> list[list[int]]:
    """For the partition of each row, the versions that moved it."""
    wanted = np.zeros(int(place.max(initial=0)) + 1, np.bool_)
    wanted[place[rows]] = True
    kept = np.flatnonzero(wanted[place])
    kept = kept[np.argsort(place[kept], kind="stable")]
    starts = np.flatnonzero(np.diff(place[kept], prepend=-1)).tolist()
    versions = moves.version[kept].tolist()
    return [versions[lo:hi] for lo, hi in pairwise([*starts, len(versions)])]


def _brokers_between(
    history: History, cluster: str, low: int, high: int
) -> list[tuple[BrokerRecord | None, BrokerRecord | None]]:
    table = history.plans(["approval", "broker_changes"], Span(cluster, last=high))
    table = table.filter(pc.is_in(table["approval"], pa.array(EFFECTIVE)))
    then: dict[int, BrokerRecord] = {}
    now: dict[int, BrokerRecord] = {}
    for row in table.to_pylist():
        records = {change["broker_id"]: BrokerRecord(**change) for change in row["broker_changes"]}
        now |= records
        if row["plan_version"] <= low:
            then |= records
    return [
        (then.get(broker), now[broker]) for broker in sorted(now) if _shown(then.get(broker)) != _shown(now[broker])
    ]


def _shown(broker: BrokerRecord | None) -> tuple[object, ...] | None:
    """What a cluster looks like: a broker that is gone is as one that never was."""
    if broker is None or broker.state not in MEMBERS:
        return None
    return broker.rack, broker.capacity, broker.state
