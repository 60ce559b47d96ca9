"""KRaft's placement of a topic's replicas, as its ``StripedReplicaPlacer`` computes it.

Source of the method: ``org.apache.kafka.metadata.placement.StripedReplicaPlacer`` (KIP-631). The page
``docs/algorithms/striped.md`` explains it. Every number that Kafka draws is drawn here from one source,
in the same order, so the same draws give the same layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from placement import checks
from placement.errors import InvalidArgumentError, InvalidReplicationFactorError
from placement.kafka.java_random import JavaRandom, java_hash_order, java_string_hash, utf16_order
from placement.model import Broker, Int32Array, distinct_brokers
from placement.sizes import check_partitions, check_replicas

T = TypeVar("T")
Draw = Callable[[int], int]
"""Gives a number from 0 to its argument less one, as ``java.util.Random.nextInt`` does."""


def place_striped(
    brokers: Iterable[Broker],
    partitions: int,
    replication_factor: int,
    *,
    seed: int = 0,
    draw: Draw | None = None,
) -> Int32Array:
    """Lay out partitions as KRaft's controller does.

    Args:
        brokers: ``alive`` are those not fenced; ``dead`` are fenced, they follow where no other broker is
            left, and never lead; ``draining`` take nothing.
        partitions: how many to lay out, from 1.
        replication_factor: replicas of each, from 1 to the number of brokers, fenced ones included.
        seed: of ``java.util.Random``.
        draw: replaces the seeded source; brokers are then taken in the order given, as Kafka takes them.

    Returns:
        int32 broker ids, shape ``(partitions, replication_factor)``; column 0 is the preferred leader.

    Raises:
        InvalidPartitionsError: partitions is not positive, or too large (``placement.sizes``).
        InvalidReplicationFactorError: replication_factor is not positive, all brokers are fenced, or there
            are fewer brokers than replicas.
        DuplicateBrokerError: a broker id is given twice.
        InvalidArgumentError: the seed is no whole number, or draw no function that gives numbers below the bound.
    """
    partitions, replication_factor, _ = check_partitions(partitions, replication_factor)
    usable = [b for b in distinct_brokers(brokers) if b.state != "draining"]
    unfenced = sum(b.state == "alive" for b in usable)
    if usable and not unfenced:
        raise InvalidReplicationFactorError(
            f"all {len(usable)} brokers are fenced", replication_factor=replication_factor, brokers=0
        )
    check_replicas(partitions, replication_factor, len(usable))
    if draw is None:
        # Racks whose names fall into one bucket of Kafka's hash table are visited in the order of their first
        # broker: canonical for a seed, as given when Kafka's own draws are replayed.
        usable.sort(key=lambda broker: broker.id)
        draw = JavaRandom(seed).next_int
    else:
        draw = _checked(draw)
    racks = _Racks(usable, draw)
    return np.array([racks.place(replication_factor) for _ in range(partitions)], np.int32)


def _checked(draw: Draw) -> Draw:
    if not callable(draw):
        raise InvalidArgumentError(f"draw is {checks.shown(draw)}: it must be a function", name="draw", value=draw)
    return lambda bound: checks.whole(draw(bound), f"what draw gave for {bound}", 0, bound - 1)


class _Stripe:
    """The fenced or the unfenced brokers of one rack: each partition (epoch) begins one broker further on."""

    __slots__ = ("_brokers", "_epoch", "_index", "_offset")

    def __init__(self, brokers: Sequence[int], draw: Draw) -> None:
        self._brokers = sorted(brokers)
        self._offset = draw(len(brokers)) if brokers else 0
        self._epoch = 0
        self._index = 0

    def next(self, epoch: int) -> int | None:
        """The next broker of this epoch, or None when all were given."""
        if self._epoch != epoch:
            self._epoch = epoch
            self._index = 0
            self._offset += 1
        if self._index >= len(self._brokers):
            return None
        broker = self._brokers[(self._index + self._offset) % len(self._brokers)]
        self._index += 1
        return broker

    def shuffle(self, draw: Draw) -> None:
        _shuffle(self._brokers, draw)


class _Rack:
    """One rack: its unfenced brokers go first."""

    __slots__ = ("fenced", "unfenced")

    def __init__(self, brokers: Sequence[Broker], draw: Draw) -> None:
        self.fenced = _Stripe([b.id for b in brokers if b.state == "dead"], draw)
        self.unfenced = _Stripe([b.id for b in brokers if b.state == "alive"], draw)

    def next(self, epoch: int) -> int | None:
        broker = self.unfenced.next(epoch)
        return self.fenced.next(epoch) if broker is None else broker

    def shuffle(self, draw: Draw) -> None:
        self.fenced.shuffle(draw)
        self.unfenced.shuffle(draw)


class _Racks:
    """All racks; lays out one partition after the other."""

    __slots__ = ("_draw", "_epoch", "_in_hash_order", "_offset", "_order", "_unfenced")

    def __init__(self, brokers: Sequence[Broker], draw: Draw) -> None:
        names = java_hash_order((b.rack for b in brokers), _rack_hash)
        members: dict[str | None, list[Broker]] = {name: [] for name in names}
        for broker in brokers:
            members[broker.rack].append(broker)
        racks = {name: _Rack(members[name], draw) for name in names}
        self._draw = draw
        self._in_hash_order = list(racks.values())
        self._order = [racks[name] for name in sorted(names, key=_rack_order)]
        self._unfenced = sum(b.state == "alive" for b in brokers)
        self._epoch = 0
        self._offset: int | None = None

    def place(self, replication_factor: int) -> list[int]:
        """The replicas of the next partition: one from each rack in turn, an unfenced one first."""
        if self._epoch == self._unfenced and self._unfenced > 1:
            self._shuffle()
        count = len(self._order)
        self._offset = self._draw(count) if self._offset is None else (self._offset + 1) % count
        leading = self._offset
        while (leader := self._order[leading].unfenced.next(self._epoch)) is None:
            leading = (leading + 1) % count
        replicas = [leader]
        # The rack that gave the leader is passed over once, when the turn first comes to it.
        passed = False
        turn = self._offset
        while len(replicas) < replication_factor:
            if turn == leading and not passed:
                passed = True
            elif (broker := self._order[turn].next(self._epoch)) is not None:
                replicas.append(broker)
            turn = (turn + 1) % count
        self._epoch += 1
        return replicas

    def _shuffle(self) -> None:
        _shuffle(self._order, self._draw)
        for rack in self._in_hash_order:
            rack.shuffle(self._draw)
        self._epoch = 0


def _shuffle(items: list[T], draw: Draw) -> None:
    """``Collections.shuffle``."""
    for i in range(len(items) - 1, 0, -1):
        other = draw(i + 1)
        items[i], items[other] = items[other], items[i]


def _rack_hash(rack: str | None) -> int:
    return 0 if rack is None else java_string_hash(rack)


def _rack_order(rack: str | None) -> tuple[bool, bytes]:
    return rack is not None, utf16_order(rack or "")
