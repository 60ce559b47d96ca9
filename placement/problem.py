"""What a replanning run may change: the open rows, what must stay in them, and their rack windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from placement.arrays import BoolArray, Int64Array
from placement.drop import drop
from placement.errors import InvalidReplicationFactorError
from placement.fleet import Fleet, count_in_rack
from placement.model import NO_BROKER, Assignment, Int32Array
from placement.targets import Room
from placement.terms import Terms
from placement.window import highest, levels, lowest

_CELLS = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Open rows in columns; brokers are indices into the fleet, -1 where there is none.

    Attributes:
        fleet: the brokers.
        row: int64, shape ``(q,)``: place of each open row in the layout, ascending.
        topic: int32, shape ``(q,)``: topic index.
        factor: int64, shape ``(q,)``: replicas that the partition must end with.
        origin: int32, shape ``(q, W)``: the replicas before.
        home: int32, shape ``(q, W)``: brokers that the partition may return to at a small bonus.
        start: int32, shape ``(q, W)``: the replicas that are left when lost and dropped ones are gone.
        pinned: bool, shape ``(q, W)``: replicas of ``start`` that cannot leave.
        level: int64, shape ``(q,)``: level of the rack window.
        closed: int64, shape ``(present,)``: replicas on each broker in rows that are not open.
        layout: int32, shape ``(P, R)``: every row before, as broker indices.
        layout_topic: int32, shape ``(P,)``: topic index of every row, ascending.
    """

    fleet: Fleet
    row: Int64Array
    topic: Int32Array
    factor: Int64Array
    origin: Int32Array
    home: Int32Array
    start: Int32Array
    pinned: BoolArray
    level: Int64Array
    closed: Int64Array
    layout: Int32Array
    layout_topic: Int32Array

    def stay(self, rows: Int64Array, rack: Int32Array) -> Int64Array:
        """Pinned replicas of each row in the given rack; arguments pair up, shape ``(m,)``."""
        return count_in_rack(self.fleet, np.where(self.pinned[rows], self.start[rows], NO_BROKER), rack)

    def size(self, rows: Int64Array, rack: Int32Array) -> Int64Array:
        """Replicas of each row that the given rack can hold; arguments pair up, shape ``(m,)``."""
        held = np.where(self.start[rows] >= self.fleet.usable, self.start[rows], NO_BROKER)
        return self.fleet.rack_size[rack] + count_in_rack(self.fleet, held, rack)

    def highest(self, rows: Int64Array, rack: Int32Array) -> Int64Array:
        """Most replicas of each row in the given rack."""
        return highest(self.level[rows], self.size(rows, rack), self.stay(rows, rack))

    def lowest(self, rows: Int64Array, rack: Int32Array) -> Int64Array:
        """Fewest replicas of each row in the given rack."""
        return lowest(self.level[rows], self.size(rows, rack), self.stay(rows, rack))

    def room(self) -> Room:
        """The bounds that any plan has to keep, over usable brokers."""
        fleet = self.fleet
        n, racks = fleet.usable, fleet.rack_size.size
        fixed = np.bincount(self.start[self.pinned], minlength=fleet.present)
        low = (self.closed + fixed)[:n]
        closed = np.bincount(fleet.rack[:n], weights=self.closed[:n], minlength=racks).astype(np.int64)
        rack_low, rack_high = self._rack_interval()
        return Room(
            capacity=fleet.capacity[:n],
            low=low,
            high=low + self.row.size - fixed[:n],
            rack=fleet.rack[:n],
            rack_low=closed + rack_low,
            rack_high=closed + rack_high,
            total=int(self.closed[:n].sum() + self.factor.sum() - fixed[n:].sum()),
        )

    def _rack_interval(self) -> tuple[Int64Array, Int64Array]:
        """Fewest and most replicas of open rows on the usable brokers of each rack, int64, shape ``(racks,)``."""
        size = self.fleet.rack_size
        count = np.bincount(self.level)[:, None]
        level = np.arange(count.size)[:, None]
        none = np.zeros((1, 1), np.int64)
        low = (count * lowest(level, size, none)).sum(axis=0)
        high = (count * highest(level, size, none)).sum(axis=0)
        row, rack = self._pinned_pairs()
        stay, room, pinned_level = self.stay(row, rack), self.size(row, rack), self.level[row]
        held = room - size[rack]
        free = np.zeros(1, np.int64)
        more_low = lowest(pinned_level, room, stay) - held - lowest(pinned_level, size[rack], free)
        more_high = highest(pinned_level, room, stay) - held - highest(pinned_level, size[rack], free)
        np.add.at(low, rack, more_low)
        np.add.at(high, rack, more_high)
        return low, high

    def _pinned_pairs(self) -> tuple[Int64Array, Int32Array]:
        """Each (row, rack) in which something is pinned, once."""
        rack = np.where(self.pinned, self.fleet.rack[self.start], NO_BROKER)
        again = np.zeros(rack.shape, np.bool_)
        for slot in range(1, rack.shape[1]):
            again[:, slot] = (rack[:, :slot] == rack[:, slot : slot + 1]).any(axis=1)
        row, slot_of = np.nonzero((rack != NO_BROKER) & ~again)
        return row, rack[row, slot_of]


