"""Trim: replicas that need not move after all go home, the largest first.

Later steps make some earlier ones needless. A replica goes back where its partition was before if that costs the
brokers nothing.
"""

from __future__ import annotations

import numpy as np

from placement.arrays import Float64Array, Int64Array
from placement.model import NO_BROKER
from placement.replanning.by_load.layout import Layout

_SLACK = 1e-18


def trim(layout: Layout) -> bool:
    """Send home what can go; False where nothing could."""
    row, slot, home = _homeless(layout)
    order = np.lexsort((home, slot, row, -layout.size[row]))
    moved = False
    for at in order.tolist():
        moved |= _go_home(layout, int(row[at]), int(slot[at]), int(home[at]))
    return moved


def _homeless(layout: Layout) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Row, slot and home of each new replica for each usable broker that its row has left, where it may go now."""
    usable = layout.state.problem.fleet.usable
    rows, slots, homes = [], [], []
    for slot in range(layout.replicas.shape[1]):
        row = np.flatnonzero((layout.replicas[:, slot] != NO_BROKER) & layout.movable[:, slot])
        row = row[layout.fresh(row, layout.replicas[row, slot])]
        for column in range(layout.origin.shape[1]):
            home = layout.origin[row, column]
            able = (home >= 0) & (home < usable) & ~layout.hosts(row, home)
            rows.append(row[able])
            slots.append(np.full(int(able.sum()), slot))
            homes.append(home[able].astype(np.int64))
    row, slot_, home_ = np.concatenate(rows), np.concatenate(slots), np.concatenate(homes)
    gain = _gain(layout, row, slot_, home_)
    keep = gain >= -_SLACK
    return row[keep], slot_[keep], home_[keep]


def _gain(layout: Layout, row: Int64Array, slot: Int64Array, home: Int64Array) -> Float64Array:
    field = layout.field
    source = layout.replicas[row, slot]
    load = layout.carried(row, source)
    gain = field.cost[source] - field.at(source, field.load[:, source] - load)
    return np.asarray(gain + field.cost[home] - field.at(home, field.load[:, home] + load))


def _go_home(layout: Layout, row: int, slot: int, home: int) -> bool:
    """Send one replica home if it still may and costs nothing."""
    one, place, broker = np.array([row]), np.array([slot]), np.array([home])
    if not layout.fresh(one, layout.replicas[one, place])[0] or layout.hosts(one, broker)[0]:
        return False
    if _gain(layout, one, place, broker)[0] < -_SLACK:
        return False
    if not layout.state.accepts(layout.open_rows(one), place, broker)[0]:
        return False
    layout.move(row, slot, home)
    return True
