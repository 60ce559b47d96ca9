"""Fill: survivors lead what lost its leader, and every vacancy gets a broker, the largest partitions first.

Goal: the least cost of the brokers after each step, then the coolest broker.
Constraints: distinct brokers in a row, the rack window of every row.
Cost: O(brokers) for each vacancy.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from placement.arrays import BoolArray, Float64Array, Int64Array
from placement.model import NO_BROKER
from placement.replanning.by_load.layout import Layout

_COST: Final = 100.0


class NoBrokerError(Exception):
    """A row finds no broker: racks leave it none but those that its topic is kept off."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def fill(layout: Layout) -> None:
    """Elect leaders where there are none, and place every vacancy of the open rows.

    Raises:
        NoBrokerError: a vacancy cannot be placed.
    """
    _promote(layout)
    state = layout.state
    row, slot = state.vacancies()
    full = state.problem.row[row]
    order = np.lexsort((row, -layout.size[full]))
    for at in order.tolist():
        _place(layout, int(full[at]), int(slot[at]))


def _promote(layout: Layout) -> None:
    """Let the survivor lead that costs least."""
    leads = layout.state.problem.fleet.leads
    rows = np.flatnonzero((layout.lead == NO_BROKER) & ~layout.fixed)
    for row in rows[np.lexsort((rows, -layout.size[rows]))].tolist():
        able = np.array([b for b in layout.replicas[row].tolist() if b != NO_BROKER and leads[b]], np.int64)
        if able.size:
            change = (layout.leader[row] - layout.follower[row])[:, None]
            layout.set_leader(row, int(able[_price(layout, able, change).argmin()]))


def _place(layout: Layout, row: int, slot: int) -> None:
    usable = np.arange(layout.state.problem.fleet.usable)
    at = layout.open_rows(np.array([row]))
    able = usable[_accepting(layout, int(at[0]), slot)]
    if not able.size:
        raise NoBrokerError(row)
    roomy = able[layout.roomy(np.full(able.size, row), able)]
    # What is lost is placed even where no disk has room; the check of the plan says so.
    able = roomy if roomy.size else able
    leads = layout.lead[row] == NO_BROKER
    load = layout.leader[row] if leads else layout.follower[row]
    broker = int(able[_price(layout, able, load[:, None]).argmin()])
    layout.move(row, slot, broker)
    if leads:
        # The replica was booked as a follower.
        layout.set_leader(row, broker)


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
