"""Chains of leaderships: which broker can hand a partition to which, how cheaply, and the handing over itself."""

from __future__ import annotations

import numpy as np

from placement.arrays import BoolArray, Int64Array, by_group, count_in_row
from placement.model import Int32Array
from placement.replanning.replicas.seats import first_of_each, within_quota

_FAR = 1 << 50
_GRID = 1 << 22
_SPARSE = 8
"""A grid of all pairs is made from one place in so many pairs on."""
_STEPS = 100_000
_EVERY = slice(None)
_Column = Int64Array | Int32Array


class Arcs:
    """All places that could lead, and who leads now.

    Attributes:
        leading: int64, shape ``(q,)``: the leading place of each row.
        load: int64, shape ``(n,)``: leaderships of each broker.
        row, place, broker, cost: columns of the places of rows that have a choice, by row, shape ``(k,)``.
        source: int32, shape ``(k,)``: the broker that leads the row of each of these places.
        price: int32, shape ``(k,)``: what it costs more that the place leads instead of the one that does.
        steps: how many more passes over arcs may be made, so that long chains have a bound that is no clock's.
    """

    __slots__ = ("_first", "broker", "cost", "leading", "load", "place", "price", "row", "source", "steps")

    def __init__(self, replicas: Int32Array, cost: Int64Array, leading: Int64Array, load: Int64Array) -> None:
        """Take the matrices of :func:`placement.replanning.leaders.elect.elect`, and who leads at the start."""
        can = cost < _FAR
        choices = count_in_row(can)
        # Half the bytes, half the time: millions of places are read for every length of chain.
        choice = np.flatnonzero((can & (choices > 1)[:, None]).reshape(-1))
        self.row, self.place = (part.astype(np.int32) for part in np.divmod(choice, cost.shape[1]))
        self.broker = replicas.reshape(-1)[choice]
        self.cost = cost.reshape(-1)[choice].astype(np.int32)
        self.leading = leading
        self.load = load
        self.steps = _STEPS
        self._first = np.append(0, np.cumsum(np.where(choices > 1, choices, 0)))
        rows = np.arange(leading.size)
        self.source = replicas[rows, leading][self.row]
        self.price = self.cost - cost[rows, leading].astype(np.int32)[self.row]

    def of_rows(self, rows: Int64Array | Int32Array) -> tuple[Int64Array, Int64Array]:
        """The places of the given rows, row by row, and how many each of the rows has."""
        count = self._first[rows + 1] - self._first[rows]
        return np.repeat(self._first[rows] - np.cumsum(count) + count, count) + np.arange(int(count.sum())), count

    def hand_over(self, chosen: Int64Array) -> None:
        """Let these places lead; rows and their brokers at most once in each role."""
        row, broker = self.row[chosen], self.broker[chosen]
        self.load -= np.bincount(self.source[chosen], minlength=self.load.size)
        self.load += np.bincount(broker, minlength=self.load.size)
        self.leading[row] = self.place[chosen]
        places, count = self.of_rows(row)
        self.source[places] = np.repeat(broker, count)
        self.price[places] = self.cost[places] - np.repeat(self.cost[chosen], count)


def distances(arcs: Arcs, part: Int32Array, start: Int64Array) -> Int64Array:
    """Cheapest cost at which a leadership gets to each broker, int64, shape ``(n,)``; ``start`` is where it begins."""
    source, broker, price = _graph(arcs, part)
    result = start.copy()
    # Arcs from a grid come by receiver, and then whole groups reduce at once.
    first = np.flatnonzero(np.append(True, broker[1:] != broker[:-1])) if broker.size else broker
    by_broker = first.size <= result.size
    changed = start < _FAR
    while changed.any():
        arcs.steps -= 1
        known = result.copy()
        if by_broker and broker.size:
            result[broker[first]] = np.minimum(known[broker[first]], np.minimum.reduceat(known[source] + price, first))
        else:
            ahead = np.flatnonzero(changed[source])
            np.minimum.at(result, broker[ahead], known[source[ahead]] + price[ahead])
        changed = result < known
    return result


def reachable(arcs: Arcs, part: Int32Array, start: BoolArray, *, backwards: bool) -> BoolArray:
    """Brokers that chains from the given ones get to, or come from; bool, shape ``(n,)``."""
    source, broker, _ = _graph(arcs, part)
    if backwards:
        source, broker = broker, source
    result = start.copy()
    while True:
        known = int(result.sum())
        result[broker[result[source]]] = True
        if int(result.sum()) == known:
            return result


def route(arcs: Arcs, part: Int32Array, distance: Int64Array, starts: Int64Array, ends: Int64Array) -> int:
    """Hand over along tight arcs as long as there are starts and ends left; returns the number of chains.

    ``starts`` and ``ends`` are quotas, int64, shape ``(n,)``; both are used up in place.
    """
    tight = _tight(arcs, part, distance, _EVERY)
    led = arcs.leading.copy()
    done = _direct(arcs, tight, starts, ends)
    while starts.any() and ends.any() and arcs.steps > 0:
        tight = _tight_still(arcs, part, distance, tight, np.flatnonzero(arcs.leading != led))
        led = arcs.leading.copy()
        chains = _long(arcs, tight, starts, ends)
        done += chains
        if not chains:
            break
    return done


