"""The share of each broker: the load that it would carry if partitions could be cut as finely as one likes.

Goal: what the racks and capacities let a broker carry, not the mean, which uneven racks put out of reach.
Method: the count planner's water-filling says how many replicas a broker ends with; leaderships go by capacity, but to
no broker more than it has replicas. A broker's share of a resource is its part of the leaders' load and its part of
the followers'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.arrays import BoolArray, Float64Array, Int64Array
from placement.fleet import Fleet
from placement.loads.model import COUNTS
from placement.replanning.targets import Room, price_bracket, price_groups, targets
from placement.replanning.window import highest, levels, lowest

_ROUNDS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """What brokers should carry, float64 whole numbers, shape ``(weights, present)`` each.

    Attributes:
        share: exact, not whole; where a broker is held, what does not matter.
        low, high: the band; a broker within has nothing to do. Held ones are within whatever they carry.
        limit: the most that a broker may carry.
    """

    share: Float64Array
    low: Float64Array
    high: Float64Array
    limit: Float64Array


def shares(fleet: Fleet, leads: BoolArray, follows: Int64Array, weights: tuple[Int64Array, Int64Array]) -> Float64Array:
    """The share of each usable broker, float64, shape ``(weights, usable)``.

    Args:
        fleet: the brokers.
        leads: bool, shape ``(P,)``: partitions that a usable broker ends up leading.
        follows: int64, shape ``(P,)``: followers that partitions end with on usable brokers.
        weights: what a leader and what a follower carries, int64, shape ``(weights, P)`` each.
    """
    factor = follows + leads
    replicas = _replicas(fleet, factor[factor > 0])
    leaders = _leaders(fleet.capacity[: fleet.usable], replicas, int(leads.sum()))
    followers = np.maximum(replicas - leaders, 0.0)
    led = (weights[0] * leads).sum(axis=1).astype(np.float64)[:, None]
    followed = (weights[1] * follows).sum(axis=1).astype(np.float64)[:, None]
    return np.asarray(led * (leaders / _total(leaders)) + followed * (followers / _total(followers)))


def banded(share: Float64Array, limit: Float64Array, width: float, *, exact_counts: bool, present: int) -> Share:
    """The band around shares; ``share`` has a column for each usable broker, ``limit`` for each present one."""
    low, high = np.ceil(share * (1 - width)), np.floor(share * (1 + width))
    # So few replicas may be one broker's share that no whole number is in the band.
    counts, slack = slice(share.shape[0] - len(COUNTS), None), 0.0 if exact_counts else width
    low[counts], high[counts] = np.floor(share[counts] * (1 - slack)), np.ceil(share[counts] * (1 + slack))
    held = present - share.shape[1]
    wide = ((0, 0), (0, held))
    high = np.pad(high, wide, constant_values=np.inf)
    low = np.pad(low, wide, constant_values=0.0)
    high = np.minimum(high, limit)
    return Share(np.pad(share, wide, constant_values=1.0), np.minimum(low, high), high, limit)


def outside(load: Float64Array, band: Share) -> BoolArray:
    """Which brokers are outside the band; shapes ``(weights, present)``."""
    return np.asarray((load < band.low) | (load > band.high))


def distance(load: Float64Array, band: Share) -> Float64Array:
    """How far outside the band brokers are."""
    return np.maximum(np.maximum(band.low - load, load - band.high), 0.0)


def _replicas(fleet: Fleet, factor: Int64Array) -> Float64Array:
    """Replicas of each usable broker in the best balance, ties shared out evenly."""
    size, n = fleet.rack_size, fleet.usable
    low, high = np.zeros(size.size, np.int64), np.zeros(size.size, np.int64)
    none = np.zeros((1, size.size), np.int64)
    value, count = np.unique(factor, return_counts=True)
    for one, often in zip(value.tolist(), count.tolist(), strict=True):
        level = levels(np.array([one]), size, none)
        low += often * lowest(level, size, none[0])
        high += often * highest(level, size, none[0])
    zero, most = np.zeros(n, np.int64), np.full(n, factor.size)
    room = Room(fleet.capacity[:n], zero, most, fleet.rack[:n], low, high, int(factor.sum()))
    below, above = price_bracket(room)
    group = price_groups(room)
    chosen = targets(room, zero, np.arange(n))
    spare = np.bincount(group, weights=chosen - below)
    ties = np.maximum(np.bincount(group, weights=above - below), 1)
    return np.asarray(below + (spare / ties)[group] * (above - below))


def _total(values: Float64Array) -> float:
    """The sum in order, which is the same on every machine; a little above zero where there is nothing."""
    return max(float(np.cumsum(values)[-1]), 1e-9)


def _leaders(capacity: Float64Array, replicas: Float64Array, partitions: int) -> Float64Array:
    """Leaderships by capacity, to no broker more than its replicas."""
    result = np.zeros_like(replicas)
    full = np.zeros(replicas.size, np.bool_)
    for _ in range(_ROUNDS):
        left = partitions - float(np.cumsum(np.where(full, replicas, 0.0))[-1])
        free = np.where(full, 0.0, capacity)
        result = np.where(full, replicas, left * free / _total(free))
        above = result > replicas
        if not above.any():
            break
        full |= above
    return result
