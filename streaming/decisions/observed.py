"""The real layout of a cluster: adopted where the state knows nothing, corrected where it knows otherwise."""

from __future__ import annotations

import numpy as np

from placement import Assignment, PlacementError
from placement.model import NO_BROKER, Int32Array
from streaming.decisions.decision import Answer, Decision, NoEffect
from streaming.errors import RejectedEvent
from streaming.events import AssignmentObserved
from streaming.moves import TopicMoves
from streaming.state import ClusterState
from streaming.version import TopicChange


def assignment_observed(state: ClusterState, event: AssignmentObserved) -> Answer:
    """Make the observed partitions the state's. Partitions that are not mentioned stay as they are.

    Raises:
        RejectedEvent: a replica list that no cluster can have.
    """
    try:
        observed = Assignment.from_rows((p.topic, p.partition, p.replicas) for p in event.partitions)
    except PlacementError as error:
        raise RejectedEvent(str(error)) from error
    blocks = [block for block in _blocks(state, observed) if block.partitions.size]
    if not blocks:
        return NoEffect("every observed partition is as the state has it")
    adopted = sum(int((block.before == NO_BROKER).all(axis=1).sum()) for block in blocks)
    corrected = sum(block.partitions.size for block in blocks) - adopted
    return Decision(
        "observation",
        f"observed: {adopted} partitions adopted, {corrected} corrected",
        topics=[TopicChange(b.topic, "") for b in blocks if b.topic not in state.topics],
        moves=blocks,
    )


def _blocks(state: ClusterState, observed: Assignment) -> list[TopicMoves]:
    bounds = np.searchsorted(observed.topic_index, np.arange(len(observed.topics) + 1))
    return [
        _differences(state, topic, observed.partition[lo:hi], observed.replicas[lo:hi])
        for topic, lo, hi in zip(observed.topics, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]


def _differences(state: ClusterState, topic: str, ids: Int32Array, replicas: Int32Array) -> TopicMoves:
    layout = state.topics.get(topic)
    known = layout.replicas if layout else np.full((0, 0), NO_BROKER, np.int32)
    width = max(known.shape[1], replicas.shape[1])
    before = np.full((ids.size, width), NO_BROKER, np.int32)
    if layout:
        rows = np.minimum(np.searchsorted(layout.partitions, ids), layout.partitions.size - 1)
        held = layout.partitions[rows] == ids
        before[held, : known.shape[1]] = known[rows[held]]
    after = np.pad(replicas, ((0, 0), (0, width - replicas.shape[1])), constant_values=NO_BROKER)
    changed = (before != after).any(axis=1)
    return TopicMoves(topic, ids[changed], before[changed], after[changed], ["observed"] * int(changed.sum()))
