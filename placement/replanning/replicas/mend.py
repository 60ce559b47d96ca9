"""Mend: of the rows that break their rack windows, bring back as many as a budget pays for, those that balance most.

Method: one replica a row and round. A row's way is from its most loaded broker in a rack that has too many to the least
loaded one of a rack that has too few; the row whose way gains most goes first. Many go at once where many are to go,
each broker at most once. Weakness: greedy; ``spend`` chooses other destinations afterwards, but no other rows.
"""

from __future__ import annotations

import numpy as np

from placement.arrays import BoolArray, Float64Array, Int64Array
from placement.model import NO_BROKER
from placement.replanning.replicas.lift import breaking
from placement.replanning.replicas.seats import first_of_each
from placement.replanning.state import State

_ROUNDS = 64


def mend(state: State, most: int) -> None:
    """Move at most so many replicas out of racks that hold too many, or into such that hold too few."""
    left, step = most, -(-most // _ROUNDS)
    while left > 0:
        rows, able = breaking(state)
        if not rows.size:
            return
        slot, giving = _dearest(state, rows, able)
        broker, taking = _cheapest(state, rows, slot)
        gain = giving - taking
        order = np.argsort(-gain, kind="stable")
        order = order[np.isfinite(gain[order])]
        for key in (state.current[rows, slot], broker):
            order = order[first_of_each(key[order], np.ones(order.size, np.bool_))]
        order = order[: min(step, left)]
        if not order.size:
            return
        state.put(rows[order], slot[order], broker[order])
        left -= order.size


def _dearest(state: State, rows: Int64Array, able: BoolArray) -> tuple[Int64Array, Float64Array]:
    """The able place of each row whose broker gains most from one replica less, and what it gains."""
    price = np.append((2 * state.load - 1) / state.problem.fleet.capacity, -np.inf)
    gain = np.where(able, price[np.where(able, state.current[rows], NO_BROKER)], -np.inf)
    return gain.argmax(axis=1), gain.max(axis=1)


def _cheapest(state: State, rows: Int64Array, slot: Int64Array) -> tuple[Int64Array, Float64Array]:
    """The broker that each row's replica costs least on, and what it costs; infinite where there is none."""
    fleet = state.problem.fleet
    n = fleet.usable
    source = state.current[rows, slot]
    best, cost = np.zeros(rows.size, np.int64), np.full(rows.size, np.inf)
    price = (2 * state.load[:n] + 1) / fleet.capacity[:n]
    state.put(rows, slot, np.full(rows.size, NO_BROKER))
    for rack, (low, high) in enumerate(zip(fleet.bounds[:-1].tolist(), fleet.bounds[1:].tolist(), strict=True)):
        open_to = np.flatnonzero(state.admits(rows, np.full(rows.size, rack, np.int32)))
        # At most as many brokers as a row has places are taken by it.
        for broker in (low + np.argsort(price[low:high], kind="stable")[: state.current.shape[1] + 1]).tolist():
            free = open_to[~(state.current[rows[open_to]] == broker).any(axis=1)]
            free = free[(price[broker] < cost[free]) & (source[free] != broker)]
            best[free], cost[free] = broker, price[broker]
    state.put(rows, slot, source)
    return best, cost