def _graph(arcs: Arcs, part: Int32Array) -> tuple[_Column, _Column, _Column]:
    """Source, broker and price of every arc; only the cheapest of each pair where that takes little time and memory."""
    source, price = arcs.source, arcs.price
    n = arcs.load.size
    if n * n > _GRID or source.size * _SPARSE < n * n:
        inside = np.flatnonzero((part[source] == part[arcs.broker]) & (source != arcs.broker))
        # The fast path of ufunc.at wants indices and values of 64 bits.
        into, cost = arcs.broker[inside].astype(np.int64), price[inside].astype(np.int64)
        return _cheapest(source[inside], into, cost) if source.size * _SPARSE < n * n else (source[inside], into, cost)
    grid = np.full(n * n, _FAR, np.int64)
    np.minimum.at(grid, arcs.broker.astype(np.int64) * n + source, price.astype(np.int64))
    grid.reshape(n, n)[part[:, None] != part[None, :]] = _FAR
    np.fill_diagonal(grid.reshape(n, n), _FAR)
    arc = np.flatnonzero(grid < _FAR)
    return arc % n, arc // n, grid[arc]


def _cheapest(source: Int32Array, broker: Int64Array, price: Int64Array) -> tuple[_Column, _Column, _Column]:
    """The cheapest arc of each pair, by broker and source: of few arcs, sorting finds them sooner than a grid does."""
    order = np.lexsort((price, source, broker))
    source, broker = source[order], broker[order]
    first = np.append(True, (source[1:] != source[:-1]) | (broker[1:] != broker[:-1]))[: order.size]
    return source[first], broker[first], price[order[first]]


def _tight(arcs: Arcs, part: Int32Array, distance: Int64Array, among: Int64Array | slice) -> Int64Array:
    """Those of the given places that a cheapest chain goes through."""
    source, broker = arcs.source[among], arcs.broker[among]
    at = np.flatnonzero(distance[source] + arcs.price[among] == distance[broker])
    source, broker = source[at], broker[at]
    at = at[np.flatnonzero((source != broker) & (part[source] == part[broker]))]
    return at if isinstance(among, slice) else among[at]


def _tight_still(
    arcs: Arcs, part: Int32Array, distance: Int64Array, tight: Int64Array, handed_over: Int64Array
) -> Int64Array:
    """The same after some rows got other leaders: only their places have to be looked at again."""
    changed = np.zeros(arcs.leading.size, np.bool_)
    changed[handed_over] = True
    again = _tight(arcs, part, distance, arcs.of_rows(handed_over)[0])
    return np.sort(np.concatenate([tight[np.flatnonzero(~changed[arcs.row[tight]])], again]))


def _direct(arcs: Arcs, tight: Int64Array, starts: Int64Array, ends: Int64Array) -> int:
    """Chains of one hop, many at once, each row at most once."""
    row, source, broker = arcs.row[tight], arcs.source[tight], arcs.broker[tight]
    done = 0
    while True:
        at = np.flatnonzero((starts[source] > 0) & (ends[broker] > 0))
        for key, quota in ((source, starts), (broker, ends), (source, starts)):
            at = at[first_of_each(row[at], within_quota(key[at], quota))]
        if not at.size:
            return done
        starts -= np.bincount(source[at], minlength=starts.size)
        ends -= np.bincount(broker[at], minlength=ends.size)
        arcs.hand_over(tight[at])
        done += at.size
        spent = np.zeros(arcs.leading.size, np.bool_)
        spent[row[at]] = True
        left = np.flatnonzero(~spent[row])
        tight, row, source, broker = tight[left], row[left], source[left], broker[left]


def _long(arcs: Arcs, tight: Int64Array, starts: Int64Array, ends: Int64Array) -> int:
    """Chains of any length, many at once.

    From the ends back to the starts each broker books as many incoming arcs as it can pass on; from the starts to the
    ends the booked arcs are used. No row is booked twice, because only its leader has arcs with it.
    """
    source, broker = arcs.source[tight], arcs.broker[tight]
    layer = _layers(source, broker, starts > 0, ends > 0)
    onward = np.flatnonzero((layer[source] >= 0) & (layer[broker] == layer[source] + 1))
    tight, source, broker = tight[onward], source[onward], broker[onward]
    depth = int(layer.max(initial=0))
    arcs.steps -= 2 * depth
    passes = np.where(layer == depth, ends, 0)
    booked = []
    order = by_group(layer[source])
    bounds = np.searchsorted(layer[source][order], np.arange(depth + 1))
    for step in range(depth - 1, -1, -1):
        at = order[bounds[step] : bounds[step + 1]]
        at = at[within_quota(broker[at], passes)]
        at = at[first_of_each(arcs.row[tight[at]], np.ones(at.size, np.bool_))]
        booked.append(at)
        passes = np.where(layer == step, np.bincount(source[at], minlength=layer.size), passes)
    here = np.where(layer == 0, np.minimum(starts, passes), 0)
    starts -= here
    used = []
    for at in reversed(booked):
        taken = at[within_quota(source[at], here)]
        used.append(taken)
        here = np.bincount(broker[taken], minlength=layer.size)
    ends -= here
    arcs.hand_over(tight[np.concatenate(used)] if used else tight[:0])
    return int(here.sum()) if used else 0


def _layers(source: Int32Array, broker: Int32Array, starts: BoolArray, ends: BoolArray) -> Int64Array:
    """Hops from the nearest start, -1 beyond the layer in which the first end lies."""
    layer = np.where(starts, 0, -1)
    # By source, so that each layer reads its own arcs only: a ring of brokers has hundreds of layers.
    order = by_group(source)
    bounds = np.searchsorted(source[order], np.arange(layer.size + 1))
    here, depth = np.flatnonzero(starts), 0
    while not (depth and ends[here].any()):
        count = bounds[here + 1] - bounds[here]
        arcs = np.repeat(bounds[here] - np.cumsum(count) + count, count) + np.arange(int(count.sum()))
        ahead = broker[order[arcs]]
        here = np.unique(ahead[layer[ahead] < 0])
        if not here.size:
            break
        depth += 1
        layer[here] = depth
    return layer
