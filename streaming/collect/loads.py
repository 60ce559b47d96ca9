"""From two looks at the loads of a cluster to the events that tell them; pure.

Bytes that come in are what the leader's log has grown by. Where its beginning has moved meanwhile, or it has shrunk,
they are the records that came in, each as large as those in the log are on average; of the two looks the one with the
smaller average counts, because a log whose beginning a client has moved still holds records that it no longer counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import fsum
from typing import Final

import msgspec

from streaming.amounts import ByteAmount
from streaming.collect.ids import identified
from streaming.collect.measuring import Look, PartitionMeasure, TopicMeasure
from streaming.collect.rates.values import Rate, Rates
from streaming.config import Capacities, Capacity, Collect
from streaming.events import AnyEvent, LoadObserved, ObservedLimits, ObservedLoad, ObservedLogDir
from streaming.kafka.log_dirs import LogDirs

AT_ONCE: Final = 10_000
"""Partitions and brokers in one event."""

BYTES_AT_ONCE: Final = 900_000
"""Bytes of them in one event, which stays below the megabyte that a Kafka record may have."""

_MOST: Final = 2**50
"""The largest amount that an event may name."""

_UNKNOWN: Final = Rate()


def observed(
    before: Iterable[TopicMeasure],
    now: Look,
    seconds: float,
    rates: Rates,
    settings: Collect,
    *,
    cluster_id: str,
    at: datetime,
) -> list[AnyEvent]:
    """The events of a look, which share its moment.

    Args:
        before: the topics of the look before; none at the first one.
        now: this look.
        seconds: between the two; where that is not above 0, nothing is said of what came in.
        rates: count before what was found by looking.
        settings: say what brokers can take.
        cluster_id: what the events call the cluster.
        at: when it was looked at.
    """
    items: list[ObservedLimits | ObservedLoad] = [
        *_limits(now.log_dirs, settings.capacities),
        *_loads(before if seconds > 0 else (), now.topics, seconds, rates),
    ]
    return [
        identified(
            LoadObserved(
                event_id="",
                cluster_id=cluster_id,
                occurred_at=at,
                partitions=[item for item in part if isinstance(item, ObservedLoad)] or None,
                brokers=[item for item in part if isinstance(item, ObservedLimits)] or None,
                bytes_out_per_byte_in=settings.bytes_out_per_byte_in,
            )
        )
        for part in _parts(items)
    ]


def written(before: PartitionMeasure, now: PartitionMeasure) -> float | None:
    """Bytes that came in between two looks at a partition; ``None`` where that cannot be told."""
    if before.end is None or now.end is None or before.held is None or now.held is None or now.end < before.end:
        return None
    if now.end == before.end:
        return 0.0
    if now.start == before.start and now.held > before.held:
        return float(now.held - before.held)
    means = [
        one.held / (one.end - one.start)
        for one in (before, now)
        if one.held and one.end is not None and one.start is not None and one.end > one.start
    ]
    return max((now.end - before.end) * min(means), float(now.held - before.held)) if means else None


def _loads(
    before: Iterable[TopicMeasure], now: Iterable[TopicMeasure], seconds: float, rates: Rates
) -> Iterator[ObservedLoad]:
    earlier = {(topic.name, topic.id): {p.partition: p for p in topic.partitions} for topic in before}
    for topic in now:
        known = earlier.get((topic.name, topic.id), {})
        seen = [_rate(known.get(p.partition), p, seconds) for p in topic.partitions]
        told = _told(topic, "bytes_in", rates, seen)
        bytes_in = [one if source is None else source for source, one in zip(told, seen, strict=True)]
        bytes_out = _told(topic, "bytes_out", rates, bytes_in)
        for partition, taken, given in zip(topic.partitions, bytes_in, bytes_out, strict=True):
            values = partition.size, _whole(taken), _whole(given)
            if values != (None, None, None):
                yield ObservedLoad(topic.name, partition.partition, *values)


def _rate(before: PartitionMeasure | None, now: PartitionMeasure, seconds: float) -> float | None:
    amount = None if before is None else written(before, now)
    return None if amount is None else amount / seconds


def _told(topic: TopicMeasure, quantity: str, rates: Rates, weights: Sequence[float | None]) -> list[float | None]:
    """What the source says of each partition; what it says of the topic is divided among the others by weight."""
    found = [getattr(rates.get((topic.name, p.partition), _UNKNOWN), quantity) for p in topic.partitions]
    whole = getattr(rates.get((topic.name, None), _UNKNOWN), quantity)
    rest = [i for i, rate in enumerate(found) if rate is None]
    if whole is not None and rest:
        parts = [weights[i] or 0.0 for i in rest]
        total = fsum(parts)
        for i, part in zip(rest, parts, strict=True):
            found[i] = whole * part / total if total else whole / len(rest)
    return found


def _whole(rate: float | None) -> int | None:
    return None if rate is None else min(round(rate), _MOST)


def _limits(log_dirs: Mapping[int, LogDirs], capacities: Capacities) -> Iterator[ObservedLimits]:
    """What is known of brokers that have said something."""
    for broker, found in sorted(log_dirs.items()):
        own = capacities.brokers.get(str(broker), Capacity())
        disk, bytes_in, bytes_out = (
            _amount(getattr(own, name), getattr(capacities, name)) for name in ("disk", "bytes_in", "bytes_out")
        )
        limits = ObservedLimits(
            broker,
            disk,
            bytes_in,
            bytes_out,
            capacities.cpu if own.cpu is None else own.cpu,
            _disks(found),
        )
        if limits != ObservedLimits(broker):
            yield limits


def _amount(own: ByteAmount | None, general: ByteAmount | None) -> int | None:
    found = general if own is None else own
    return None if found is None else found.bytes


def _disks(found: LogDirs) -> list[ObservedLogDir] | None:
    """The directories, if the broker says how large they are; what is not free on their volumes is used."""
    if not found.there or any(one.total is None for one in found.there):
        return None
    return [
        ObservedLogDir(one.path, min(one.total, _MOST), min(max(one.total - one.usable, 0), _MOST))
        for one in found.there
        if one.total is not None and one.usable is not None
    ]


def _parts(items: Iterable[ObservedLimits | ObservedLoad]) -> Iterator[list[ObservedLimits | ObservedLoad]]:
    part: list[ObservedLimits | ObservedLoad] = []
    size = 0
    for item in items:
        length = len(msgspec.json.encode(item)) + 1
        if part and (len(part) == AT_ONCE or size + length > BYTES_AT_ONCE):
            yield part
            part, size = [], 0
        part.append(item)
        size += length
    if part:
        yield part
