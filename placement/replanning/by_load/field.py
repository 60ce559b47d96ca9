"""How far brokers are from their bands, as one number that a step can lower.

A broker costs the sum over weights of (distance outside the band / share)^2, and much more above a hard limit. Loads
are whole numbers in float64 below 2^53, and every sum runs in one order, so that all machines take the same steps.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from placement.arrays import Float64Array, Int64Array
from placement.model import Int32Array
from placement.replanning.by_load.share import Share

_HARD: Final = 1e4
_DIGITS: Final = 12


class Field:
    """Loads of the brokers and what they cost.

    Attributes:
        band: the shares and what is allowed around them.
        load: float64, shape ``(weights, present)``.
        cost: float64, shape ``(present,)``.
    """

    __slots__ = ("_edges", "_per_share", "band", "cost", "load")

    def __init__(self, band: Share, load: Float64Array, stress: Float64Array | None = None) -> None:
        """Begin with loads; ``stress``, shape ``(weights,)``, makes distances in some weights count for more."""
        self.band = band
        self.load = load
        self._per_share = 1.0 / np.maximum(band.share, 1.0)
        if stress is not None:
            self._per_share *= stress[:, None]
        self._edges = np.stack([band.low, band.high, band.limit, self._per_share]).transpose(2, 1, 0).tolist()
        self.cost = self.at(np.arange(load.shape[1]), load)

    def at(self, broker: Int64Array | Int32Array | int, load: Float64Array) -> Float64Array:
        """What brokers would cost with other loads; shapes ``(m,)`` and ``(weights, m)``, or one broker for all."""
        distance, over = self._outside(broker, load)
        return _summed(distance * distance + _HARD * (over * over))

    def near(self, broker: Int64Array | Int32Array | int, load: Float64Array) -> tuple[Float64Array, Float64Array]:
        """What brokers would cost with other loads, and the plain sum of the distances; shapes as in :meth:`at`."""
        distance, over = self._outside(broker, load)
        return _summed(distance * distance + _HARD * (over * over)), _summed(distance + _HARD * over)

    def _outside(self, broker: Int64Array | Int32Array | int, load: Float64Array) -> tuple[Float64Array, Float64Array]:
        """The distance outside the band and above the limit, per share."""
        band, shape = self.band, (slice(None), broker, None) if isinstance(broker, int) else (slice(None), broker)
        outside = np.maximum(band.low[shape] - load, load - band.high[shape])
        per = self._per_share[shape]
        return np.maximum(outside, 0.0) * per, np.maximum(load - band.limit[shape], 0.0) * per

    def slope(self, broker: int) -> Float64Array:
        """By how much the broker's cost grows with each weight, shape ``(weights,)``; negative below the band."""
        band, load, per = self.band, self.load[:, broker], self._per_share[:, broker]
        above = np.maximum(load - band.high[:, broker], 0.0) + _HARD * np.maximum(load - band.limit[:, broker], 0.0)
        return np.asarray(2 * (above - np.maximum(band.low[:, broker] - load, 0.0)) * per * per)

    def heat(self, which: Float64Array) -> Float64Array:
        """Load per share of each broker in the weights that count, shapes ``(weights,)`` and ``(present,)``."""
        return _summed(self.load * self._per_share * which[:, None])

    def alone(self, broker: int, load: list[float]) -> tuple[float, float]:
        """What :meth:`near` says of one broker, to the last bit; six numbers are no work for arrays."""
        total = far = 0.0
        for now, (low, high, limit, per) in zip(load, self._edges[broker], strict=True):
            outside, excess = max(low - now, now - high), now - limit
            if outside > 0 or excess > 0:
                distance, over = max(outside, 0.0) * per, max(excess, 0.0) * per
                total += distance * distance + _HARD * (over * over)
                far += distance + _HARD * over
        return total, far

    def total(self) -> float:
        """What all brokers cost, rounded, so that what sums round to makes no difference."""
        return round(float(np.cumsum(self.cost)[-1]), _DIGITS)

    def add(self, broker: int, load: Float64Array) -> None:
        """Give a broker more, shape ``(weights,)``, or less."""
        after = self.load[:, broker] + load
        self.load[:, broker] = after
        self.cost[broker] = self.alone(broker, after.tolist())[0]


def _summed(matrix: Float64Array) -> Float64Array:
    """The sum of the rows, first to last."""
    result: Float64Array = matrix[0].copy()
    for row in matrix[1:]:
        result += row
    return result
