"""The certified lower bound: bytes that no plan which leaves the brokers as close to their bands can do without.

Two counts, each valid for itself, and the larger is taken:

- lost replicas are copied, and a broker above its band gives up enough replicas, at least as many bytes as the
  lightest knapsack of them, whole but for one where a short search does not settle it;
- a broker below its band receives enough, at least the bytes of a knapsack over all partitions that may cut one.

Where each rack must end with a certain number of replicas of every partition, as with three racks and three replicas,
what leaves a broker is copied to one of the same rack. Both counts are then taken for each rack.

Leaderships move for free, so only disk, bytes in and replicas are counted. Where a plan leaves a broker outside its
band, the band is as wide as that for the bound. Whole numbers throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

import numpy as np

from placement.arrays import BoolArray, Float64Array, Int64Array
from placement.loads.model import WEIGHTS
from placement.model import Int32Array

_COUNTED: Final = tuple(WEIGHTS.index(name) for name in ("disk", "bytes_in", "replicas"))
_DISK: Final = WEIGHTS.index("disk")
_CASES: Final = 16


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Replicas that could leave: row and usable broker of each, int64, shape ``(m,)`` each, sorted by broker."""

    row: Int64Array
    broker: Int64Array


def fewest_bytes(gives: Int64Array, gets: Int64Array, owed: Int64Array, group: Int32Array | Int64Array) -> int:
    """Bytes that are copied within groups of brokers that exchange none.

    Args:
        gives, gets: what brokers give up and get, shape ``(usable,)``.
        owed: what groups end with more than they begin with, shape ``(groups,)``.
        group: of each usable broker.
    """
    out, into = np.zeros_like(owed), np.zeros_like(owed)
    np.add.at(out, group, gives)
    np.add.at(into, group, gets)
    return int(np.maximum(np.maximum(owed + out, into), 0).sum())


def shed(held: Held, follower: Int64Array, load: Float64Array, high: Float64Array) -> Int64Array:
    """Bytes that brokers above their bands give up, int64, shape ``(usable,)``.

    Args:
        held: what they can give up.
        follower: int64, shape ``(weights, P)``.
        load, high: float64, shape ``(weights, usable)``: before, and the top of the band.
    """
    bounds = np.searchsorted(held.broker, np.arange(load.shape[1] + 1))
    result = np.zeros(load.shape[1], np.int64)
    for broker in np.flatnonzero((load > high)[list(_COUNTED)].any(axis=0)).tolist():
        rows = held.row[bounds[broker] : bounds[broker + 1]]
        result[broker] = max(_lightest(follower, rows, k, _need(load[k, broker], high[k, broker])) for k in _COUNTED)
    return result


def received(able: BoolArray, follower: Int64Array, load: Float64Array, low: Float64Array) -> Int64Array:
    """Bytes that brokers below their bands get, int64, shape ``(usable,)``.

    ``able`` has the partitions that can be copied, shape ``(P,)``.
    """
    needs = {k: [_need(low[k, b], load[k, b]) for b in range(load.shape[1])] for k in _COUNTED}
    rows = np.flatnonzero(able)
    best = [0] * load.shape[1]
    for k, need in needs.items():
        if any(need):
            knapsack = _Knapsack(follower, rows, k)
            best = [max(one, knapsack.lightest(n)) for one, n in zip(best, need, strict=True)]
    return np.array(best, np.int64)


def _need(above: float, below: float) -> int:
    return max(int(above - below), 0) if np.isfinite(above) and np.isfinite(below) else 0


def _lightest(follower: Int64Array, rows: Int64Array, k: int, need: int) -> int:
    if not need:
        return 0
    knapsack = _Knapsack(follower, rows, k)
    # All have the same bytes for each byte of disk, so that leaving one out proves nothing.
    return knapsack.lightest(need) if k == _DISK else knapsack.whole(need)


class _Knapsack:
    """Partitions by bytes for each unit of a weight; the last one taken may be cut."""

    __slots__ = ("_bytes", "_sum", "_total", "_weight")

    def __init__(self, follower: Int64Array, rows: Int64Array, k: int) -> None:
        rows = rows[follower[k, rows] > 0]
        size, weight = follower[_DISK, rows], follower[k, rows]
        order = np.argsort(size / weight, kind="stable")
        self._bytes, self._weight = size[order], weight[order]
        self._sum, self._total = np.cumsum(self._weight), np.cumsum(self._bytes)

    def whole(self, need: int) -> int:
        """The fewest bytes that whole partitions need for so much, or fewer; all there are where they do not do.

        Branch and bound: the partition that would be cut is taken, or left out; the lightest case goes first. Source:
        S. Martello, P. Toth, Knapsack Problems (1990), chapter 2.
        """
        cases: list[tuple[int, int, tuple[int, ...], int]] = []
        self._case(cases, need, (), 0)
        for _ in range(_CASES):
            if not cases:
                return int(self._total[-1]) if self._total.size else 0
            fewest, cut, decided, taken = cases[0]
            if cut < 0:
                return fewest
            heappop(cases)
            self._case(cases, need, (*decided, cut), taken)
            self._case(cases, need, (*decided, cut), taken | 1 << len(decided))
        return cases[0][0] if cases else int(self._total[-1])

    def _case(
        self, cases: list[tuple[int, int, tuple[int, ...], int]], need: int, decided: tuple[int, ...], taken: int
    ) -> None:
        """Add the fewest bytes where some partitions are decided on, and the one cut; nothing where they do not do."""
        inside = [at for turn, at in enumerate(decided) if taken >> turn & 1]
        rest = need - int(self._weight[inside].sum())
        fewest = int(self._bytes[inside].sum())
        if rest <= 0:
            heappush(cases, (fewest, -1, decided, taken))
            return
        free = np.ones(self._weight.size, np.bool_)
        free[list(decided)] = False
        place = np.flatnonzero(free)
        sums = np.cumsum(self._weight[place])
        at = int(np.searchsorted(sums, rest))
        if at == sums.size:
            return
        fewest += int(self._bytes[place[:at]].sum())
        short = rest - (int(sums[at - 1]) if at else 0)
        cut, weight = int(place[at]), int(self._weight[place[at]])
        fewest -= -int(self._bytes[cut]) * short // weight
        heappush(cases, (fewest, -1 if short == weight else cut, decided, taken))

    def lightest(self, need: int) -> int:
        """The fewest bytes that make up so much of the weight; all there are where they do not."""
        if not need or not self._sum.size:
            return 0
        at = int(np.searchsorted(self._sum, need))
        if at == self._sum.size:
            return int(self._total[-1])
        rest = need - (int(self._sum[at - 1]) if at else 0)
        cut = int(self._bytes[at]) * rest // int(self._weight[at])
        return (int(self._total[at - 1]) if at else 0) + cut
