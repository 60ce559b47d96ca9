"""Which start gave a finished AdminUtils layout, and how such a layout goes on when partitions are added.

Source of the method: the draw of ``AdminUtils.assignReplicasToBrokers``, and ``AdminZkClient.addPartitions``
for layouts that no draw on the present brokers gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placement import checks
from placement.errors import InvalidAssignmentError, InvalidReplicationFactorError
from placement.kafka.adminutils.place import Start, lay_out, place_adminutils
from placement.kafka.adminutils.racks import follower_columns, nearest_racks, walk_begin
from placement.kafka.adminutils.ring import Ring, ring_of
from placement.model import Broker, Int32Array, only_brokers
from placement.sizes import alive_brokers, check_partitions, check_replicas


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
    layout = checks.matrix(assignment, "assignment")
    partitions, replication_factor, first = check_partitions(layout.shape[0], layout.shape[1], start_partition_id)
    first = max(0, first)
    alive = alive_brokers(brokers)
    check_replicas(partitions, replication_factor, len(alive))
    ring = ring_of(alive, rack_aware)
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
        wrong = (lay_out(ring, partitions, replication_factor, start, first) != layout).any(axis=1)
        if not wrong.any():
            return start
        row = int(np.argmax(wrong))
        furthest = max(furthest, row)


def extend_adminutils(
    brokers: Sequence[Broker], existing: ArrayLike, added: int, *, rack_aware: bool | None = None
) -> Int32Array:
    """Lay out partitions that are added to a topic, so that the whole stays one AdminUtils layout.

    Where no draw gives the existing layout on these brokers (some came or went since), it does what Kafka
    does: start from the first broker, by id, whose id is not below that of partition 0's leader.

    Args:
        brokers: as in ``place_adminutils``.
        existing: broker ids of partitions 0, 1, ..., shape ``(partitions, replication_factor)``.
        added: how many partitions to lay out.
        rack_aware: as in ``place_adminutils``.

    Returns:
        The added rows only, shape ``(added, replication_factor)``.

    Raises:
        PlacementError: as ``place_adminutils`` does, or existing is no such matrix or has no rows.
    """
    layout = checks.matrix(existing, "existing")
    brokers = only_brokers(brokers)
    alive = sorted(alive_brokers(brokers), key=lambda broker: broker.id)
    try:
        drawn = infer_start(brokers, layout, rack_aware=rack_aware)
        # A layout that begins later starts from the shift that has grown until then.
        grown = drawn.next_replica_shift + (len(layout) - 1) // len(alive)
        start = Start(drawn.start_index, grown).fixed_start_index(len(alive))
    except (InvalidAssignmentError, InvalidReplicationFactorError):
        brokers = alive
        start = next((i for i, broker in enumerate(alive) if broker.id >= layout[0, 0]), 0)
    return place_adminutils(
        brokers,
        added,
        layout.shape[1],
        fixed_start_index=start,
        start_partition_id=len(layout),
        rack_aware=rack_aware,
    )


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


def _no_draw(layout: Int32Array, row: int, first: int) -> InvalidAssignmentError:
    replicas = tuple(int(b) for b in layout[row])
    return InvalidAssignmentError(
        f"no start and shift give this layout: partition {first + row} on {list(replicas)} does not fit the others",
        partition=first + row,
        replicas=replicas,
    )
