"""Kafka's own placement of a topic's replicas, as ``AdminUtils.assignReplicasToBrokers`` computes it.

Source of the method: ``kafka.admin.AdminUtils`` up to Kafka 4.0, rack awareness from KIP-36. The page
``docs/algorithms/adminutils.md`` explains it; nothing here is drawn at random that is not given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placement.adminutils_racks import follower_columns, nearest_racks, place_on_racks, walk_begin
from placement.adminutils_ring import Ring, ring_of
from placement.adminutils_wrapping import place_wrapping
from placement.errors import InvalidAssignmentError
from placement.java_random import JavaRandom
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


def draw_start(brokers: int, seed: int | JavaRandom) -> Start:
    """Draw the start as Kafka does: two draws below the number of brokers, the start index first."""
    random = JavaRandom(seed) if isinstance(seed, int) else seed
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
        InvalidStartIndexError: the start is so large that Kafka's 32-bit sums turn negative.
    """
    check_partitions(partitions, replication_factor, start_partition_id)
    alive = alive_brokers(brokers)
    check_replicas(partitions, replication_factor, len(alive))
    ring = ring_of(alive, rack_aware)
    if fixed_start_index is None or fixed_start_index < 0:
        start = draw_start(len(ring), 0 if seed is None else seed)
    else:
        start = Start(fixed_start_index, fixed_start_index)
    return _place(ring, partitions, replication_factor, start, max(0, start_partition_id))


def infer_start(
    brokers: Iterable[Broker],
    assignment: ArrayLike,
    *,
    start_partition_id: int = 0,
    rack_aware: bool | None = None,
) -> Start:
    """The start index and shift that Kafka must have drawn to lay out a topic so.

    Args:
        brokers: as given to :func:`place_adminutils`.
        assignment: broker ids, shape ``(partitions, replication_factor)``.
        start_partition_id: id of the first row.
        rack_aware: as in :func:`place_adminutils`.

    Returns:
        The start index from 0 to N-1 and the least shift from 0 to N-2. Where replicas do not tell
        shifts apart (replication factor 1, say), every one of them gives this layout.

    Raises:
        InvalidAssignmentError: no draw gives this layout; ``partition`` is the first that does not fit.
    """
    layout = _matrix(assignment)
    partitions, replication_factor = layout.shape
    check_partitions(partitions, replication_factor, start_partition_id)
    alive = alive_brokers(brokers)
    check_replicas(partitions, replication_factor, len(alive))
    ring = ring_of(alive, rack_aware)
    first = max(0, start_partition_id)
    at = np.flatnonzero(ring.ids == layout[0, 0])
    if not at.size:
        raise _no_draw(layout, 0, first)
    start_index = (int(at[0]) - first) % len(ring)
    shifts = np.arange(max(1, len(ring) - 1))
    furthest = row = 0
    while True:
        leader = (start_index + first + row) % len(ring)
        grown = ring.growth(first, first + row)
        fits = _row_for_shifts(ring, replication_factor, leader, shifts + grown) == layout[row]
        shifts = shifts[fits.all(axis=1)]
        if not shifts.size:
            raise _no_draw(layout, furthest, first)
        start = Start(start_index, int(shifts[0]))
        wrong = (_place(ring, partitions, replication_factor, start, first) != layout).any(axis=1)
        if not wrong.any():
            return start
        row = int(np.argmax(wrong))
        furthest = max(furthest, row)


def _place(ring: Ring, partitions: int, replication_factor: int, start: Start, first: int) -> Int32Array:
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


def _row_for_shifts(ring: Ring, replication_factor: int, leader: int, shifts: NDArray[np.int64]) -> Int32Array:
    """The replicas of a partition led from one place, for each shift; shape ``(shifts, replication_factor)``."""
    n = len(ring)
    columns = [np.full(len(shifts), ring.ids[leader], np.int32)]
    if ring.racks == 0:
        columns += [ring.ids[(leader + 1 + (shifts + j) % max(1, n - 1)) % n] for j in range(replication_factor - 1)]
    else:
        begin = walk_begin(ring, leader, shifts)
        places = np.full(len(shifts), leader, np.int32)
        columns += follower_columns(ring, nearest_racks(ring, replication_factor), places, begin, replication_factor)
    return np.stack(columns, axis=1)


def _matrix(assignment: ArrayLike) -> Int32Array:
    layout = np.asarray(assignment)
    if layout.ndim != 2 or layout.dtype.kind not in "iu":
        raise InvalidAssignmentError(
            f"a layout is a matrix of broker ids, one row a partition; this has shape {layout.shape}"
            f" and type {layout.dtype}"
        )
    return layout


def _no_draw(layout: Int32Array, row: int, first: int) -> InvalidAssignmentError:
    replicas = tuple(int(b) for b in layout[row])
    return InvalidAssignmentError(
        f"no start and shift give this layout: partition {first + row} on {list(replicas)} does not fit the others",
        partition=first + row,
        replicas=replicas,
    )
