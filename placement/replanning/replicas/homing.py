"""Homing: what has to move anyway goes back to where its partition was at home.

Goal: after a broker was lost and came back, the layout from before, at no cost: the same moves, other destinations.
Constraints: only vacancies and replicas above their broker's target move, only to brokers below theirs.
Method: place by place and home by home, all rows at once.
"""

from __future__ import annotations

import numpy as np

from placement.arrays import BoolArray, Int64Array
from placement.model import NO_BROKER
from placement.replanning.replicas.seats import first_of_each, within_quota
from placement.replanning.state import State


def go_home(state: State, target: Int64Array) -> None:
    """Fill vacancies from home and send surplus replicas there; ``target`` has shape ``(usable,)``."""
    problem = state.problem
    if not (problem.home != NO_BROKER).any():
        return
    for column in range(problem.home.shape[1]):
        for slot in range(state.current.shape[1]):
            _send(state, target, column, slot)


def _send(state: State, target: Int64Array, column: int, slot: int) -> None:
    """Let the replicas of one place go to one column of home."""
    problem = state.problem
    home = problem.home[:, column]
    n = problem.fleet.usable
    deficit = np.maximum(target - state.usable_load, 0)
    row = np.flatnonzero((home != NO_BROKER) & _may_go(state, target, slot))
    row = row[deficit[home[row]] > 0]
    row = row[state.accepts(row, np.full(row.size, slot), home[row])]
    row = row[within_quota(home[row], deficit)]
    source = state.current[row, slot]
    surplus = np.full(problem.fleet.present + 1, row.size, np.int64)
    surplus[:n] = np.maximum(state.usable_load - target, 0)
    row = row[first_of_each(row, within_quota(source, surplus))]
    state.put(row, np.full(row.size, slot), home[row])


def _may_go(state: State, target: Int64Array, slot: int) -> BoolArray:
    """Rows whose place is a vacancy, or holds a replica that its broker has too many of and that is not at home."""
    problem = state.problem
    vacant_row, vacant_slot = state.vacancies()
    result = np.zeros(problem.row.size, np.bool_)
    result[vacant_row[vacant_slot == slot]] = True
    above = np.zeros(problem.fleet.present + 1, np.bool_)
    above[: problem.fleet.usable] = state.usable_load > target
    broker = state.current[:, slot]
    away = (problem.home != broker[:, None]).all(axis=1)
    return np.asarray(result | (above[broker] & away & ~problem.pinned[:, slot]))
