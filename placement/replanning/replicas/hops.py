"""The cheapest replica that can go from each broker to each other one.

Cost of having partition p on broker b: 0 where it was before, 1 elsewhere, a little less where its home is. A hop of p
from b to c costs the difference. For each pair of brokers only the cheapest matters, and there are few kinds of them,
so the search goes kind by kind, cheapest first, and stops for a pair when it has one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.arrays import BoolArray, Float64Array, Int64Array, any_in_row, by_group
from placement.model import NO_BROKER, Int32Array
from placement.replanning.state import State

HOME_BONUS = 1.0 / 1024
"""Small enough that a chain of bonuses never outweighs one move on the brokers searched together."""

_BATCH = 64


@dataclass(frozen=True, slots=True, eq=False)
class Hops:
    """Cheapest hops among some brokers.

    Attributes:
        brokers: int32, shape ``(m,)``: broker indices.
        cost: float64, shape ``(m, m)``, infinite where nothing can go.
        row, slot: int64, shape ``(m, m)``: the replica that goes.
    """

    brokers: Int32Array
    cost: Float64Array
    row: Int64Array
    slot: Int64Array


def place_cost(state: State, row: Int64Array, broker: Int32Array) -> Float64Array:
    """Cost of having each row on each broker; arguments pair up, shape ``(k,)``."""
    problem = state.problem
    before = any_in_row(problem.origin.take(row, axis=0) == broker[:, None])
    home = any_in_row(problem.home.take(row, axis=0) == broker[:, None])
    return np.where(before, 0.0, 1.0 - HOME_BONUS * home)


def cheapest_hops(state: State, brokers: Int32Array) -> Hops:
    """Search all movable replicas on the given brokers."""
    m = brokers.size
    hops = Hops(brokers, np.full((m, m), np.inf), np.zeros((m, m), np.int64), np.zeros((m, m), np.int64))
    local = np.full(state.problem.fleet.ids.size + 1, NO_BROKER, np.int64)
    local[brokers] = np.arange(m)
    row, slot = np.nonzero((local[state.current] >= 0) & ~state.problem.pinned & (state.current != NO_BROKER))
    source = local[state.current[row, slot]]
    order = by_group(source)
    row, slot, source = row[order], slot[order], source[order]
    _known_places(state, hops, local, row, slot, source)
    moved = place_cost(state, row, state.current[row, slot])
    bounds = np.searchsorted(source, np.arange(m + 1))
    for b in range(m):
        mine = slice(int(bounds[b]), int(bounds[b + 1]))
        for price in np.unique(moved[mine])[::-1].tolist():
            kind = np.flatnonzero(moved[mine] == price) + mine.start
            _search(state, hops, b, row[kind], slot[kind], 1.0 - price)
    return hops


def _known_places(
    state: State, hops: Hops, local: Int64Array, row: Int64Array, slot: Int64Array, source: Int64Array
) -> None:
    """Hops to places where the partition was before or has its home: all of them, they are few."""
    problem = state.problem
    for places in (problem.origin, problem.home):
        away = (places >= 0) & ~(places[:, :, None] == state.current[:, None, :]).any(axis=2)
        left = np.flatnonzero(away.any(axis=1)[row])
        for column in range(places.shape[1]):
            broker = places[row[left], column]
            able = away[row[left], column] & (broker < problem.fleet.usable) & (local[broker] >= 0)
            at, broker = left[able], broker[able]
            kept = state.accepts(row[at], slot[at], broker)
            at, broker = at[kept], broker[kept]
            price = place_cost(state, row[at], broker) - place_cost(state, row[at], state.current[row[at], slot[at]])
            order = np.argsort(-price, kind="stable")
            at, price = at[order], price[order]
            b, c = source[at], local[broker[order]]
            # Later entries win in a fancy assignment, so the cheapest comes last.
            better = price < hops.cost[b, c]
            b, c, at, price = b[better], c[better], at[better], price[better]
            hops.cost[b, c], hops.row[b, c], hops.slot[b, c] = price, row[at], slot[at]


def _search(state: State, hops: Hops, b: int, row: Int64Array, slot: Int64Array, price: float) -> None:
    """Find a replica of one kind for every broker that has no hop from ``b`` as cheap yet."""
    open_to = hops.cost[b] > price
    open_to[b] = False
    racks = state.problem.fleet.rack[hops.brokers]
    first, size = 0, _BATCH
    while first < row.size and open_to.any():
        part = slice(first, first + size)
        target = np.flatnonzero(open_to)
        allowed = _acceptable(state, row[part], slot[part], hops.brokers[target], racks[target])
        found = allowed.any(axis=0)
        which = allowed.argmax(axis=0)[found] + first
        hit = target[found]
        hops.cost[b, hit], hops.row[b, hit], hops.slot[b, hit] = price, row[which], slot[which]
        open_to[hit] = False
        first += size
        size *= 2


def _acceptable(state: State, row: Int64Array, slot: Int64Array, brokers: Int32Array, racks: Int32Array) -> BoolArray:
    """Which of the replicas could go to which of the brokers, shape ``(k, m)``."""
    first = np.append(True, racks[1:] != racks[:-1])  # brokers ascend by rack
    named, inverse = racks[first], np.cumsum(first) - 1
    k = row.size
    rows, slots = np.repeat(row, named.size), np.repeat(slot, named.size)
    by_rack = state.rack_accepts(rows, slots, np.tile(named, k)).reshape(k, named.size)
    # Confined rows have no brokers but those that are searched one by one.
    by_rack &= ~state.problem.confined[row][:, None]
    result = by_rack[:, inverse]
    replicas = state.current.take(row, axis=0)
    for column in range(replicas.shape[1]):
        result &= replicas[:, column, None] != brokers
    return np.asarray(result)