def pose(
    assignment: Assignment, fleet: Fleet, terms: Terms, home: Assignment | None, *, budget: int | None = None
) -> Problem:
    """Work out which rows are open and what must stay in them.

    With a budget, rows whose missing replicas it does not cover stay closed.

    Raises:
        InvalidReplicationFactorError: a partition must end with more replicas than brokers can take.
    """
    index = fleet.index_of(assignment.replicas)
    factor = _factors(assignment, terms.replication_factors)
    changed = (index >= fleet.present).any(axis=1) | (factor != assignment.replication_factor)
    is_open = changed if terms.mode == "heal" else np.ones(len(assignment), np.bool_)
    if terms.exclude_topics:
        is_open &= ~np.array([t in terms.exclude_topics for t in assignment.topics], np.bool_)[assignment.topic_index]
    if budget is not None:
        is_open = _affordable(index, fleet, factor, is_open, budget)
    row = np.flatnonzero(is_open)
    origin = _widen(index[row], int(factor[row].max(initial=0)))
    counts = np.bincount(index[index != NO_BROKER], minlength=fleet.ids.size)[: fleet.present]
    start = drop(fleet, np.where(origin < fleet.present, origin, NO_BROKER).astype(np.int32), factor[row], counts)
    pinned = start >= (fleet.usable if terms.mode == "rebalance" else 0)
    _check_factors(fleet, factor[row], start)
    opened = origin[origin != NO_BROKER]
    return Problem(
        fleet=fleet,
        row=row,
        topic=assignment.topic_index[row],
        factor=factor[row],
        origin=origin,
        home=_homes(assignment, fleet, row, home),
        start=start,
        pinned=pinned,
        level=_row_levels(fleet, factor[row], start, pinned),
        closed=counts - np.bincount(opened[opened < fleet.present], minlength=fleet.present),
        layout=index,
        layout_topic=assignment.topic_index,
    )


def _affordable(index: Int32Array, fleet: Fleet, factor: Int64Array, is_open: BoolArray, budget: int) -> BoolArray:
    """Open rows whose missing replicas fit into the budget, those with the fewest replicas left first."""
    left = ((index != NO_BROKER) & (index < fleet.present)).sum(axis=1)
    missing = np.where(is_open, np.maximum(factor - left, 0), 0)
    needy = np.flatnonzero(missing)
    order = needy[np.argsort(left[needy], kind="stable")]
    result = is_open.copy()
    result[order[np.cumsum(missing[order]) > budget]] = False
    return result


def _factors(assignment: Assignment, replication_factors: Mapping[str, int]) -> Int64Array:
    factor = assignment.replication_factor.astype(np.int64)
    if replication_factors:
        wanted = np.array([replication_factors.get(t, 0) for t in assignment.topics], np.int64)
        asked = np.array([t in replication_factors for t in assignment.topics], np.bool_)
        factor = np.where(asked[assignment.topic_index], wanted[assignment.topic_index], factor)
    return factor


def _check_factors(fleet: Fleet, factor: Int64Array, start: Int32Array) -> None:
    if not factor.size:
        return
    available = fleet.usable + (start >= fleet.usable).sum(axis=1)
    wrong = np.flatnonzero((factor < 1) | (factor > available))
    if wrong.size:
        value, brokers = int(factor[wrong[0]]), int(available[wrong[0]])
        problem = "must be at least 1" if value < 1 else f"is above the {brokers} usable brokers"
        raise InvalidReplicationFactorError(
            f"replication factor {value} {problem}", replication_factor=value, brokers=brokers
        )


def _widen(index: Int32Array, width: int) -> Int32Array:
    if index.shape[1] >= width:
        return index
    padded = np.full((index.shape[0], width), NO_BROKER, np.int32)
    padded[:, : index.shape[1]] = index
    return padded


def _row_levels(fleet: Fleet, factor: Int64Array, start: Int32Array, pinned: BoolArray) -> Int64Array:
    racks = fleet.rack_size.size
    none = np.zeros((1, racks), np.int64)
    result = np.zeros(factor.size, np.int64)
    for value in np.unique(factor).tolist():
        result[factor == value] = levels(np.array([value]), fleet.rack_size, none)[0]
    special = np.flatnonzero(pinned.any(axis=1))
    step = max(1, _CELLS // racks)
    for first in range(0, special.size, step):
        rows = special[first : first + step]
        replicas = start[rows]
        stay = _rack_counts(fleet, np.where(pinned[rows], replicas, NO_BROKER), racks)
        held = _rack_counts(fleet, np.where(replicas >= fleet.usable, replicas, NO_BROKER), racks)
        result[rows] = levels(factor[rows], fleet.rack_size + held, stay)
    return result


def _rack_counts(fleet: Fleet, replicas: Int32Array, racks: int) -> Int64Array:
    row, slot = np.nonzero(replicas != NO_BROKER)
    cell = row * racks + fleet.rack[replicas[row, slot]]
    return np.bincount(cell, minlength=replicas.shape[0] * racks).reshape(-1, racks)


def _homes(assignment: Assignment, fleet: Fleet, row: Int64Array, home: Assignment | None) -> Int32Array:
    """The usable brokers that held each open row according to ``home``, where it is known there."""
    if home is None or not len(home):
        return np.full((row.size, 1), NO_BROKER, np.int32)
    rank = {name: i for i, name in enumerate(home.topics)}
    recode = np.array([rank.get(name, -1) for name in assignment.topics], np.int64)
    key = recode[assignment.topic_index[row]] << 32 | assignment.partition[row].astype(np.int64)
    keys = home.topic_index.astype(np.int64) << 32 | home.partition.astype(np.int64)
    place = np.minimum(np.searchsorted(keys, key), keys.size - 1)
    known = np.isin(home.replicas, fleet.ids[: fleet.usable])
    usable = fleet.index_of(np.where(known, home.replicas, NO_BROKER).astype(np.int32))
    return np.where((keys[place] == key)[:, None], usable[place], NO_BROKER).astype(np.int32)
