"""Budget: the targets that a limited number of moves serves best.

Goal: the least sum of load^2 / capacity that so many moves can reach.
Method: a move takes the last unit of one broker and gives another one more; it gains the difference of their prices.
Cut units from the most loaded brokers and fill the least loaded, both in order of price, and keep the pairs that gain
the most. Racks that cannot exchange replicas with others are paired within themselves first.
Bound: with all brokers in one group no choice of so many moves gains more, whatever the racks allow.
"""

from __future__ import annotations

import numpy as np

from placement.arrays import Float64Array, Int64Array
from placement.model import Int32Array
from placement.replanning.replicas.seats import rank_in_group


def waterline(
    load: Int64Array, target: Int64Array, capacity: Float64Array, group: Int32Array, budget: int
) -> Int64Array:
    """Targets between the load and the best ones, int64, shape ``(n,)``.

    Args:
        load: int64, shape ``(n,)``.
        target: int64, shape ``(n,)``: the best targets without a limit; the same sum as ``load``.
        capacity: float64, shape ``(n,)``.
        group: int32, shape ``(n,)``: brokers between which replicas can move freely.
        budget: moves at most.
    """
    cut_from, cut_price = _units(load, target, capacity, -1)
    fill_to, fill_price = _units(load, target, capacity, 1)
    cut_order = np.lexsort((cut_from, -cut_price, group[cut_from]))
    fill_order = np.lexsort((fill_to, fill_price, group[fill_to]))
    cut, fill = _paired(group[cut_from[cut_order]], group[fill_to[fill_order]])
    cut, fill = cut_order[cut], fill_order[fill]
    gain = cut_price[cut] - fill_price[fill]
    best = np.argsort(-gain, kind="stable")[:budget]
    best = best[gain[best] > 0]
    result = load.copy()
    np.subtract.at(result, cut_from[cut[best]], 1)
    np.add.at(result, fill_to[fill[best]], 1)
    return result


def _units(load: Int64Array, target: Int64Array, capacity: Float64Array, sign: int) -> tuple[Int64Array, Float64Array]:
    """Brokers and prices of the units to cut (-1) or to fill (1)."""
    count = np.maximum(sign * (target - load), 0)
    broker = np.repeat(np.arange(load.size), count)
    step = rank_in_group(broker, ordered=True)
    level = load[broker] - step if sign < 0 else load[broker] + step + 1
    return broker, (2 * level - 1) / capacity[broker]


def _paired(cut_group: Int32Array, fill_group: Int32Array) -> tuple[Int64Array, Int64Array]:
    """Pair the units: within their groups in order, what is left over across them."""
    size = int(max(cut_group.max(initial=-1), fill_group.max(initial=-1))) + 1
    both = np.minimum(np.bincount(cut_group, minlength=size), np.bincount(fill_group, minlength=size))
    cut_inside = rank_in_group(cut_group, ordered=True) < both[cut_group]
    fill_inside = rank_in_group(fill_group, ordered=True) < both[fill_group]
    cut = np.concatenate([np.flatnonzero(cut_inside), np.flatnonzero(~cut_inside)])
    fill = np.concatenate([np.flatnonzero(fill_inside), np.flatnonzero(~fill_inside)])
    pairs = min(cut.size, fill.size)
    return cut[:pairs], fill[:pairs]
