"""The order in which AdminUtils goes round the brokers.

Without racks it is the order given. With racks it is one broker of each rack in turn, racks by name and
brokers of a rack by id, as ``AdminUtils.getRackAlternatedBrokerList`` arranges them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from placement import checks
from placement.errors import IncompleteRackError
from placement.kafka.java_random import utf16_order
from placement.model import Broker, Int32Array


@dataclass(frozen=True, slots=True, eq=False)
class Ring:
    """Brokers in order, each after the last followed by the first again.

    Attributes:
        ids: int32 broker ids, shape ``(N,)``.
        rack: int32 rack numbers from 0, shape ``(N,)``; all 0 where racks are ignored.
        racks: how many racks there are; 0 where they are ignored.
    """

    ids: Int32Array
    rack: Int32Array
    racks: int

    def __len__(self) -> int:
        """The number of brokers, N."""
        return len(self.ids)

    @property
    def shift_factor(self) -> int:
        """How many places the second replica goes on when the shift grows by one."""
        return self.racks or 1

    def growth(self, first: int, partition: int) -> int:
        """By how much the shift has grown at ``partition`` in a layout that begins with ``first``."""
        return partition // len(self) - (max(first, 1) - 1) // len(self)

    def rounds(self, rows: int, start_index: int, shift: int, first: int) -> Iterator[tuple[int, int, int, int]]:
        """Ranges of rows ``lo, hi`` that share one shift, with the leader's position at ``lo`` and that shift.

        Row 0 is partition ``first``. Within a range the leader goes on by one place a row. The shift grows
        at every partition id above 0 that N divides, so at the first row too if it is one of those.
        """
        n = len(self)
        lo = 0
        while lo < rows:
            partition = first + lo
            hi = min(rows, lo + n - partition % n)
            yield lo, hi, (start_index + partition) % n, shift + self.growth(first, partition)
            lo = hi


def ring_of(brokers: Sequence[Broker], rack_aware: bool | None) -> Ring:
    """The ring of these brokers; ``rack_aware`` as in ``place_adminutils``.

    Raises:
        InvalidArgumentError: rack_aware is none of those.
        IncompleteRackError: some brokers have a rack and some have none, or all must have one and lack it.
    """
    if rack_aware is not None:
        rack_aware = checks.flag(rack_aware, "rack_aware")
    names = [] if rack_aware is False else [b.rack for b in brokers]
    racked = len(names) - names.count(None)
    if racked < len(names) and (racked or rack_aware):
        without = tuple(sorted(b.id for b in brokers if b.rack is None))
        raise IncompleteRackError(
            f"not all brokers have a rack, which rack-aware placement needs: {_some(without)} have none",
            without_rack=without,
        )
    ids = np.fromiter((b.id for b in brokers), np.int32, len(brokers))
    if not racked:
        return Ring(ids, np.zeros_like(ids), 0)
    ordered = sorted({name for name in names if name is not None}, key=utf16_order)
    number = {name: i for i, name in enumerate(ordered)}
    rack = np.fromiter((number[name] for name in names if name is not None), np.int32, len(names))
    return _alternate(ids, rack, len(ordered))


def _alternate(ids: Int32Array, rack: Int32Array, racks: int) -> Ring:
    """One broker of each rack in turn, until all are listed."""
    by_rack = np.lexsort((ids, rack))
    ids, rack = ids[by_rack], rack[by_rack]
    size = np.bincount(rack, minlength=racks)
    turn = np.arange(len(ids)) - (np.cumsum(size) - size)[rack]
    order = np.lexsort((rack, turn))
    return Ring(ids[order], rack[order], racks)


def _some(ids: tuple[int, ...]) -> str:
    listed = ", ".join(str(i) for i in ids[:5])
    return f"brokers {listed}" + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
