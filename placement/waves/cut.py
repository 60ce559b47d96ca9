"""Waves: cut a plan into ordered parts that a cluster can carry out one after the other.

Goal: few waves, the most endangered partitions in the first ones.
Constraints: in one wave a broker receives and sends no more replicas (and bytes) than its limits; a partition is in one
wave only. Every part of a plan is safe for itself, because each partition changes on its own. A partition of which no
replica is in sync is left out: nothing could be copied, and a reassignment would give its data up.
Method: first fit. Partitions in the order (in-sync replicas, most copies, busiest broker) each take the first wave in
which all their brokers have room; one bit mask of full waves per broker finds it.
Bound: the largest number of waves that one broker needs for what it receives or sends alone.
Example: limit 1, moves 1 -> 3, 2 -> 3 and 1 -> 4: broker 3 receives twice, broker 1 sends twice, so the bound is 2, and
waves {1 -> 3} and {2 -> 3, 1 -> 4} meet it.
Where first fit misses the bound and every partition gets one replica, an edge colouring meets it (see ``colouring``).
Cost: O(moves * waves / word). Weakness: with several replicas a partition, or bytes, the bound may be missed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from placement import checks
from placement.arrays import BoolArray, Int64Array
from placement.errors import InvalidLimitError
from placement.kafka.reassignment_json import reassignment_json
from placement.model import NO_BROKER, Broker, Int32Array, only_brokers
from placement.plan import Moves
from placement.waves.colouring import colour_edges


@dataclass(frozen=True, slots=True)
class WaveLimits:
    """What one broker may receive and send in one wave; bytes count only where sizes are known.

    A partition that alone is above a limit still gets a wave, in which its brokers do nothing else that is limited so.

    Raises:
        InvalidLimitError: a limit is no whole number, or below 1.
    """

    moves_in: int = 5
    moves_out: int = 5
    bytes_in: int | None = None
    bytes_out: int | None = None

    def __post_init__(self) -> None:
        """Reject limits with which nothing could ever move."""
        for name in ("moves_in", "moves_out", "bytes_in", "bytes_out"):
            if checks.limit(getattr(self, name), name, 1) is None and name.startswith("moves"):
                raise InvalidLimitError(f"{name} is None: it must be a whole number", name=name, value=None)


@dataclass(frozen=True, slots=True, eq=False)
class Waves:
    """A plan in waves.

    Attributes:
        moves: the plan's moves.
        wave: int32, shape ``(M,)``: the wave of each move, from 1; 0 for those that are left out.
        count: how many waves there are.
        bound: no division under the same limits has fewer.
    """

    moves: Moves
    wave: Int32Array
    count: int
    bound: int

    def of(self, number: int) -> Moves:
        """The moves of one wave, from 1."""
        return self.moves.take(np.flatnonzero(self.wave == number))

    @property
    def left_out(self) -> Moves:
        """The moves of partitions of which no replica is in sync."""
        return self.of(0)

    def to_json(self, number: int) -> str:
        """Kafka's reassignment JSON of one wave, from 1."""
        return reassignment_json((move.topic, move.partition, move.after) for move in self.of(number))


def in_waves(
    moves: Moves, in_sync: Int32Array, limits: WaveLimits | None = None, *, sizes: Int64Array | None = None
) -> Waves:
    """Divide a plan.

    Args:
        moves: the changed partitions.
        in_sync: int32 broker ids, shape ``(M, S)``, padded with -1: the in-sync replicas of each, or, where the ISR is
            not known, what :func:`replicas_up` gives. The first of ``before`` that is among them serves the copies.
        limits: per broker and wave.
        sizes: bytes of one replica of each partition, int64, shape ``(M,)``.

    Raises:
        PlacementError: an argument is of another type than it must be, or of other partitions.
    """
    checks.instance(moves, Moves, "moves")
    limits = WaveLimits() if limits is None else checks.instance(limits, WaveLimits, "limits")
    in_sync = checks.matrix(in_sync, "in_sync", len(moves))
    fresh = moves.new_replicas()
    copies = fresh.sum(axis=1)
    safe = (in_sync != NO_BROKER).any(axis=1)
    sender = _senders(moves.before, in_sync)
    size = np.zeros(len(moves), np.int64) if sizes is None else checks.amounts(sizes, "sizes", len(moves))
    bound = _bound(moves, fresh & safe[:, None], sender, size, limits)
    wave = np.where(safe, 1, 0).astype(np.int32)
    planner = _FirstFit(limits)
    order = _order(moves, fresh, sender, in_sync, safe & (copies > 0))
    for index in order.tolist():
        receivers = moves.after[index][fresh[index]].tolist()
        wave[index] = planner.place(int(sender[index]), receivers, int(size[index]))
    by_moves_alone = limits.bytes_in is None and limits.bytes_out is None
    if int(wave.max(initial=0)) > bound and by_moves_alone and (copies[order] == 1).all():
        receiver = moves.after[order, fresh[order].argmax(axis=1)]
        wave[order] = colour_edges(list(zip(sender[order].tolist(), receiver.tolist(), strict=True)), bound)
        wave[order] += 1
    return Waves(moves, wave, int(wave.max(initial=0)), max(bound, int(wave.any())))


