"""Lift: take out of a row what its rack window does not allow, so that it is placed anew.

Goal: the fewest replicas lifted. Each replica above a rack's window has to move wherever the others stay, and a
rack below its window needs one that another rack can spare.
Method: passes over the rows that break their window; each pass lifts at most one replica a row, such that together
they bring the brokers closest to their targets. Cost: O(rows * R^2), R the replication factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placement.arrays import BoolArray, Int64Array
from placement.model import NO_BROKER, Int32Array
from placement.replanning.leaders.elect import NEVER, elect
from placement.replanning.state import State


@dataclass(frozen=True, slots=True, eq=False)
class Lifted:
    """What racks force.

    Attributes:
        forced: moves that no plan can do without: the empty places of rows that dropped nothing.
        lost: those of them that were empty before.
        above: replicas that were above their window, by rack, int64, shape ``(racks,)``.
    """

    forced: int
    lost: int
    above: Int64Array


def lift(state: State, target: Int64Array, limit: int | None = None) -> Lifted:
    """Empty the places that rack windows do not allow, at most ``limit``; ``target`` has shape ``(usable,)``."""
    left = state.current.size if limit is None else limit
    lost, load = _empty(state), state.usable_load.copy()
    rows = np.flatnonzero(~state.problem.pinned.all(axis=1))
    while rows.size and left > 0:
        excess = _excess(state, rows)
        at = np.flatnonzero(excess.any(axis=1))[:left]
        rows = rows[at]
        left -= _lift_one(state, rows, excess[at], target)
    fleet = state.problem.fleet
    gone = load - state.usable_load
    above = np.bincount(fleet.rack[: fleet.usable], weights=gone, minlength=fleet.rack_size.size).astype(np.int64)
    rows = np.arange(state.problem.row.size)
    while rows.size and left > 0:
        rows = rows[state.shortfall(rows) > state.missing()[rows]]
        spare = _spare(state, rows)
        at = np.flatnonzero(spare.any(axis=1))[:left]
        rows = rows[at]
        left -= _lift_one(state, rows, spare[at], target)
    return Lifted(_empty(state), lost, above)


def breaking(state: State) -> tuple[Int64Array, BoolArray]:
    """Rows that break their windows and could keep them better, and the places of each that may go for that."""
    rows = np.arange(state.problem.row.size)
    able = _excess(state, rows)
    short = np.flatnonzero(~able.any(axis=1) & (state.shortfall(rows) > state.missing()[rows]))
    able[short] = _spare(state, short)
    rows = np.flatnonzero(able.any(axis=1))
    return rows, able[rows]


def _empty(state: State) -> int:
    """Empty places of rows that dropped nothing."""
    return int(state.missing()[~state.problem.dropped()].sum())


def _movable(state: State, rows: Int64Array) -> BoolArray:
    return np.asarray((state.current[rows] != NO_BROKER) & ~state.problem.pinned[rows])


def _excess(state: State, rows: Int64Array) -> BoolArray:
    """Places in racks above their window."""
    return _above(state, rows, state.problem.highest)


def _spare(state: State, rows: Int64Array) -> BoolArray:
    """Places in racks that stay in their window with one replica less."""
    return _above(state, rows, state.problem.lowest)


def _above(state: State, rows: Int64Array, bound: Callable[[Int64Array, Int32Array], Int64Array]) -> BoolArray:
    """Movable places in racks that hold more of the row than the bound."""
    fleet = state.problem.fleet
    result = _movable(state, rows)
    replicas = state.current[rows]
    for slot in range(replicas.shape[1]):
        at = np.flatnonzero(result[:, slot])
        rack = fleet.rack[replicas[at, slot]]
        result[at, slot] = state.in_rack(rows[at], rack) > bound(rows[at], rack)
    return result


def _lift_one(state: State, rows: Int64Array, able: BoolArray, target: Int64Array) -> int:
    """Empty one of the able places in each row, away from home where there is one; returns how many."""
    problem, n = state.problem, state.problem.fleet.usable
    away = able & (state.current[rows][:, :, None] != problem.home[rows][:, None, :]).all(axis=2)
    able = np.where(away.any(axis=1)[:, None], away, able)
    # Whoever goes from each row is chosen as a leader is, on brokers that begin below zero by their surplus.
    base = np.zeros(problem.fleet.present, np.int64)
    base[:n] = target - state.usable_load
    replicas = np.where(able, state.current[rows], NO_BROKER).astype(np.int32)
    going = elect(replicas, np.where(able, 0, NEVER), base, problem.fleet.capacity)
    state.put(rows, going, np.full(rows.size, NO_BROKER))
    return int(rows.size)
