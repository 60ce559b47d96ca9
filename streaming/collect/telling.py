"""Events of a look in a few words, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from streaming.events import (
    AnyEvent,
    AssignmentObserved,
    BrokerChanged,
    BrokerJoined,
    BrokerLeft,
    ClusterIdentified,
    LoadObserved,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)

SHOWN: Final = 6


def told(events: Sequence[AnyEvent]) -> str:
    """What happened, shortened where it is much."""
    sentences = list(_sentences(events))
    more = [f"and {len(sentences) - SHOWN} more"] if len(sentences) > SHOWN else []
    return "; ".join(sentences[:SHOWN] + more)


def _sentences(events: Sequence[AnyEvent]) -> Iterator[str]:
    for event in events:
        match event:
            case BrokerJoined():
                yield f"broker {event.broker_id} is up" + (f" in rack {event.rack}" if event.rack else "")
            case BrokerLeft():
                yield f"broker {event.broker_id} {event.reason}"
            case BrokerChanged():
                yield f"broker {event.broker_id} is in rack {event.rack}"
            case TopicCreated():
                yield f"topic {event.topic} created with {len(event.replica_assignment or ())} partitions"
            case PartitionsAdded():
                yield f"topic {event.topic} grown to {event.partitions} partitions"
            case TopicDeleted():
                yield f"topic {event.topic} deleted"
            case AssignmentObserved():
                yield f"{len(event.partitions)} partitions observed"
            case ClusterIdentified():
                yield f"it is Kafka cluster {event.kafka_cluster_id}"
            case LoadObserved():
                pass
            case _:
                yield event.type
    yield from _of_loads([event for event in events if isinstance(event, LoadObserved)])


def _of_loads(parts: Sequence[LoadObserved]) -> Iterator[str]:
    if parts:
        partitions, brokers = (sum(len(getattr(p, name) or ()) for p in parts) for name in ("partitions", "brokers"))
        yield f"loads of {partitions} partitions and limits of {brokers} brokers observed"
