"""Spreading: bring each topic to its share on each broker, whatever it costs.

Goal: no topic has more replicas on a broker than its share rounded up, nor fewer than it rounded down.
Constraint: rack windows. The load of the brokers is put right afterwards.
Method: rounds in which replicas of topics above their share on a broker meet brokers on which their topic is below it,
the emptiest first. Weakness: only direct moves, so a topic that racks confine may stay above its share.
"""

from __future__ import annotations

import numpy as np

from placement.arrays import Int64Array
from placement.replanning.replicas.seats import first_of_each
from placement.replanning.replicas.spread import Levels, topic_blocks
from placement.replanning.state import State

_BARREN = 4
_CHOICES = 8


def spread_topics(state: State, target: Int64Array) -> None:
    """Move replicas of topics that are unevenly spread; ``target`` has shape ``(usable,)``."""
    problem = state.problem
    for block in topic_blocks(state, problem.topic):
        low, high = np.searchsorted(problem.topic, [block[0], block[-1] + 1])
        rows = np.arange(low, high)
        levels = Levels(state, block, target)
        barren = turn = 0
        while barren < _BARREN:
            moved = _round(state, rows, levels, turn)
            barren = 0 if moved else barren + 1
            turn += 1


def _round(state: State, rows: Int64Array, levels: Levels, turn: int) -> int:
    """Move at most one replica of each topic from and to each broker; returns how many moved."""
    problem = state.problem
    n = problem.fleet.usable
    row, slot = np.nonzero((state.current[rows] >= 0) & (state.current[rows] < n) & ~problem.pinned[rows])
    row = rows[row]
    topic, source = problem.topic[row].astype(np.int64), state.current[row, slot]
    wanted = levels.wanted(_CHOICES)
    broker = wanted[levels.local(topic), (turn + row) % wanted.shape[1]]
    helps = levels.over(topic, source) | levels.under(topic, broker)
    good = helps & levels.gives(topic, source) & levels.takes(topic, broker)
    at = np.flatnonzero(good)
    row, slot, topic, source, broker = row[at], slot[at], topic[at], source[at], broker[at]
    good = state.accepts(row, slot, broker)
    for key in (topic * n + broker, topic * n + source, row):
        good = first_of_each(key, good)
    state.put(row[good], slot[good], broker[good])
    state.spread[row[good]] = True
    levels.change(topic[good], source[good], -1)
    levels.change(topic[good], broker[good], 1)
    return int(good.sum())
