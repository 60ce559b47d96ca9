"""The cluster as the steps see it: who is alive, where each partition is, what is throttled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streaming.apply.journal.tasks import Place, Replicas
from streaming.kafka.snapshot import Partition, Snapshot


@dataclass(frozen=True, slots=True)
class Seen:
    """The cluster at one moment.

    Attributes:
        alive: brokers that are registered and not fenced.
        partitions: by topic and partition id; at least those that the question is about.
        throttled_brokers, throttled_topics: those with a replication throttle, ascending.
        sizes: bytes of the largest replica of partitions, as far as brokers say.
    """

    alive: frozenset[int]
    partitions: Mapping[Place, Partition]
    throttled_brokers: tuple[int, ...] = ()
    throttled_topics: tuple[str, ...] = ()
    sizes: Mapping[Place, int] = field(default_factory=dict)

    @property
    def is_throttled(self) -> bool:
        """Whether a throttle is set anywhere."""
        return bool(self.throttled_brokers or self.throttled_topics)

    def can_be_copied(self, partition: Partition) -> bool:
        """Whether a replica that is in sync is on a live broker."""
        return not self.alive.isdisjoint(partition.isr)


def seen_in(snapshot: Snapshot) -> Seen:
    """What a snapshot says; it knows of no throttles."""
    found = {(topic.name, p.partition): p for topic in snapshot.topics for p in topic.partitions}
    return Seen(snapshot.alive, found)


def settled(partition: Partition) -> Replicas:
    """The replicas that a partition has had since before the reassignment that is under way."""
    return tuple(b for b in partition.replicas if b not in partition.adding)
