"""How the partitions of a cluster fare: who leads, which are short of replicas, which are offline.

Where leader and ISR were observed and the brokers are still up, that is what is said. Otherwise it is what is to be
expected: replicas on brokers that are up are in sync, and the first of them in the replica list leads. No unclean
election is ever assumed: a partition without an in-sync replica on a broker that is up is offline.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placement.model import NO_BROKER, Int32Array
from streaming.planning.in_sync import brokers_up, in_sync_among
from streaming.planning.state import ClusterState, TopicLayout
from streaming.record.moves import NO_OFFSET, Roles

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TopicHealth:
    """The partitions of one topic.

    Attributes:
        partitions: int32 ids, shape ``(n,)``.
        leader: int32, shape ``(n,)``, ``NO_BROKER`` where the partition is offline.
        in_sync: bool, shape ``(n, r)``: which of the replicas are in sync, in the order of the replica list.
        high_watermark: int64, shape ``(n,)``: the least end offset in the ISR, ``NO_OFFSET`` where it is not known.
        under_replicated, at_minimum, offline, not_preferred: bool, shape ``(n,)``.
    """

    topic: str
    partitions: Int32Array
    leader: Int32Array
    in_sync: BoolArray
    high_watermark: NDArray[np.int64]
    under_replicated: BoolArray
    at_minimum: BoolArray
    offline: BoolArray
    not_preferred: BoolArray


COUNTED = ("under_replicated", "at_minimum", "offline", "not_preferred")


def topic_health(state: ClusterState, topic: str, min_insync_replicas: int) -> TopicHealth:
    """Judge one topic by the brokers as they are known to be."""
    layout = state.topics[topic]
    present = layout.replicas != NO_BROKER
    in_sync = in_sync_among(layout.replicas, layout.roles, brokers_up(state.members()))
    count = in_sync.sum(axis=1)
    expected = np.where(in_sync.any(axis=1), layout.replicas[np.arange(count.size), in_sync.argmax(axis=1)], NO_BROKER)
    leader = _leader(layout, in_sync, expected.astype(np.int32))
    return TopicHealth(
        topic,
        layout.partitions,
        leader,
        in_sync,
        _high_watermark(layout.roles, in_sync),
        under_replicated=np.asarray(count < present.sum(axis=1)),
        at_minimum=np.asarray((count > 0) & (count <= min_insync_replicas) & (count < present.sum(axis=1))),
        offline=np.asarray(count == 0),
        not_preferred=np.asarray((leader != NO_BROKER) & (leader != layout.replicas[:, 0])),
    )


def _leader(layout: TopicLayout, in_sync: BoolArray, expected: Int32Array) -> Int32Array:
    """The observed leader where it is still in sync and up, else the one to expect."""
    if layout.roles is None:
        return expected
    observed = layout.roles.leader
    holds = ((layout.replicas == observed[:, None]) & in_sync).any(axis=1)
    return np.where(holds, observed, expected).astype(np.int32)


def _high_watermark(roles: Roles | None, in_sync: BoolArray) -> NDArray[np.int64]:
    n = in_sync.shape[0]
    if roles is None or not roles.end_offsets.shape[1]:
        return np.full(n, NO_OFFSET, np.int64)
    width = min(roles.end_offsets.shape[1], in_sync.shape[1])
    offsets = roles.end_offsets[:, :width]
    usable = in_sync[:, :width] & (offsets != NO_OFFSET)
    least = np.where(usable, offsets, np.iinfo(np.int64).max).min(axis=1)
    return np.asarray(np.where(usable.any(axis=1), least, NO_OFFSET), np.int64)


def counts(state: ClusterState, min_insync_replicas: int) -> dict[str, int]:
    """How many partitions of the cluster are under-replicated, at the minimum, offline, not led by the preferred."""
    total = dict.fromkeys(COUNTED, 0)
    for topic in state.topics:
        health = topic_health(state, topic, min_insync_replicas)
        for name in COUNTED:
            total[name] += int(getattr(health, name).sum())
    return total
