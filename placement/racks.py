"""Lift: take out of a row what its rack window does not allow, so that it is placed anew.

Goal: the fewest replicas lifted. Each replica above a rack's window has to move wherever the others stay, and a
rack below its window needs one that another rack can spare.
Method: passes over the rows that break their window; each pass lifts at most one replica a row, from the broker
that is furthest above its target. Cost: O(rows * R^2), R the replication factor.
"""

from __future__ import annotations

import numpy as np

from placement.arrays import BoolArray, Float64Array, Int64Array
from placement.fleet import count_in_rack
from placement.model import NO_BROKER
from placement.state import State


def lift(state: State, target: Int64Array, limit: int | None = None) -> int:
    """Empty the places that rack windows do not allow; ``target`` has shape ``(usable,)``.

    Args:
        state: changed in place.
        target: decides which of several replicas goes.
        limit: replicas lifted at most.

    Returns:
        The moves that no plan can do without: one for each empty place, where no replica was dropped to choose from.
    """
    left = state.current.size if limit is None else limit
    rows = np.flatnonzero(~state.problem.pinned.all(axis=1))
    while rows.size and left > 0:
        excess = _excess(state, rows)
        at = np.flatnonzero(excess.any(axis=1))[:left]
        rows = rows[at]
        left -= _lift_one(state, rows, np.where(excess[at], _surplus(state, rows, target), -np.inf))
    rows = np.arange(state.problem.row.size)
    while rows.size and left > 0:
        rows = rows[state.shortfall(rows) > state.missing()[rows]]
        spare = _spare(state, rows)
        at = np.flatnonzero(spare.any(axis=1))[:left]
        rows = rows[at]
        left -= _lift_one(state, rows, np.where(spare[at], _surplus(state, rows, target), -np.inf))
    problem = state.problem
    free = (problem.origin >= 0) & (problem.origin < problem.fleet.present) & (problem.start == NO_BROKER)
    return int(state.missing()[~free.any(axis=1)].sum())


def _surplus(state: State, rows: Int64Array, target: Int64Array) -> Float64Array:
    """How much each place should go: those away from home first, then by how far its broker is above its target."""
    problem, replicas = state.problem, state.current[rows]
    fleet = problem.fleet
    above = np.zeros(fleet.present)
    above[: fleet.usable] = (state.usable_load - target) / fleet.capacity[: fleet.usable]
    away = (replicas[:, :, None] != problem.home[rows][:, None, :]).all(axis=2)
    return np.asarray(above[replicas] + away * (2 * float(np.abs(above).max(initial=0)) + 1))


def _movable(state: State, rows: Int64Array) -> BoolArray:
    return np.asarray((state.current[rows] != NO_BROKER) & ~state.problem.pinned[rows])


def _excess(state: State, rows: Int64Array) -> BoolArray:
    """Places in racks above their window."""
    problem = state.problem
    result = _movable(state, rows)
    replicas = state.current[rows]
    for slot in range(replicas.shape[1]):
        at = np.flatnonzero(result[:, slot])
        rack = problem.fleet.rack[replicas[at, slot]]
        count = count_in_rack(problem.fleet, replicas[at], rack)
        result[at, slot] = count > problem.highest(rows[at], rack)
    return result


def _spare(state: State, rows: Int64Array) -> BoolArray:
    """Places in racks that stay in their window with one replica less."""
    problem = state.problem
    result = _movable(state, rows)
    replicas = state.current[rows]
    for slot in range(replicas.shape[1]):
        at = np.flatnonzero(result[:, slot])
        rack = problem.fleet.rack[replicas[at, slot]]
        count = count_in_rack(problem.fleet, replicas[at], rack)
        result[at, slot] = count > problem.lowest(rows[at], rack)
    return result


def _lift_one(state: State, rows: Int64Array, score: Float64Array) -> int:
    """Empty the place with the highest score in each row; returns how many."""
    state.put(rows, score.argmax(axis=1), np.full(rows.size, NO_BROKER))
    return int(rows.size)
