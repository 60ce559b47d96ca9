"""Improve: exchange moves for better ones until none is left, which proves the plan optimal.

Goal: the least sum of load^2 / capacity, then the fewest replicas moved, then the most returned home.
Method: the cheapest hop between every two brokers makes a graph; a negative cycle in it is applied, and the graph is
built again when the cycles it shows are used up. A cycle that would use one partition twice is spliced: b -> c and
d -> e become b -> e and d -> c, which closes two shorter cycles, one of which is negative.
Proof: the layouts are the flows of a network partition -> (partition, rack) -> broker with convex costs, where a flow
is cheapest exactly when no negative cycle is left. A graph just built that shows none is that proof.
Cost: a graph takes O(brokers^2 + replicas), a cycle O(brokers^2) a step. Weakness: quadratic in the brokers, so above
a few hundred only some of them take part, and then there is no proof.
"""

from __future__ import annotations

import numpy as np

from placement.model import NO_BROKER, Int32Array
from placement.replanning.replicas.cycles import LOAD_PRICE, negative_cycle, with_load
from placement.replanning.replicas.hops import Hops, cheapest_hops, place_cost
from placement.replanning.state import State

Hop = tuple[int, int, int, int]
"""(row, slot, from broker, to broker)"""

_TOLERANCE = 1e-9


def improve(state: State, brokers: Int32Array, limit: int, *, keep_load: bool = False) -> bool:
    """Apply negative cycles among the given brokers, at most ``limit``; True when none is left.

    With all usable brokers that is a proof of optimality: with ``keep_load`` among the plans with the same loads.
    """
    fleet = state.problem.fleet
    if state.problem.pinned[state.current != NO_BROKER].all():
        return True
    applied = 0
    while applied <= limit:
        hops = cheapest_hops(state, brokers)
        stale = False
        while applied <= limit:
            cost = hops.cost
            if not keep_load:
                cost = with_load(cost, state.load[brokers], fleet.capacity[brokers])
            cycle = negative_cycle(cost)
            if cycle is None:
                break
            stale = True
            applied += _follow(state, hops, cycle)
        else:
            return False
        if not stale:
            return True
    return False


def _follow(state: State, hops: Hops, cycle: list[int]) -> int:
    """Apply a cycle if all of it still holds, else forget what does not; returns the work done, at least 1."""
    arcs = [(a, b) for a, b in zip(cycle, cycle[1:] + cycle[:1], strict=True) if max(a, b) < hops.brokers.size]
    fresh = True
    for a, b in arcs:
        if not _holds(state, _leg(hops, a, b)) or _leg_cost(state, _leg(hops, a, b)) > hops.cost[a, b] + _TOLERANCE:
            hops.cost[a, b] = np.inf
            fresh = False
    if not fresh:
        return 1
    legs = [_leg(hops, a, b) for a, b in arcs]
    for choice in (_splice(state, legs), legs):
        if _total_cost(state, choice) < -_TOLERANCE and apply_hops(state, choice):
            return 1
    for a, b in arcs:
        hops.cost[a, b] = np.inf
    return 1


def _leg(hops: Hops, a: int, b: int) -> Hop:
    return int(hops.row[a, b]), int(hops.slot[a, b]), int(hops.brokers[a]), int(hops.brokers[b])


def _holds(state: State, leg: Hop) -> bool:
    row, slot, source, broker = leg
    if state.current[row, slot] != source:
        return False
    return bool(state.accepts(np.array([row]), np.array([slot]), np.array([broker]))[0])


def _leg_cost(state: State, leg: Hop) -> float:
    row, _, source, broker = leg
    cost = place_cost(state, np.array([row, row]), np.array([broker, source], np.int32))
    return float(cost[0] - cost[1])


def _total_cost(state: State, legs: list[Hop]) -> float:
    """What the legs cost together: their moves and the change of load at the ends of each path."""
    net: dict[int, int] = {}
    for _, _, source, broker in legs:
        net[source] = net.get(source, 0) - 1
        net[broker] = net.get(broker, 0) + 1
    capacity = state.problem.fleet.capacity
    load = sum(d * (2 * int(state.load[b]) + d) / float(capacity[b]) for b, d in sorted(net.items()))
    return LOAD_PRICE * load + sum(_leg_cost(state, leg) for leg in legs)


def _splice(state: State, legs: list[Hop]) -> list[Hop]:
    """The cheapest part of a cycle in which no partition is used twice."""
    for i, first in enumerate(legs):
        for j in range(i + 1, len(legs)):
            if legs[j][0] == first[0]:
                outer = legs[:i] + _join(first, legs[j]) + legs[j + 1 :]
                inner = legs[i + 1 : j] + _join(legs[j], first)
                parts = (_splice(state, outer), _splice(state, inner))
                return min(parts, key=lambda part: _total_cost(state, part))
    return legs


def _join(start: Hop, end: Hop) -> list[Hop]:
    """One hop from where the first begins to where the second ends; none when that is the same broker."""
    row, slot, source, _ = start
    return [(row, slot, source, end[3])] if source != end[3] else []


def apply_hops(state: State, legs: list[Hop]) -> bool:
    """Make the hops one after the other; when one is refused, take all of them back."""
    done: list[Hop] = []
    for leg in legs:
        if not _holds(state, leg):
            for row, slot, source, _ in reversed(done):
                state.put(np.array([row]), np.array([slot]), np.array([source]))
            return False
        row, slot, _, broker = leg
        state.put(np.array([row]), np.array([slot]), np.array([broker]))
        done.append(leg)
    return True
