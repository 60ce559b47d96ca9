"""How many replicas each broker should end with: integer water-filling under rack intervals.

Goal: the least sum of load^2 / capacity over the brokers.
Constraints: every broker between its own bounds, every rack between its bounds, a fixed total.
Method: unit k of broker b costs (2k - 1) / capacity_b more than unit k - 1. All units below a price are
taken and none above it, the price found by bisection; racks that hit a bound get a price of their own.
Units exactly at the price are free to choose: they go first to brokers that hold that many already.
The bounds form a tree (cluster, rack, broker) and the cost is convex, so taking the cheapest units first is exact.
Cost: O(brokers * log(total)): the search ends where only units of one price are left between its bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.arrays import Float64Array, Int64Array
from placement.model import Int32Array

_STEPS = 52
_LOOK = 6


@dataclass(frozen=True, slots=True, eq=False)
class Room:
    """What a distribution of units may look like.

    Attributes:
        capacity: float64, shape ``(n,)``.
        low, high: int64, shape ``(n,)``: bounds of each broker.
        rack: int32, shape ``(n,)``: rack of each broker.
        rack_low, rack_high: int64, shape ``(racks,)``: bounds of each rack.
        total: the units to distribute; the bounds must leave room for it.
    """

    capacity: Float64Array
    low: Int64Array
    high: Int64Array
    rack: Int32Array
    rack_low: Int64Array
    rack_high: Int64Array
    total: int


def targets(room: Room, held: Int64Array, rank: Int64Array) -> Int64Array:
    """The best distribution, int64, shape ``(n,)``.

    Args:
        room: the bounds.
        held: units that each broker has now; decides ties.
        rank: shape ``(n,)``, a permutation: decides what ties are left, lowest first.
    """
    racks = room.rack_low.size
    group, need = _groups(room)
    below, above = _bracket(room, group, need)
    result = below.copy()
    tie = np.flatnonzero(above > below)
    order = tie[np.lexsort((rank[tie], held[tie] <= below[tie]))]
    spare = need - np.bincount(group, weights=below, minlength=racks + 1).astype(np.int64)
    inside = np.bincount(room.rack, weights=below, minlength=racks).astype(np.int64)
    result[_hand_out(room, order, group, spare, inside)] += 1
    return result


def price_bracket(room: Room) -> tuple[Int64Array, Int64Array]:
    """The fewest and the most units that each broker has in any best distribution, int64, shape ``(n,)`` each."""
    return _bracket(room, *_groups(room))


def price_groups(room: Room) -> Int32Array:
    """Brokers that share a price, shape ``(n,)``: racks stuck at a bound on their own, all others together."""
    return _groups(room)[0]


def balance(load: Int64Array, capacity: Float64Array) -> float:
    """Sum of load^2 / capacity: what planning makes as small as it can be."""
    return float(np.sum(np.square(load.astype(np.float64)) / capacity))


def _units(room: Room, price: Float64Array | float) -> Int64Array:
    """The units of each broker that cost no more than the price."""
    return np.clip(np.floor((price * room.capacity + 1) / 2).astype(np.int64), room.low, room.high)


def _groups(room: Room) -> tuple[Int32Array, Int64Array]:
    """Brokers that share a price, shape ``(n,)``, and the units of each group.

    Group r is rack r where the rack is stuck at a bound; the last group is all the others together.
    """
    racks = room.rack_low.size
    if racks == 1:
        return np.ones(room.capacity.size, np.int32), np.array([0, room.total])

    def in_racks(price: float) -> Int64Array:
        return np.bincount(room.rack, weights=_units(room, price), minlength=racks).astype(np.int64)

    def in_all(price: float) -> int:
        return int(np.clip(in_racks(price), room.rack_low, room.rack_high).sum())

    low, high = _price_range(room)
    first = _first_look(room)
    for step in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if in_all(middle) >= room.total else (middle, high)
        if step >= first and (step - first) % _LOOK == 0:
            differ = np.flatnonzero(_units(room, low) != _units(room, high))
            if not differ.size or (_of_one_price(room, low, high, differ) and in_all(low) < room.total <= in_all(high)):
                break
    at_low, at_high = in_racks(high) <= room.rack_low, in_racks(low) >= room.rack_high
    need = np.zeros(racks + 1, np.int64)
    need[:racks] = np.where(at_low, room.rack_low, np.where(at_high, room.rack_high, 0))
    need[racks] = room.total - need[:racks].sum()
    own = at_low | at_high
    return np.where(own[room.rack], room.rack, racks).astype(np.int32), need


def _price_range(room: Room) -> tuple[float, float]:
    """A price below that of every unit, and one above."""
    smallest = float(room.capacity.min())
    return min(0.0, 2 * (int(room.low.min()) - 1) / smallest), max(0.0, 2 * (int(room.high.max()) + 1) / smallest)


def _bracket(room: Room, group: Int32Array, need: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Units of each broker just below and just above its group's price."""

    def sums(units: Int64Array) -> Int64Array:
        return np.bincount(group, weights=units, minlength=need.size).astype(np.int64)

    low, high = (np.full(need.size, price) for price in _price_range(room))
    first = _first_look(room)
    for step in range(_STEPS):
        middle = (low + high) / 2
        enough = sums(_units(room, middle[group])) >= need
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        if step >= first and (step - first) % _LOOK == 0:
            below, above = _units(room, low[group]), _units(room, high[group])
            differ = np.flatnonzero(above > below)
            own = group[differ]
            if (
                (own == own[:1]).all()
                and _of_one_price(room, low[group], high[group], differ)
                and ((sums(below) < need) & (need <= sums(above)))[own].all()
            ):
                return below, above
    return _units(room, low[group]), _units(room, high[group])


def _first_look(room: Room) -> int:
    """After how many steps the prices of a broker's units may be told apart."""
    apart = (int(room.high.max()) + 2 - min(0, int(room.low.min()))) * float(room.capacity.max() / room.capacity.min())
    return min(int(np.log2(apart)) + 1, _STEPS)


def _of_one_price(room: Room, low: Float64Array | float, high: Float64Array | float, differ: Int64Array) -> bool:
    """Whether the only units between two prices are of one price, on brokers of one capacity: no step tells them apart.

    ``differ`` has the brokers with units between the prices.
    """
    below, above, capacity = _units(room, low)[differ], _units(room, high)[differ], room.capacity[differ]
    return bool(((above - below == 1) & (above == above[:1]) & (capacity == capacity[:1])).all())


def _hand_out(room: Room, order: Int64Array, group: Int32Array, spare: Int64Array, inside: Int64Array) -> Int64Array:
    """Choose brokers in the given order while their group has units and their rack has room.

    Racks below their lower bound choose first.
    """
    chosen: list[int] = []
    short = np.maximum(room.rack_low - inside, 0)
    left, room_left, missing = spare.tolist(), (room.rack_high - inside).tolist(), short.tolist()
    waiting = order.tolist()
    racks, groups = room.rack.tolist(), group.tolist()
    for must in (True, False):
        skipped = []
        for broker in waiting:
            rack, own = racks[broker], groups[broker]
            if left[own] > 0 and room_left[rack] > 0 and (missing[rack] > 0 or not must):
                chosen.append(broker)
                left[own] -= 1
                room_left[rack] -= 1
                missing[rack] -= 1
            else:
                skipped.append(broker)
        waiting = skipped
    return np.array(chosen, np.int64)
