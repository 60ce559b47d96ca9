"""The order of the planning steps, and what they prove together."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from placement.arrays import Int64Array
from placement.model import Int32Array
from placement.replanning.bound import fewest_moves
from placement.replanning.budget import waterline
from placement.replanning.replicas.cycles import LOAD_PRICE
from placement.replanning.replicas.fill import fill
from placement.replanning.replicas.homing import go_home
from placement.replanning.replicas.improve import improve
from placement.replanning.replicas.lift import lift
from placement.replanning.replicas.mend import mend
from placement.replanning.replicas.release import release
from placement.replanning.replicas.seats import interleaved_rank
from placement.replanning.replicas.spend import spend
from placement.replanning.replicas.spread_evenly import spread_topics
from placement.replanning.state import State
from placement.replanning.targets import Room, price_groups, targets

_ALL_TAKE_PART = 400
"""Up to so many usable brokers the last step takes all of them, and its end is a proof."""
_SOME_TAKE_PART = 200
_CYCLES = 2_000
_SPREAD_ROUNDS = 3
_EQUAL = 1e-9
"""Sums of load^2 / capacity that differ by less are equal but for rounding."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is known of the moves: none that balances as well makes fewer, and whether that is met and proved."""

    lower_bound: int
    optimal: bool


def place(state: State) -> Certificate:
    """Bring the state to the best balance with the fewest moves."""
    problem = state.problem
    room = problem.room()
    stay = _present_before(state)
    rank = _rank(state)
    target = targets(room, stay, rank)
    lifted = lift(state, target)
    go_home(state, target)
    fill(state, target, rank)
    release(state, target, rank)
    bound = fewest_moves(problem, room, stay, target, lifted)
    if _reached(state, target) and state.moved() == bound:
        return Certificate(bound, optimal=True)
    everyone = problem.fleet.usable <= _ALL_TAKE_PART
    if improve(state, _participants(state, target, rank), _CYCLES) and everyone and _told_apart(state):
        return Certificate(state.moved(), optimal=True)
    met = _reached(state, target)
    return Certificate(bound if met else lifted.forced, optimal=met and state.moved() == bound)


def place_within(state: State, budget: int) -> Certificate:
    """Bring the state as close to the best balance as a number of moves can.

    Lost replicas come first, then those that racks forbid, then those whose move gains the most.
    """
    problem = state.problem
    room = problem.room()
    stay, rank = _present_before(state), _rank(state)
    target = targets(room, stay, rank)
    start, left = state.usable_load.copy(), budget - int(state.missing().sum())
    fill(state, targets(_keeping(room, state.usable_load), stay, rank), rank)
    placed = state.moved()
    saved = state.saved()
    lift(state, target)
    kept = placed + int(state.missing().sum()) <= budget
    if kept:
        fill(state, targets(_keeping(room, state.usable_load), stay, rank), rank)
    else:
        state.restore(saved)
        mend(state, budget - placed)
    spare = budget - state.moved()
    # Racks that hold a fixed number exchange nothing with others, whether or not their price is another one.
    alone = _loosened(room, keep_fixed=True).rack
    group = np.where(alone < room.rack_low.size, alone, price_groups(room)).astype(np.int32)
    release(state, waterline(state.usable_load, target, room.capacity, group, spare), rank)
    best = _bound_within(_loosened(room, kept), start, left)
    if not _reached(state, best):
        spend(state, np.arange(problem.fleet.usable, dtype=np.int32), budget)
    optimal = _reached(state, best)
    return Certificate(state.moved() if optimal else 0, optimal=optimal)


def place_spread(state: State) -> Certificate:
    """Bring every topic to its share on every broker, and the load as close to the best balance as that allows."""
    problem = state.problem
    room = problem.room()
    rank = _rank(state)
    target = targets(room, _present_before(state), rank)
    forced = lift(state, target).forced
    fill(state, target, rank)
    for _ in range(_SPREAD_ROUNDS):
        spread_topics(state, target)
        release(state, target, rank, keep_spread=True)
    return Certificate(forced, optimal=state.moved() == forced and _reached(state, target))


def _rank(state: State) -> Int64Array:
    """Who is first where nothing else decides: the brokers that home fills most, then racks in turn."""
    problem = state.problem
    turn = interleaved_rank(problem.fleet, 0)
    n = problem.fleet.usable
    at_home = np.bincount(problem.home[problem.home >= 0], minlength=n)
    rank = np.empty(n, np.int64)
    rank[np.lexsort((turn, -at_home))] = np.arange(n)
    return rank


def _present_before(state: State) -> Int64Array:
    """Replicas on each usable broker before the plan."""
    n, layout = state.problem.fleet.usable, state.problem.layout
    return np.bincount(layout[(layout >= 0) & (layout < n)], minlength=n)


def _keeping(room: Room, load: Int64Array) -> Room:
    """The room that is left when all that is placed stays."""
    inside = np.bincount(room.rack, weights=load, minlength=room.rack_low.size).astype(np.int64)
    return replace(
        room, low=load, rack_low=np.maximum(room.rack_low, inside), rack_high=np.maximum(room.rack_high, inside)
    )


def _loosened(room: Room, keep_fixed: bool) -> Room:
    """The room without the bounds of racks, but for those that, with all windows kept, hold a fixed number."""
    others_high = room.rack_high.sum() - room.rack_high
    fixed = (np.maximum(room.rack_low, room.total - others_high) == room.rack_high) & keep_fixed
    rack = np.where(fixed[room.rack], room.rack, fixed.size).astype(np.int32)
    total = np.append(np.where(fixed, room.rack_high, 0), room.total - int(room.rack_high[fixed].sum()))
    return replace(room, low=np.zeros_like(room.low), rack=rack, rack_low=total, rack_high=total)


def _bound_within(room: Room, load: Int64Array, budget: int) -> Int64Array:
    """Loads whose sum of load^2 / capacity no plan of so many moves, besides filling what is missing, gets below."""
    rank = np.arange(load.size)
    filled = targets(replace(room, low=load, high=load + room.total), load, rank)
    best = targets(replace(room, high=load + room.total), filled, rank)
    return waterline(filled, best, room.capacity, room.rack, budget)


def _participants(state: State, target: Int64Array, rank: Int64Array) -> Int32Array:
    """The brokers that exchange replicas in the last step: all, or those out of target and some more."""
    n = state.problem.fleet.usable
    if n <= _ALL_TAKE_PART:
        return np.arange(n, dtype=np.int32)
    wrong = state.usable_load != target
    first = np.lexsort((rank, ~wrong))[: max(_SOME_TAKE_PART, min(int(wrong.sum()), _ALL_TAKE_PART))]
    return np.sort(first).astype(np.int32)


def _reached(state: State, best: Int64Array) -> bool:
    """Whether the sum of load^2 / capacity is not above that of the given loads."""
    load, capacity = state.usable_load, state.problem.fleet.capacity[: state.problem.fleet.usable]
    # The sums themselves are too large for small differences of capacities to show.
    return math.fsum(((load - best) * (load + best) / capacity).tolist()) <= _EQUAL


def _told_apart(state: State) -> bool:
    """Whether moves, counted against balance when cycles are compared, could not have outweighed a gain of balance.

    A cycle has fewer moves than there are brokers, and changes the load of two of them by one.
    """
    n = state.problem.fleet.usable
    load, capacity = state.usable_load, state.problem.fleet.capacity[:n]
    gain = ((2 * load - 1) / capacity)[:, None] - (2 * load + 1) / capacity
    return not ((gain > _EQUAL) & (gain * LOAD_PRICE < n)).any()
