"""Leaders: reorder each replica list so that brokers lead their share, with the fewest changes of leader.

Goal: the least sum of leaders^2 / capacity, then the fewest changed leaders. No data moves.
Constraint: a replica that is new leads only where no other replica is left that could.
Method: every partition starts at its cheapest candidate (its leader, if that stays); then leaderships flow along
chains of brokers, from the one that leads too much to one that leads too little, shortest chains first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placement.load import Int64Array
from placement.model import Int32Array
from placement.problem import BoolArray

Float64Array = NDArray[np.float64]

_GAIN = 1e-9


def elect(
    replicas: Int32Array, candidate: BoolArray, keep: Int64Array, base: Int64Array, capacity: Float64Array
) -> Int64Array:
    """Choose the leading place of each row.

    Args:
        replicas: int32 broker indices, shape ``(q, W)``, -1 where there is none.
        candidate: bool, shape ``(q, W)``: places that may lead; at least one a row.
        keep: int64, shape ``(q,)``: the place that leads now, -1 where it is gone.
        base: int64, shape ``(n,)``: leaderships of other rows.
        capacity: float64, shape ``(n,)``.

    Returns:
        int64, shape ``(q,)``: the leading place of each row.
    """
    leading = _start(replicas, candidate, keep, base, capacity)
    if replicas.shape[1] < 2 or not replicas.shape[0]:
        return leading
    while _shift_chains(replicas, candidate, leading, base, capacity):
        pass
    return leading


def led(replicas: Int32Array, leading: Int64Array, base: Int64Array) -> Int64Array:
    """Leaderships of each broker, int64, shape ``(n,)``."""
    return base + np.bincount(replicas[np.arange(leading.size), leading], minlength=base.size)


def _start(
    replicas: Int32Array, candidate: BoolArray, keep: Int64Array, base: Int64Array, capacity: Float64Array
) -> Int64Array:
    """Leaders that stay, and for the others the least loaded candidate, one after the other."""
    leading = keep.copy()
    stays = np.flatnonzero(keep >= 0)
    load = base + np.bincount(replicas[stays, keep[stays]], minlength=base.size)
    for row in np.flatnonzero(keep < 0).tolist():
        places = np.flatnonzero(candidate[row])
        brokers = replicas[row, places]
        best = int(np.argmin((2 * load[brokers] + 1) / capacity[brokers]))
        leading[row] = places[best]
        load[brokers[best]] += 1
    return leading


def _shift_chains(
    replicas: Int32Array, candidate: BoolArray, leading: Int64Array, base: Int64Array, capacity: Float64Array
) -> int:
    """One round of chains; returns how many were shifted. ``leading`` is changed in place."""
    load = led(replicas, leading, base)
    row, place = np.nonzero(candidate)
    other = place != leading[row]
    row, place = row[other], place[other]
    if not row.size:
        return 0
    source, broker = replicas[row, leading[row]], replicas[row, place]
    n = base.size
    first = np.unique(source.astype(np.int64) * n + broker, return_index=True)[1]
    source, broker, row, place = source[first], broker[first], row[first], place[first]
    relief, burden = (2 * load - 1) / capacity, (2 * load + 1) / capacity
    # The broker that each one can pass a leadership to so that, in the end, the least burdened one takes it.
    best, via = burden.copy(), np.full(n, -1, np.int64)
    for _ in range(n):
        order = np.lexsort((np.arange(broker.size), best[broker], source))
        start = np.searchsorted(source[order], np.arange(n))
        at = order[np.minimum(start, order.size - 1)]
        reached = (start < order.size) & (source[at] == np.arange(n))
        better = reached & (best[broker[at]] < best - _GAIN)
        if not better.any():
            break
        best, via = np.where(better, best[broker[at]], best), np.where(better, at, via)
    return _walk(np.argsort(best - relief, kind="stable"), relief, load, capacity, via, (row, place, broker), leading)


def _walk(
    order: Int64Array,
    relief: Float64Array,
    load: Int64Array,
    capacity: Float64Array,
    via: Int64Array,
    hops: tuple[Int64Array, Int64Array, Int32Array],
    leading: Int64Array,
) -> int:
    """Follow the chains from the most burdened brokers while they still gain and use no row twice."""
    row, place, broker = hops
    used: set[int] = set()
    shifted = 0
    for start in order.tolist():
        chain: list[int] = []
        node = start
        while via[node] >= 0 and len(chain) <= via.size:
            chain.append(int(via[node]))
            node = int(broker[via[node]])
        gain = (2 * load[start] - 1) / capacity[start] - (2 * load[node] + 1) / capacity[node]
        rows = row[chain].tolist()
        if not chain or gain <= _GAIN or used.intersection(rows):
            continue
        for hop in chain:
            leading[row[hop]] = place[hop]
        used.update(rows)
        load[start] -= 1
        load[node] += 1
        shifted += 1
    return shifted
