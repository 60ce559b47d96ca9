"""``balanced``: by the load that is there; see :mod:`placement.balanced.place`."""

from __future__ import annotations

from placement.balanced.place import place_balanced
from placement.model import Int32Array
from placement.strategies.strategy import Request


class Balanced:
    """New and added partitions are placed alike."""

    is_kafkas = False
    takes_start = False

    def place(self, request: Request) -> Int32Array:
        """Replicas where the load is lightest."""
        brokers = request.brokers if request.fleet is None else request.fleet()
        return place_balanced(
            brokers, request.partitions, request.replication_factor, current=request.current, topic=request.topic
        )

    def extend(self, request: Request, existing: Int32Array) -> Int32Array:
        """The same; the load that is there has the existing partitions in it."""
        return self.place(request)
