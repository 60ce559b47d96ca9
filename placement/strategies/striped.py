"""``striped``: as KRaft's ``StripedReplicaPlacer``; see :mod:`placement.kafka.striped`."""

from __future__ import annotations

from zlib import crc32

from placement.kafka.striped import place_striped
from placement.model import Int32Array
from placement.strategies.strategy import Request


class Striped:
    """Stripes over the racks; added partitions are drawn anew, as in Kafka."""

    is_kafkas = True
    takes_start = False

    def place(self, request: Request) -> Int32Array:
        """Replicas from a draw."""
        return _drawn(request, request.drawn_with)

    def extend(self, request: Request, existing: Int32Array) -> Int32Array:
        """Replicas from a draw of their own."""
        return _drawn(request, crc32(f"{request.topic}-{request.start_partition_id}".encode()))


def _drawn(request: Request, seed: int) -> Int32Array:
    return place_striped(request.brokers, request.partitions, request.replication_factor, seed=seed)