def replicas_up(moves: Moves, brokers: Iterable[Broker]) -> Int32Array:
    """The replicas before that are on live or draining brokers, int32, shape of ``moves.before``, -1 elsewhere.

    Raises:
        PlacementError: an argument is of another type than it must be.
    """
    checks.instance(moves, Moves, "moves")
    up = np.array(sorted(b.id for b in only_brokers(brokers) if b.state != "dead"), np.int32)
    return np.where(np.isin(moves.before, up), moves.before, NO_BROKER).astype(np.int32)


def _senders(before: Int32Array, in_sync: Int32Array) -> Int32Array:
    """The broker that serves copies: the first of the replica list that is in sync, int32, shape ``(M,)``."""
    able = (before[:, :, None] == in_sync[:, None, :]).any(axis=2) & (before != NO_BROKER)
    first = before[np.arange(before.shape[0]), able.argmax(axis=1)] if before.size else before[:, 0]
    return np.asarray(np.where(able.any(axis=1), first, in_sync[:, 0] if in_sync.shape[1] else NO_BROKER), np.int32)


def _order(moves: Moves, fresh: BoolArray, sender: Int32Array, in_sync: Int32Array, which: BoolArray) -> Int64Array:
    """Places of the moves that copy data: the most endangered first, then those that are hardest to fit in."""
    copies = fresh.sum(axis=1)
    ids, local = np.unique(np.concatenate([moves.after[fresh & which[:, None]], sender[which]]), return_inverse=True)
    received = np.bincount(local[: int(copies[which].sum())], minlength=ids.size)
    sent = np.bincount(local[int(copies[which].sum()) :], weights=copies[which], minlength=ids.size)
    busy = np.maximum(received, sent)
    rows = np.flatnonzero(which)
    degree = busy[np.searchsorted(ids, sender[rows])]
    for column in range(moves.after.shape[1]):
        broker = moves.after[rows, column]
        at = np.minimum(np.searchsorted(ids, broker), max(ids.size - 1, 0))
        degree = np.maximum(degree, np.where(fresh[rows, column], busy[at], 0))
    survivors = (in_sync[rows] != NO_BROKER).sum(axis=1)
    return rows[np.lexsort((rows, -degree, -copies[rows], survivors))]


def _bound(
    moves: Moves,
    fresh: BoolArray,
    sender: Int32Array,
    size: Int64Array,
    limits: WaveLimits,
) -> int:
    """The waves that the busiest broker needs."""
    copies = fresh.sum(axis=1)
    row, column = np.nonzero(fresh)
    sending = copies > 0
    receiver = np.unique(moves.after[row, column], return_inverse=True)[1]
    server = np.unique(sender[sending], return_inverse=True)[1]
    needs = [
        (receiver, np.ones(row.size, np.int64), limits.moves_in),
        (server, copies[sending], limits.moves_out),
        (receiver, size[row], limits.bytes_in),
        (server, (size * copies)[sending], limits.bytes_out),
    ]
    # What alone is above a limit fills one wave, and no more than one.
    return max(
        int(-(-np.bincount(broker, weights=np.minimum(amount, limit)).max(initial=0) // limit))
        for broker, amount, limit in needs
        if limit is not None
    )


class _FirstFit:
    """Waves being filled: what each broker receives and sends in each, and which are full for it."""

    __slots__ = ("_full", "_limits", "_used")

    def __init__(self, limits: WaveLimits) -> None:
        ways = {
            "in": {"moves": limits.moves_in, "bytes": limits.bytes_in},
            "out": {"moves": limits.moves_out, "bytes": limits.bytes_out},
        }
        self._limits = {
            way: [(unit, limit) for unit, limit in of.items() if limit is not None] for way, of in ways.items()
        }
        self._used: dict[tuple[str, str, int, int], int] = {}
        self._full: dict[tuple[str, int], int] = {}

    def place(self, sender: int, receivers: list[int], size: int) -> int:
        """The first wave, from 1, in which everyone has room; it is taken."""
        demands = [("out", sender, len(receivers)), *(("in", broker, 1) for broker in receivers)]
        taken = 0
        for way, broker, _ in demands:
            taken |= self._full.get((way, broker), 0)
        wave = _lowest_free(taken)
        while not all(self._fits(way, broker, wave, copies, size) for way, broker, copies in demands):
            taken |= 1 << wave
            wave = _lowest_free(taken)
        for way, broker, copies in demands:
            self._take(way, broker, wave, copies, size)
        return wave + 1

    def _fits(self, way: str, broker: int, wave: int, copies: int, size: int) -> bool:
        for unit, limit in self._limits[way]:
            used = self._used.get((way, unit, broker, wave), 0)
            if used and used + (copies if unit == "moves" else copies * size) > limit:
                return False
        return True

    def _take(self, way: str, broker: int, wave: int, copies: int, size: int) -> None:
        for unit, limit in self._limits[way]:
            key = (way, unit, broker, wave)
            self._used[key] = self._used.get(key, 0) + (copies if unit == "moves" else copies * size)
            if self._used[key] >= limit:
                self._full[way, broker] = self._full.get((way, broker), 0) | 1 << wave


def _lowest_free(mask: int) -> int:
    return (~mask & (mask + 1)).bit_length() - 1
