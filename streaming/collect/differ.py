"""From two snapshots of a cluster to the events that lead from the one to the other; pure.

A broker answers with what it knows, and one that lags behind knows less. So what is new is believed at once, and what
is gone, replaced, moved or back only when two looks in a row say so, or the controller, who never lags, does; of a
partition, older news never replaces newer. A new broker registers before it is up: it counts once it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from streaming.collect.ids import identified
from streaming.events import (
    AnyEvent,
    AssignmentObserved,
    BrokerChanged,
    BrokerJoined,
    BrokerLeft,
    ClusterIdentified,
    ObservedPartition,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from streaming.kafka.snapshot import Broker, Partition, Snapshot, Topic

OBSERVED_AT_ONCE: Final = 2000
"""Partitions in one ``assignment_observed``, so that it stays well below the megabyte that a Kafka record may have."""


def believed(known: Snapshot, earlier: Snapshot | None, now: Snapshot) -> Snapshot:
    """What to take for true after another look.

    Args:
        known: what was taken for true before.
        earlier: the look before this one, if there was one.
        now: this look.
    """
    return Snapshot(now.id, _believed_brokers(known, earlier, now), _believed_topics(known, earlier, now))


def _believed_brokers(known: Snapshot, earlier: Snapshot | None, now: Snapshot) -> tuple[Broker, ...]:
    before, seen = _brokers(known), _brokers(earlier)
    used = {b for topic in now.topics for p in topic.partitions for b in p.replicas}
    found = {}
    for broker in now.brokers:
        old = before.get(broker.id)
        if old is None and broker.fenced and broker.id not in used:
            continue
        again = broker.id in seen and not seen[broker.id].fenced
        found[broker.id] = old if old and old.fenced and not broker.fenced and not again else broker
    for old in known.brokers:
        if old.id not in found and (earlier is None or old.id in seen):
            found[old.id] = old
    return tuple(found[broker] for broker in sorted(found))


def _believed_topics(known: Snapshot, earlier: Snapshot | None, now: Snapshot) -> tuple[Topic, ...]:
    before, seen = _topics(known), _topics(earlier)
    found = {}
    for topic in now.topics:
        old = before.get(topic.name)
        if old is None or (old.id != topic.id and topic.name in seen and seen[topic.name].id == topic.id):
            found[topic.name] = topic
        else:
            found[topic.name] = _newest(old, seen.get(topic.name), topic) if old.id == topic.id else old
    for old in known.topics:
        if old.name not in found and (earlier is None or old.name in seen or old.name in now.hidden):
            found[old.name] = old
    return tuple(found[name] for name in sorted(found))


def _newest(old: Topic, earlier: Topic | None, now: Topic) -> Topic:
    """Each partition as the newer look has it: leader epochs only grow, and partitions are never taken away."""
    partitions = {p.partition: p for p in old.partitions}
    targets = {p.partition: p.target for p in earlier.partitions} if earlier and earlier.id == now.id else {}
    for partition in now.partitions:
        held = partitions.get(partition.partition)
        if held is not None:
            moved = partition.target != held.target and targets.get(partition.partition) != partition.target
            if partition.leader_epoch < held.leader_epoch or (moved and not partition.is_reassigned):
                continue
        partitions[partition.partition] = partition
    return replace(now, partitions=tuple(partitions[p] for p in sorted(partitions)))


def news(before: Snapshot | None, after: Snapshot, cluster_id: str, at: datetime) -> list[AnyEvent]:
    """The events that lead from one snapshot to the next; from nothing: all brokers, and the whole assignment.

    An event's id is made from all that the event says, so that the same news of the same look has the same id.
    """
    head = head_of(cluster_id, at)
    found = [*_broker_news(before, after, head), *_topic_news(before, after, head), *_gone(before, after, head)]
    return [identified(event) for event in found]


def identity(after: Snapshot, cluster_id: str, at: datetime) -> AnyEvent:
    """The event that says which Kafka cluster this is."""
    return identified(ClusterIdentified(**head_of(cluster_id, at), kafka_cluster_id=after.id))


def head_of(cluster_id: str, at: datetime) -> dict[str, Any]:
    """What all events of a look have in common."""
    return {"event_id": "", "cluster_id": cluster_id, "occurred_at": at}


def _broker_news(before: Snapshot | None, after: Snapshot, head: Mapping[str, Any]) -> Iterator[AnyEvent]:
    known = _brokers(before)
    for broker in after.brokers:
        old = known.get(broker.id)
        if old is None or (old.fenced and not broker.fenced):
            yield BrokerJoined(**head, broker_id=broker.id, rack=broker.rack)
        elif broker.rack is not None and broker.rack != old.rack:
            yield BrokerChanged(**head, broker_id=broker.id, rack=broker.rack)
        if broker.fenced and (old is None or not old.fenced):
            yield BrokerLeft(**head, broker_id=broker.id, reason="failed")


def _gone(before: Snapshot | None, after: Snapshot, head: Mapping[str, Any]) -> Iterator[AnyEvent]:
    """Brokers that were unregistered; the last news of a look, for they leave when nothing is on them any more."""
    there = _brokers(after)
    for broker in _brokers(before).values():
        if broker.id not in there:
            yield BrokerLeft(**head, broker_id=broker.id, reason="unregistered")


def _topic_news(before: Snapshot | None, after: Snapshot, head: Mapping[str, Any]) -> Iterator[AnyEvent]:
    known, there = _topics(before), _topics(after)
    for topic in known.values():
        if topic.name not in there or there[topic.name].id != topic.id:
            yield TopicDeleted(**head, topic=topic.name)
    observed: list[ObservedPartition] = []
    for topic in after.topics:
        old = known.get(topic.name)
        same = old if old and old.id == topic.id else None
        held = {p.partition: p for p in same.partitions} if same else {}
        added = {p.partition: list(p.target) for p in topic.partitions if p.partition not in held}
        if same is None and before is not None:
            yield TopicCreated(**head, topic=topic.name, replica_assignment=added)
        elif same and added:
            yield PartitionsAdded(**head, topic=topic.name, partitions=len(topic.partitions), replica_assignment=added)
        observed += [_observed(topic, p) for p in topic.partitions if _differs(held.get(p.partition), p)]
    for start in range(0, len(observed), OBSERVED_AT_ONCE):
        yield AssignmentObserved(**head, partitions=observed[start : start + OBSERVED_AT_ONCE])


def _differs(old: Partition | None, now: Partition) -> bool:
    """Whether there is news of a partition; in which order Kafka names the ISR says nothing.

    That the ISR grows while replicas are copied is to be expected; how it is in the end is told.
    """
    if old is None or (old.target, old.leader) != (now.target, now.leader):
        return True
    if now.is_reassigned:
        return not set(old.isr) <= set(now.isr)
    return old.is_reassigned or set(old.isr) != set(now.isr)


def _observed(topic: Topic, partition: Partition) -> ObservedPartition:
    """A partition that is being reassigned counts as where it goes: whoever moves it has decided that.

    That it has arrived is said by the leader, who is told only then: what is taken back on its way was never there.
    """
    leader = None if partition.is_reassigned else partition.leader
    return ObservedPartition(
        topic.name, partition.partition, list(partition.target), leader=leader, isr=list(partition.isr)
    )


def _brokers(snapshot: Snapshot | None) -> dict[int, Broker]:
    return {broker.id: broker for broker in snapshot.brokers} if snapshot else {}


def _topics(snapshot: Snapshot | None) -> dict[str, Topic]:
    return {topic.name: topic for topic in snapshot.topics} if snapshot else {}
