"""Leaderships: who leads what, which costs no bytes.

A broker outside its band gives a leadership to another replica, or takes one: the one that gains most. Where none gains
by itself, it gives one to a broker and takes another from the same one, so that counts stay and loads shift.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from placement.arrays import Float64Array, Int64Array
from placement.loads.model import LED
from placement.model import NO_BROKER, Int32Array
from placement.replanning.by_load.layout import Layout

_FLIPPED: Final = 8
_TRADED: Final = 16


def lead_better(layout: Layout, broker: int) -> bool:
    """Change leaderships of a broker, those that gain the most; False where none gains."""
    # Only a broker that is outside its band in what leaders carry gets closer to it so.
    if not layout.field.slope(broker)[list(LED)].any():
        return False
    row, giver, taker = _flips(layout, broker)
    return _flip(layout, row, giver, taker) or _trade(layout, broker, row, giver, taker)


def _flips(layout: Layout, broker: int) -> tuple[Int64Array, Int32Array, Int32Array]:
    """Rows whose leadership the broker could give or take, who gives it and who takes it."""
    usable = layout.state.problem.fleet.usable
    row = layout.split(layout.members(broker))[0]
    # Held brokers have no share, so what they would take, or give, is not theirs to even out.
    row = row[~layout.fixed[row] & (layout.lead[row] != NO_BROKER) & (layout.lead[row] < usable)]
    led = layout.lead[row] == broker
    out, into = row[led], row[~led]
    rows, givers, takers = [into], [layout.lead[into]], [np.full(into.size, broker, np.int32)]
    for column in range(layout.replicas.shape[1]):
        other = layout.replicas[out, column]
        able = (other != NO_BROKER) & (other != broker) & (other < usable)
        rows.append(out[able])
        givers.append(np.full(int(able.sum()), broker, np.int32))
        takers.append(other[able])
    return np.concatenate(rows), np.concatenate(givers), np.concatenate(takers)


def _flip(layout: Layout, row: Int64Array, giver: Int32Array, taker: Int32Array) -> bool:
    """Take the best of the changes and some that are nearly as good; False where none gains."""
    gain = _gains(layout, giver, taker, (layout.leader[row] - layout.follower[row]).T)
    best = np.flatnonzero(gain > layout.least)
    best = best[np.argsort(-gain[best], kind="stable")[:_FLIPPED]]
    for turn, at in enumerate(best.tolist()):
        one, out, into = int(row[at]), int(giver[at]), int(taker[at])
        # Gains shrink as others are taken; once they have shrunk by half, another one may be the best.
        if turn and _gain(layout, one, out, into) < max(float(gain[at]) / 2, layout.least):
            break
        layout.set_leader(one, into)
    return bool(best.size)


def _gains(layout: Layout, giver: Int32Array, taker: Int32Array, change: Float64Array) -> Float64Array:
    """What is gained where one broker carries less and another more by ``change``, shape ``(weights, m)``."""
    field = layout.field
    gain = field.cost[giver] - field.at(giver, field.load[:, giver] - change)
    return np.asarray(gain + field.cost[taker] - field.at(taker, field.load[:, taker] + change))


def _gain(layout: Layout, row: int, giver: int, taker: int) -> float:
    """What :func:`_gains` says of one leadership."""
    field = layout.field
    change = layout.leader[row] - layout.follower[row]
    gain = float(field.cost[giver]) - field.alone(giver, (field.load[:, giver] - change).tolist())[0]
    return gain + float(field.cost[taker]) - field.alone(taker, (field.load[:, taker] + change).tolist())[0]


def _trade(layout: Layout, broker: int, row: Int64Array, giver: Int32Array, taker: Int32Array) -> bool:
    """Give a leadership and take one from the same broker, the pair that gains most; False where none gains."""
    out, into = np.flatnonzero(giver == broker), np.flatnonzero(taker == broker)
    out, into = _spread(layout, broker, row, out, taker[out]), _spread(layout, broker, row, into, giver[into])
    first = np.searchsorted(giver[into], taker[out], side="left")
    count = np.searchsorted(giver[into], taker[out], side="right") - first
    give = np.repeat(out, count)
    rank = np.arange(give.size) - np.repeat(np.cumsum(count) - count, count)
    take = into[np.repeat(first, count) + rank]
    if not give.size:
        return False
    change = layout.leader - layout.follower
    gain = _gains(layout, giver[give], taker[give], (change[row[give]] - change[row[take]]).T)
    best = int(gain.argmax())
    if gain[best] <= layout.least:
        return False
    layout.set_leader(int(row[give[best]]), int(taker[give[best]]))
    layout.set_leader(int(row[take[best]]), broker)
    return True


def _spread(layout: Layout, broker: int, row: Int64Array, at: Int64Array, partner: Int32Array) -> Int64Array:
    """Changes by partner, at most so many of each, from those that weigh much for the broker to those that do not."""
    slope = layout.field.slope(broker)
    change = layout.leader[row[at]] - layout.follower[row[at]]
    value = change[:, 0] * slope[0]
    for k in range(1, slope.size):
        value = value + change[:, k] * slope[k]
    order = np.lexsort((at, value, partner))
    ordered = partner[order]
    first, last = (np.searchsorted(ordered, ordered, side=side) for side in ("left", "right"))
    step = -(-(last - first) // _TRADED)
    return np.asarray(at[order[(np.arange(order.size) - first) % step == 0]])
