"""The layout while it is planned by load: who holds what, who leads, and what it does to the brokers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from placement.arrays import BoolArray, Float64Array, Int64Array, by_group
from placement.loads.model import Loads
from placement.model import NO_BROKER, Int32Array
from placement.replanning.by_load.disks import Disks
from placement.replanning.by_load.field import Field
from placement.replanning.by_load.share import Share
from placement.replanning.state import State

_LOOKS: Final = 10_000
_LOOKS_A_BROKER: Final = 40


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A moment of a layout."""

    arrays: tuple[Float64Array | Int64Array | Int32Array, ...]
    members: tuple[Int64Array, ...]
    disks: Disks
    spare: float


class Layout:
    """Working columns of one run over all rows of the layout; a cell is ``row * width + slot``.

    Attributes:
        state: open rows and their windows; kept in step.
        size: int64, shape ``(P,)``: bytes of a replica.
        leader, follower: float64, shape ``(P, weights)``: what a leader and a follower carry.
        replicas: int32, shape ``(P, width)``: broker indices, -1 where nothing is.
        origin: int32, shape ``(P, width)``: the replicas before.
        lead: int32, shape ``(P,)``: the leading broker, -1 where there is none.
        movable: bool, shape ``(P, width)``: cells that may go elsewhere.
        fixed: bool, shape ``(P,)``: rows whose leader stays.
        field: the brokers.
        spare: bytes (or whatever ``charge`` counts) that may still be copied.
        charge: float64, shape ``(P,)``: what a copy of a replica takes of the budget.
        disks: room in the log directories.
        least: the gain below which no step is taken.
        effort: bytes that a copy costs besides its own, so that tiny partitions are not moved by the thousand.
        toll: how many of them it costs in any case.
        looks: how often the search may still look for a step, so that its work has a bound that is no clock's.
    """

    __slots__ = (
        "_members",
        "_open",
        "charge",
        "disks",
        "effort",
        "field",
        "fixed",
        "follower",
        "lead",
        "leader",
        "least",
        "looks",
        "movable",
        "origin",
        "replicas",
        "size",
        "spare",
        "state",
        "toll",
    )

    def __init__(self, state: State, loads: Loads, fixed: BoolArray, charge: Int64Array, disks: Disks) -> None:
        problem = state.problem
        width = max(problem.layout.shape[1], state.current.shape[1])
        self.state = state
        self.leader, self.follower = (np.ascontiguousarray(w.T, np.float64) for w in (loads.leader(), loads.follower()))
        self.size = loads.size
        self.disks = disks
        self.origin = _widened(problem.layout, width)
        self.replicas = self.origin.copy()
        self._open = np.full(self.origin.shape[0], NO_BROKER, np.int64)
        self._open[problem.row] = np.arange(problem.row.size)
        self.replicas[problem.row] = _widened(state.current, width)
        self.movable = np.zeros(self.origin.shape, np.bool_)
        free = ~problem.pinned & ~problem.confined[:, None]
        self.movable[problem.row] = _widened_flags(free, width)
        self.fixed = fixed
        self.lead = self._leads()
        self.charge, self.spare = charge.astype(np.float64), np.inf
        self.effort, self.least, self.toll = 0.0, 0.0, 0
        self.looks = _LOOKS + _LOOKS_A_BROKER * problem.fleet.usable
        self._members: list[Int64Array] = []

    def _leads(self) -> Int32Array:
        """Who leads before: the first replica, where it is still there and may lead."""
        first, fleet = self.origin[:, 0], self.state.problem.fleet
        kept = (self.replicas == first[:, None]).any(axis=1) & (fleet.leads[first] | self.fixed)
        return np.where(kept, first, NO_BROKER).astype(np.int32)

    def measure(self, band: Share) -> None:
        """Begin to keep the brokers' loads and members."""
        present = self.state.problem.fleet.present
        self.field = Field(band, self.loads(self.replicas, self.lead))
        row, slot = np.nonzero((self.replicas >= 0) & (self.replicas < present))
        broker = self.replicas[row, slot]
        order = by_group(broker)
        cell = (row * self.replicas.shape[1] + slot)[order]
        self._members = np.split(cell, np.searchsorted(broker[order], np.arange(1, present)))

    def weigh(self, band: Share, stress: Float64Array) -> None:
        """Go on with another band, in which distances in some weights count for more."""
        self.field = Field(band, self.field.load, stress)

    def strive(self, patience: float) -> None:
        """Let a copy cost so many mean partitions besides its bytes."""
        self.effort = self.toll + patience * max(float(np.sum(self.size)) / self.size.size, 1.0)

    def loads(self, replicas: Int32Array, lead: Int32Array) -> Float64Array:
        """Loads of the present brokers, float64, shape ``(weights, present)``."""
        present = self.state.problem.fleet.present
        result = np.zeros((self.leader.shape[1], present))
        for column in range(replicas.shape[1]):
            broker = replicas[:, column]
            on = np.flatnonzero((broker >= 0) & (broker < present))
            leads = broker[on] == lead[on]
            for k in range(result.shape[0]):
                carried = np.where(leads, self.leader[on, k], self.follower[on, k])
                result[k] += np.bincount(broker[on], weights=carried, minlength=present)
        return result

    def members(self, broker: int) -> Int64Array:
        """Cells on a broker, int64."""
        return self._members[broker]

    def split(self, cell: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Row and slot of cells."""
        width = self.replicas.shape[1]
        return cell // width, cell % width

    def carried(self, row: Int64Array, broker: int | Int32Array) -> Float64Array:
        """What a replica of each row puts on the broker that has it, float64, shape ``(weights, m)``."""
        result = self.follower[row]
        leads = np.flatnonzero(self.lead[row] == broker)
        result[leads] = self.leader[row[leads]]
        return result.T

    def fresh(self, row: Int64Array, broker: Int32Array | Int64Array) -> BoolArray:
        """Whether a broker would have to copy each row; arguments pair up, or broadcast with a new axis."""
        result = self.origin[row, 0] != broker
        for column in range(1, self.origin.shape[1]):
            result = result & (self.origin[row, column] != broker)
        return np.asarray(result)

    def hosts(self, row: Int64Array, broker: Int32Array | Int64Array) -> BoolArray:
        """Whether each broker holds each row; shapes as in :meth:`fresh`."""
        result = self.replicas[row, 0] == broker
        for column in range(1, self.replicas.shape[1]):
            result = result | (self.replicas[row, column] == broker)
        return np.asarray(result)

    def open_rows(self, row: Int64Array) -> Int64Array:
        """Places of rows among the open ones of the state."""
        return self._open[row]

    def snapshot(self) -> Snapshot:
        """All that changes, to go back to."""
        copies = tuple(array.copy() for array in self._changing())
        return Snapshot(copies, tuple(self._members), self.disks.copy(), self.spare)

    def restore(self, saved: Snapshot) -> None:
        """Go back to a snapshot, which may be used again."""
        for array, copy in zip(self._changing(), saved.arrays, strict=True):
            array[...] = copy
        self._members, self.disks, self.spare = list(saved.members), saved.disks.copy(), saved.spare

    def _changing(self) -> tuple[Float64Array | Int64Array | Int32Array, ...]:
        state, field = self.state, self.field
        return self.replicas, self.lead, field.load, field.cost, *state.columns()

    def set_leader(self, row: int, broker: int) -> None:
        """Let another of its replicas lead a row."""
        change = self.leader[row] - self.follower[row]
        before = int(self.lead[row])
        self.lead[row] = broker
        if before != NO_BROKER:
            self.field.add(before, -change)
        self.field.add(broker, change)

    def lead_as_before(self, stay: BoolArray) -> None:
        """Give rows back the leader that they had before; ``stay`` has shape ``(P,)``.

        A leadership may have travelled with a replica and ended elsewhere when the search came back to the row.
        """
        first = self.origin[:, 0]
        rows = np.flatnonzero(stay & (self.lead != first))
        for row in rows[self.hosts(rows, first[rows])].tolist():
            self.set_leader(row, int(first[row]))

    def move(self, row: int, slot: int, broker: int) -> None:
        """Put a cell on a broker, from another or from nowhere; a leader takes its leadership along."""
        before = int(self.replicas[row, slot])
        self.spare -= self.charge[row] * self._copies(row, broker, before)
        leads = before != NO_BROKER and before == self.lead[row]
        load = self.leader[row] if leads else self.follower[row]
        cell = row * self.replicas.shape[1] + slot
        if before != NO_BROKER:
            self.field.add(before, -load)
            self._members[before] = self._members[before][self._members[before] != cell]
        self.field.add(broker, load)
        self._members[broker] = np.append(self._members[broker], cell)
        self.replicas[row, slot] = broker
        self.disks.take(cell)
        if broker not in self.origin[row].tolist():
            self.choose_dir(row, slot, broker)
        if leads:
            self.lead[row] = broker
        at = np.array([self._open[row]])
        self.state.put(at, np.array([slot]), np.array([broker]))

    def choose_dir(self, row: int, slot: int, broker: int) -> None:
        """Give a replica that is copied a log directory."""
        self.disks.put(row * self.replicas.shape[1] + slot, broker, int(self.size[row]))

    def path(self, row: int, slot: int) -> str | None:
        """The log directory that a replica goes to; None where it stays, or no directory is known."""
        return self.disks.path(row * self.replicas.shape[1] + slot)

    def roomy(self, row: Int64Array, broker: Int32Array | Int64Array) -> BoolArray:
        """Whether each broker has a log directory for each row; shapes as in :meth:`fresh`."""
        fits = np.asarray(self.size[row] <= self.disks.largest[broker])
        return fits if fits.all() else fits | ~self.fresh(row, broker)

    def _copies(self, row: int, broker: int, before: int) -> int:
        origin = self.origin[row].tolist()
        return (broker not in origin) - (before != NO_BROKER and before not in origin)


def _widened(matrix: Int32Array, width: int) -> Int32Array:
    result = np.full((matrix.shape[0], width), NO_BROKER, np.int32)
    result[:, : matrix.shape[1]] = matrix
    return result


def _widened_flags(matrix: BoolArray, width: int) -> BoolArray:
    result = np.zeros((matrix.shape[0], width), np.bool_)
    result[:, : matrix.shape[1]] = matrix
    return result
