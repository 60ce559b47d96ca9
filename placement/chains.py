"""Chains of leaderships: which broker can hand a partition to which, how cheaply, and the handing over itself."""

from __future__ import annotations

import numpy as np

from placement.load import Int64Array
from placement.model import Int32Array
from placement.problem import BoolArray
from placement.seats import first_of_each, within_quota

_FAR = 1 << 50
_GRID = 1 << 22
_ROUNDS = 16


class Arcs:
    """All places that could lead, and who leads now.

    Attributes:
        leading: int64, shape ``(q,)``: the leading place of each row.
        load: int64, shape ``(n,)``: leaderships of each broker.
        row, place, broker, cost: columns of the places of rows that have a choice, shape ``(k,)``.
    """

    __slots__ = ("_leader", "_paid", "broker", "cost", "leading", "load", "place", "row")

    def __init__(self, replicas: Int32Array, cost: Int64Array, leading: Int64Array, load: Int64Array) -> None:
        """Take the matrices of :func:`placement.leaders.elect`, and who leads at the start."""
        can = cost < _FAR
        self.row, self.place = np.nonzero(can & (can.sum(axis=1) > 1)[:, None])
        self.broker = replicas[self.row, self.place].astype(np.int64)
        self.cost = cost[self.row, self.place]
        self.leading = leading
        self.load = load
        rows = np.arange(leading.size)
        self._leader = replicas[rows, leading].astype(np.int64)
        self._paid = cost[rows, leading]

    def source(self) -> Int64Array:
        """The broker that leads the row of each place, shape ``(k,)``."""
        return self._leader[self.row]

    def price(self) -> Int64Array:
        """What it costs more that each place leads instead of the one that does, shape ``(k,)``."""
        return self.cost - self._paid[self.row]

    def hand_over(self, chosen: Int64Array) -> None:
        """Let these places lead; rows and their brokers at most once in each role."""
        row, broker = self.row[chosen], self.broker[chosen]
        np.subtract.at(self.load, self._leader[row], 1)
        np.add.at(self.load, broker, 1)
        self.leading[row] = self.place[chosen]
        self._leader[row] = broker
        self._paid[row] = self.cost[chosen]


def distances(arcs: Arcs, part: Int32Array, start: Int64Array) -> Int64Array:
    """Cheapest cost at which a leadership gets to each broker, int64, shape ``(n,)``; ``start`` is where it begins."""
    source, broker, price = _graph(arcs, part)
    result = start.copy()
    while True:
        known = result.copy()
        np.minimum.at(result, broker, known[source] + price)
        if np.array_equal(known, result):
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
    done = 0
    for _ in range(_ROUNDS):
        direct = _direct(arcs, part, distance, starts, ends)
        done += direct
        if not direct:
            break
    while starts.any() and ends.any():
        chains = _long(arcs, part, distance, starts, ends)
        done += chains
        if not chains:
            break
    return done


def _graph(arcs: Arcs, part: Int32Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Source, broker and price of every arc; only the cheapest of each pair where a grid of pairs fits in memory."""
    source, price = arcs.source(), arcs.price()
    n = arcs.load.size
    if n * n > _GRID:
        inside = (part[source] == part[arcs.broker]) & (source != arcs.broker)
        return source[inside], arcs.broker[inside], price[inside]
    grid = np.full(n * n, _FAR, np.int64)
    np.minimum.at(grid, source * n + arcs.broker, price)
    grid.reshape(n, n)[part[:, None] != part[None, :]] = _FAR
    np.fill_diagonal(grid.reshape(n, n), _FAR)
    arc = np.flatnonzero(grid < _FAR)
    return arc // n, arc % n, grid[arc]


def _tight(arcs: Arcs, part: Int32Array, distance: Int64Array) -> Int64Array:
    """Places that a cheapest chain goes through."""
    source = arcs.source()
    fits = (distance[source] + arcs.price() == distance[arcs.broker]) & (source != arcs.broker)
    return np.flatnonzero(fits & (part[source] == part[arcs.broker]))


def _direct(arcs: Arcs, part: Int32Array, distance: Int64Array, starts: Int64Array, ends: Int64Array) -> int:
    """Chains of one hop, many at once."""
    tight = _tight(arcs, part, distance)
    source, broker = arcs.source()[tight], arcs.broker[tight]
    tight = tight[(starts[source] > 0) & (ends[broker] > 0)]
    for key, quota in ((arcs.source(), starts), (arcs.broker, ends), (arcs.source(), starts)):
        tight = tight[first_of_each(arcs.row[tight], within_quota(key[tight], quota))]
    source, broker = arcs.source()[tight], arcs.broker[tight]
    starts -= np.bincount(source, minlength=starts.size)
    ends -= np.bincount(broker, minlength=ends.size)
    arcs.hand_over(tight)
    return int(tight.size)


def _long(arcs: Arcs, part: Int32Array, distance: Int64Array, starts: Int64Array, ends: Int64Array) -> int:
    """Chains of any length: layers from the starts, then walks through the layers that use no row twice."""
    tight = _tight(arcs, part, distance)
    source, broker = arcs.source()[tight], arcs.broker[tight]
    layer = _layers(source, broker, starts > 0, ends > 0)
    onward = (layer[source] >= 0) & (layer[broker] == layer[source] + 1)
    tight, source, broker = tight[onward], source[onward], broker[onward]
    order = np.argsort(source, kind="stable")
    bounds = np.searchsorted(source[order], np.arange(starts.size + 1)).tolist()
    walk = _Walk(bounds, broker[order].tolist(), arcs.row[tight[order]].tolist(), ends)
    chosen: list[int] = []
    for start in np.flatnonzero(starts > 0).tolist():
        while starts[start] > 0:
            chain = walk.chain(start)
            if chain is None:
                break
            starts[start] -= 1
            chosen.extend(chain)
    arcs.hand_over(tight[order[np.array(chosen, np.int64)]])
    return len(chosen)


def _layers(source: Int64Array, broker: Int64Array, starts: BoolArray, ends: BoolArray) -> Int64Array:
    """Hops from the nearest start, -1 beyond the layer in which the first end lies."""
    layer = np.where(starts, 0, -1)
    depth = 0
    while not (ends & (layer == depth) & (depth > 0)).any():
        ahead = broker[layer[source] == depth]
        ahead = ahead[layer[ahead] < 0]
        if not ahead.size:
            break
        depth += 1
        layer[ahead] = depth
    return layer


class _Walk:
    """Depth-first walks through the layers; an arc that led nowhere, or a row that was used, is not tried again."""

    __slots__ = ("_bounds", "_broker", "_ends", "_next", "_row", "_used")

    def __init__(self, bounds: list[int], broker: list[int], row: list[int], ends: Int64Array) -> None:
        self._bounds = bounds
        self._next = bounds[:-1].copy()
        self._broker = broker
        self._row = row
        self._ends = ends
        self._used: set[int] = set()

    def chain(self, start: int) -> list[int] | None:
        """The arcs from a start to an end that has room, or None."""
        path: list[int] = []
        node = start
        while True:
            if path and self._ends[node] > 0:
                self._ends[node] -= 1
                return path
            arc = self._advance(node)
            if arc is not None:
                path.append(arc)
                self._used.add(self._row[arc])
                node = self._broker[arc]
            elif path:
                self._used.discard(self._row[path.pop()])
                node = self._broker[path[-1]] if path else start
            else:
                return None

    def _advance(self, node: int) -> int | None:
        while self._next[node] < self._bounds[node + 1]:
            arc = self._next[node]
            self._next[node] += 1
            if self._row[arc] not in self._used:
                return arc
        return None
