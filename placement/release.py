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

from placement.arrays import BoolArray, Int64Array
from placement.model import Int32Array
from placement.seats import first_of_each, pair_any, pair_within, seats, within_quota
from placement.spread import Levels, topic_blocks
from placement.state import State

Sweep = Literal["better", "neutral", "any"]
_BARREN = 5
_WORTH = 32
"""A round that seats less than one in so many counts as barren."""


def release(state: State, target: Int64Array, rank: Int64Array, *, keep_spread: bool = False) -> None:
    """Move surplus replicas; ``target`` and ``rank`` have shape ``(usable,)``.

    With ``keep_spread`` the last sweep, which may leave a topic less evenly spread, is not made.
    """
    problem = state.problem
    sweeps: tuple[Sweep, ...] = ("better", "neutral") if keep_spread else ("better", "neutral", "any")
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
    row, slot = _pool(state, rows, target)
    barren = 0
    for turn in count():
        quota = _surplus(state, target)
        left = quota[state.current[row, slot]] > 0
        row, slot = row[left], slot[left]
        if not free.size or not row.size or barren > _BARREN:
            break
        chosen = np.flatnonzero(within_quota(state.current[row, slot], quota, ordered=True))
        gives = sweep == "any" or levels.gives(state.problem.topic[row[chosen]], state.current[row, slot][chosen])
        spent = chosen[~np.broadcast_to(gives, chosen.shape)]
        chosen = chosen[first_of_each(row[chosen], np.broadcast_to(gives, chosen.shape))]
        seat = _seats_for(state, row[chosen], slot[chosen], free, turn)
        offered = chosen[seat >= 0]
        seat = seat[seat >= 0]
        good = _move(state, row[offered], slot[offered], free[seat], levels, sweep)
        barren = 0 if int(good.sum()) * _WORTH > offered.size else barren + 1
        free = np.delete(free, seat[good])
        # A replica that was refused once, anywhere, is not offered again in this sweep.
        spent = np.concatenate([spent, offered if turn % 2 else offered[good]])
        row, slot = np.delete(row, spent), np.delete(slot, spent)
    return free


def _surplus(state: State, target: Int64Array) -> Int64Array:
    """Replicas that each broker has above its target, int64, shape ``(present + 1,)``; none for index -1."""
    fleet = state.problem.fleet
    surplus = np.zeros(fleet.present + 1, np.int64)
    surplus[: fleet.usable] = np.maximum(state.usable_load - target, 0)
    return surplus


def _pool(state: State, rows: Int64Array, target: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Replicas on brokers above their target, by broker."""
    replicas = state.current[rows]
    row, slot = np.nonzero((_surplus(state, target)[replicas] > 0) & ~state.problem.pinned[rows])
    order = np.argsort(replicas[row, slot], kind="stable")
    return rows[row[order]], slot[order]


def _seats_for(state: State, row: Int64Array, slot: Int64Array, free: Int32Array, turn: int) -> Int64Array:
    """The position of a seat for each replica, -1 for none: in its own rack and anywhere, turn about."""
    if turn % 2:
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
