"""The layout while it is being planned: where each open row's replicas are now, and what may move where."""

from __future__ import annotations

import numpy as np

from placement.arrays import BoolArray, Int64Array, any_in_row, count_in_row
from placement.model import NO_BROKER, Int32Array
from placement.replanning.problem import Problem


class State:
    """Working columns of one run; the only mutable value of the planner, and never seen outside it.

    Attributes:
        problem: what may change.
        current: int32, shape ``(q, W)``: broker indices now, -1 where nothing is.
        load: int64, shape ``(present,)``: replicas on each broker, open rows and closed ones.
        spread: bool, shape ``(q,)``: rows that were changed to spread their topic.
    """

    __slots__ = ("_racks", "current", "load", "problem", "spread")

    def __init__(self, problem: Problem) -> None:
        """Begin where the problem starts."""
        self.problem = problem
        self.current = problem.start.copy()
        # Slot by slot: counting along the long axis costs a fraction.
        self._racks = np.ascontiguousarray(self._rack_of(self.current).T)
        self.spread = np.zeros(problem.row.size, np.bool_)
        placed = self.current[self.current != NO_BROKER]
        self.load = problem.closed + np.bincount(placed, minlength=problem.fleet.present)

    @property
    def usable_load(self) -> Int64Array:
        """Replicas on each usable broker."""
        return self.load[: self.problem.fleet.usable]

    def missing(self) -> Int64Array:
        """Replicas that each row still needs, int64, shape ``(q,)``."""
        return np.asarray(self.problem.factor - (self.current != NO_BROKER).sum(axis=1))

    def moved(self) -> int:
        """Replicas that are where the partition was not before."""
        return int(self.new_places().sum())

    def new_places(self) -> BoolArray:
        """Places whose broker did not hold the partition before, bool, shape ``(q, W)``."""
        result = np.asarray(self.current != NO_BROKER)
        for slot in range(self.problem.origin.shape[1]):
            result &= self.current != self.problem.origin[:, slot : slot + 1]
        return np.asarray(result)

    def changed(self) -> BoolArray:
        """Rows that are not on the same brokers as before, or not yet, bool, shape ``(q,)``."""
        count = count_in_row(self.current != NO_BROKER)
        before = count_in_row(self.problem.origin != NO_BROKER)
        return np.asarray(any_in_row(self.new_places()) | (count != before))

    def vacancies(self) -> tuple[Int64Array, Int64Array]:
        """Row and slot of every empty place that must be filled, by row."""
        empty = self.current == NO_BROKER
        wanted = empty & (np.cumsum(empty, axis=1) <= self.missing()[:, None])
        row, slot = np.nonzero(wanted)
        return row, slot

    def columns(self) -> tuple[Int32Array | Int64Array, ...]:
        """All that :meth:`put` changes, for those who save it and put it back."""
        return self.current, self.load, self._racks

    def saved(self) -> tuple[Int32Array | Int64Array, ...]:
        """Copies of all that :meth:`put` changes."""
        return tuple(column.copy() for column in self.columns())

    def restore(self, saved: tuple[Int32Array | Int64Array, ...]) -> None:
        """Go back to a moment that was saved."""
        for column, copy in zip(self.columns(), saved, strict=True):
            column[...] = copy

    def put(self, row: Int64Array, slot: Int64Array, broker: Int32Array | Int64Array) -> None:
        """Set places, each at most once, to brokers or to -1."""
        before = self.current[row, slot]
        present = self.problem.fleet.present
        self.load -= np.bincount(before[before != NO_BROKER], minlength=present)
        after = np.asarray(broker, np.int32)
        self.load += np.bincount(after[after != NO_BROKER], minlength=present)
        self.current[row, slot] = after
        self._racks[slot, row] = self._rack_of(after)

    def _rack_of(self, broker: Int32Array) -> Int32Array:
        return np.where(broker == NO_BROKER, NO_BROKER, self.problem.fleet.rack[broker]).astype(np.int32)

    def accepts(self, row: Int64Array, slot: Int64Array, broker: Int32Array | Int64Array) -> BoolArray:
        """Whether each place could go to each broker, one at a time; arguments pair up, shape ``(m,)``."""
        problem = self.problem
        result = ~any_in_row(self.current.take(row, axis=0) == np.asarray(broker)[:, None])
        if problem.some_confined:
            confined = np.flatnonzero(problem.confined[row])
            hosts = problem.hosts[row[confined]]
            result[confined] &= (hosts == np.asarray(broker)[confined][:, None]).any(axis=1)
        if problem.barred.size:
            result &= problem.open_to(row, broker)
        source, rack = self._racks[slot, row], problem.fleet.rack[broker]
        crossing = np.flatnonzero(result & (source != rack))
        result[crossing] = self._window_allows(row[crossing], source[crossing], rack[crossing])
        return result

    def rack_accepts(self, row: Int64Array, slot: Int64Array, rack: Int32Array) -> BoolArray:
        """Whether the rack windows let each filled place go to each rack; arguments pair up, shape ``(m,)``."""
        source = self._racks[slot, row]
        result = np.asarray(source == rack)
        crossing = np.flatnonzero(~result)
        result[crossing] = self._window_allows(row[crossing], source[crossing], rack[crossing])
        return result

    def admits(self, row: Int64Array, rack: Int32Array) -> BoolArray:
        """Whether the rack windows let each row fill a vacancy in each rack; arguments pair up, shape ``(m,)``."""
        return self._window_allows(row, np.full(row.size, NO_BROKER, np.int32), rack)

    def _window_allows(self, row: Int64Array, source: Int32Array, rack: Int32Array) -> BoolArray:
        """Whether a replica of each row may leave its rack, -1 for none, for another one."""
        problem = self.problem
        # Replicas that cannot leave are among those counted here, so they never decide.
        count = self.in_rack(row, rack)
        result = count < problem.most(row, rack)
        moved = np.flatnonzero(result & (source != NO_BROKER))
        left, of = source[moved], row[moved]
        result[moved] = self.in_rack(of, left) > problem.fewest(of, left)
        # Only from level 2 on can a rack be below its window, and then there are few racks.
        filled = np.flatnonzero(result & (source == NO_BROKER) & (problem.level[row] > 1))
        if filled.size:
            rows = row[filled]
            tight = self.shortfall(rows) >= problem.factor[rows] - (self.current[rows] != NO_BROKER).sum(axis=1)
            below = count[filled] < problem.fewest(rows, rack[filled])
            result[filled] = ~tight | below
        return result

    def in_rack(self, rows: Int64Array, rack: Int32Array) -> Int64Array:
        """Replicas of each row in the given rack; arguments pair up, shape ``(m,)``."""
        return np.asarray((self._racks.take(rows, axis=1) == rack).sum(axis=0))

    def shortfall(self, rows: Int64Array) -> Int64Array:
        """Replicas that racks below their window lack, int64, shape of ``rows``."""
        problem = self.problem
        result = np.zeros(rows.size, np.int64)
        deep = np.flatnonzero(problem.level[rows] > 1)
        for rack in range(problem.fleet.rack_size.size if deep.size else 0):
            where = np.full(deep.size, rack, np.int32)
            result[deep] += np.maximum(problem.fewest(rows[deep], where) - self.in_rack(rows[deep], where), 0)
        return result
