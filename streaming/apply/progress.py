"""How far a wave has come: replicas in sync, bytes and records to copy, time left."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from streaming.amounts import bytes_text
from streaming.apply.explain import counted
from streaming.apply.journal.tasks import Place
from streaming.apply.kafka.cluster import Cluster
from streaming.apply.kafka.seen import Seen
from streaming.apply.steps import Move, MoveWave

Amounts = Mapping[tuple[int, Place], int]
"""Bytes or offsets by broker and partition."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One look at a wave.

    Attributes:
        wave: its number.
        in_sync, replicas: of the replicas that the wave adds.
        bytes_left, records_left: what is to be copied still; 0 where brokers do not say.
        seconds_left: at the pace so far, ``None`` where nothing was copied yet.
    """

    wave: int
    in_sync: int
    replicas: int
    bytes_left: int
    records_left: int
    seconds_left: float | None = None

    @property
    def text(self) -> str:
        """The same for a person."""
        parts = [f"wave {self.wave}: {self.in_sync} of {counted(self.replicas, 'replica')} in sync"]
        if self.bytes_left:
            parts.append(f"{bytes_text(self.bytes_left)} to copy")
        if self.records_left:
            parts.append(f"{self.records_left} records behind")
        if self.bytes_left and self.seconds_left is not None:
            parts.append(f"about {self.seconds_left:.0f} s left")
        return ", ".join(parts)


@dataclass(slots=True)
class Pace:
    """Estimates the time left from how many bytes were left before."""

    _first: tuple[float, int] | None = None

    def seconds_left(self, now: float, bytes_left: int) -> float | None:
        """Seconds until nothing is left, as fast as since the first call."""
        if self._first is None:
            self._first = (now, bytes_left)
            return None
        began, at_first = self._first
        copied = at_first - bytes_left
        return bytes_left * (now - began) / copied if copied > 0 else None


def measure(cluster: Cluster, wave: MoveWave, seen: Seen, done: Collection[Place]) -> Progress:
    """Look at the logs of the replicas that the wave's open moves copy from and to."""
    still = [move for move in wave.moves if move.place not in done and move.incoming]
    holders = {broker: [m.place for m in still if broker in (*m.now, *m.incoming)] for broker in seen.alive}
    busy = {broker: places for broker, places in holders.items() if places}
    sizes = cluster.sizes(busy)
    offsets = cluster.end_offsets(busy)
    replicas = sum(len(move.incoming) for move in wave.moves)
    return Progress(
        wave.number,
        sum(_in_sync(move, seen, done) for move in wave.moves),
        replicas,
        _left(still, sizes),
        _left(still, offsets),
    )


def _in_sync(move: Move, seen: Seen, done: Collection[Place]) -> int:
    if move.place in done:
        return len(move.incoming)
    there = seen.partitions.get(move.place)
    return sum(b in there.isr for b in move.incoming) if there else 0


def _left(moves: Sequence[Move], amounts: Amounts) -> int:
    """How far the new replicas are behind the longest old one."""
    left = 0
    for move in moves:
        whole = max((amounts.get((b, move.place), 0) for b in move.now), default=0)
        left += sum(max(whole - amounts.get((b, move.place), 0), 0) for b in move.incoming)
    return left
