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

from placement.arrays import BoolArray, Int64Array, by_group
from placement.model import Int32Array
from placement.replanning.replicas.seats import first_of_each, pair_any, pair_within, seats
from placement.replanning.replicas.spread import Levels, topic_blocks
from placement.replanning.state import State

Sweep = Literal["better", "neutral", "any"]
_BARREN = 5
_WORTH = 32
"""A round that seats less than one in so many counts as barren."""


def release(state: State, target: Int64Array, rank: Int64Array, *, keep_spread: bool = False) -> None:
    """Move surplus replicas; ``target`` and ``rank`` have shape ``(usable,)``.

    With ``keep_spread`` the last sweep, which may leave a topic less evenly spread, is not made.
    """
    problem = state.problem
    sweeps: tuple[Sweep, ...] = ("better", "neutral") if keep_spread else ("better", "neutral", "any", "any")
    for sweep in sweeps:
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
    pool = _Pool(state, rows, target)
    barren = 0
    for turn in count():
        row, slot = pool.take(_surplus(state, target), free.size, turn)
        if not free.size or not row.size or barren > _BARREN:
            break
        offered = row.size
        if sweep != "any":
            gives = levels.gives(state.problem.topic[row], state.current[row, slot])
            row, slot = row[gives], slot[gives]
        once = first_of_each(row, np.ones(row.size, np.bool_))
        row, slot = row[once], slot[once]
        moved = 0
        for in_rack in (True, False):
            seat = _seats_for(state, row, slot, free, turn, in_rack=in_rack)
            at = np.flatnonzero(seat >= 0)
            good = at[_move(state, row[at], slot[at], free[seat[at]], levels, sweep)]
            moved += good.size
            free = np.delete(free, seat[good])
            row, slot = np.delete(row, good), np.delete(slot, good)
        barren = 0 if moved * _WORTH > offered else barren + 1
    return free


def _surplus(state: State, target: Int64Array) -> Int64Array:
    """Replicas that each usable broker has above its target, int64, shape ``(usable,)``."""
    return np.asarray(np.maximum(state.usable_load - target, 0))


class _Pool:
    """Replicas on brokers above their target, by broker; each is handed out once."""

    __slots__ = ("_end", "_next", "_row", "_slot")

    def __init__(self, state: State, rows: Int64Array, target: Int64Array) -> None:
        above = np.zeros(state.load.size + 1, np.bool_)
        above[: target.size] = _surplus(state, target) > 0
        replicas = state.current[rows]
        row, slot = np.nonzero(above[replicas] & ~state.problem.pinned[rows])
        broker = replicas[row, slot]
        order = by_group(broker)
        self._row, self._slot = rows[row[order]], slot[order]
        bounds = np.searchsorted(broker[order], np.arange(target.size + 1))
        self._next, self._end = bounds[:-1].copy(), bounds[1:]

    def take(self, quota: Int64Array, most: int, turn: int) -> tuple[Int64Array, Int64Array]:
        """The next replicas of each broker, as many as its quota, and together about ``most``."""
        count = np.minimum(quota, self._end - self._next)
        # Another broker begins each time, so that a few seats are not always offered to the same ones.
        order = np.roll(np.arange(quota.size), -turn)
        taken = np.cumsum(count[order]) - count[order]
        count[order[taken >= most]] = 0
        first = np.repeat(self._next - np.cumsum(count) + count, count)
        at = first + np.arange(first.size)
        self._next = self._next + count
        return self._row[at], self._slot[at]


def _seats_for(
    state: State, row: Int64Array, slot: Int64Array, free: Int32Array, turn: int, *, in_rack: bool
) -> Int64Array:
    """The position of a seat for each replica, in its own rack or anywhere; -1 for none."""
    if not in_rack:
        return pair_any(row.size, free.size, turn)
    rack = state.problem.fleet.rack
    return pair_within(rack[state.current[row, slot]], rack[free], turn)


def _move(
    state: State, row: Int64Array, slot: Int64Array, broker: Int32Array, levels: Levels, sweep: Sweep
) -> BoolArray:
    """Move the replicas that may go to these brokers; returns which did."""
    n, topic = state.problem.fleet.usable, state.problem.topic[row].astype(np.int64)
    source = state.current[row, slot]
    good = state.accepts(row, slot, broker)
    if sweep != "any":
        good &= levels.takes(topic, broker)
        if sweep == "better":
            good &= levels.over(topic, source) | levels.under(topic, broker)
        good = first_of_each(topic * n + broker, good)
        good = first_of_each(topic * n + source, good)
    state.put(row[good], slot[good], broker[good])
    levels.change(topic[good], source[good], -1)
    levels.change(topic[good], broker[good], 1)
    return good
