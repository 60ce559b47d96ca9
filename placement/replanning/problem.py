"""What a replanning run may change: the open rows, what must stay in them, and their rack windows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from placement.arrays import BoolArray, Int64Array
from placement.fleet import Fleet, count_in_rack
from placement.model import NO_BROKER, Int32Array
from placement.replanning.targets import Room
from placement.replanning.window import fewest, highest, lowest, most


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
        confined: bool, shape ``(q,)``: rows that only give replicas up, so that they stay on brokers that they have.
        hosts: int32, shape ``(q, W)``: the brokers that confined rows may stay on, -1 in other rows.
        short: int64, shape ``(P,)``: replicas that each row of the layout must do without, as too few brokers can take
            them; ``factor`` is without them.
        stranded: int32, shape ``(q, W)``: the lost replicas that stay in the list for that reason.
        closed: int64, shape ``(present,)``: replicas on each broker in rows that are not open.
        layout: int32, shape ``(P, R)``: every row before, as broker indices.
        layout_topic: int32, shape ``(P,)``: topic index of every row, ascending.
        barred: bool, shape ``(topics, brokers)``: usable brokers that each topic is kept off; no rows where none is.
        closed_seats: int64, shape ``(topics, racks)``: how many of each rack these are; no rows where none is.
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
    confined: BoolArray
    hosts: Int32Array
    short: Int64Array
    stranded: Int32Array
    closed: Int64Array
    layout: Int32Array
    layout_topic: Int32Array
    barred: BoolArray
    closed_seats: Int64Array
    _some_pinned: bool = field(init=False)
    _some_held: bool = field(init=False)
    some_confined: bool = field(init=False)

    def __post_init__(self) -> None:
        """Note what occurs at all: windows are asked for in every step, and most problems have none of it."""
        object.__setattr__(self, "_some_pinned", bool(self.pinned.any()))
        object.__setattr__(self, "_some_held", bool((self.start >= self.fleet.usable).any()))
        object.__setattr__(self, "some_confined", bool(self.confined.any()))

    def open_to(self, rows: Int64Array, broker: Int32Array | Int64Array) -> BoolArray:
        """Whether the topic of each row may be on each broker; arguments broadcast."""
        if not self.barred.size:
            return np.ones(np.broadcast_shapes(rows.shape, broker.shape), np.bool_)
        return np.asarray(~self.barred[self.topic[rows], broker])

    def stay(self, rows: Int64Array, rack: Int32Array) -> Int64Array:
        """Pinned replicas of each row in the given rack; arguments pair up, shape ``(m,)``."""
        if not self._some_pinned:
            return np.zeros(rows.size, np.int64)
        return count_in_rack(self.fleet, np.where(self.pinned[rows], self.start[rows], NO_BROKER), rack)

    def size(self, rows: Int64Array, rack: Int32Array) -> Int64Array:
        """Replicas of each row that the given rack can hold; arguments pair up, shape ``(m,)``."""
        fleet = self.fleet
        size = fleet.rack_size.take(rack)
        if self.barred.size:
            size -= self.closed_seats[self.topic[rows], rack]
        if self._some_held:
            size += count_in_rack(fleet, np.where(self.start[rows] >= fleet.usable, self.start[rows], NO_BROKER), rack)
        if self.some_confined:
            at = np.flatnonzero(self.confined[rows])
            size[at] = count_in_rack(fleet, self.hosts[rows[at]], rack[at])
        return size

    def dropped(self) -> BoolArray:
        """Rows that give up replicas which they could have kept, bool, shape ``(q,)``."""
        could = (self.origin >= 0) & (self.origin < self.fleet.present)
        return np.asarray((could & (self.start == NO_BROKER)).any(axis=1))

    def highest(self, rows: Int64Array, rack: Int32Array) -> Int64Array:
        """Most replicas of each row in the given rack."""
        return highest(self.level[rows], self.size(rows, rack), self.stay(rows, rack))

    def lowest(self, rows: Int64Array, rack: Int32Array) -> Int64Array:
        """Fewest replicas of each row in the given rack."""
        return lowest(self.level[rows], self.size(rows, rack), self.stay(rows, rack))

    def most(self, rows: Int64Array, rack: Int32Array) -> Int64Array:
        """Most replicas of each row in the given rack, unless more of them cannot leave."""
        return most(self.level[rows], self.size(rows, rack))

    def fewest(self, rows: Int64Array, rack: Int32Array) -> Int64Array:
        """Fewest replicas of each row in the given rack, unless more of them cannot leave."""
        return fewest(self.level[rows], self.size(rows, rack))

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
        count = np.bincount(self.level[~self.confined])[:, None]
        level = np.arange(count.size)[:, None]
        none = np.zeros((1, 1), np.int64)
        low = (count * lowest(level, size, none)).sum(axis=0)
        high = (count * highest(level, size, none)).sum(axis=0)
        row, rack = self._special_pairs()
        own_level, free = self.level[row], np.zeros(1, np.int64)
        held = count_in_rack(self.fleet, np.where(self.start[row] >= self.fleet.usable, self.start[row], -1), rack)
        counted = ~self.confined[row]
        np.add.at(low, rack, self.lowest(row, rack) - held - counted * lowest(own_level, size[rack], free))
        np.add.at(high, rack, self.highest(row, rack) - held - counted * highest(own_level, size[rack], free))
        return low, high

    def _special_pairs(self) -> tuple[Int64Array, Int32Array]:
        """Each (row, rack), once, in which something is pinned, a confined row has a broker, or a broker is barred."""
        fleet = self.fleet
        pinned = np.where(self.pinned, self.start, NO_BROKER)
        broker = np.concatenate([pinned, self.hosts], axis=1) if self.some_confined else pinned
        rack = np.where(broker == NO_BROKER, NO_BROKER, fleet.rack[broker])
        again = np.zeros(rack.shape, np.bool_)
        for slot in range(1, rack.shape[1]):
            again[:, slot] = (rack[:, :slot] == rack[:, slot : slot + 1]).any(axis=1)
        row, slot_of = np.nonzero((rack != NO_BROKER) & ~again)
        if not self.barred.size:
            return row, rack[row, slot_of]
        special = self.closed_seats[self.topic] > 0
        special[row, rack[row, slot_of]] = True
        row, of = np.nonzero(special)
        return row, of.astype(np.int32)
