"""Spend: the least sum of load^2 / capacity that a number of moves reaches.

Method: on the graph of hops between brokers, each at the moves that it costs (-1 where a replica returns, 0 where one
moves anyway, else 1), work out the fewest moves that take one unit of load from each broker to each other one. Of the
ways that the budget still pays for take the one that gains the most. Where none is left, take two at once: one that
costs balance and gives moves back, one that gains more with them. What moves without need is taken back first.
Cost: O(brokers^3 + replicas) a step, and fewer steps the larger that is. Weakness: more than two ways at once are not
looked for, so the end is no proof.
"""

from __future__ import annotations

import itertools

import numpy as np

from placement.arrays import Float64Array, Int64Array
from placement.model import Int32Array
from placement.replanning.replicas.hops import Hops, cheapest_hops
from placement.replanning.replicas.improve import apply_hops, improve
from placement.replanning.state import State

_STEPS = 200
_WORK = 1 << 24
_FREED = 4
_BARREN = 16
_GAIN = 1e-9


def spend(state: State, brokers: Int32Array, budget: int) -> None:
    """Bring the brokers closest to balance with at most ``budget`` moves in all, from a state that keeps it."""
    steps = min(_STEPS, _WORK // (brokers.size**3 + state.current.size))
    for _ in range(steps):
        improve(state, brokers, steps, keep_load=True)
        if not _advance(state, brokers, budget) and not _exchange(state, brokers, budget):
            return


def _advance(state: State, brokers: Int32Array, budget: int) -> bool:
    """Take ways as long as one is paid for and gains, the one that gains most first; False where none does."""
    hops, advanced = cheapest_hops(state, brokers), False
    for through in (0, brokers.size):
        failed = 0
        while failed < _BARREN:
            moves, following = _ways(hops, through)
            gain = np.where(moves <= budget - state.moved(), _gains(state, brokers), -np.inf)
            if gain.max() <= _GAIN:
                break
            went = _go(state, hops, following, _best(gain, moves))
            failed = 0 if went else failed + 1
            advanced |= went
    return advanced


def _exchange(state: State, brokers: Int32Array, budget: int) -> bool:
    """Give moves back where it costs little for a way that gains more; False where no such pair is found."""
    saved = state.saved()
    moves, _ = _ways(cheapest_hops(state, brokers), brokers.size)
    gain, spare, before = _gains(state, brokers), budget - state.moved(), _cost(state)
    for freed in range(1, _FREED + 1):
        back = np.where(moves <= -freed, gain, -np.inf)
        ahead = np.where(moves <= spare + freed, gain, -np.inf)
        if back.max() + ahead.max() <= _GAIN:
            continue
        hops = cheapest_hops(state, brokers)
        if _go(state, hops, _ways(hops, brokers.size)[1], _best(back, moves)):
            while _cost(state) >= before - _GAIN and _advance(state, brokers, budget):
                pass
            if _cost(state) < before - _GAIN:
                return True
        state.restore(saved)
    return False


def _ways(hops: Hops, through: int) -> tuple[Float64Array, Int64Array]:
    """Fewest moves from each broker to each other one, and the next broker on the way there, shape ``(m, m)`` each.

    Ways go through the first so many brokers.
    """
    moves = hops.cost.copy()
    np.fill_diagonal(moves, 0)
    m = moves.shape[0]
    following = np.tile(np.arange(m), (m, 1))
    for k in range(through):
        longer = moves[:, k, None] + moves[k]
        better = longer < moves - _GAIN
        moves = np.where(better, longer, moves)
        following = np.where(better, following[:, k, None], following)
    # What returns home is a little cheaper than a whole move.
    return np.rint(moves), following


def _gains(state: State, brokers: Int32Array) -> Float64Array:
    """By how much a unit from each broker to each other one lowers the sum, shape ``(m, m)``."""
    load, capacity = state.load[brokers], state.problem.fleet.capacity[brokers]
    gain = ((2 * load - 1) / capacity)[:, None] - (2 * load + 1) / capacity
    np.fill_diagonal(gain, -np.inf)
    return np.asarray(gain)


def _best(gain: Float64Array, moves: Float64Array) -> tuple[int, int]:
    """The pair that gains most, and of those the one with the fewest moves."""
    source, broker = divmod(int(np.where(gain >= gain.max() - _GAIN, moves, np.inf).argmin()), gain.shape[0])
    return source, broker


def _go(state: State, hops: Hops, following: Int64Array, ends: tuple[int, int]) -> bool:
    """Take a way if all of it holds; its hops are used up in any case."""
    way = [ends[0]]
    while way[-1] != ends[1] and len(way) <= following.shape[0]:
        way.append(int(following[way[-1], ends[1]]))
    arcs = list(itertools.pairwise(way))
    legs = [(int(hops.row[a, b]), int(hops.slot[a, b]), int(hops.brokers[a]), int(hops.brokers[b])) for a, b in arcs]
    before = state.moved()
    cost = sum(hops.cost[a, b] for a, b in arcs)
    for a, b in arcs:
        hops.cost[a, b] = np.inf
    if way[-1] != ends[1] or not apply_hops(state, legs):
        return False
    if state.moved() - before <= round(cost):
        return True
    for row, slot, source, _ in reversed(legs):
        state.put(np.array([row]), np.array([slot]), np.array([source]))
    return False


def _cost(state: State) -> float:
    capacity = state.problem.fleet.capacity[: state.problem.fleet.usable]
    return float(np.sum(np.square(state.usable_load) / capacity))
