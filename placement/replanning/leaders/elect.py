"""Leaders: choose who leads each partition, so that brokers lead their share with the fewest changes.

Goal: the least sum of leaders^2 / capacity over the brokers, then the least cost of the chosen places. No data moves.
Constraint: one of the partition's own replicas leads.
Method: every partition starts at its cheapest place. Then leaderships flow from brokers that lead too much to those
that lead too little, always along the cheapest chains (successive shortest paths): a partition can only leave the
broker that leads it, so the graph of brokers is exact. Potentials come from Bellman and Ford's method; all chains that
they make tight are used before they are worked out again. Where some broker keeps too much, nothing that it reaches can
take more: those brokers are cut off from the others and both parts get a share of their own.
Example: brokers 1, 2, 3 lead 3, 1, 0 partitions, the first two with replicas on {1, 2}, one of 2's on {2, 3}: one
leadership goes from 1 to 2 and one from 2 to 3.
Cost: O(replicas) array steps for each length and price of chain, of which there are few but in layouts where only
neighbours share partitions. A bounded number of passes: where they do not do, leaders are left less even than they
could be.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from placement.arrays import BoolArray, Float64Array, Int64Array, count_in_row
from placement.model import Int32Array
from placement.replanning.leaders.chains import Arcs, distances, reachable, route
from placement.replanning.replicas.seats import within_quota
from placement.replanning.targets import Room, price_bracket

KEEP: Final = 0
SURVIVOR: Final = 1
FRESH: Final = 1 << 20
"""What a place costs that leads already, that holds the data already, that must copy it first."""
NEVER: Final = 1 << 50
"""What a place costs that cannot lead."""
_MUST: Final = 1 << 40
_ROUNDS: Final = 8


def elect(replicas: Int32Array, cost: Int64Array, base: Int64Array, capacity: Float64Array) -> Int64Array:
    """Choose the leading place of each row.

    Args:
        replicas: int32 broker indices, shape ``(q, W)``, -1 where there is none.
        cost: int64, shape ``(q, W)``: what each place costs; ``NEVER`` where there is no replica.
        base: int64, shape ``(n,)``: leaderships of other rows.
        capacity: float64, shape ``(n,)``.

    Returns:
        int64, shape ``(q,)``: the leading place of each row.
    """
    if not replicas.shape[0]:
        return np.zeros(0, np.int64)
    part = np.zeros(base.size, np.int32)
    low, high = share(base, replicas.shape[0], capacity)
    leading = _start(replicas, cost, base, high, capacity)
    load = led(replicas, leading, base)
    if ((load >= low) & (load <= high)).all():
        return leading
    arcs = Arcs(replicas, cost, leading, load)
    while True:
        _settle(arcs, part, low, high)
        cut = _stuck(arcs, part, low, high) if arcs.steps > 0 else None
        if cut is None:
            return arcs.leading
        part = np.where(cut, part.max() + 1 + part, part).astype(np.int32)
        part = np.unique(part, return_inverse=True)[1].astype(np.int32)
        low, high = _shares(arcs.load, base, part, capacity)


def led(replicas: Int32Array, leading: Int64Array, base: Int64Array) -> Int64Array:
    """Leaderships of each broker, int64, shape ``(n,)``."""
    return np.asarray(base + np.bincount(replicas[np.arange(leading.size), leading], minlength=base.size))


def share(base: Int64Array, rows: int, capacity: Float64Array) -> tuple[Int64Array, Int64Array]:
    """Fewest and most leaderships of each broker in a perfect balance, int64, shape ``(n,)`` each."""
    one = np.zeros(base.size, np.int32)
    total = np.array([int(base.sum()) + rows])
    return price_bracket(Room(capacity, base, base + rows, one, total, total, int(total[0])))


def _shares(
    load: Int64Array, base: Int64Array, part: Int32Array, capacity: Float64Array
) -> tuple[Int64Array, Int64Array]:
    """The shares where each part keeps the leaderships that it has."""
    total = np.bincount(part, weights=load).astype(np.int64)
    most = base + int((load - base).sum())
    return price_bracket(Room(capacity, base, most, part, total, total, int(total.sum())))


def _start(
    replicas: Int32Array, cost: Int64Array, base: Int64Array, high: Int64Array, capacity: Float64Array
) -> Int64Array:
    """The cheapest place of each row; among equally cheap ones, those whose brokers have room."""
    least = cost[:, 0].copy()
    for column in range(1, cost.shape[1]):
        np.minimum(least, cost[:, column], out=least)
    tied = cost == least[:, None]
    leading: Int64Array = tied.argmax(axis=1)
    waiting = np.flatnonzero(count_in_row(tied) > 1)
    sure = np.ones(leading.size, np.bool_)
    sure[waiting] = False
    load = base + np.bincount(replicas[sure, leading[sure]], minlength=base.size)
    for turn in range(_ROUNDS):
        if not waiting.size:
            break
        burden = np.where(tied[waiting], ((2 * load + 1) / capacity)[replicas[waiting]], np.inf)
        place = burden.argmin(axis=1)
        broker = replicas[waiting, place]
        taken = within_quota(broker, np.maximum(high - load, 0)) | (turn == _ROUNDS - 1)
        leading[waiting[taken]] = place[taken]
        load = load + np.bincount(broker[taken], minlength=base.size)
        waiting = waiting[~taken]
    return leading


def _settle(arcs: Arcs, part: Int32Array, low: Int64Array, high: Int64Array) -> None:
    """Send leaderships along cheapest chains until no broker that must give or get can, or no steps are left."""
    while arcs.steps > 0:
        give = np.where(arcs.load > high, -_MUST, np.where(arcs.load > low, 0, NEVER))
        take = np.where(arcs.load < low, -_MUST, np.where(arcs.load < high, 0, NEVER))
        if (give == NEVER).all() or (take == NEVER).all():
            return
        distance = distances(arcs, part, give)
        best = int((distance + take).min())
        if best >= 0:
            return
        above = np.where(give < 0, arcs.load - high, arcs.load - low)
        below = np.where(take < 0, low - arcs.load, high - arcs.load)
        starts = np.where((give < NEVER) & (give == distance), above, 0)
        ends = np.where((take < NEVER) & (distance + take == best), below, 0)
        if not route(arcs, part, distance, starts, ends):
            return


def _stuck(arcs: Arcs, part: Int32Array, low: Int64Array, high: Int64Array) -> BoolArray | None:
    """Brokers to cut off, bool, shape ``(n,)``: those that one above its share reaches; None when all is well."""
    for wrong, backwards in ((arcs.load > high, False), (arcs.load < low, True)):
        if wrong.any():
            reached = reachable(arcs, part, wrong, backwards=backwards)
            sizes = np.bincount(part)
            if (np.bincount(part[reached], minlength=sizes.size) % sizes).any():
                return reached
    return None
