"""Plans that people decide on: approved, rejected, rolled back; elections asked for; progress reported."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from placement import Change
from placement.model import NO_BROKER
from streaming.errors import RejectedEvent
from streaming.events import PlanApproved, PlanProgress, PlanRejected, PlanRolledBack, PreferredElectionRequested
from streaming.planning.decisions.decision import Answer, Decision, NoEffect, Stale, named
from streaming.planning.in_sync import replicas_in_sync
from streaming.planning.soundness import check_as_said
from streaming.planning.state import ClusterState, History, balance_on
from streaming.record.kinds import Kind
from streaming.record.moves import TopicMoves, change_of, counts_after, moved_replicas
from streaming.record.version import Approval, Numbers, PlanVersion


def plan_approved(state: ClusterState, event: PlanApproved) -> Answer:
    """Let a proposed plan take effect, exactly as proposed, as a version of its own.

    Raises:
        RejectedEvent: there is no such version, or the digest is another plan's.
    """
    proposal = _proposal(state, event)
    if isinstance(proposal, Stale):
        return proposal
    cause = f"approved by event {event.event_id}: {proposal.cause}"
    taken = _decided(proposal, proposal.kind, "approved", cause)
    return replace(taken, moves=proposal.moves, numbers=proposal.numbers)


def plan_rejected(state: ClusterState, event: PlanRejected) -> Answer:
    """Put on record that a proposed plan must not take effect.

    Raises:
        RejectedEvent: there is no such version, or the digest is another plan's.
    """
    proposal = _proposal(state, event)
    if isinstance(proposal, Stale):
        return proposal
    return _decided(proposal, "rejection", "rejected", f"rejected by event {event.event_id}")


def _decided(proposal: PlanVersion, kind: Kind, approval: Approval, cause: str) -> Decision:
    return Decision(
        kind,
        f"version {proposal.plan_version} {cause}",
        approval=approval,
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

    What has changed since, is gone, or was on brokers that are lost is left as it is; the cause names it.

    Raises:
        RejectedEvent: there is no such version, the digest is another plan's, it moved no existing replica,
            or its former brokers can no longer hold replicas.
    """
    _check_version(state, event.plan_version)
    version = history(state.cluster_id, event.plan_version)
    if version is None or not version.effective or not version.means.can_be_undone or not version.moves:
        raise RejectedEvent(f"version {event.plan_version} moved no replicas that could be moved back")
    if version.digest != event.digest:
        raise RejectedEvent(f"digest {event.digest!r} is not that of version {event.plan_version}: {version.digest}")
    moves, left = _ways_back(state, version)
    if not moves:
        return Stale(
            f"nothing of version {event.plan_version} can be rolled back: {named(left)}: "
            f"the cluster is at version {state.version}"
        )
    members = state.members()
    change = change_of(moves)
    in_sync = replicas_in_sync(state, members, change.topics)[_rows(state, change)]
    check = check_as_said(change, members, in_sync)
    if not check:
        raise RejectedEvent(f"version {event.plan_version} cannot be undone: {check.violations[0]}")
    moved = moved_replicas(moves)
    rest = f"; not rolled back: {named(left)}" if left else ""
    return Decision(
        "rollback",
        f"version {event.plan_version} rolled back by event {event.event_id}{rest}",
        moves=moves,
        base_version=event.plan_version,
        numbers=Numbers(
            partitions_changed=sum(block.partitions.size for block in moves),
            moved_replicas=moved,
            lower_bound=moved,
            before=state.balance(),
            after=balance_on(counts_after(state.counts, moves), members),
        ),
    )


def _ways_back(state: ClusterState, version: PlanVersion) -> tuple[list[TopicMoves], list[str]]:
    """The moves that undo a version, as far as they can be made, and what is left as it is, with the reason.

    Where all that is left to undo leads to lost brokers, it is returned, for the check to refuse.
    """
    unchanged, left = [], []
    for block in version.moves:
        back = block.inverse("rolled back")
        same = _is_as_before(state, back)
        if block.topic not in state.topics:
            left += [f"topic {block.topic} is gone"]
        else:
            left += [f"{block.topic}-{p} has changed since" for p in back.partitions[~same].tolist()]
        unchanged.append((back, same))
    alive = np.array([b.broker_id for b in state.members() if b.state in ("alive", "failed")], np.int32)
    usable = [
        (back, same & (np.isin(back.after, alive) | (back.after == NO_BROKER)).all(axis=1)) for back, same in unchanged
    ]
    if any(rows.any() for _, rows in usable):
        for (back, same), (_, rows) in zip(unchanged, usable, strict=True):
            left += [f"{back.topic}-{p} was on a broker that is lost" for p in back.partitions[same & ~rows].tolist()]
        unchanged = usable
    return [back.take(rows) for back, rows in unchanged if rows.any()], left


def _is_as_before(state: ClusterState, block: TopicMoves) -> NDArray[np.bool_]:
    """Which partitions of the block are as ``before`` says."""
    layout = state.topics.get(block.topic)
    if layout is None:
        return np.zeros(block.partitions.size, np.bool_)
    rows = np.minimum(np.searchsorted(layout.partitions, block.partitions), layout.partitions.size - 1)
    width = max(layout.replicas.shape[1], block.before.shape[1])
    same = (_padded(layout.replicas[rows], width) == _padded(block.before, width)).all(axis=1)
    return np.asarray(same & (layout.partitions[rows] == block.partitions))


def _rows(state: ClusterState, change: Change) -> NDArray[np.intp]:
    """The rows of the changed partitions in the layout of their topics."""
    layout = state.assignment(change.topics)
    known, wanted = (columns.topic_index.astype(np.int64) << 32 | columns.partition for columns in (layout, change))
    return np.searchsorted(known, wanted)


def _padded(replicas: np.ndarray, width: int) -> np.ndarray:
    return np.pad(replicas, ((0, 0), (0, width - replicas.shape[1])), constant_values=NO_BROKER)


def preferred_election_requested(state: ClusterState, event: PreferredElectionRequested) -> Answer:
    """Request a preferred leader election for those that are live; no data moves.

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
            ids, replicas = layout.partitions[rows], layout.replicas[rows]
            roles = layout.roles and layout.roles.take(rows)  # who leads is not known any better for being asked to
            blocks.append(TopicMoves(topic, ids, replicas, replicas, ["preferred election"] * rows.size, roles=roles))
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
