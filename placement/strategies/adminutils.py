"""``adminutils``: as Kafka's ``AdminUtils``; see :mod:`placement.kafka.adminutils.place`."""

from __future__ import annotations

from placement.kafka.adminutils.infer import extend_adminutils
from placement.kafka.adminutils.place import place_adminutils
from placement.model import Int32Array
from placement.strategies.strategy import Request


class AdminUtils:
    """A ring of brokers from a drawn start; added partitions go on with it."""

    is_kafkas = True
    takes_start = True

    def place(self, request: Request) -> Int32Array:
        """Replicas along the ring."""
        return place_adminutils(
            request.brokers,
            request.partitions,
            request.replication_factor,
            fixed_start_index=request.fixed_start_index,
            start_partition_id=request.start_partition_id,
            rack_aware=request.rack_aware,
            seed=request.drawn_with,
        )

    def extend(self, request: Request, existing: Int32Array) -> Int32Array:
        """Replicas further along the ring that the existing partitions were drawn on."""
        return extend_adminutils(request.brokers, existing, request.partitions)
