"""Fill: survivors lead what lost its leader, and every vacancy gets a broker, the largest partitions first.

Goal: the least cost of the brokers after each step, then the coolest broker.
Constraints: distinct brokers in a row, the rack window of every row.
Cost: O(brokers) for each vacancy.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from placement.arrays import BoolArray, Float64Array, Int64Array
from placement.loads.model import WEIGHTS
from placement.model import NO_BROKER
from placement.replanning.by_load.layout import Layout

_COST: Final = 100.0


class NoBrokerError(Exception):
    """A row finds no broker: racks leave it none but those that its topic is kept off."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


class NoRoomError(Exception):
    """Rows for which no broker has room; ``rows`` says of each what is in the way."""

    def __init__(self, rows: dict[int, str]) -> None:
        super().__init__(rows)
        self.rows = rows


def fill(layout: Layout, *, within_limits: bool = False) -> None:
    """Elect leaders where there are none, and place every vacancy of the open rows.

    Raises:
        NoBrokerError: a vacancy cannot be placed.
        NoRoomError: ``within_limits`` some cannot; without it they are placed where they cost least.
    """
    _promote(layout, within_limits=within_limits)
    state = layout.state
    row, slot = state.vacancies()
    full = state.problem.row[row]
    order = np.lexsort((row, -layout.size[full]))
    crowded: dict[int, str] = {}
    for at in order.tolist():
        found = _place(layout, int(full[at]), int(slot[at]), within_limits=within_limits)
        if found:
            crowded.setdefault(int(full[at]), found)
    if crowded:
        raise NoRoomError(crowded)


def _promote(layout: Layout, *, within_limits: bool) -> None:
    """Let the survivor lead that costs least; where none can within its limits, what replaces the leader does."""
    leads = layout.state.problem.fleet.leads
    rows = np.flatnonzero((layout.lead == NO_BROKER) & ~layout.fixed)
    for row in rows[np.lexsort((rows, -layout.size[rows]))].tolist():
        able = np.array([b for b in layout.replicas[row].tolist() if b != NO_BROKER and leads[b]], np.int64)
        change = (layout.leader[row] - layout.follower[row])[:, None]
        if within_limits:
            able = able[_within(layout, able, change).all(axis=0)]
        if able.size:
            layout.set_leader(row, int(able[_price(layout, able, change).argmin()]))


def _place(layout: Layout, row: int, slot: int, *, within_limits: bool) -> str:
    """Place a vacancy; where no broker has room for it within limits, what is in the way instead."""
    usable = np.arange(layout.state.problem.fleet.usable)
    at = layout.open_rows(np.array([row]))
    able = usable[_accepting(layout, int(at[0]), slot)]
    if not able.size:
        raise NoBrokerError(row)
    leads = layout.lead[row] == NO_BROKER
    load = layout.leader[row] if leads else layout.follower[row]
    roomy = able[layout.roomy(np.full(able.size, row), able)]
    if within_limits:
        fits = roomy[_within(layout, roomy, load[:, None]).all(axis=0)]
        if not fits.size:
            return _in_the_way(layout, row, able, roomy, load)
        roomy = fits
    # What is lost is placed even where no disk has room; the check of the plan says so.
    able = roomy if roomy.size else able
    broker = int(able[_price(layout, able, load[:, None]).argmin()])
    layout.move(row, slot, broker)
    if leads:
        # The replica was booked as a follower.
        layout.set_leader(row, broker)
    return ""


def _within(layout: Layout, broker: Int64Array, load: Float64Array) -> BoolArray:
    """Which limits brokers keep with the load, shape ``(weights, m)``; what does not grow breaks none."""
    field = layout.field
    return np.asarray((field.load[:, broker] + load <= field.band.limit[:, broker]) | (load <= 0))


def _in_the_way(layout: Layout, row: int, able: Int64Array, roomy: Int64Array, load: Float64Array) -> str:
    """A sentence about the broker that would take the row if it had room."""
    ids, field = layout.state.problem.fleet.ids, layout.field
    if not roomy.size:
        broker = int(able[_price(layout, able, load[:, None]).argmin()])
        return f"no log_dir of broker {ids[broker]} has room for {int(layout.size[row])} bytes"
    broker = int(roomy[_price(layout, roomy, load[:, None]).argmin()])
    k = int((~_within(layout, np.array([broker]), load[:, None])[:, 0]).argmax())
    amount, most = int(field.load[k, broker] + load[k]), int(field.band.limit[k, broker])
    return f"broker {ids[broker]} would end with {WEIGHTS[k]} {amount}, above its limit of {most}"


def _accepting(layout: Layout, at: int, slot: int) -> BoolArray:
    """Usable brokers that may have the vacancy; the windows are asked once a rack."""
    state = layout.state
    fleet = state.problem.fleet
    racks = np.arange(fleet.rack_size.size, dtype=np.int32)
    rack_ok = state.admits(np.full(racks.size, at), racks)
    ok = rack_ok[fleet.rack[: fleet.usable]]
    if state.problem.confined[at]:
        ok = ok & np.isin(np.arange(fleet.usable), state.problem.hosts[at])
    held = state.current[at]
    ok[held[(held >= 0) & (held < fleet.usable)]] = False
    ok &= state.problem.open_to(np.array([at]), np.arange(fleet.usable))
    return (
        ok
        if ok.any()
        else state.accepts(np.full(fleet.usable, at), np.full(fleet.usable, slot), np.arange(fleet.usable))
    )


def _price(layout: Layout, broker: Int64Array, load: Float64Array) -> Float64Array:
    """What brokers cost more with the load, and how hot they get."""
    field = layout.field
    now = field.load[:, broker]
    share = np.maximum(field.band.share[:, broker], 1.0)
    warmer = np.zeros(broker.size)
    for k in range(now.shape[0]):
        warmer += (2 * now[k] + load[k]) * load[k] / (share[k] * share[k])
    return np.asarray(_COST * (field.at(broker, now + load) - field.cost[broker]) + warmer)
