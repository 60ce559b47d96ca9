"""Disks: which log directory of its broker every new replica goes to.

Goal: no directory above its limit, and the fullest as empty as it can be.
Method: a replica takes the directory that is least full afterwards, for its limit, among those with room. What leaves
a broker gives no room back: while a reassignment runs, both copies are there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from placement.arrays import Float64Array
from placement.loads.model import Limits, LogDir


class Disks:
    """Room in the log directories of the present brokers.

    Attributes:
        largest: float64, shape ``(present,)``: the largest replica that fits; infinite where no directory is known.
    """

    __slots__ = ("_dirs", "_place", "_used", "largest")

    def __init__(self, ids: Sequence[int], limits: Mapping[int, Limits]) -> None:
        self._dirs: list[tuple[LogDir, ...]] = [limits[b].log_dirs if b in limits else () for b in ids]
        self._used = [[d.used for d in dirs] for dirs in self._dirs]
        self._place: dict[int, tuple[int, int, int]] = {}
        self.largest: Float64Array = np.full(len(self._dirs), np.inf)
        for broker in range(len(self._dirs)):
            self._measure(broker)

    def put(self, cell: int, broker: int, size: int) -> None:
        """Give a new replica a directory of a broker."""
        if not self._dirs[broker]:
            return
        used = self._used[broker]
        rated = [
            (used[i] + size > one.limit, (used[i] + size) / max(one.limit, 1), i)
            for i, one in enumerate(self._dirs[broker])
        ]
        chosen = min(rated)[2]
        used[chosen] += size
        self._place[cell] = (broker, chosen, size)
        self._measure(broker)

    def take(self, cell: int) -> None:
        """Forget a replica that goes elsewhere."""
        if cell in self._place:
            broker, chosen, size = self._place.pop(cell)
            self._used[broker][chosen] -= size
            self._measure(broker)

    def path(self, cell: int) -> str | None:
        """The directory that a cell goes to; None where none was chosen."""
        if cell not in self._place:
            return None
        broker, chosen, _ = self._place[cell]
        return self._dirs[broker][chosen].path

    def copy(self) -> Disks:
        """The same state, to be changed by itself."""
        result = object.__new__(Disks)
        result._dirs, result._used = self._dirs, [used.copy() for used in self._used]
        result._place, result.largest = dict(self._place), self.largest.copy()
        return result

    def _measure(self, broker: int) -> None:
        if self._dirs[broker]:
            rooms = [one.limit - used for one, used in zip(self._dirs[broker], self._used[broker], strict=True)]
            self.largest[broker] = max(rooms)
