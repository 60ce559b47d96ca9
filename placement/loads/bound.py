"""The certified lower bound: bytes that no plan which leaves the brokers as close to their bands can do without.

Two counts, each valid for itself, and the larger is taken:

- lost replicas are copied, and a broker above its band gives up enough replicas, at least as many bytes as a
  knapsack that may cut one of them;
- a broker below its band receives enough, again at least the bytes of such a knapsack over all partitions.

Leaderships move for free, so only disk, bytes in and replicas are counted. Where a plan leaves a broker outside its
band, the band is as wide as that for the bound. Whole numbers throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from placement.arrays import BoolArray, Float64Array, Int64Array
from placement.loads.model import WEIGHTS

_COUNTED: Final = tuple(WEIGHTS.index(name) for name in ("disk", "bytes_in", "replicas"))
_DISK: Final = WEIGHTS.index("disk")


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Replicas that could leave: row and usable broker of each, int64, shape ``(m,)`` each, sorted by broker."""

    row: Int64Array
    broker: Int64Array


def shed(held: Held, follower: Int64Array, load: Float64Array, high: Float64Array) -> int:
    """Bytes that brokers above their bands give up.

    Args:
        held: what they can give up.
        follower: int64, shape ``(weights, P)``.
        load, high: float64, shape ``(weights, usable)``: before, and the top of the band.
    """
    bounds = np.searchsorted(held.broker, np.arange(load.shape[1] + 1))
    result = 0
    for broker in np.flatnonzero((load > high)[list(_COUNTED)].any(axis=0)).tolist():
        rows = held.row[bounds[broker] : bounds[broker + 1]]
        result += max(_lightest(follower, rows, k, _need(load[k, broker], high[k, broker])) for k in _COUNTED)
    return result


def received(able: BoolArray, follower: Int64Array, load: Float64Array, low: Float64Array) -> int:
    """Bytes that brokers below their bands get; ``able`` has the partitions that can be copied, shape ``(P,)``."""
    needs = {k: [_need(low[k, b], load[k, b]) for b in range(load.shape[1])] for k in _COUNTED}
    rows = np.flatnonzero(able)
    best = [0] * load.shape[1]
    for k, need in needs.items():
        if any(need):
            knapsack = _Knapsack(follower, rows, k)
            best = [max(one, knapsack.lightest(n)) for one, n in zip(best, need, strict=True)]
    return sum(best)


def _need(above: float, below: float) -> int:
    return max(int(above - below), 0) if np.isfinite(above) and np.isfinite(below) else 0


def _lightest(follower: Int64Array, rows: Int64Array, k: int, need: int) -> int:
    return _Knapsack(follower, rows, k).lightest(need) if need else 0


class _Knapsack:
    """Partitions by bytes for each unit of a weight; the last one taken may be cut."""

    __slots__ = ("_bytes", "_sum", "_total", "_weight")

    def __init__(self, follower: Int64Array, rows: Int64Array, k: int) -> None:
        rows = rows[follower[k, rows] > 0]
        size, weight = follower[_DISK, rows], follower[k, rows]
        order = np.argsort(size / weight, kind="stable")
        self._bytes, self._weight = size[order], weight[order]
        self._sum, self._total = np.cumsum(self._weight), np.cumsum(self._bytes)

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
