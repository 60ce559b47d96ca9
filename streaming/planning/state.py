"""The state of one cluster: the fold of its plan versions, nothing else.

The same two methods serve planning and reloading: :meth:`ClusterState.apply` changes the layout,
:meth:`ClusterState.record` notes that a version exists and which events it settled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, NamedTuple

import numpy as np

from placement import Assignment, Broker, ReplicaCounts
from placement.arrays import any_in_row
from placement.fleet import Fleet, fleet_of
from placement.model import NO_BROKER, Int32Array
from placement.verification.racks import Members
from streaming.planning.known_loads import KnownLoads
from streaming.record.fold_digest import FoldDigest, hash_of_broker, hash_of_topic
from streaming.record.kinds import Meaning
from streaming.record.moves import Roles, TopicMoves, no_replicas, unknown_roles
from streaming.record.seal import seal_of
from streaming.record.version import (
    MEMBERS,
    Balance,
    BrokerRecord,
    EventRecord,
    FoldDigests,
    PlanVersion,
    TopicChange,
)

OVERHEAD: Final = 600
"""Bytes that Python takes for a topic, a broker or a clock, names included; measured."""

SEEN_OVERHEAD: Final = 150
"""Bytes for an event id in a set; measured with UUIDs."""

History = Callable[[str, int], PlanVersion | None]
"""Finds a version of a cluster in the journal."""

_MOVING_KEPT: Final = 10
_DRIFTS_KEPT: Final = 20


@dataclass(frozen=True, slots=True)
class TopicLayout:
    """The replicas of one topic.

    Attributes:
        partitions: int32 partition ids, ascending, shape ``(n,)``.
        replicas: int32 broker ids, shape ``(n, r)``, padded with ``NO_BROKER``.
        strategy: the strategy that placed it, empty where it is not known.
        roles: leader, ISR and end offsets where they were observed; ``None`` where nothing was.
    """

    partitions: Int32Array
    replicas: Int32Array
    strategy: str = ""
    roles: Roles | None = None

    @property
    def size(self) -> int:
        """Bytes of memory that it takes, about."""
        return self.partitions.nbytes + self.replicas.nbytes + OVERHEAD


class Drift(NamedTuple):
    """The replicas that a partition was to have and was seen with, the version that says so, and its way back."""

    planned: list[int]
    seen: list[int]
    version: int
    way_back: Literal["", "proposed", "planned"] = ""


def _hash_of_layout(topic: str, layout: TopicLayout) -> bytes:
    return hash_of_topic(topic, layout.partitions, layout.replicas, layout.roles)


@dataclass(slots=True)
class _Live:
    """The brokers that new replicas may be placed on, in the forms that were asked for."""

    excluded: frozenset[int]
    brokers: tuple[Broker, ...]
    fleet: Fleet | None = None
    members: Members | None = None


@dataclass(slots=True)
class ClusterState:
    """What is known of one cluster after ``version``. ``stopped`` says why it is not planned, if it is not.

    ``suspects`` are the events that stopped it, by id. ``moving`` are the last versions that moved replicas, newest
    first; ``drifts`` are the last ones that report drift or plan it back, and ``told`` is what they say of partitions,
    once somebody has asked; ``claims`` has by plan version the newest version that records who carries it out.
    ``load_deadline`` is when it is to be rebalanced by load, unless newer loads say otherwise.
    """

    cluster_id: str
    version: int = 0
    brokers: dict[int, BrokerRecord] = field(default_factory=dict)
    topics: dict[str, TopicLayout] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    suspects: set[str] = field(default_factory=set)
    clocks: dict[str, datetime] = field(default_factory=dict)
    proposal: PlanVersion | None = None
    stopped: str = ""
    moving: tuple[int, ...] = ()
    claims: dict[int, int] = field(default_factory=dict)
    drifts: tuple[int, ...] = ()
    seal: str = ""
    counts: ReplicaCounts = field(default_factory=ReplicaCounts.empty)
    loads: KnownLoads = field(default_factory=KnownLoads)
    load_deadline: datetime | None = None
    told: dict[tuple[str, int], Drift] | None = None
    _live: _Live | None = None
    _due: Sequence[BrokerRecord] | None = None
    _topic_bytes: int = 0
    _balance: tuple[ReplicaCounts, Balance] | None = None
    _broker_digest: FoldDigest[int, BrokerRecord] = field(default_factory=lambda: FoldDigest(hash_of_broker))
    _topic_digest: FoldDigest[str, TopicLayout] = field(default_factory=lambda: FoldDigest(_hash_of_layout))

    def fold(self, version: PlanVersion) -> None:
        """Take over a version from the journal."""
        if version.effective:
            self.apply(version.broker_changes, version.topic_changes, version.moves)
            self.loads.take(version.load_changes, version.limit_changes)
        self.record(version)

    def begin_version(self) -> None:
        """Let the next version exist, whatever becomes part of it: events may name it from now on."""
        self.version += 1

    def apply(
        self, brokers: Iterable[BrokerRecord], topics: Iterable[TopicChange], moves: Iterable[TopicMoves]
    ) -> None:
        """Change the layout. Applying the same changes again changes nothing."""
        for broker in brokers:
            self._broker_digest.changes(broker.broker_id, self.brokers)
            self.brokers[broker.broker_id] = broker
            self._live = self._due = self._balance = None
        blocks = list(moves)
        gone = [self._move(block) for block in blocks]
        self.counts = self.counts.subtract(*gone).add(*(block.after for block in blocks))
        for change in topics:
            known = self.topics.get(change.topic)
            if known and change.strategy is not None:
                self.topics[change.topic] = TopicLayout(known.partitions, known.replicas, change.strategy, known.roles)

    def record(self, version: PlanVersion) -> None:
        """Note the version, the events that it settled, and whether it waits for approval."""
        self.version = version.plan_version
        self.seal = version.seal or self.seal
        if version.fold.brokers:
            self._settle(version.fold)
        self.remember(version.events)
        if not version.leaves_proposals:
            self.proposal = version if version.waits_for_approval else None
        if version.effective and version.means.moves_replicas:
            self.moving = (version.plan_version, *self.moving[: _MOVING_KEPT - 1])
        if version.means.tells_drift:
            self.drifts = (version.plan_version, *self.drifts[: _DRIFTS_KEPT - 1])
            if self.told is not None:
                told = self.told | _drift_in(version)
                self.told = {place: drift for place, drift in told.items() if drift.version in self.drifts}
        if version.means.claims:
            self.claims[version.base_version] = version.plan_version
        self.settle_loads(version.means, version.load_deadline)
        if version.means.stopped is not None:
            self.stopped = version.cause if version.means.stopped else ""

    def settle_loads(self, means: Meaning, deadline: datetime | None) -> None:
        """Take over when the cluster is to be rebalanced by load, if that is what a version of such a kind says."""
        if means.sets_load_deadline:
            self.load_deadline = deadline

    def sealed(self, version: PlanVersion) -> PlanVersion:
        """The version with its seal, which follows that of the version before."""
        self.seal = seal_of(version, self.seal)
        return replace(version, seal=self.seal)

    def go_on_from(self, seal: str) -> None:
        """Let the next version follow a seal that is on record."""
        self.seal = seal

    def complete_proposal(self, find: History, reach: int) -> None:
        """Have the proposal with its moves where it was folded without them: up to version ``reach``."""
        if self.proposal and self.proposal.plan_version <= reach:
            self.proposal = find(self.cluster_id, self.proposal.plan_version)

    def told_drift(self, find: History) -> Mapping[tuple[str, int], Drift]:
        """What the last versions that tell of drift say of partitions, by topic and partition id."""
        if self.told is None:
            self.told = {}
            for number in reversed(self.drifts):
                version = find(self.cluster_id, number)
                self.told |= _drift_in(version) if version else {}
        return self.told

    def know_loads(self, loads: KnownLoads) -> None:
        """Have these loads: states that are read for a person leave them out until they are asked for."""
        self.loads = loads

    def digests(self) -> FoldDigests:
        """What proves that a projection has exactly this; what changed since the last time is hashed."""
        return FoldDigests(
            self._broker_digest.of(self.brokers), self._topic_digest.of(self.topics), *self.loads.digests()
        )

    def _settle(self, fold: FoldDigests) -> None:
        self._broker_digest.settle(fold.brokers)
        self._topic_digest.settle(fold.assignments)
        self.loads.settle(fold.loads, fold.broker_limits)

    def note_seen(self, event_id: str) -> None:
        """Note that an event was received, whatever becomes of it."""
        self.seen.add(event_id)

    def know_events(self, seen: Iterable[str], suspects: Iterable[str]) -> None:
        """Note events that are on record: all that were received, and those of them that stopped the cluster."""
        self.seen.update(seen)
        self.suspects.update(suspects)

    def remember(self, events: Iterable[EventRecord]) -> None:
        """Note events as seen, and the time of the newest news about what they concern."""
        for event in events:
            if event.event_id is not None and event.is_known:
                self.note_seen(event.event_id)
            if event.event_id is not None and event.is_suspect:
                self.suspects.add(event.event_id)
            if event.outcome == "applied" and event.entity and event.occurred_at:
                known = self.clocks.get(event.entity)
                if known is None or event.occurred_at > known:
                    self.clocks[event.entity] = event.occurred_at

    def _move(self, block: TopicMoves) -> Int32Array:
        """Change the layout of a topic; returns the rows that these partitions had."""
        layout = self.topics.get(block.topic)
        if layout is None and block.is_plain:
            self._keep(block.topic, TopicLayout(_own(block.partitions), _own(block.after)))
            return no_replicas(0)
        layout = layout or TopicLayout(np.zeros(0, np.int32), np.full((0, 0), NO_BROKER, np.int32))
        ids = np.union1d(layout.partitions, block.partitions).astype(np.int32)
        width = max(layout.replicas.shape[1], block.after.shape[1])
        replicas = np.full((ids.size, width), NO_BROKER, np.int32)
        replicas[np.searchsorted(ids, layout.partitions), : layout.replicas.shape[1]] = layout.replicas
        rows = np.searchsorted(ids, block.partitions)
        taken = replicas[rows]
        replicas[rows] = NO_BROKER
        replicas[rows, : block.after.shape[1]] = block.after
        kept = any_in_row(replicas != NO_BROKER)
        if kept.any():
            width = int((replicas[kept] != NO_BROKER).any(axis=0).sum())
            roles = _roles_after(layout, block, ids)
            moved = TopicLayout(ids[kept], replicas[kept, :width], layout.strategy, roles and roles.take(kept))
            self._keep(block.topic, moved)
        else:
            self._keep(block.topic, None)
        return np.asarray(taken)

    def _keep(self, topic: str, layout: TopicLayout | None) -> None:
        """Put a topic's layout in place of the one it had, and count its bytes: nobody has to look at all topics."""
        self._topic_digest.changes(topic, self.topics)
        before = self.topics.pop(topic, None) if layout is None else self.topics.get(topic)
        if before is not None:
            self._topic_bytes -= before.size
        if layout is not None:
            self.topics[topic] = layout
            self._topic_bytes += layout.size

    def members(self) -> list[BrokerRecord]:
        """The brokers that belong to the cluster, by id."""
        return [self.brokers[b] for b in sorted(self.brokers) if self.brokers[b].state in MEMBERS]

    def balance(self) -> Balance:
        """How evenly the brokers are loaded; worked out once for as long as nothing changes."""
        if self._balance is None or self._balance[0] is not self.counts:
            self._balance = self.counts, balance_on(self.counts, self.members())
        return self._balance[1]

    def live_fleet(self, excluded: Iterable[int] = ()) -> Fleet:
        """The brokers that new replicas may be placed on, as columns.

        Raises:
            PlacementError: no broker is left, or some have a rack and some have none.
        """
        live = self._live_without(excluded)
        if live.fleet is None:
            live.fleet = fleet_of(live.brokers)
        return live.fleet

    def live_members(self, excluded: Iterable[int] = ()) -> Members:
        """The same as changes are checked against."""
        live = self._live_without(excluded)
        if live.members is None:
            live.members = Members.of(live.brokers)
        return live.members

    def live_brokers(self, excluded: Iterable[int] = ()) -> Sequence[Broker]:
        """The brokers that new replicas may be placed on, by id."""
        return self._live_without(excluded).brokers

    def _live_without(self, excluded: Iterable[int]) -> _Live:
        """Worked out once for as long as the brokers stay as they are."""
        key = frozenset(excluded)
        if self._live is None or self._live.excluded != key:
            alive = (b.to_core() for b in self.members() if b.state == "alive" and b.broker_id not in key)
            self._live = _Live(key, tuple(alive))
        return self._live

    def assignment(self, topics: Sequence[str] | None = None) -> Assignment:
        """The layout of all topics, or of some, as one value."""
        names = sorted(self.topics if topics is None else topics)
        layouts = [self.topics[name] for name in names]
        width = max((layout.replicas.shape[1] for layout in layouts), default=0)
        replicas = np.full((sum(layout.partitions.size for layout in layouts), width), NO_BROKER, np.int32)
        row = 0
        for layout in layouts:
            n, r = layout.replicas.shape
            replicas[row : row + n, :r] = layout.replicas
            row += n
        index = np.repeat(np.arange(len(names), dtype=np.int32), [layout.partitions.size for layout in layouts])
        ids = np.concatenate([layout.partitions for layout in layouts]) if layouts else np.zeros(0, np.int32)
        return Assignment(names, index, ids, replicas)

    def next_deadline(self) -> datetime | None:
        """When time alone may change this cluster; never while it is stopped."""
        if self.stopped:
            return None
        due = [broker.deadline for broker in self.deadlines()[:1]]
        return min((moment for moment in (*due, self.load_deadline) if moment is not None), default=None)

    def size(self) -> int:
        """About how many bytes of memory the state takes."""
        records = OVERHEAD * (len(self.brokers) + len(self.clocks))
        return self._topic_bytes + records + SEEN_OVERHEAD * len(self.seen) + self.loads.size()

    def deadlines(self) -> Sequence[BrokerRecord]:
        """The brokers with a deadline, earliest first."""
        if self._due is None:
            waiting = (b for b in self.brokers.values() if b.deadline is not None)
            self._due = sorted(waiting, key=lambda b: (b.deadline, b.broker_id))
        return self._due

    def has_lost_replicas(self, brokers: Iterable[BrokerRecord]) -> bool:
        """Whether a replica is on a broker that must not hold any, were these the brokers.

        Such a broker is dead, draining, gone, or was never heard of.
        """
        usable = np.array([b.broker_id for b in brokers if b.state in ("alive", "failed")], np.int32)
        return bool(self.counts.replicas.sum() > self.counts.replicas_on(usable).sum())


