"""Fill: give every vacancy a broker.

Goal: every broker at its target, every topic spread over the brokers.
Constraints: distinct brokers in a row, the rack window of every row.
Method: pair vacancies with seats in rounds, first where the topic is still below its share, then anywhere; those that
few racks would do for come first. What is left takes the place of a replica that is new anyway and can take the seat
instead, or goes to the cheapest broker that may have it.
Cost: O(vacancies) array steps and a handful of single steps. Weakness: rounds are greedy, so ``improve`` follows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.arrays import BoolArray, Int64Array
from placement.model import NO_BROKER, Int32Array
from placement.replanning.replicas.seats import first_of_each, pair_any, pair_within, seats
from placement.replanning.replicas.spread import Levels, topic_blocks
from placement.replanning.state import State

_ROUNDS = 48
_BARREN = 8
_TRIED = 1024
_BATCHES = 8
_SEATS_TRIED = 8
_FEW_RACKS = 8


def fill(state: State, target: Int64Array, rank: Int64Array) -> None:
    """Place every vacancy; ``target`` and ``rank`` have shape ``(usable,)``."""
    row, slot = state.vacancies()
    if not row.size:
        return
    free = seats(state.problem.fleet, np.maximum(target - state.usable_load, 0), rank)
    rack, choices = _racks(state, row, slot)
    left = []
    for count in np.unique(choices).tolist():
        which = np.flatnonzero(choices == count)
        unseated, free = _seat(state, _Places(row[which], slot[which], rack[which]), free, target)
        left.append(which[unseated])
    _place_rest(state, np.concatenate(left), (row, slot), free.tolist(), target)


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Vacancies by row: row, slot, and the rack whose seats are tried first (-1 for none), each of shape ``(m,)``."""

    row: Int64Array
    slot: Int64Array
    rack: Int32Array

    def take(self, index: Int64Array) -> _Places:
        return _Places(self.row[index], self.slot[index], self.rack[index])


def _racks(state: State, row: Int64Array, slot: Int64Array) -> tuple[Int32Array, Int64Array]:
    """The rack to try first, and how many racks would do: those with the fewest have to choose first."""
    fleet = state.problem.fleet
    origin = state.problem.origin[row, slot]
    rack = np.where(origin == NO_BROKER, NO_BROKER, fleet.rack[origin]).astype(np.int32)
    count = fleet.rack_size.size
    if count > _FEW_RACKS:
        return rack, np.full(row.size, count)
    able = np.stack([state.admits(row, np.full(row.size, r, np.int32)) for r in range(count)], axis=1)
    choices = able.sum(axis=1)
    return np.where(choices == 1, able.argmax(axis=1), rack).astype(np.int32), choices


def _seat(state: State, places: _Places, free: Int32Array, target: Int64Array) -> tuple[Int64Array, Int32Array]:
    """Seat what fits, topic by topic and then anywhere; returns which vacancies are left, and which seats."""
    topic = state.problem.topic[places.row]
    left = []
    for block in topic_blocks(state, topic):
        low, high = np.searchsorted(topic, [block[0], block[-1] + 1])
        index = np.arange(low, high)
        unseated, unused = _rounds(state, places.take(index), free[: index.size], Levels(state, block, target))
        left.append(index[unseated])
        free = np.concatenate([unused, free[index.size :]])
    pending = np.concatenate(left)
    unseated, free = _rounds(state, places.take(pending), free, None)
    return pending[unseated], free


def _rounds(state: State, places: _Places, free: Int32Array, levels: Levels | None) -> tuple[Int64Array, Int32Array]:
    """Pair until nothing fits; returns which vacancies are left and which seats."""
    waiting = np.arange(places.row.size)
    barren = 0
    for turn in range(_ROUNDS):
        if not waiting.size or not free.size or barren >= _BARREN:
            break
        seat = _seats_for(state, places.rack[waiting], free, turn)
        offered = np.flatnonzero(seat >= 0)
        row, slot, broker = places.row[waiting[offered]], places.slot[waiting[offered]], free[seat[offered]]
        good = state.accepts(row, slot, broker)
        if levels is not None:
            topic = state.problem.topic[row].astype(np.int64)
            good &= levels.takes(topic, broker)
            good = first_of_each(topic * state.problem.fleet.usable + broker, good)
        good = first_of_each(row, good)
        state.put(row[good], slot[good], broker[good])
        if levels is not None:
            levels.change(topic[good], broker[good], 1)
        barren = 0 if good.any() else barren + 1
        waiting = np.delete(waiting, offered[good])
        free = np.delete(free, seat[offered[good]])
    return waiting, free


def _seats_for(state: State, rack: Int32Array, free: Int32Array, turn: int) -> Int64Array:
    """The position of a seat for each vacancy, -1 for none: in the rack to try first and anywhere, turn about."""
    if turn % 2:
        return pair_any(rack.size, free.size, turn)
    return pair_within(rack, state.problem.fleet.rack[free], turn)


def _place_rest(
    state: State, rest: Int64Array, places: tuple[Int64Array, Int64Array], over: list[int], target: Int64Array
) -> None:
    """Place vacancies one by one: by an exchange for a seat that is left over, else where it costs least."""
    broker = np.arange(state.problem.fleet.usable)
    failed = 0
    for index in rest.tolist():
        row, slot = int(places[0][index]), int(places[1][index])
        admitted = state.accepts(np.full(broker.size, row), np.full(broker.size, slot), broker)
        tried = dict.fromkeys(over[:_SEATS_TRIED]) if failed < _BARREN else ()
        seat = next((s for s in tried if _exchange(state, index, places, admitted, s)), None)
        if seat is None:
            failed += 1
            _place_one(state, row, slot, broker[admitted], target)
        else:
            failed = 0
            over.remove(seat)


def _exchange(state: State, index: int, places: tuple[Int64Array, Int64Array], admitted: BoolArray, seat: int) -> bool:
    """Let a replica that is new anyway take the seat, and give its broker, if admitted, to the vacancy."""
    row, slot = places
    for first in range(0, min(row.size, _BATCHES * _TRIED), _TRIED):
        part = slice(first, first + _TRIED)
        broker = state.current[row[part], slot[part]]
        other = first + np.flatnonzero((broker != NO_BROKER) & admitted[broker] & (row[part] != row[index]))
        fits = np.flatnonzero(state.accepts(row[other], slot[other], np.full(other.size, seat, np.int32)))
        if fits.size:
            partner = other[fits[0]]
            both = np.array([partner, index])
            state.put(row[both], slot[both], np.array([seat, broker[partner - first]]))
            return True
    return False


def _place_one(state: State, row: int, slot: int, allowed: Int64Array, target: Int64Array) -> None:
    """The broker with the least cost for one replica more, those below target first."""
    load = state.usable_load[allowed]
    cost = (2 * load + 1) / state.problem.fleet.capacity[allowed]
    best = np.lexsort((allowed, cost, load >= target[allowed]))[0]
    state.put(np.array([row]), np.array([slot]), allowed[best : best + 1])
