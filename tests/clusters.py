"""Clusters for tests and benchmarks: broker lists and whole layouts, built from a few numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from placement import Assignment, Broker
from placement.model import Int32Array


def racked(brokers: int, racks: int, *, first: int = 0, capacity: float = 1.0) -> list[Broker]:
    """Brokers ``first, first + 1, ...``, racks taking turns."""
    return [Broker(first + i, f"r{i % racks:03d}", capacity) for i in range(brokers)]


def in_state(brokers: Iterable[Broker], ids: Iterable[int], state: str) -> list[Broker]:
    """The brokers, with the named ones in another state."""
    chosen = set(ids)
    return [replace(b, state=state) if b.id in chosen else b for b in brokers]  # type: ignore[arg-type]


def even_layout(
    brokers: int, racks: int, partitions: int, factor: int, *, first: int = 0, per_topic: int = 100
) -> Assignment:
    """A layout in balance on ``racked(brokers, racks)``: leaders and followers even, racks distinct.

    From one replica of a partition to the next it is 1 to ``racks // factor`` racks, and some way along the rack; both
    change with every round of the brokers, so that the replicas of a broker's partitions are all over the cluster.
    """
    position = np.arange(partitions, dtype=np.int64)
    lap = position // brokers
    step = 1 + lap % max(1, (racks - 1) // max(1, factor - 1))
    along = [(lap * (2 * j + 1) * 7919) % max(1, brokers // racks) for j in range(factor)]
    columns = [(position + j * step + racks * along[j]) % brokers for j in range(factor)]
    topics = -(-partitions // per_topic)
    names = [f"topic-{t:06d}" for t in range(topics)]
    matrix: Int32Array = (np.stack(columns, axis=1) + first).astype(np.int32)
    return Assignment(names, (position // per_topic).astype(np.int32), (position % per_topic).astype(np.int32), matrix)


def comparison_layout() -> Assignment:
    """100 topics of 10 partitions on brokers 1 to 12: replica j of partition g on broker ``(g + j) mod 12 + 1``."""
    return Assignment.from_rows((f"t{g // 10:03d}", g % 10, [(g + j) % 12 + 1 for j in range(3)]) for g in range(1000))


def comparison_brokers() -> list[Broker]:
    """Brokers 1 to 12 in three racks taking turns."""
    return racked(12, 3, first=1)
