"""What a strategy is: it places the partitions of a new topic, and those that are added to one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

from placement.fleet import Fleet
from placement.model import Assignment, Broker, Int32Array
from placement.replica_counts import ReplicaCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Partitions to be placed.

    Attributes:
        brokers: those that may get replicas.
        partitions: how many are placed.
        replication_factor: replicas of each.
        topic: its name; draws are seeded with it, so that they come out the same.
        current: what the brokers hold already.
        start_partition_id: id of the first one.
        seed: seeds draws instead of the name.
        fixed_start_index: where Kafka's ring begins, instead of a draw.
        rack_aware: ``None``: if racks are given; ``False``: racks are ignored.
        fleet: gives the brokers as columns, where somebody keeps them.
    """

    brokers: Sequence[Broker]
    partitions: int
    replication_factor: int
    topic: str
    current: ReplicaCounts | Assignment | None = None
    start_partition_id: int = 0
    seed: int | None = None
    fixed_start_index: int | None = None
    rack_aware: bool | None = None
    fleet: Callable[[], Fleet] | None = None

    @property
    def drawn_with(self) -> int:
        """The seed of draws for a new topic."""
        return crc32(self.topic.encode()) if self.seed is None else self.seed


class Strategy(Protocol):
    """Places partitions; pure.

    Attributes:
        is_kafkas: it computes what Kafka computes, and is as good as that; what the others place must satisfy
            :func:`placement.verify_moves`.
        takes_start: it minds ``fixed_start_index`` and ``rack_aware``.
    """

    is_kafkas: bool
    takes_start: bool

    def place(self, request: Request) -> Int32Array:
        """Replicas for a new topic.

        Returns:
            int32 broker ids, shape ``(partitions, replication_factor)``; column 0 is the preferred leader.

        Raises:
            PlacementError: there is no such placement.
        """

    def extend(self, request: Request, existing: Int32Array) -> Int32Array:
        """Replicas for partitions that are added.

        Args:
            request: the partitions that are added.
            existing: int32 broker ids of those that are there, shape ``(m, replication_factor)``.

        Returns:
            int32 broker ids of the added ones, as :meth:`place`.

        Raises:
            PlacementError: there is no such placement.
        """
