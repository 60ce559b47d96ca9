"""Verify how replicas are spread over racks: the brokers that count, and by how much a row is outside its window.

Nothing here is shared with the steps that make plans.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from placement import checks
from placement.model import NO_BROKER, Broker, Int32Array, distinct_brokers

_Spread = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """The brokers that changes are checked against, worked out once for many checks.

    Attributes:
        ids: int32 broker ids, shape ``(B,)``, ascending.
        rack: int64, shape ``(B,)``: the rack of each as an index.
        alive, up, excluded: int32 broker ids, ascending; ``up`` are those that are not dead.
        size: int64, shape ``(racks,)``: brokers of each rack that are alive and not excluded.
    """

    ids: Int32Array
    rack: NDArray[np.int64]
    alive: Int32Array
    up: Int32Array
    excluded: Int32Array
    size: NDArray[np.int64]
    _spreads: dict[int, _Spread] = field(default_factory=dict)

    @classmethod
    def of(cls, brokers: Iterable[Broker], exclude_brokers: Collection[int] = ()) -> Members:
        """The members that these brokers are.

        Raises:
            InvalidBrokerError, DuplicateBrokerError: something is no broker or no id of one, or is given twice.
        """
        known = sorted(distinct_brokers(brokers), key=lambda b: b.id)
        racks = sorted({b.rack or "" for b in known})
        place = {rack: i for i, rack in enumerate(racks)}
        ids = np.array([b.id for b in known], np.int32)
        rack = np.array([place[b.rack or ""] for b in known], np.int64)
        alive = np.array([b.id for b in known if b.state == "alive"], np.int32)
        up = np.array([b.id for b in known if b.state != "dead"], np.int32)
        excluded = np.array(sorted(checks.broker_ids(exclude_brokers, "exclude_brokers")), np.int32)
        free = among(ids, alive) & ~among(ids, excluded)
        return cls(ids, rack, alive, up, excluded, np.bincount(rack[free], minlength=len(racks)))

    def without(self, brokers: Collection[int]) -> Members:
        """The same with racks that are only as large as the other brokers in them."""
        closed = among(self.ids, np.array(sorted(brokers), np.int32))
        free = among(self.ids, self.alive) & ~among(self.ids, self.excluded) & ~closed
        return replace(self, size=np.bincount(self.rack[free], minlength=self.size.size), _spreads={})

    def spread(self, stay: NDArray[np.int64], largest: int) -> _Spread:
        """Most and fewest replicas that each rack holds, for each replication factor up to the largest."""
        if stay.any():
            return _even_spread(self.size + stay, stay, largest)
        if largest not in self._spreads:
            self._spreads[largest] = _even_spread(self.size, stay, largest)
        return self._spreads[largest]


def among(values: Int32Array, ids: Int32Array) -> NDArray[np.bool_]:
    """Whether each value is one of the ascending ids."""
    if not ids.size:
        return np.zeros(values.shape, np.bool_)
    return np.asarray(ids[np.minimum(ids.searchsorted(values), ids.size - 1)] == values)


def deviation(rows: Int32Array, members: Members) -> NDArray[np.int64]:
    """By how many replicas each row is outside the even spread over racks.

    The even spread raises all racks together, each up to the brokers it has, until the replicas fit. Excluded brokers
    count for the rows that they hold, and what they hold stays.
    """
    if not members.ids.size:
        return np.zeros(rows.shape[0], np.int64)
    place = np.minimum(members.ids.searchsorted(rows), members.ids.size - 1)
    known = members.ids[place] == rows
    kept = known & among(rows, members.excluded)
    where = np.where(known & (among(rows, members.alive) | kept), members.rack[place], -1)
    factor = (rows != NO_BROKER).sum(axis=1)
    if not kept.any():
        return _outside(where, factor, members, np.zeros(members.size.size, np.int64))
    result = np.zeros(rows.shape[0], np.int64)
    pattern = np.sort(np.where(kept, where, -1), axis=1)
    for held in np.unique(pattern, axis=0):
        same = np.flatnonzero((pattern == held).all(axis=1))
        stay = np.bincount(held[held >= 0], minlength=members.size.size)
        result[same] = _outside(where[same], factor[same], members, stay)
    return result


def _outside(
    where: NDArray[np.int64], factor: NDArray[np.int64], members: Members, stay: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Deviation of rows given by the rack of each replica, shape ``(m, R)``, -1 where there is none."""
    most, least = members.spread(stay, int(factor.max(initial=0)))
    row, slot = np.nonzero(where >= 0)
    cell, count = np.unique(row * stay.size + where[row, slot], return_counts=True)
    row_of, rack_of = cell // stay.size, cell % stay.size
    above = np.maximum(count - most[factor[row_of], rack_of], 0)
    covered = np.minimum(count, least[factor[row_of], rack_of])
    excess = np.bincount(row_of, weights=above, minlength=factor.size)
    lack = least.sum(axis=1)[factor] - np.bincount(row_of, weights=covered, minlength=factor.size)
    return np.asarray(np.maximum(excess, lack), np.int64)


def _even_spread(size: NDArray[np.int64], stay: NDArray[np.int64], largest: int) -> _Spread:
    """Most and fewest replicas that each rack holds, for each replication factor up to the largest."""
    most = np.zeros((largest + 1, size.size), np.int64)
    least = np.zeros((largest + 1, size.size), np.int64)
    height = 0
    for factor in range(1, largest + 1):
        while height < largest and np.maximum(np.minimum(height, size), stay).sum() < factor:
            height += 1
        most[factor] = np.maximum(np.minimum(height, size), stay)
        least[factor] = np.maximum(np.minimum(max(height - 1, 0), size), stay)
    return most, least
