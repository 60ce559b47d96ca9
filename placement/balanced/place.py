"""Balanced placement: a new topic goes where the present load is lightest.

Goal: the least sum of load^2 / capacity over the brokers, then over their leaders.
Constraints: distinct brokers in a partition, the rack window of every partition.
Method: choose how many replicas each broker gets by water-filling on top of its load; list the brokers rack by rack,
each as often as it was chosen, and give position q of the list to partition ``q mod partitions`` (McNaughton's
wrap-around rule: R. McNaughton, "Scheduling with deadlines and loss functions", 1959). A broker is chosen at most
``partitions`` times and a rack fills a whole window, so neighbours in the list never meet in one partition.
Example: brokers 1, 2 in rack a and 3 in rack b, none loaded, 4 partitions, replication factor 2: the counts are 2, 2
and 4, the list 1 1 2 2 3 3 3 3, and the rows {1,3} {1,3} {2,3} {2,3}.
Cost: O(brokers log replicas + replicas). Weakness: a broker that is far below the others gets a replica of every
partition of the next topics; a smaller share would leave it behind for longer.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np

from placement import checks
from placement.arrays import Int64Array
from placement.balanced.one_by_one import Shelf, deal, lead, rows_of
from placement.fleet import Fleet, fleet_of
from placement.model import Assignment, Broker, Int32Array
from placement.replanning.leaders.elect import elect
from placement.replanning.replicas.seats import interleaved_rank
from placement.replanning.targets import Room, targets
from placement.replanning.window import highest, levels, lowest
from placement.replica_counts import ReplicaCounts
from placement.sizes import check_partitions, check_replicas

_FEW: Final = 1_000
"""Replicas and brokers up to which single steps are faster than NumPy's."""


def place_balanced(
    brokers: Iterable[Broker] | Fleet,
    partitions: int,
    replication_factor: int,
    *,
    current: ReplicaCounts | Assignment | None = None,
    topic: str = "",
    start_partition_id: int = 0,
) -> Int32Array:
    """Place new partitions by the load that is there.

    Args:
        brokers: all brokers, in any order; only those that are alive get replicas. A :class:`Fleet` made of them
            saves sorting them again for each of many topics.
        partitions: how many rows to place.
        replication_factor: replicas of each.
        current: the load of the cluster now; a :class:`ReplicaCounts` costs no pass over the layout.
        topic: its name rotates the choice among equally loaded brokers.
        start_partition_id: partition id of the first row, where partitions are added; rotates likewise.

    Returns:
        int32 broker ids, shape ``(partitions, replication_factor)``; column 0 is the preferred leader.

    Raises:
        InvalidPartitionsError: not positive, or absurdly many.
        InvalidReplicationFactorError: not positive, or above the live brokers.
        InvalidBrokerError: no broker is alive.
        DuplicateBrokerError, IncompleteRackError: the brokers contradict each other.
        InvalidArgumentError: the topic is no string, or the load none.
    """
    partitions, replication_factor, start_partition_id = check_partitions(
        partitions, replication_factor, start_partition_id
    )
    checks.text(topic, "topic")
    fleet = brokers if isinstance(brokers, Fleet) else fleet_of(brokers)
    check_replicas(partitions, replication_factor, fleet.usable)
    if current is None:
        load = ReplicaCounts.empty()
    else:
        load = (
            ReplicaCounts.of(current)
            if isinstance(current, Assignment)
            else checks.instance(current, ReplicaCounts, "current")
        )
    ids = fleet.ids[: fleet.usable]
    rotation = zlib.crc32(topic.encode(errors="surrogatepass")) + start_partition_id
    if partitions * replication_factor + fleet.usable <= _FEW:
        rows = _one_by_one(fleet, partitions, replication_factor, load, rotation)
    else:
        rows = _at_once(fleet, partitions, replication_factor, load, rotation)
    return ids[rows]


def _one_by_one(fleet: Fleet, partitions: int, factor: int, load: ReplicaCounts, rotation: int) -> Int32Array:
    """Broker indices, shape ``(partitions, factor)``, leaders first."""
    ids = fleet.ids[: fleet.usable]
    racks = tuple(pairwise(fleet.bounds.tolist()))
    capacity = fleet.capacity[: fleet.usable].tolist()
    replicas, leaders = load.on(ids)
    shelf = Shelf(capacity, racks, _windows(racks, factor), replicas.tolist())
    rows = rows_of(shelf, deal(shelf, partitions, factor, rotation), partitions, rotation)
    if lead(rows, leaders.tolist(), capacity):
        return np.array(rows, np.int32)
    return _led(np.array(rows, np.int32), fleet, load)


def _at_once(fleet: Fleet, partitions: int, factor: int, load: ReplicaCounts, rotation: int) -> Int32Array:
    """The same for any size."""
    rank = interleaved_rank(fleet, rotation)
    share = _share(fleet, partitions, factor, load.replicas_on(fleet.ids[: fleet.usable]), rank)
    return _led(_wrap_around(fleet, partitions, factor, share, rank), fleet, load)


def _led(rows: Int32Array, fleet: Fleet, load: ReplicaCounts) -> Int32Array:
    """The same rows with their leaders first."""
    leaders = load.leaders_on(fleet.ids[: fleet.usable])
    leading = elect(rows, np.zeros(rows.shape, np.int64), leaders, fleet.capacity[: fleet.usable])
    key = np.tile(np.arange(rows.shape[1]), (rows.shape[0], 1))
    key[np.arange(rows.shape[0]), leading] = -1
    return np.take_along_axis(rows, np.argsort(key, axis=1, kind="stable"), axis=1)


@lru_cache(maxsize=64)
def _windows(racks: tuple[tuple[int, int], ...], factor: int) -> tuple[tuple[int, int], ...]:
    """The fewest and the most replicas of one partition in each rack."""
    size = np.array([end - first for first, end in racks])
    none = np.zeros((1, size.size), np.int64)
    level = levels(np.array([factor]), size, none)
    low, high = lowest(level, size, none)[0], highest(level, size, none)[0]
    return tuple(zip((high if high.sum() == factor else low).tolist(), high.tolist(), strict=True))


def _share(fleet: Fleet, partitions: int, factor: int, base: Int64Array, rank: Int64Array) -> Int64Array:
    """Replicas that each usable broker gets."""
    size, none = fleet.rack_size, np.zeros((1, fleet.rack_size.size), np.int64)
    level = levels(np.array([factor]), size, none)
    rack = fleet.rack[: fleet.usable]
    inside = np.bincount(rack, weights=base, minlength=size.size).astype(np.int64)
    room = Room(
        capacity=fleet.capacity[: fleet.usable],
        low=base,
        high=base + partitions,
        rack=rack,
        rack_low=inside + partitions * lowest(level, size, none)[0],
        rack_high=inside + partitions * highest(level, size, none)[0],
        total=int(base.sum()) + partitions * factor,
    )
    return targets(room, np.zeros_like(base), rank) - base


def _wrap_around(fleet: Fleet, partitions: int, factor: int, share: Int64Array, rank: Int64Array) -> Int32Array:
    """Deal the chosen brokers out, rack by rack; shape ``(partitions, factor)``, row order without meaning."""
    order = np.lexsort((rank, fleet.rack[: fleet.usable]))
    dealt = np.repeat(order.astype(np.int32), share[order])
    return np.ascontiguousarray(dealt.reshape(factor, partitions).T)
