"""Release: move replicas from brokers above their target to brokers below it.

Goal: every broker at its target, one move for each replica above it, topics spread at least as well as before.
Method: three sweeps over the topics. The first takes moves that both ends are better for, the second those that
leave the topic's spread as good, the third any. Within a sweep replicas are paired with seats in rounds: first in
their own rack (windows cannot object), then anywhere.
Cost: O(replicas) array steps. Weakness: only direct moves; what needs a chain of them is left to ``improve``.
"""

from __future__ import annotations

from itertools import count
from typing import Literal

import numpy as np

from placement.load import Int64Array
from placement.model import Int32Array
from placement.problem import BoolArray
from placement.seats import first_of_each, pair_any, pair_within, seats, within_quota
from placement.spread import Levels, topic_blocks
from placement.state import State

Sweep = Literal["better", "neutral", "any"]
_BARREN = 5
_WORTH = 32
"""A round that seats less than one in so many counts as barren."""


def release(state: State, target: Int64Array, rank: Int64Array) -> None:
    """Move surplus replicas; ``target`` and ``rank`` have shape ``(usable,)``."""
    problem = state.problem
    for sweep in ("better", "neutral", "any"):
        if not (state.usable_load > target).any() or not problem.row.size:
            return
        free = seats(problem.fleet, np.maximum(target - state.usable_load, 0), rank)
        for block in topic_blocks(state, problem.topic):
            low, high = np.searchsorted(problem.topic, [block[0], block[-1] + 1])
            levels = Levels(state, block, target)
            free = _sweep_block(state, np.arange(low, high), levels, sweep, target, free)
            if not free.size:
                break


def _sweep_block(
    state: State, rows: Int64Array, levels: Levels, sweep: Sweep, target: Int64Array, free: Int32Array
) -> Int32Array:
    """One sweep over the rows of a block of topics; returns the seats that are left."""
    tried = np.zeros((rows.size, state.current.shape[1]), np.bool_)
    barren = 0
    for turn in count():
        if not free.size or barren > _BARREN:
            break
        row, slot = _candidates(state, rows, tried, target, levels, sweep)
        if not row.size:
            break
        seat = _seats_for(state, row, slot, free, turn)
        offered = np.flatnonzero(seat >= 0)
        taken = _move(state, row[offered], slot[offered], free, seat[offered], levels, sweep)
        if turn % 2:
            tried[row[offered] - rows[0], slot[offered]] = True
        barren = 0 if taken.size * _WORTH > offered.size else barren + 1
        free = np.delete(free, taken)
    return free


def _candidates(
    state: State, rows: Int64Array, tried: BoolArray, target: Int64Array, levels: Levels, sweep: Sweep
) -> tuple[Int64Array, Int64Array]:
    """Replicas that may leave, at most one a row and no more of a broker than it has above its target."""
    fleet = state.problem.fleet
    surplus = np.zeros(fleet.present + 1, np.int64)
    surplus[: fleet.usable] = np.maximum(state.usable_load - target, 0)
    replicas = state.current[rows]
    row, slot = np.nonzero((surplus[replicas] > 0) & ~tried & ~state.problem.pinned[rows])
    broker, topic = replicas[row, slot], state.problem.topic[rows[row]]
    if sweep != "any":
        fit = levels.gives(topic, broker)
        row, slot, broker = row[fit], slot[fit], broker[fit]
    fit = first_of_each(row, within_quota(broker, surplus * 4))
    row, slot, broker = row[fit], slot[fit], broker[fit]
    fit = within_quota(broker, surplus)
    return rows[row[fit]], slot[fit]


def _seats_for(state: State, row: Int64Array, slot: Int64Array, free: Int32Array, turn: int) -> Int64Array:
    """The position of a seat for each replica, -1 for none: in its own rack and anywhere, turn about."""
    if turn % 2:
        return pair_any(row.size, free.size, turn)
    rack = state.problem.fleet.rack
    return pair_within(rack[state.current[row, slot]], rack[free], turn)


def _move(
    state: State,
    row: Int64Array,
    slot: Int64Array,
    free: Int32Array,
    seat: Int64Array,
    levels: Levels,
    sweep: Sweep,
) -> Int64Array:
    """Move the replicas that their seats fit; returns the positions of the seats taken."""
    n, topic = state.problem.fleet.usable, state.problem.topic[row]
    source, broker = state.current[row, slot], free[seat]
    good = state.accepts(row, slot, broker)
    if sweep != "any":
        good &= levels.takes(topic, broker)
        if sweep == "better":
            good &= levels.over(topic, source) | levels.under(topic, broker)
        good = first_of_each(topic.astype(np.int64) * n + broker, good)
        good = first_of_each(topic.astype(np.int64) * n + source, good)
    state.put(row[good], slot[good], broker[good])
    levels.change(topic[good], source[good], -1)
    levels.change(topic[good], broker[good], 1)
    return seat[good]
