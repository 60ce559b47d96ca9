"""The loads that a cluster's state has: the fold of what its versions changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from placement.model import NO_BROKER, Int32Array
from streaming.record.fold_digest import FoldDigest, hash_of_limits, hash_of_loads
from streaming.record.loads import MEASURED, UNKNOWN, BrokerLimits, Int64Array, TopicLoads, nothing_of
from streaming.record.moves import TopicMoves

_OVERHEAD: Final = 400
"""Bytes that Python takes for a topic or a broker, about."""


@dataclass(slots=True)
class KnownLoads:
    """Loads by topic and limits by broker; what is not there is not known.

    Attributes:
        topics: at least one value of each partition is known.
        limits: at least one value of each broker is known.
    """

    topics: dict[str, TopicLoads] = field(default_factory=dict)
    limits: dict[int, BrokerLimits] = field(default_factory=dict)
    _topic_bytes: int = 0
    _topic_digest: FoldDigest[str, TopicLoads] = field(default_factory=lambda: FoldDigest(hash_of_loads))
    _limit_digest: FoldDigest[int, BrokerLimits] = field(default_factory=lambda: FoldDigest(hash_of_limits))

    def take(self, loads: Iterable[TopicLoads], limits: Iterable[BrokerLimits]) -> None:
        """Take changes over. The same ones again change nothing."""
        for block in loads:
            self._merge(block)
        for broker in limits:
            self._limit_digest.changes(broker.broker_id, self.limits)
            if broker.is_known:
                self.limits[broker.broker_id] = broker
            else:
                self.limits.pop(broker.broker_id, None)

    def values_of(self, topic: str, partitions: Int32Array) -> Int64Array:
        """The loads of partitions, int64, shape ``(n, 3)``; ``UNKNOWN`` where they are not known."""
        found = np.full((partitions.size, len(MEASURED)), UNKNOWN, np.int64)
        known = self.topics.get(topic)
        if known is not None:
            rows = np.minimum(np.searchsorted(known.partitions, partitions), known.partitions.size - 1)
            there = known.partitions[rows] == partitions
            found[there] = known.values[rows[there]]
        return found

    def forgotten(self, moves: Iterable[TopicMoves]) -> list[TopicLoads]:
        """What to record where moves end partitions: nothing is known of them any more."""
        found = []
        for block in moves if self.topics else ():
            if block.topic not in self.topics:
                continue
            gone = np.sort(block.partitions[(block.after == NO_BROKER).all(axis=1)])
            gone = gone[(self.values_of(block.topic, gone) != UNKNOWN).any(axis=1)]
            if gone.size:
                found.append(nothing_of(block.topic, gone))
        return found

    def digests(self) -> tuple[str, str]:
        """What proves that the projections ``loads`` and ``broker_limits`` have exactly this."""
        return self._topic_digest.of(self.topics), self._limit_digest.of(self.limits)

    def settle(self, loads: str, limits: str) -> None:
        """Believe that these are the digests."""
        self._topic_digest.settle(loads)
        self._limit_digest.settle(limits)

    def size(self) -> int:
        """About how many bytes of memory they take."""
        return self._topic_bytes + _OVERHEAD * len(self.limits)

    def _merge(self, block: TopicLoads) -> None:
        self._topic_digest.changes(block.topic, self.topics)
        known = self.topics.get(block.topic)
        ids, values = block.partitions, block.values
        if known is not None:
            ids = np.union1d(known.partitions, block.partitions).astype(np.int32)
            values = np.empty((ids.size, len(MEASURED)), np.int64)
            values[np.searchsorted(ids, known.partitions)] = known.values
            values[np.searchsorted(ids, block.partitions)] = block.values
            self._topic_bytes -= _bytes(known)
        kept = (values != UNKNOWN).any(axis=1)
        if kept.any():
            self.topics[block.topic] = TopicLoads(block.topic, ids[kept], values[kept])
            self._topic_bytes += _bytes(self.topics[block.topic])
        else:
            self.topics.pop(block.topic, None)


def _bytes(block: TopicLoads) -> int:
    return block.partitions.nbytes + block.values.nbytes + _OVERHEAD
