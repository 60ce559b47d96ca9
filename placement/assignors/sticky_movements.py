"""What moved between which members while balancing, so that nothing is swapped back and forth."""

from __future__ import annotations

from placement.assignors.group import TopicPartition
from placement.kafka.java_random import java_hash_order, topic_partition_hash

Pair = tuple[str, str]
"""The member that a partition came from, and the one it went to."""


class Movements:
    """The moves so far, by topic."""

    __slots__ = ("_by_topic", "_pair")

    def __init__(self) -> None:
        self._pair: dict[TopicPartition, Pair] = {}
        self._by_topic: dict[tuple[str, Pair], dict[TopicPartition, None]] = {}

    def record(self, partition: TopicPartition, source: str, target: str) -> None:
        """Note a move; several moves of one partition count as one, and none if it is back."""
        earlier = self._pair.pop(partition, None)
        if earlier is not None:
            del self._by_topic[partition[0], earlier][partition]
            source = earlier[0]
        if source != target:
            self._pair[partition] = source, target
            self._by_topic.setdefault((partition[0], (source, target)), {})[partition] = None

    def better(self, partition: TopicPartition, source: str, target: str) -> TopicPartition:
        """The partition to move instead: one of the topic that moved the other way before, if there is any."""
        if partition in self._pair:
            source = self._pair[partition][0]
        reverse = self._by_topic.get((partition[0], (target, source)))
        return java_hash_order(reverse, topic_partition_hash)[0] if reverse else partition
