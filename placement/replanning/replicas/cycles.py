"""Negative cycles in the graph of brokers, found by Bellman and Ford's method on whole arrays.

An arc b -> c says that one replica (or one leadership) can go from b to c at a cost. A further node Z stands for the
load: the arc b -> Z says that b ends with one more, Z -> b that it ends with one less. A cycle of negative cost is a
set of changes that makes the whole better; when there is none, nothing can (the cycle condition of minimum-cost
flow, exact for convex loads).
"""

from __future__ import annotations

import numpy as np

from placement.arrays import Float64Array, Int64Array

TOLERANCE = 1e-4
"""Smaller gains are rounding; the cheapest real one is a home bonus."""
LOAD_PRICE = 1e4
"""What one unit of load^2 / capacity counts against one replica moved."""


def with_load(arcs: Float64Array, load: Int64Array, capacity: Float64Array) -> Float64Array:
    """Add node Z as the last one: shapes ``(n, n)``, ``(n,)``, ``(n,)`` give ``(n + 1, n + 1)``."""
    n = load.size
    result = np.full((n + 1, n + 1), np.inf)
    result[:n, :n] = arcs
    result[:n, n] = (2 * load + 1) / capacity * LOAD_PRICE
    result[n, :n] = -(2 * load - 1) / capacity * LOAD_PRICE
    return result


def negative_cycle(cost: Float64Array) -> list[int] | None:
    """The nodes of a cycle of negative cost, in order, or None when there is none.

    Args:
        cost: float64, shape ``(m, m)``: the cost of each arc, infinite where there is none.
    """
    m = cost.shape[0]
    distance = np.zeros(m)
    parent = np.full(m, -1, np.int64)
    for step in range(1, m + 2):
        through = distance[:, None] + cost
        best = through.argmin(axis=0)
        value = through[best, np.arange(m)]
        better = value < distance - TOLERANCE
        if not better.any():
            return None
        distance = np.where(better, value, distance)
        parent = np.where(better, best, parent)
        if step & (step - 1) == 0 or step % 16 == 0 or step > m:
            cycle = _cycle_of(parent)
            if cycle is not None and _cost_of(cost, cycle) < -TOLERANCE:
                return cycle
    return None


def _cost_of(cost: Float64Array, cycle: list[int]) -> float:
    return float(sum(cost[a, b] for a, b in zip(cycle, cycle[1:] + cycle[:1], strict=True)))


def _cycle_of(parent: Int64Array) -> list[int] | None:
    """A cycle among the parents, in the direction of the arcs."""
    mark = [0] * parent.size
    up = parent.tolist()
    for start in range(parent.size):
        node = start
        while node >= 0 and not mark[node]:
            mark[node] = start + 1
            node = up[node]
        if node >= 0 and mark[node] == start + 1:
            cycle = [node]
            follow = up[node]
            while follow != node:
                cycle.append(follow)
                follow = up[follow]
            return cycle[::-1]
    return None
