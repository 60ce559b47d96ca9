"""How the replicas of one topic are spread over the brokers, kept for a few topics at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placement.load import Int64Array
from placement.model import Int32Array
from placement.problem import BoolArray
from placement.state import State

_CELLS = 1 << 22


def topic_blocks(state: State, topics: Int32Array) -> Iterator[tuple[int, int]]:
    """Ranges ``[first, last)`` of topic indices that fit in memory together and cover the given ones."""
    width = max(1, _CELLS // state.problem.fleet.usable)
    named = np.unique(topics)
    done = -1
    for topic in named.tolist():
        if topic >= done:
            done = topic + width
            yield topic, done


class Levels:
    """Replicas of each topic of one block on each usable broker, and the share it is due there."""

    __slots__ = ("_first", "_topics", "level", "share", "total")

    def __init__(self, state: State, first: int, last: int, target: Int64Array) -> None:
        """Count the block's topics as the state has them now."""
        problem = state.problem
        n = problem.fleet.usable
        low, high = np.searchsorted(problem.layout_topic, [first, last])
        open_low, open_high = np.searchsorted(problem.row, [low, high])
        rows = problem.layout[low:high].copy()
        rows[problem.row[open_low:open_high] - low] = -1
        self._first = first
        self._topics = last - first
        self.level = self._counted(rows, problem.layout_topic[low:high] - first, n)
        self.level += self._counted(state.current[open_low:open_high], problem.topic[open_low:open_high] - first, n)
        self.total = self.level.sum(axis=1)
        self.total += np.bincount(
            problem.topic[open_low:open_high] - first,
            weights=state.missing()[open_low:open_high] if open_high > open_low else None,
            minlength=self._topics,
        ).astype(np.int64)
        self.share = target / max(1, int(target.sum()))

    def _counted(self, rows: Int32Array, topic: Int32Array, n: int) -> Int32Array:
        # Places that are empty or on brokers that are not usable are counted in a last cell that is cut off.
        last = self._topics * n
        counted = (rows >= 0) & (rows < n)
        cell = np.where(counted, topic.astype(np.int64)[:, None] * n + rows, last)
        return np.bincount(cell.reshape(-1), minlength=last + 1)[:last].reshape(-1, n).astype(np.int32)

    def takes(self, topic: Int32Array, broker: Int32Array) -> BoolArray:
        """Whether one replica more stays within the topic's share, rounded up."""
        local = topic - self._first
        most = np.ceil(self.total[local] * self.share[broker] - 1e-9)
        return np.asarray(self.level[local, broker] + 1 <= most)

    def gives(self, topic: Int32Array, broker: Int32Array) -> BoolArray:
        """Whether one replica less stays within the topic's share, rounded down."""
        local = topic - self._first
        least = np.floor(self.total[local] * self.share[broker] + 1e-9)
        return np.asarray(self.level[local, broker] - 1 >= least)

    def over(self, topic: Int32Array, broker: Int32Array) -> BoolArray:
        """Whether the topic has more here than its share, rounded up."""
        local = topic - self._first
        return np.asarray(self.level[local, broker] > np.ceil(self.total[local] * self.share[broker] - 1e-9))

    def under(self, topic: Int32Array, broker: Int32Array) -> BoolArray:
        """Whether the topic has less here than its share, rounded down."""
        local = topic - self._first
        return np.asarray(self.level[local, broker] < np.floor(self.total[local] * self.share[broker] + 1e-9))

    def change(self, topic: Int32Array, broker: Int32Array, by: int) -> None:
        """Record replicas that came (1) or went (-1)."""
        np.add.at(self.level, (topic - self._first, broker), by)
