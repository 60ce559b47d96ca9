"""Fill: give every vacancy a broker.

Goal: every broker at its target, every topic spread over the brokers.
Constraints: distinct brokers in a row, the rack window of every row.
Method: pair vacancies with seats in rounds, first where the topic is still below its share, then anywhere; what
is left (few, where rows are crowded) goes one by one to the cheapest broker that may take it.
Cost: O(vacancies) array steps and a handful of single steps. Weakness: rounds are greedy, so ``improve`` follows.
"""

from __future__ import annotations

import numpy as np

from placement.arrays import BoolArray, Int64Array
from placement.model import NO_BROKER, Int32Array
from placement.seats import first_of_each, pair_any, pair_within, seats
from placement.spread import Levels, topic_blocks
from placement.state import State

_ROUNDS = 48
_BARREN = 8
_TRIED = 1024
_BATCHES = 8


def fill(state: State, target: Int64Array, rank: Int64Array) -> None:
    """Place every vacancy; ``target`` and ``rank`` have shape ``(usable,)``."""
    row, slot = state.vacancies()
    if not row.size:
        return
    free = seats(state.problem.fleet, np.maximum(target - state.usable_load, 0), rank)
    topic = state.problem.topic[row]
    left = np.ones(row.size, np.bool_)
    for block in topic_blocks(state, topic):
        low, high = np.searchsorted(topic, [block[0], block[-1] + 1])
        levels = Levels(state, block, target)
        count = int(high - low)
        unseated, unused = _rounds(state, row[low:high], slot[low:high], free[:count], levels)
        left[low:high] = unseated
        free = np.concatenate([unused, free[count:]])
    pending = np.flatnonzero(left)
    unseated, free = _rounds(state, row[pending], slot[pending], free, None)
    seat = iter(free.tolist())
    for index in pending[unseated].tolist():
        if not _exchange(state, index, (row, slot), next(seat, None)):
            _place_one(state, int(row[index]), int(slot[index]), target)


def _rounds(
    state: State, row: Int64Array, slot: Int64Array, free: Int32Array, levels: Levels | None
) -> tuple[BoolArray, Int32Array]:
    """Pair until nothing fits; returns which vacancies are left and which seats."""
    waiting = np.arange(row.size)
    barren = 0
    for shift in range(_ROUNDS):
        if not waiting.size or not free.size or barren >= _BARREN:
            break
        seat = _seats_for(state, row[waiting], slot[waiting], free, shift)
        offered = np.flatnonzero(seat >= 0)
        place, broker = waiting[offered], free[seat[offered]]
        good = state.accepts(row[place], slot[place], broker)
        if levels is not None:
            topic = state.problem.topic[row[place]]
            good &= levels.takes(topic, broker)
            good = first_of_each(topic.astype(np.int64) * state.problem.fleet.usable + broker, good)
        good = first_of_each(row[place], good)
        state.put(row[place[good]], slot[place[good]], broker[good])
        if levels is not None:
            levels.change(topic[good], broker[good], 1)
        barren = 0 if good.any() else barren + 1
        waiting = np.delete(waiting, offered[good])
        free = np.delete(free, seat[offered[good]])
    left = np.zeros(row.size, np.bool_)
    left[waiting] = True
    return left, free


def _seats_for(state: State, row: Int64Array, slot: Int64Array, free: Int32Array, turn: int) -> Int64Array:
    """The position of a seat for each vacancy, -1 for none: in the rack that lost the replica and anywhere."""
    if turn % 2:
        return pair_any(row.size, free.size, turn)
    rack = state.problem.fleet.rack
    origin = state.problem.origin[row, slot]
    return pair_within(np.where(origin == NO_BROKER, NO_BROKER, rack[origin]), rack[free], turn)


def _exchange(state: State, index: int, places: tuple[Int64Array, Int64Array], seat: int | None) -> bool:
    """Let a replica that is new anyway take the seat, and give its broker to the vacancy."""
    if seat is None:
        return False
    row, slot = places
    for first in range(0, min(row.size, _BATCHES * _TRIED), _TRIED):
        other = np.arange(first, min(first + _TRIED, row.size))
        broker = state.current[row[other], slot[other]]
        other = other[(broker != NO_BROKER) & (row[other] != row[index])]
        broker = state.current[row[other], slot[other]]
        fits = state.accepts(row[other], slot[other], np.full(other.size, seat, np.int32))
        fits &= state.accepts(np.full(other.size, row[index]), np.full(other.size, slot[index]), broker)
        if fits.any():
            partner = int(fits.argmax())
            both = np.array([other[partner], index])
            state.put(row[both], slot[both], np.array([seat, broker[partner]]))
            return True
    return False


def _place_one(state: State, row: int, slot: int, target: Int64Array) -> None:
    """The broker with the least cost for one replica more, those below target first."""
    fleet = state.problem.fleet
    broker = np.arange(fleet.usable)
    allowed = broker[state.accepts(np.full(broker.size, row), np.full(broker.size, slot), broker)]
    load = state.usable_load[allowed]
    cost = (2 * load + 1) / fleet.capacity[allowed]
    best = np.lexsort((allowed, cost, load >= target[allowed]))[0]
    state.put(np.array([row]), np.array([slot]), allowed[best : best + 1])
