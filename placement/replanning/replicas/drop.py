"""Drop: choose which replicas go where the replication factor is lowered.

Goal: the brokers left as evenly loaded as dropping can make them; the preferred leader stays where that costs nothing.
Constraints: no replica in sync goes while one that is not stays; an excluded broker gives one up only where its
partition has no other to give. A replica goes from a rack that holds the most of its partition, so the rest is spread
as evenly as it can.
Method: one replica a row and round. To choose the one that goes is to choose the one that leads, on brokers that
begin with minus their load: the same sum of squares gets as small as it can.
"""

from __future__ import annotations

import numpy as np

from placement.arrays import BoolArray, Int64Array, count_in_row
from placement.fleet import Fleet, count_in_rack
from placement.model import NO_BROKER, Int32Array
from placement.replanning.leaders.elect import NEVER, elect


def drop(fleet: Fleet, replicas: Int32Array, factor: Int64Array, load: Int64Array) -> Int32Array:
    """The rows with no more replicas than their replication factor.

    Args:
        fleet: the brokers.
        replicas: int32 indices of usable and held brokers, shape ``(q, W)``, -1 where there is none.
        factor: int64, shape ``(q,)``, at least 0.
        load: int64, shape ``(present,)``: replicas on each broker, these rows included.
    """
    present = replicas != NO_BROKER
    return _shed(fleet, replicas, present, present & (replicas < fleet.usable), count_in_row(present) - factor, load)


def drop_unsafe(
    fleet: Fleet, replicas: Int32Array, in_sync: BoolArray, most: Int64Array, load: Int64Array
) -> Int32Array:
    """The rows with at most so many replicas that are not in sync, failed ones given up first.

    Args:
        fleet, replicas, load: as in :func:`drop`.
        in_sync: bool, shape of ``replicas``.
        most: int64, shape ``(q,)``, at least 0.
    """
    unsafe = (replicas != NO_BROKER) & ~in_sync
    return _shed(fleet, replicas, unsafe, unsafe & (replicas >= fleet.usable), count_in_row(unsafe) - most, load)


def _shed(
    fleet: Fleet, replicas: Int32Array, may: BoolArray, first: BoolArray, surplus: Int64Array, load: Int64Array
) -> Int32Array:
    """Take the surplus out of each row: of the places in ``first`` while it has any, then of those that may go."""
    result, remaining, left = replicas.copy(), load, surplus.copy()
    while True:
        rows = np.flatnonzero(left > 0)
        if not rows.size:
            return result
        here = result[rows] != NO_BROKER
        able = first[rows] & here
        able = np.where(able.any(axis=1)[:, None], able, may[rows] & here)
        going = elect(result[rows], _cost(fleet, result[rows], able), -remaining, fleet.capacity)
        remaining = remaining - np.bincount(result[rows, going], minlength=load.size)
        result[rows, going] = NO_BROKER
        left[rows] -= 1


def _cost(fleet: Fleet, replicas: Int32Array, able: BoolArray) -> Int64Array:
    """What it costs to drop each place, shape of ``replicas``: nothing, one for the leader, ``NEVER``."""
    height = np.zeros(replicas.shape, np.int64)
    for column in range(replicas.shape[1]):
        height[:, column] = count_in_rack(fleet, replicas, fleet.rack[replicas[:, column]])
    height[~able] = 0
    able = able & (height == height.max(axis=1, initial=0)[:, None])
    cost = np.where(able, 0, NEVER)
    leader = (replicas != NO_BROKER).argmax(axis=1)
    rows = np.arange(leader.size)
    cost[rows, leader] += np.where(cost[rows, leader] == 0, 1, 0)
    return cost
