"""Brokers as columns: the usable ones sorted by rack, so that every rack is a slice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from placement.arrays import BoolArray, Float64Array, Int64Array
from placement.errors import IncompleteRackError, InvalidBrokerError
from placement.model import NO_BROKER, Broker, Int32Array, distinct_brokers
from placement.replica_counts import distinct_ids

_DENSE_IDS = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class Fleet:
    """Broker columns. The index of a broker is its place in ``ids``.

    Attributes:
        ids: int32, shape ``(B,)``: first the usable brokers (alive, not excluded) by rack and id, then the
            held ones (excluded: they keep what they have), then the lost ones (dead, draining, unknown).
        usable: how many are usable.
        present: how many are usable or held.
        rack: int32, shape ``(B,)``: rack index, -1 for lost ones whose rack is unknown or has no other broker.
        racks: the names behind the rack indices.
        bounds: int64, shape ``(racks + 1,)``: rack r is ``ids[bounds[r]:bounds[r + 1]]``.
        capacity: float64, shape ``(present,)``, scaled to a mean of 1.
        draining: bool, shape ``(B,)``: lost, but still up.
        leads: bool, shape ``(B,)``: may lead partitions; usable, or held and alive.
        rack_size: int64, shape ``(racks,)``: usable brokers of each rack.
    """

    ids: Int32Array
    usable: int
    present: int
    rack: Int32Array
    racks: tuple[str | None, ...]
    bounds: Int64Array
    capacity: Float64Array
    draining: BoolArray
    leads: BoolArray
    rack_size: Int64Array = field(init=False)

    def __post_init__(self) -> None:
        """Count the racks once: they are asked for in every step."""
        object.__setattr__(self, "rack_size", np.diff(self.bounds))

    def index_of(self, ids: Int32Array) -> Int32Array:
        """Indices of broker ids, any shape; padding stays -1. Every id must be known."""
        flat = ids.reshape(-1)
        largest = int(self.ids.max(initial=0))
        if largest < _DENSE_IDS:
            table = np.full(largest + 2, NO_BROKER, np.int32)
            table[self.ids] = np.arange(self.ids.size, dtype=np.int32)
            return table[flat].reshape(ids.shape)
        order = np.argsort(self.ids)
        place = np.searchsorted(self.ids[order], flat)
        found = order[np.minimum(place, order.size - 1)].astype(np.int32)
        return np.where(flat == NO_BROKER, np.int32(NO_BROKER), found).reshape(ids.shape)


def fleet_of(brokers: Iterable[Broker], *, held: frozenset[int] = frozenset(), seen: Int32Array | None = None) -> Fleet:
    """Sort brokers into columns.

    Args:
        brokers: in any order; the result does not depend on it.
        held: ids of excluded brokers.
        seen: ids that a layout names; those that are not among the brokers count as dead.

    Raises:
        DuplicateBrokerError: an id appears twice.
        InvalidBrokerError: no broker is usable, or an excluded id is not among the brokers.
        IncompleteRackError: some live brokers have a rack and some have none.
    """
    known = sorted(distinct_brokers(brokers), key=lambda b: b.id)
    _check_held(held, known)
    names = _rack_names(known, held)
    rank = {name: r for r, name in enumerate(names)}
    usable = sorted((b for b in known if b.state == "alive" and b.id not in held), key=lambda b: (rank[b.rack], b.id))
    if not usable:
        raise InvalidBrokerError("no usable broker is left", broker=None, field="state", value=len(known))
    kept = [b for b in known if b.id in held]
    lost = [b for b in known if b.state != "alive" and b.id not in held]
    unknown = _unknown(known, seen)
    present = usable + kept
    racks = np.array([rank.get(b.rack, NO_BROKER) for b in present + lost] + [NO_BROKER] * unknown.size, np.int32)
    capacity = np.array([b.capacity for b in present], np.float64)
    return Fleet(
        ids=np.concatenate([np.array([b.id for b in present + lost], np.int32), unknown]),
        usable=len(usable),
        present=len(present),
        rack=racks,
        racks=names,
        bounds=np.searchsorted(racks[: len(usable)], np.arange(len(names) + 1)),
        capacity=capacity / capacity.mean(),
        draining=_flags([b.state == "draining" and b.id not in held for b in present + lost], unknown.size),
        leads=_flags([b.state == "alive" for b in present + lost], unknown.size),
    )


def _flags(known: list[bool], unknown: int) -> BoolArray:
    return np.array(known + [False] * unknown, np.bool_)


def count_in_rack(fleet: Fleet, replicas: Int32Array, rack: Int32Array) -> Int64Array:
    """Replicas of each row in the given rack: shapes ``(m, W)`` and ``(m,)``."""
    # Index -1 reads the last broker's rack, so empty places are masked afterwards.
    here = (fleet.rack[replicas] == rack[:, None]) & (replicas != NO_BROKER)
    return np.asarray(here.sum(axis=1))


def _check_held(held: frozenset[int], known: list[Broker]) -> None:
    strangers = sorted(held - {b.id for b in known})
    if strangers:
        raise InvalidBrokerError(
            f"excluded broker {strangers[0]} is not among the brokers", broker=strangers[0], field="id", value=strangers
        )


def _rack_names(known: list[Broker], held: frozenset[int]) -> tuple[str | None, ...]:
    """Rack names in code point order.

    Only brokers that can hold replicas after the plan are asked for one.
    """
    placed = [b for b in known if b.state == "alive" or b.id in held]
    without = tuple(b.id for b in placed if b.rack is None)
    if without and len(without) < len(placed):
        raise IncompleteRackError(f"some brokers have a rack and {list(without)} have none", without_rack=without)
    named = {b.rack for b in placed}
    return (None,) if None in named else tuple(sorted(name for name in named if name is not None))


def _unknown(known: list[Broker], seen: Int32Array | None) -> Int32Array:
    if seen is None:
        return np.zeros(0, np.int32)
    return np.setdiff1d(distinct_ids(seen), np.array([b.id for b in known], np.int32)).astype(np.int32)