def _drift_in(version: PlanVersion) -> dict[tuple[str, int], Drift]:
    """What a version of kind ``drift`` or ``restore`` says of partitions, by topic and partition id."""
    rows = [(block.topic, *row[:3]) for block in version.moves for row in block.rows()]
    if version.means.restores:
        way: Literal["planned", "proposed"] = "planned" if version.effective else "proposed"
        return {(t, p): Drift(planned, seen, version.plan_version, way) for t, p, seen, planned in rows}
    return {(t, p): Drift(planned, seen, version.plan_version) for t, p, planned, seen in rows}


def _own(array: Int32Array) -> Int32Array:
    """The array, or a copy of what is a part of a larger one, which would stay in memory for as long as this does."""
    return array if array.base is None else array.copy()


def balance_on(load: ReplicaCounts, brokers: Iterable[BrokerRecord]) -> Balance:
    """The fewest and most replicas and preferred leaders on brokers that may hold replicas."""
    ids = np.array([b.broker_id for b in brokers if b.state in ("alive", "failed")], np.int32)
    if not ids.size:
        return Balance()
    replicas, leaders = load.on(ids)
    return Balance(int(replicas.min()), int(replicas.max()), int(leaders.min()), int(leaders.max()))


def _roles_after(layout: TopicLayout, block: TopicMoves, ids: Int32Array) -> Roles | None:
    """What is known of the partitions ``ids``: of those that moved, what was observed with the move."""
    if layout.roles is None and block.roles is None:
        return None
    old = layout.roles or unknown_roles(layout.partitions.size)
    new = block.roles or unknown_roles(block.partitions.size)
    merged = []
    for name in ("leader", "isr", "end_offsets"):
        before, after = getattr(old, name), getattr(new, name)
        shape = (ids.size, max(before.shape[1], after.shape[1])) if before.ndim > 1 else (ids.size,)
        column = np.full(shape, NO_BROKER, before.dtype)
        for rows, values in ((layout.partitions, before), (block.partitions, after)):
            place = np.searchsorted(ids, rows)
            column[place] = NO_BROKER
            if values.ndim > 1:
                column[place, : values.shape[1]] = values
            else:
                column[place] = values
        merged.append(column)
    return Roles(*merged)
