"""The rack-aware search of AdminUtils, for whole columns at a time.

Kafka walks the ring broker by broker from the place that the shift gives, and takes the first broker of
a rack that the partition does not have yet. What that walk finds is, for every place, the first broker
of each further rack, in order of appearance and without the leader's rack: so one table, made once, gives
all replicas up to the number of racks. Replicas beyond that go to the next brokers not yet taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from placement.kafka.adminutils.ring import Ring
from placement.model import Int32Array

Shift = TypeVar("Shift", int, NDArray[np.int64])
Index = slice | NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class NearestRacks:
    """For every place on the ring, the first brokers of different racks met from there on.

    Attributes:
        rack: per depth, the int32 rack of the broker met, shape ``(2 N,)``: places run twice round.
        position: per depth, its int32 place from 0 to N-1, shape ``(2 N,)``.
        broker: per depth, its int32 id, shape ``(2 N,)``.
    """

    rack: tuple[Int32Array, ...]
    position: tuple[Int32Array, ...]
    broker: tuple[Int32Array, ...]


def nearest_racks(ring: Ring, depth: int) -> NearestRacks:
    """The table for the first ``depth`` racks, or as many as there are.

    Let q be the first place after p that has another rack. What is met from p on, after p itself, is what
    is met from q on without p's rack. Where that takes an entry of q that is still unknown, follow q.
    """
    here = np.arange(len(ring))
    positions = [here]
    following = here
    if min(depth, ring.racks) > 1:
        after = np.roll(here, -1)
        following = _follow(after, ring.rack[after] != ring.rack, after)
        positions.append(following)
    while len(positions) < min(depth, ring.racks):
        met = np.zeros(len(ring), bool)
        for position in positions:
            met |= ring.rack[position[following]] == ring.rack
        positions.append(_follow(positions[-1][following], ~met, following))
    return NearestRacks(
        rack=tuple(np.tile(ring.rack[p], 2) for p in positions),
        position=tuple(np.tile(p.astype(np.int32), 2) for p in positions),
        broker=tuple(np.tile(ring.ids[p], 2) for p in positions),
    )


def _follow(value: NDArray[np.int64], known: NDArray[np.bool_], link: NDArray[np.int64]) -> NDArray[np.int64]:
    """The value of the first place with a known one, from each place along its links; each step doubles."""
    target = np.where(known, np.arange(len(link)), link)
    while not known[target].all():
        target = target[target]
    return value[target]


def place_on_racks(ring: Ring, out: Int32Array, start_index: int, shift: int, first: int) -> None:
    """Fill ``out``, shape ``(partitions, replication_factor)``, with the broker ids of partitions from ``first`` on."""
    nearest = nearest_racks(ring, out.shape[1])
    ids = np.tile(ring.ids, 2)
    places = np.tile(np.arange(len(ring), dtype=np.int32), 2)
    for lo, hi, leader, shifted in ring.rounds(len(out), start_index, shift, first):
        begin = walk_begin(ring, leader, shifted)
        here, there = slice(leader, leader + hi - lo), slice(begin, begin + hi - lo)
        out[lo:hi, 0] = ids[here]
        for j, column in enumerate(follower_columns(ring, nearest, places[here], there, out.shape[1]), start=1):
            out[lo:hi, j] = column


def walk_begin(ring: Ring, leader: int, shift: Shift) -> Shift:
    """The place from which the search for followers begins, for the leader's place and one shift or many."""
    n = len(ring)
    return (leader + 1 + shift * ring.shift_factor % max(1, n - 1)) % n


def follower_columns(
    ring: Ring, nearest: NearestRacks, leader: Int32Array, begin: Index, replication_factor: int
) -> list[Int32Array]:
    """Broker ids of the followers, a column each, for the leaders' places and the places ``begin`` to search from."""
    leader_rack = ring.rack[leader]
    if replication_factor <= ring.racks:
        return _new_racks(leader_rack, nearest, nearest.broker, begin, replication_factor)
    taken = [leader, *_new_racks(leader_rack, nearest, nearest.position, begin, ring.racks)]
    place = taken[-1] + 1 if ring.racks > 1 else nearest.position[0][begin]
    while len(taken) < replication_factor:
        place = _next_free(place, taken, len(ring))
        taken.append(place)
        place = place + 1
    return [ring.ids[position] for position in taken[1:]]


def _new_racks(
    leader_rack: Int32Array, nearest: NearestRacks, answer: Sequence[Int32Array], begin: Index, racks: int
) -> list[Int32Array]:
    """The first broker of each further rack: those met from ``begin`` on, but for the leader's rack."""
    met_leader = np.zeros(leader_rack.shape, bool)
    columns = []
    for depth in range(1, racks):
        met_leader |= nearest.rack[depth - 1][begin] == leader_rack
        columns.append(np.where(met_leader, answer[depth][begin], answer[depth - 1][begin]))
    return columns


def _next_free(place: Int32Array, taken: Sequence[Int32Array], brokers: int) -> Int32Array:
    """The first place from ``place`` on that the partition does not use yet."""
    place = place % brokers
    while True:
        used = np.zeros(place.shape, bool)
        for position in taken:
            used |= position == place
        if not used.any():
            return place
        place = (place + used) % brokers
