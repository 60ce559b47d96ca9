"""The rack window: between how many and how many replicas of one partition a rack may hold.

Goal: replicas spread over racks as evenly as the racks' sizes allow.
Method: with racks that can hold ``size_r`` replicas of the partition, of which ``stay_r`` cannot leave, level k
is the smallest with ``sum max(stay_r, min(k, size_r)) >= replication factor``. A rack then holds between
``max(stay_r, min(k - 1, size_r))`` and ``max(stay_r, min(k, size_r))``. One formula covers enough racks, too
few of them, tiny ones, and violations that must be tolerated.
"""

from __future__ import annotations

import numpy as np

from placement.arrays import Int64Array


def levels(replication_factor: Int64Array, size: Int64Array, stay: Int64Array) -> Int64Array:
    """Level k of each row.

    Args:
        replication_factor: int64, shape ``(rows,)``.
        size: int64, shape ``(racks,)`` or ``(rows, racks)``: replicas of one partition that a rack can hold.
        stay: int64, shape ``(rows, racks)``: replicas that cannot leave.
    """
    result = np.zeros(replication_factor.size, np.int64)
    for level in range(1, int(replication_factor.max(initial=0)) + 1):
        short = np.maximum(stay, np.minimum(level - 1, size)).sum(axis=1) < replication_factor
        result[short] = level
    return result


def highest(level: Int64Array, size: Int64Array, stay: Int64Array) -> Int64Array:
    """The most replicas that the rack may hold; arguments broadcast."""
    return np.maximum(stay, most(level, size))


def lowest(level: Int64Array, size: Int64Array, stay: Int64Array) -> Int64Array:
    """The fewest replicas that the rack may hold; arguments broadcast."""
    return np.maximum(stay, fewest(level, size))


def most(level: Int64Array, size: Int64Array) -> Int64Array:
    """The most that the rack may hold, unless more of them cannot leave; arguments broadcast."""
    return np.minimum(level, size)


def fewest(level: Int64Array, size: Int64Array) -> Int64Array:
    """The fewest that the rack may hold, unless more of them cannot leave; arguments broadcast."""
    return np.minimum(np.maximum(level - 1, 0), size)
