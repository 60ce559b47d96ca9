"""AdminUtils where its 32-bit sums overflow: partition by partition, with Java's arithmetic.

Start indexes near 2^31 (and, with racks, fractions of it) make Kafka's sums negative. Often that ends in
an index error there; where it does not, the layout differs from what unbounded numbers would give.
"""

from __future__ import annotations

import numpy as np

from placement.errors import InvalidStartIndexError
from placement.kafka.adminutils.ring import Ring
from placement.model import Int32Array


def place_wrapping(
    ring: Ring, partitions: int, replication_factor: int, start_index: int, shift: int, first: int
) -> Int32Array:
    """The layout as Kafka computes it, overflow included; slow, for starts that nobody should need.

    Raises:
        InvalidStartIndexError: Kafka has no answer, because an index turns negative.
    """
    n = len(ring)
    rows = []
    for partition in range(first, first + partitions):
        shift = _wrap(shift + (partition > 0 and partition % n == 0))
        leader = _remainder(_wrap(partition + start_index), n)
        replicas = _replicas(ring, leader, shift, replication_factor) if leader >= 0 else None
        if replicas is None:
            raise InvalidStartIndexError(
                f"from start index {start_index}, Kafka's 32-bit sums turn negative at partition {partition}",
                start_index=start_index,
                partition=partition,
            )
        rows.append(replicas)
    return ring.ids[np.array(rows, np.int32)]


def _replicas(ring: Ring, leader: int, shift: int, replication_factor: int) -> list[int] | None:
    """Places on the ring of one partition's replicas; None where Kafka would fail or never end."""
    n = len(ring)
    taken = [leader]
    racks = {int(ring.rack[leader])}
    base = _wrap(shift * ring.shift_factor)
    for k in range(2 * n + replication_factor):
        if len(taken) == replication_factor:
            return taken
        place = _remainder(leader + 1 + _remainder(_wrap(base + k), n - 1), n)
        # Without racks Kafka does not look whether a broker is taken: its answer would name one twice.
        if place < 0 or (ring.racks == 0 and place in taken):
            return None
        rack = int(ring.rack[place])
        if place not in taken and (len(racks) >= ring.racks or rack not in racks):
            taken.append(place)
            racks.add(rack)
    return taken if len(taken) == replication_factor else None


def _wrap(number: int) -> int:
    """To a signed 32-bit number, as Java's ``int`` overflows."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def _remainder(number: int, divisor: int) -> int:
    """Java's ``%``: the sign of the number."""
    return number % divisor if number >= 0 else -(-number % divisor)
