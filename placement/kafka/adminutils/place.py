"""Kafka's own placement of a topic's replicas, as ``AdminUtils.assignReplicasToBrokers`` computes it.

Source of the method: ``kafka.admin.AdminUtils`` up to Kafka 4.0, rack awareness from KIP-36. The page
``docs/algorithms/adminutils.md`` explains it; nothing here is drawn at random that is not given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from placement import checks
from placement.errors import InvalidStartIndexError
from placement.kafka.adminutils.racks import place_on_racks
from placement.kafka.adminutils.ring import Ring, ring_of
from placement.kafka.adminutils.wrapping import place_wrapping
from placement.kafka.java_random import JavaRandom
from placement.model import Broker, Int32Array
from placement.sizes import alive_brokers, check_partitions, check_replicas

_MAX_INT: Final = 2**31 - 1


class Start(NamedTuple):
    """Where a layout starts: the two numbers that Kafka draws once per topic.

    ``start_index`` is the position of partition 0's leader, ``next_replica_shift`` how far its second
    replica is from it, less one.
    """

    start_index: int
    next_replica_shift: int

    def fixed_start_index(self, brokers: int) -> int:
        """The one ``fixed_start_index`` that gives the same layout on that many brokers.

        Congruent to the start modulo N and to the shift modulo N-1, which have no common divisor.
        """
        if brokers < 2:
            return 0
        return self.start_index + brokers * ((self.next_replica_shift - self.start_index) % (brokers - 1))


def draw_start(brokers: int, random: JavaRandom) -> Start:
    """Draw the start as Kafka does: two draws below the number of brokers, the start index first."""
    return Start(random.next_int(brokers), random.next_int(brokers))


def place_adminutils(
    brokers: Iterable[Broker],
    partitions: int,
    replication_factor: int,
    *,
    fixed_start_index: int | None = None,
    start_partition_id: int = 0,
    rack_aware: bool | None = None,
    seed: int | JavaRandom | None = None,
) -> Int32Array:
    """Lay out partitions as Kafka's AdminUtils does.

    Args:
        brokers: those whose state is ``alive`` take replicas. Without racks their order matters, as in Kafka.
        partitions: how many to lay out, from 1.
        replication_factor: replicas of each, from 1 to the number of alive brokers.
        fixed_start_index: both the start index and the shift; None or negative: drawn with ``seed``.
        start_partition_id: id of the first partition; negative is 0.
        rack_aware: None: aware if racks are given; False: racks are ignored (``--disable-rack-aware``);
            True: every broker must have one.
        seed: of ``java.util.Random``, or such a generator to go on with; None is 0.

    Returns:
        int32 broker ids, shape ``(partitions, replication_factor)``; row i is partition
        ``start_partition_id + i``, column 0 its preferred leader.

    Raises:
        InvalidPartitionsError: partitions is not positive, or too large (``placement.sizes``).
        InvalidReplicationFactorError: replication_factor is not positive, or above the alive brokers.
        DuplicateBrokerError: a broker id is given twice.
        IncompleteRackError: some brokers have a rack and some have none.
        InvalidStartIndexError: the start is no 32-bit number, or Kafka's 32-bit sums turn negative.
        InvalidArgumentError: the seed is no whole number, or rack_aware none of those above.
    """
    partitions, replication_factor, first = check_partitions(partitions, replication_factor, start_partition_id)
    first = max(0, first)
    alive = alive_brokers(brokers)
    check_replicas(partitions, replication_factor, len(alive))
    ring = ring_of(alive, rack_aware)
    fixed = -1 if fixed_start_index is None else fixed_start_index
    if not checks.is_whole(fixed, -_MAX_INT, _MAX_INT):
        raise InvalidStartIndexError(
            f"fixed_start_index is {checks.shown(fixed)}: it must be a whole number of at most {_MAX_INT}",
            start_index=fixed,
            partition=first,
        )
    random = seed if isinstance(seed, JavaRandom) else JavaRandom(0 if seed is None else seed)
    start = draw_start(len(ring), random) if fixed < 0 else Start(int(fixed), int(fixed))
    return lay_out(ring, partitions, replication_factor, start, first)


def lay_out(ring: Ring, partitions: int, replication_factor: int, start: Start, first: int) -> Int32Array:
    """The layout from a start, on arguments that are known to be good; row 0 is partition ``first``."""
    n = len(ring)
    blocks = (first + partitions - 1) // n + 1
    largest = (start.next_replica_shift + blocks) * ring.shift_factor + 2 * n + replication_factor
    if start.start_index + first + partitions - 1 > _MAX_INT or largest > _MAX_INT:
        return place_wrapping(ring, partitions, replication_factor, start.start_index, start.next_replica_shift, first)
    out = np.empty((partitions, replication_factor), np.int32)
    # The leader repeats every n partitions and the shift, modulo n-1, every n-1 rounds of the leader.
    period = min(partitions, n * max(1, n - 1))
    if ring.racks == 0:
        _place_in_order(ring, out[:period], start, first)
    else:
        place_on_racks(ring, out[:period], start.start_index, start.next_replica_shift, first)
    _repeat(out, period)
    return out


def _place_in_order(ring: Ring, out: Int32Array, start: Start, first: int) -> None:
    """Without racks: within one round of the leader every follower is a fixed number of places behind it."""
    n = len(ring)
    tripled = np.tile(ring.ids, 3)
    for lo, hi, leader, shift in ring.rounds(len(out), start.start_index, start.next_replica_shift, first):
        length = hi - lo
        out[lo:hi, 0] = tripled[leader : leader + length]
        for j in range(1, out.shape[1]):
            at = leader + 1 + (shift + j - 1) % (n - 1)
            out[lo:hi, j] = tripled[at : at + length]


def _repeat(out: Int32Array, filled: int) -> None:
    """Fill the rows from ``filled`` on with those before, which are whole periods."""
    while filled < len(out):
        more = min(filled, len(out) - filled)
        out[filled : filled + more] = out[:more]
        filled += more
