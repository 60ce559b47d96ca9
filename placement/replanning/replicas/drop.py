"""Drop: choose which replicas go where the replication factor is lowered.

Goal: the brokers left as evenly loaded as dropping can make them; the preferred leader stays where that costs nothing.
Constraint: a replica goes from a rack that holds the most of its partition, so the rest is spread as evenly as it can.
Method: one replica a row and round. To choose the one that goes is to choose the one that leads, on brokers that
begin with minus their load: the same sum of squares gets as small as it can.
"""

from __future__ import annotations

import numpy as np

from placement.arrays import Int64Array
from placement.fleet import Fleet, count_in_rack
from placement.model import NO_BROKER, Int32Array
from placement.replanning.leaders.elect import NEVER, elect


def drop(fleet: Fleet, replicas: Int32Array, factor: Int64Array, load: Int64Array) -> Int32Array:
    """The rows with no more replicas than their replication factor.

    Args:
        fleet: the brokers.
        replicas: int32 indices of usable and held brokers, shape ``(q, W)``, -1 where there is none.
        factor: int64, shape ``(q,)``.
        load: int64, shape ``(present,)``: replicas on each broker, these rows included.
    """
    result = replicas.copy()
    remaining = load
    while True:
        rows = np.flatnonzero((result != NO_BROKER).sum(axis=1) > factor)
        cost = _cost(fleet, result[rows])
        can = (cost < NEVER).any(axis=1)
        rows, cost = rows[can], cost[can]
        if not rows.size:
            return result
        going = elect(result[rows], cost, -remaining, fleet.capacity)
        remaining = remaining - np.bincount(result[rows, going], minlength=load.size)
        result[rows, going] = NO_BROKER


def _cost(fleet: Fleet, replicas: Int32Array) -> Int64Array:
    """What it costs to drop each place, shape of ``replicas``: nothing, one for the leader, ``NEVER``."""
    may = (replicas != NO_BROKER) & (replicas < fleet.usable)
    height = np.zeros(replicas.shape, np.int64)
    for column in range(replicas.shape[1]):
        height[:, column] = count_in_rack(fleet, replicas, fleet.rack[replicas[:, column]])
    height[~may] = 0
    may &= height == height.max(axis=1, initial=0)[:, None]
    cost = np.where(may, 0, NEVER)
    leader = (replicas != NO_BROKER).argmax(axis=1)
    rows = np.arange(leader.size)
    cost[rows, leader] += np.where(cost[rows, leader] == 0, 1, 0)
    return cost
