"""The real layout of a cluster: adopted where the state knows nothing, compared with what it knows elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from placement import Assignment, PlacementError
from placement.model import NO_BROKER, Int32Array
from streaming.config import Policy
from streaming.errors import RejectedEvent
from streaming.events import AssignmentObserved, ObservedPartition
from streaming.planning.decisions.decision import MAX_NAMED, Decision, NoEffect
from streaming.planning.in_sync import brokers_up, in_sync_among
from streaming.planning.soundness import check_as_said
from streaming.planning.state import ClusterState, Drift, History, TopicLayout
from streaming.record.moves import (
    NO_OFFSET,
    Roles,
    TopicMoves,
    change_of,
    moved_replicas,
    unknown_roles,
    unpadded,
)
from streaming.record.version import Approval, Numbers, TopicChange


@dataclass(frozen=True, slots=True)
class _Topic:
    """One topic as it was observed, beside what the state has of it."""

    name: str
    partitions: Int32Array
    before: Int32Array
    after: Int32Array
    roles: Roles | None
    known: NDArray[np.bool_]
    news: NDArray[np.bool_]
    waiting: NDArray[np.bool_]
    reported: NDArray[np.bool_]
    planned_back: NDArray[np.bool_]
    proposed_back: NDArray[np.bool_]
    back: NDArray[np.bool_]

    @property
    def elsewhere(self) -> NDArray[np.bool_]:
        """Partitions that the state has otherwise."""
        return np.asarray(self.known & (self.before != self.after).any(axis=1))

    @property
    def drifted(self) -> NDArray[np.bool_]:
        """Those of them that do not just wait to be moved."""
        return np.asarray(self.elsewhere & ~self.waiting)

    def wanted(self, adopting: bool) -> NDArray[np.bool_]:
        """Partitions that the state takes over: new ones, those with other roles, drifted ones if they are adopted."""
        return ~self.known | (self.news & ~self.elsewhere) | (self.drifted & adopting)

    def told(self, row: int) -> str:
        """Leader and ISR of a partition, for a sentence."""
        assert self.roles is not None
        leader, isr = int(self.roles.leader[row]), self.roles.isr[row]
        led = "no leader" if leader == NO_BROKER else f"leader {leader}"
        return (
            f"{self.name}-{self.partitions[row]} has {led}, ISR {','.join(map(str, isr[isr != NO_BROKER])) or 'none'}"
        )

    def moves(self, rows: NDArray[np.bool_], reason: str, *, back: bool = False) -> TopicMoves:
        """Some of the partitions as moves to what was observed, or back to what the state has."""
        before, after = (self.after, self.before) if back else (self.before, self.after)
        roles = self.roles.take(rows) if self.roles and not back else None
        return TopicMoves(
            self.name, self.partitions[rows], before[rows], after[rows], [reason] * int(rows.sum()), roles=roles
        )


def assignment_observed(
    state: ClusterState, event: AssignmentObserved, policy: Policy, history: History
) -> list[Decision] | NoEffect:
    """Adopt what is new, and treat what differs as policy says. Partitions that are not mentioned stay as they are.

    A partition that is still where a plan takes it from has not drifted: the plan waits to be carried out. Drift is
    put on record or planned back once, and it is put on record once more when it is over.

    Raises:
        RejectedEvent: a replica list that no cluster can have.
    """
    topics = _with_told(state, _without_waiting(state, _compare(state, event), history), history)
    drifted = sum(int(t.drifted.sum()) for t in topics)
    adopting = policy.on_drift == "adopt" or not drifted
    decisions = [_observation(state, topics, adopting)] if any(t.wanted(adopting).any() for t in topics) else []
    if not adopting:
        decisions += _drift(state, topics, policy)
    if any(t.back.any() for t in topics):
        moves = [t.moves(t.back, "no longer drifted") for t in topics if t.back.any()]
        decisions.append(
            _report(state, f"drift is over: {_count(moves)} partitions are where they were planned", moves)
        )
    waiting = sum(int(t.waiting.sum()) for t in topics)
    told = sum(int(t.reported.sum()) for t in topics)
    others = [f"({waiting}) waits for its plan to be carried out"] if waiting else []
    others += [f"({told}) has drifted as was reported"] if told else []
    return decisions or NoEffect(", or ".join(["every observed partition is as the state has it", *others]))


def _without_waiting(state: ClusterState, topics: Sequence[_Topic], history: History) -> list[_Topic]:
    """Mark the partitions that were not seen since a plan moved them and are as a plan found them.

    That no leader is known says that a partition was not seen: a move forgets it, and none is told on the way.
    """
    doubtful = {
        (t.name, p): tuple(row[row != NO_BROKER].tolist())
        for t in topics
        for p, row in zip(t.partitions[t.elsewhere].tolist(), t.after[t.elsewhere], strict=True)
        if _is_seen(t, p) and not _was_seen(state, t.name, p)
    }
    waiting: set[tuple[str, int]] = set()
    for number in state.moving if doubtful else ():
        version = history(state.cluster_id, number)
        for block in version.moves if version else ():
            starts = {(block.topic, p): tuple(before) for p, before, _, _ in block.rows()}
            waiting |= {place for place in doubtful.keys() & starts.keys() if doubtful[place] == starts[place]}
    masks = (np.array([(t.name, p) in waiting for p in t.partitions.tolist()], np.bool_) for t in topics)
    return [replace(t, waiting=mask) for t, mask in zip(topics, masks, strict=True)] if waiting else list(topics)


def _with_told(state: ClusterState, topics: Sequence[_Topic], history: History) -> list[_Topic]:
    """Mark the partitions whose drift is on record just so, and those whose drift was on record and is over."""
    told = state.told_drift(history)
    proposal = state.proposal.plan_version if state.proposal else 0
    return [_told(t, told, proposal) for t in topics] if told else list(topics)


def _told(topic: _Topic, told: Mapping[tuple[str, int], Drift], proposal: int) -> _Topic:
    n = topic.partitions.size
    reported, planned, proposed, back = (np.zeros(n, np.bool_) for _ in range(4))
    rows = zip(topic.partitions.tolist(), topic.before.tolist(), topic.after.tolist(), strict=True)
    for row, (partition, *lists) in enumerate(rows):
        drift = told.get((topic.name, partition))
        if drift is not None:
            reported[row] = [drift.planned, drift.seen] == [unpadded(replicas) for replicas in lists]
            planned[row] = drift.way_back == "planned"
            proposed[row] = drift.way_back == "proposed" and drift.version == proposal
            back[row] = drift.planned == unpadded(lists[0]) != drift.seen
    reported &= topic.drifted
    return replace(
        topic,
        reported=reported,
        planned_back=reported & planned,
        proposed_back=reported & proposed,
        back=back & topic.known & ~topic.elsewhere,
    )


def _is_seen(topic: _Topic, partition: int) -> bool:
    row = int(np.searchsorted(topic.partitions, partition))
    return topic.roles is not None and bool(topic.roles.leader[row] != NO_BROKER)


def _was_seen(state: ClusterState, topic: str, partition: int) -> bool:
    layout = state.topics[topic]
    row = int(np.searchsorted(layout.partitions, partition))
    return layout.roles is not None and bool(layout.roles.leader[row] != NO_BROKER)


def _observation(state: ClusterState, topics: Sequence[_Topic], adopting: bool) -> Decision:
    blocks = [t.moves(t.wanted(adopting), "observed") for t in topics]
    moves = [block for block in blocks if block.partitions.size]
    new = sum(int((~t.known).sum()) for t in topics)
    corrected = sum(int(t.drifted.sum()) for t in topics) if adopting else 0
    spread = state.balance()
    return Decision(
        "observation",
        f"observed: {new} partitions adopted, {corrected} corrected" if new or corrected else _news(topics),
        topics=[TopicChange(t.name, "") for t in topics if t.name not in state.topics],
        moves=moves,
        # Leaders and ISRs are recorded, and no partition is changed by that.
        numbers=None if new or corrected else Numbers(before=spread, after=spread),
    )


def _news(topics: Sequence[_Topic]) -> str:
    """What is recorded where every replica is as it was: who leads, and who is in sync."""
    rows = [(t, row) for t in topics for row in np.flatnonzero(t.wanted(adopting=False)).tolist()]
    shown = "; ".join(t.told(row) for t, row in rows[:MAX_NAMED])
    more = f"; and {len(rows) - MAX_NAMED} more" if len(rows) > MAX_NAMED else ""
    return f"observed: {shown}{more}"


def _drift(state: ClusterState, topics: Sequence[_Topic], policy: Policy) -> list[Decision]:
    """Put drift on record that is not there yet, or plan the way back where none is planned or proposed."""
    refusal = ""
    if policy.on_drift == "restore":
        away = [(t, t.drifted & ~t.planned_back) for t in topics]
        if not any((rows & ~t.proposed_back).any() for t, rows in away):
            return []
        away = [(t, rows) for t, rows in away if rows.any()]
        moves = [t.moves(rows, "drifted", back=True) for t, rows in away]
        refusal = _refusal(state, away, moves)
        if not refusal:
            approval: Approval = "proposed" if "restore" in policy.approval else "not_required"
            cause = f"drift: {_count(moves)} partitions are not where they were planned"
            return [replace(_report(state, cause, moves), kind="restore", approval=approval)]
    moves = [t.moves(t.drifted & ~t.reported, "drifted") for t in topics if (t.drifted & ~t.reported).any()]
    cause = f"drift: {_count(moves)} partitions are not where they were planned"
    return [_report(state, f"{cause}; not planned back: {refusal}" if refusal else cause, moves)] if moves else []


def _report(state: ClusterState, cause: str, moves: Sequence[TopicMoves]) -> Decision:
    moved, spread = moved_replicas(moves), state.balance()
    return Decision(
        "drift",
        cause,
        moves=moves,
        numbers=Numbers(
            partitions_changed=_count(moves), moved_replicas=moved, lower_bound=moved, before=spread, after=spread
        ),
        approval="reported",
    )


def _count(moves: Sequence[TopicMoves]) -> int:
    return sum(block.partitions.size for block in moves)


def _refusal(state: ClusterState, away: Sequence[tuple[_Topic, NDArray[np.bool_]]], moves: Sequence[TopicMoves]) -> str:
    """Why the way back must not be taken; empty where it may."""
    members = state.members()
    up, width = brokers_up(members), max(block.before.shape[1] for block in moves)
    in_sync = []
    for (t, rows), block in zip(away, moves, strict=True):
        roles = t.roles.take(rows) if t.roles else None
        serving = np.where(in_sync_among(block.before, roles, up), block.before, NO_BROKER)
        in_sync.append(np.pad(serving, ((0, 0), (0, width - serving.shape[1])), constant_values=NO_BROKER))
    check = check_as_said(change_of(moves), members, np.concatenate(in_sync))
    return "" if check else str(check.violations[0])


def _compare(state: ClusterState, event: AssignmentObserved) -> list[_Topic]:
    try:
        observed = Assignment.from_rows((p.topic, p.partition, p.replicas) for p in event.partitions)
    except PlacementError as error:
        raise RejectedEvent(str(error)) from error
    details = {(p.topic, p.partition): p for p in event.partitions if p.leader is not None or p.isr or p.end_offsets}
    bounds = np.searchsorted(observed.topic_index, np.arange(len(observed.topics) + 1)).tolist()
    return [
        _topic(state.topics.get(name), name, observed.partition[lo:hi], observed.replicas[lo:hi], details)
        for name, lo, hi in zip(observed.topics, bounds[:-1], bounds[1:], strict=True)
    ]


def _topic(
    layout: TopicLayout | None,
    name: str,
    ids: Int32Array,
    replicas: Int32Array,
    details: dict[tuple[str, int], ObservedPartition],
) -> _Topic:
    held = layout.replicas if layout else np.full((0, 0), NO_BROKER, np.int32)
    width = max(held.shape[1], replicas.shape[1])
    before = np.full((ids.size, width), NO_BROKER, np.int32)
    known = np.zeros(ids.size, np.bool_)
    rows = np.zeros(ids.size, np.intp)
    if layout:
        rows = np.minimum(np.searchsorted(layout.partitions, ids), layout.partitions.size - 1)
        known = layout.partitions[rows] == ids
        before[known, : held.shape[1]] = held[rows[known]]
    after = np.pad(replicas, ((0, 0), (0, width - replicas.shape[1])), constant_values=NO_BROKER)
    roles = _roles(name, ids, replicas, details)
    news = known & _differs(layout, rows, roles) if roles else np.zeros(ids.size, np.bool_)
    none = np.zeros(ids.size, np.bool_)
    unmarked = {"waiting": none, "reported": none, "planned_back": none, "proposed_back": none, "back": none}
    return _Topic(name, ids, before, after, roles, known, news, **unmarked)


def _roles(
    name: str, ids: Int32Array, replicas: Int32Array, details: dict[tuple[str, int], ObservedPartition]
) -> Roles | None:
    """Leader, ISR and end offsets, where the observation names them; offsets only where every replica has one."""
    found = [(row, details[name, p]) for row, p in enumerate(ids.tolist()) if (name, p) in details]
    if not found:
        return None
    n, width = replicas.shape
    leader = np.full(n, NO_BROKER, np.int32)
    isr = np.full((n, width), NO_BROKER, np.int32)
    ends = np.full((n, width), NO_OFFSET, np.int64)
    for row, seen in found:
        leader[row] = NO_BROKER if seen.leader is None else seen.leader
        in_sync = [b for b in seen.replicas if b in (seen.isr or ())]
        isr[row, : len(in_sync)] = in_sync
        offsets = seen.end_offsets or {}
        if set(seen.replicas) <= set(offsets):
            ends[row, : len(seen.replicas)] = [offsets[b] for b in seen.replicas]
    return Roles(leader, isr, ends)


def _differs(layout: TopicLayout | None, rows: NDArray[np.intp], roles: Roles) -> NDArray[np.bool_]:
    """Whether leader or ISR are others than the state has; end offsets alone are no news."""
    known = (layout.roles if layout else None) or unknown_roles(layout.partitions.size if layout else 0)
    if not known.leader.size:
        return np.ones(rows.size, np.bool_)
    width = max(known.isr.shape[1], roles.isr.shape[1])
    isr, seen = (
        np.pad(m, ((0, 0), (0, width - m.shape[1])), constant_values=NO_BROKER) for m in (known.isr[rows], roles.isr)
    )
    return np.asarray((known.leader[rows] != roles.leader) | (isr != seen).any(axis=1))
