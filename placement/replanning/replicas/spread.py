"""How the replicas of one topic are spread over the brokers, kept for a few topics at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placement.arrays import BoolArray, Int64Array
from placement.model import NO_BROKER, Int32Array
from placement.replanning.state import State

_CELLS = 1 << 22


def topic_blocks(state: State, topics: Int32Array) -> Iterator[Int32Array]:
    """The topics that occur, ascending, in blocks whose levels fit in memory together."""
    width = max(1, _CELLS // state.problem.fleet.usable)
    named = np.unique(topics)
    for first in range(0, named.size, width):
        yield named[first : first + width]


class Levels:
    """Replicas of each topic of one block on each usable broker, and the share it is due there."""

    __slots__ = ("_topics", "level", "share", "total")

    def __init__(self, state: State, topics: Int32Array, target: Int64Array) -> None:
        """Count the block's topics as the state has them now."""
        problem = state.problem
        closed = _rows_of(problem.layout_topic, topics)
        opened = _rows_of(problem.topic, topics)
        is_open = np.zeros(problem.layout_topic.size, np.bool_)
        is_open[problem.row[opened]] = True
        closed = closed[~is_open[closed]]
        self._topics = topics
        self.level = self._counted(problem.layout[closed], problem.layout_topic[closed], problem.fleet.usable)
        self.level += self._counted(state.current[opened], problem.topic[opened], problem.fleet.usable)
        missing = problem.factor[opened] - (state.current[opened] != NO_BROKER).sum(axis=1)
        self.total = self.level.sum(axis=1).astype(np.int64)
        np.add.at(self.total, np.searchsorted(topics, problem.topic[opened]), missing)
        self.share = target / max(1, int(target.sum()))

    def _counted(self, rows: Int32Array, topic: Int32Array, n: int) -> Int32Array:
        # Places that are empty or on brokers that are not usable are counted in a last cell that is cut off.
        last = self._topics.size * n
        cell = np.where((rows >= 0) & (rows < n), np.searchsorted(self._topics, topic)[:, None] * n + rows, last)
        return np.bincount(cell.reshape(-1), minlength=last + 1)[:last].reshape(-1, n).astype(np.int32)

    def local(self, topic: Int64Array | Int32Array) -> Int64Array:
        """Place of each topic in the block."""
        return np.searchsorted(self._topics, topic)

    def wanted(self, choices: int) -> Int32Array:
        """The brokers on which each topic of the block is furthest below its share, shape ``(topics, choices)``."""
        below = self.level - self.total[:, None] * self.share
        return np.argsort(below, axis=1, kind="stable")[:, :choices].astype(np.int32)

    def takes(self, topic: Int64Array | Int32Array, broker: Int32Array) -> BoolArray:
        """Whether one replica more stays within the topic's share, rounded up."""
        local = self.local(topic)
        most = np.ceil(self.total[local] * self.share[broker] - 1e-9)
        return np.asarray(self.level[local, broker] + 1 <= most)

    def gives(self, topic: Int64Array | Int32Array, broker: Int32Array) -> BoolArray:
        """Whether one replica less stays within the topic's share, rounded down."""
        local = self.local(topic)
        least = np.floor(self.total[local] * self.share[broker] + 1e-9)
        return np.asarray(self.level[local, broker] - 1 >= least)

    def over(self, topic: Int64Array | Int32Array, broker: Int32Array) -> BoolArray:
        """Whether the topic has more here than its share, rounded up."""
        local = self.local(topic)
        return np.asarray(self.level[local, broker] > np.ceil(self.total[local] * self.share[broker] - 1e-9))

    def under(self, topic: Int64Array | Int32Array, broker: Int32Array) -> BoolArray:
        """Whether the topic has less here than its share, rounded down."""
        local = self.local(topic)
        return np.asarray(self.level[local, broker] < np.floor(self.total[local] * self.share[broker] + 1e-9))

    def change(self, topic: Int64Array | Int32Array, broker: Int32Array, by: int) -> None:
        """Record replicas that came (1) or went (-1)."""
        # Flat indices and equal types take the fast path of ufunc.at.
        cell = self.local(topic) * self.level.shape[1] + broker
        np.add.at(self.level.reshape(-1), cell, np.full(cell.size, by, np.int32))


def _rows_of(topic: Int32Array, topics: Int32Array) -> Int64Array:
    """Places of the given topics in an ascending column of topic indices."""
    low = np.searchsorted(topic, topics, side="left")
    count = np.searchsorted(topic, topics, side="right") - low
    first = np.cumsum(count) - count
    return np.asarray(np.arange(int(count.sum())) + np.repeat(low - first, count))
