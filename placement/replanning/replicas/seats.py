"""Seats: the replicas that brokers are still short of, and the pairing of places with them in rounds.

A round pairs many places with many seats at once, checks every pair on its own, and keeps those that do not
touch the same row twice. What is refused meets other seats in the next round.
"""

from __future__ import annotations

import numpy as np

from placement.arrays import BoolArray, Int64Array, by_group
from placement.fleet import Fleet
from placement.model import Int32Array


def seats(fleet: Fleet, deficit: Int64Array, rank: Int64Array) -> Int32Array:
    """One entry per missing replica, brokers and racks interleaved so that neighbours differ.

    Args:
        fleet: the brokers.
        deficit: int64, shape ``(usable,)``, not negative.
        rank: shape ``(usable,)``: order of brokers with equal deficits.
    """
    broker = np.repeat(np.arange(fleet.usable, dtype=np.int32), deficit)
    first = np.repeat(np.cumsum(deficit) - deficit, deficit)
    position = (np.arange(broker.size) - first + 0.5) / deficit[broker]
    return broker[np.lexsort((rank[broker], position))]


def interleaved_rank(fleet: Fleet, rotation: int) -> Int64Array:
    """A rank per usable broker in which racks take turns, rotated within the racks; a permutation."""
    rack = fleet.rack[: fleet.usable].astype(np.int64)
    size = fleet.rack_size[rack]
    inside = (np.arange(fleet.usable) - fleet.bounds[rack] + rotation) % size
    order = np.lexsort((np.arange(fleet.usable), rack, (inside + 0.5) / size))
    rank = np.empty(fleet.usable, np.int64)
    rank[order] = np.arange(fleet.usable)
    return rank


def first_of_each(key: Int64Array | Int32Array, chosen: BoolArray) -> BoolArray:
    """Among the chosen entries, only the first of each key."""
    where = np.flatnonzero(chosen)
    result = np.zeros(chosen.size, np.bool_)
    result[where[np.unique(key[where], return_index=True)[1]]] = True
    return result


def within_quota(group: Int64Array | Int32Array, quota: Int64Array, *, ordered: bool = False) -> BoolArray:
    """Whether each entry is among the first ``quota[group]`` of its group; ``ordered`` where groups ascend."""
    return rank_in_group(group, ordered=ordered) < quota[group]


def rank_in_group(group: Int64Array | Int32Array, *, ordered: bool = False) -> Int64Array:
    """The place of each entry among those of its group."""
    if not group.size:
        return np.zeros(0, np.int64)
    order = None if ordered else by_group(group)
    ascending = group if order is None else group[order]
    begins = np.append(True, ascending[1:] != ascending[:-1])
    within: Int64Array = np.arange(group.size) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    if order is None:
        return within
    rank = np.empty(group.size, np.int64)
    rank[order] = within
    return rank


def pair_within(group: Int32Array, seat_group: Int32Array, shift: int) -> Int64Array:
    """For each place the position of a seat in the same group, or -1 when the group has too few."""
    order = by_group(seat_group)
    ordered = seat_group[order]
    low = np.searchsorted(ordered, group, side="left")
    count = np.searchsorted(ordered, group, side="right") - low
    rank = rank_in_group(group)
    place = low + (rank + shift) % np.maximum(count, 1)
    return np.where(rank < count, order[np.minimum(place, max(0, order.size - 1))] if order.size else -1, -1)


def pair_any(places: int, seat_count: int, shift: int) -> Int64Array:
    """For each place the position of a seat, each seat once, or -1 when there are too few."""
    index = np.arange(places)
    return np.where(index < seat_count, (index + shift) % max(1, seat_count), -1)
