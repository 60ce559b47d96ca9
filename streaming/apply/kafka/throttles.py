"""Kafka's throttles of replication: a rate on each broker, and on each topic the replicas that it is for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from kafka.admin import AlterConfigOp

from streaming.apply.kafka.cluster import Cluster
from streaming.apply.kafka.seen import Seen
from streaming.apply.steps import Move, Throttle
from streaming.errors import ClusterError

RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
REPLICAS: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")

_AT_ONCE: Final = 500
"""Topics that are asked about in one request."""

_PATIENCE: Final = 5.0
"""Seconds that one broker gets to drop its throttle: where it is down it cannot, and does not need to."""

Answer = TypeVar("Answer")


def with_throttles(cluster: Cluster, seen: Seen) -> Seen:
    """What was seen, and what is throttled; of brokers that are down it cannot be told."""
    topics = sorted({topic for topic, _ in seen.partitions})

    def throttled_of(some: Sequence[str]) -> Iterable[str]:
        return cluster.configs("TOPIC", some, REPLICAS, _PATIENCE)

    throttled = [t for some in _parts(topics) for t in _of_those_there(cluster, some, throttled_of) or ()]
    brokers = cluster.configs("BROKER", map(str, sorted(seen.alive)), RATES)
    return replace(seen, throttled_brokers=tuple(sorted(map(int, brokers))), throttled_topics=tuple(sorted(throttled)))


def throttle(cluster: Cluster, step: Throttle) -> None:
    """Limit what the brokers of these moves send and receive for them, in bytes a second.

    Raises:
        ClusterError: the cluster refuses.
    """
    lists = {topic: _replica_lists([m for m in step.moves if m.topic == topic]) for topic in step.topics}
    for some in _parts(list(lists)):
        _configure_topics(cluster, {topic: lists[topic] for topic in some})
    _configure(cluster, step.brokers, dict.fromkeys(RATES, str(step.rate)))


def _configure_topics(cluster: Cluster, changes: Mapping[str, Mapping[str, Any]]) -> None:
    """Change configs of topics; one that is deleted meanwhile is left out, and its partitions fail by themselves."""

    def configure(topics: Sequence[str]) -> None:
        cluster.configure("TOPIC", {topic: changes[topic] for topic in topics})

    _of_those_there(cluster, list(changes), configure)


def _of_those_there(
    cluster: Cluster, topics: Sequence[str], question: Callable[[Sequence[str]], Answer]
) -> Answer | None:
    """The answer about these topics; about those that are left, where some are deleted meanwhile.

    Raises:
        ClusterError: the cluster refuses for another reason.
    """
    while topics:
        try:
            return question(topics)
        except ClusterError:
            there = {topic for topic, _ in cluster.see(topics).partitions}
            if there.issuperset(topics):
                raise
            topics = [topic for topic in topics if topic in there]
    return None


def _replica_lists(moves: Iterable[Move]) -> dict[str, str]:
    """Who sends and who receives, as ``partition:broker``; any replica there is may turn out to lead."""
    senders = [f"{move.partition}:{broker}" for move in moves for broker in move.now]
    receivers = [f"{move.partition}:{broker}" for move in moves for broker in move.incoming]
    return dict(zip(REPLICAS, (",".join(senders), ",".join(receivers)), strict=True))


def unthrottle(cluster: Cluster, brokers: Iterable[int], topics: Collection[str]) -> list[int]:
    """Remove throttles; the brokers that are down and keep theirs, which limits nothing without a topic's list.

    Raises:
        ClusterError: the cluster refuses.
    """
    there = {topic for topic, _ in cluster.see(topics).partitions}
    for some in _parts(sorted(there)):
        _configure_topics(cluster, dict.fromkeys(some, dict.fromkeys(REPLICAS, (AlterConfigOp.DELETE, None))))
    return _configure(cluster, brokers, dict.fromkeys(RATES, (AlterConfigOp.DELETE, None)))


def _configure(cluster: Cluster, brokers: Iterable[int], entries: Mapping[str, Any]) -> list[int]:
    """Change configs of brokers; those that are down and cannot."""
    down = []
    for broker in brokers:
        try:
            cluster.configure("BROKER", {str(broker): entries}, _PATIENCE if _is_alive(cluster, broker) else 0)
        except ClusterError:
            if _is_alive(cluster, broker):
                raise
            down.append(broker)
    return down


def _is_alive(cluster: Cluster, broker: int) -> bool:
    return broker in cluster.see(()).alive


def _parts(topics: Sequence[str]) -> Iterator[Sequence[str]]:
    return (topics[i : i + _AT_ONCE] for i in range(0, len(topics), _AT_ONCE))
