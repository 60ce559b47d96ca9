"""Plans that people decide on: approved, rejected, rolled back; elections asked for; progress reported."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from placement import Change
from placement.model import NO_BROKER
from streaming.errors import RejectedEvent
from streaming.events import PlanApproved, PlanProgress, PlanRejected, PlanRolledBack, PreferredElectionRequested
from streaming.planning.decisions.decision import Answer, Decision, History, NoEffect, Stale
from streaming.planning.in_sync import replicas_in_sync
from streaming.planning.soundness import check_as_said
from streaming.planning.state import ClusterState, balance_on
from streaming.record.moves import TopicMoves, change_of, load_after, moved_replicas
from streaming.record.version import Numbers, PlanVersion

_UNDOABLE: Final = ("heal", "rebalance", "replication_factor", "rollback", "observation")


def plan_approved(state: ClusterState, event: PlanApproved) -> Answer:
    """Let a proposed plan take effect, exactly as proposed, as a version of its own.

    Raises:
        RejectedEvent: there is no such version, or the digest is another plan's.
    """
    proposal = _proposal(state, event)
    if isinstance(proposal, Stale):
        return proposal
    return Decision(
        proposal.kind,
        f"version {proposal.plan_version} approved by event {event.event_id}: {proposal.cause}",
        moves=proposal.moves,
        numbers=proposal.numbers,
        approval="approved",
        base_version=proposal.plan_version,
        digest=proposal.digest,
    )


def plan_rejected(state: ClusterState, event: PlanRejected) -> Answer:
    """Put on record that a proposed plan must not take effect.

    Raises:
        RejectedEvent: there is no such version, or the digest is another plan's.
    """
    proposal = _proposal(state, event)
    if isinstance(proposal, Stale):
        return proposal
    return Decision(
        "rejection",
        f"version {proposal.plan_version} rejected by event {event.event_id}",
        approval="rejected",
        base_version=proposal.plan_version,
        digest=proposal.digest,
    )


def _proposal(state: ClusterState, event: PlanApproved | PlanRejected) -> PlanVersion | Stale:
    _check_version(state, event.plan_version)
    proposal = state.proposal
    if proposal is None or proposal.plan_version != event.plan_version:
        return Stale(
            f"version {event.plan_version} does not wait for approval: the cluster is at version {state.version}"
        )
    if proposal.digest != event.digest:
        raise RejectedEvent(f"digest {event.digest!r} is not that of version {event.plan_version}: {proposal.digest}")
    return proposal


def _check_version(state: ClusterState, version: int) -> None:
    if not 1 <= version <= state.version:
        known = f"versions 1 to {state.version}" if state.version else "no versions yet"
        raise RejectedEvent(f"there is no version {version}: the cluster has {known}")


def plan_rolled_back(state: ClusterState, event: PlanRolledBack, history: History) -> Answer:
    """Undo the moves of a version by a new one, where each partition still is as that version left it.

    Raises:
        RejectedEvent: there is no such version, the digest is another plan's, it moved no existing replica,
            or its former brokers can no longer hold replicas.
    """
    _check_version(state, event.plan_version)
    version = history(state.cluster_id, event.plan_version)
    if version is None or not version.effective or version.kind not in _UNDOABLE or not version.moves:
        raise RejectedEvent(f"version {event.plan_version} moved no replicas that could be moved back")
    if version.digest != event.digest:
        raise RejectedEvent(f"digest {event.digest!r} is not that of version {event.plan_version}: {version.digest}")
    moves = [block.inverse("rolled back") for block in version.moves]
    for block in moves:
        changed = _first_changed(state, block)
        if changed is not None:
            return Stale(
                f"partition {block.topic}-{changed} is no longer as version {event.plan_version} left it: "
                f"the cluster is at version {state.version}"
            )
    members = state.members()
    change = change_of(moves)
    in_sync = replicas_in_sync(state, members, change.topics)[_rows(state, change)]
    check = check_as_said(change, members, in_sync)
    if not check:
        raise RejectedEvent(f"version {event.plan_version} cannot be undone: {check.violations[0]}")
    moved = moved_replicas(moves)
    return Decision(
        "rollback",
        f"version {event.plan_version} rolled back by event {event.event_id}",
        moves=moves,
        base_version=event.plan_version,
        numbers=Numbers(
            partitions_changed=sum(block.partitions.size for block in moves),
            moved_replicas=moved,
            lower_bound=moved,
            before=state.balance(),
            after=balance_on(load_after(state.load, moves), members),
        ),
    )


def _first_changed(state: ClusterState, block: TopicMoves) -> int | None:
    """The first partition of the block that is not as ``before`` says."""
    layout = state.topics.get(block.topic)
    if layout is None:
        return int(block.partitions[0])
    rows = np.searchsorted(layout.partitions, block.partitions)
    rows = np.minimum(rows, layout.partitions.size - 1)
    width = max(layout.replicas.shape[1], block.before.shape[1])
    same = (_padded(layout.replicas[rows], width) == _padded(block.before, width)).all(axis=1)
    same &= layout.partitions[rows] == block.partitions
    return None if same.all() else int(block.partitions[int(np.argmin(same))])


def _rows(state: ClusterState, change: Change) -> NDArray[np.intp]:
    """The rows of the changed partitions in the layout of their topics."""
    layout = state.assignment(change.topics)
    known, wanted = (columns.topic_index.astype(np.int64) << 32 | columns.partition for columns in (layout, change))
    return np.searchsorted(known, wanted)


def _padded(replicas: np.ndarray, width: int) -> np.ndarray:
    return np.pad(replicas, ((0, 0), (0, width - replicas.shape[1])), constant_values=NO_BROKER)


def preferred_election_requested(state: ClusterState, event: PreferredElectionRequested) -> Answer:
    """Ask executors to elect the preferred leaders that are live; no data moves.

    Raises:
        RejectedEvent: a topic is not known.
    """
    unknown = sorted(set(event.topics or ()) - set(state.topics))
    if unknown:
        raise RejectedEvent(f"topic {unknown[0]} is not known")
    live = np.array([b.broker_id for b in state.members() if b.state in ("alive", "draining")], np.int32)
    blocks = []
    for topic in sorted(event.topics if event.topics is not None else state.topics):
        layout = state.topics[topic]
        rows = np.flatnonzero(np.isin(layout.replicas[:, 0], live))
        if rows.size:
            replicas = layout.replicas[rows]
            blocks.append(
                TopicMoves(topic, layout.partitions[rows], replicas, replicas, ["preferred election"] * rows.size)
            )
    if not blocks:
        return NoEffect("no partition has a live preferred leader")
    count = sum(block.partitions.size for block in blocks)
    spread = state.balance()
    return Decision(
        "election",
        f"preferred leaders of {count} partitions to be elected",
        moves=blocks,
        numbers=Numbers(partitions_changed=count, before=spread, after=spread),
    )


def check_progress(state: ClusterState, event: PlanProgress) -> None:
    """Progress changes no layout; it is recorded if it is about a version that exists.

    Raises:
        RejectedEvent: there is no such version.
    """
    _check_version(state, event.plan_version)
