"""A cluster as its admin API shows it at one moment."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from kafka import KafkaAdminClient
from kafka.errors import KafkaError, TopicAuthorizationFailedError, UnknownTopicOrPartitionError, for_code
from msgspec import Struct

NO_LEADER: Final = -1
"""What Kafka says where no broker leads a partition."""

_UNKNOWN: Final = UnknownTopicOrPartitionError.errno


Reassignments = dict[tuple[str, int], Mapping[str, Any]]
"""By topic and partition: all replicas, those on their way in, and those on their way out."""


class Broker(Struct, frozen=True):
    """A registered broker. It is fenced while it is down, and stays registered until somebody unregisters it."""

    id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


class Partition(Struct, frozen=True):
    """A partition.

    While it is reassigned, ``replicas`` holds those on their way in (``adding``) and out (``removing``) as well.
    """

    partition: int
    replicas: tuple[int, ...]
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def target(self) -> tuple[int, ...]:
        """Its replicas once the reassignment that is under way, if one is, has ended; the first one is preferred."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def is_reassigned(self) -> bool:
        """Whether a reassignment is under way."""
        return bool(self.adding or self.removing)


class Topic(Struct, frozen=True):
    """A topic. One that was deleted and created again has the same name and another ``id``."""

    name: str
    id: str
    internal: bool
    partitions: tuple[Partition, ...]


class Snapshot(Struct, frozen=True):
    """A cluster: ``id`` is Kafka's own, brokers are by id, topics by name, partitions by number.

    ``hidden`` are topics that were asked for by name and that the principal may not describe: they may be there.
    """

    id: str
    brokers: tuple[Broker, ...] = ()
    topics: tuple[Topic, ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def alive(self) -> frozenset[int]:
        """Brokers that are up."""
        return frozenset(broker.id for broker in self.brokers if not broker.fenced)

    def topic(self, name: str) -> Topic | None:
        """The topic of that name, if there is one."""
        return next((topic for topic in self.topics if topic.name == name), None)


def read_snapshot(
    admin: KafkaAdminClient, topics: Collection[str] | None = None, known: Collection[str] = ()
) -> Snapshot:
    """Read the cluster: all topics, or those of these names that there are.

    Kafka leaves out of all topics those that the principal may not describe. So those that are ``known`` and missing
    are asked for by name.

    What is under way the controller knows best; the brokers that describe topics hear of it later. So reassignments are
    asked for before and after the topics, and one that is under way or has just ended is as the controller has it.
    Brokers are asked for last, so that every broker that a topic is on is seen.

    Raises:
        KafkaError: a broker could not be asked, or refused.
    """
    ended: Reassignments = {}
    under_way: Reassignments = {}
    found: list[dict[str, Any]] = []
    if topics is None or topics:
        ended = _reassignments(admin)
        found = admin.describe_topics(None if topics is None else sorted(topics))
        if missing := sorted(set(known).difference(topic["name"] for topic in found)):
            found += admin.describe_topics(missing)
        under_way = _reassignments(admin)
    cluster = admin.describe_cluster()
    hidden = sorted(topic["name"] for topic in found if topic["name"] in known and _is_hidden(topic))
    described = [_topic(topic, ended, under_way) for topic in found if topic["name"] not in hidden and _is_there(topic)]
    return Snapshot(
        id=cluster["cluster_id"],
        brokers=tuple(sorted((_broker(broker) for broker in cluster["brokers"]), key=lambda broker: broker.id)),
        topics=tuple(sorted(described, key=lambda topic: topic.name)),
        hidden=tuple(hidden),
    )


def _reassignments(admin: KafkaAdminClient) -> Reassignments:
    return {(place.topic, place.partition): change for place, change in admin.list_partition_reassignments().items()}


def _is_hidden(topic: Mapping[str, Any]) -> bool:
    return bool(topic["error_code"] == TopicAuthorizationFailedError.errno)


def _is_there(topic: Mapping[str, Any]) -> bool:
    """Whether the topic exists.

    Raises:
        KafkaError: it cannot be said.
    """
    code = topic["error_code"]
    if _is_hidden(topic):
        raise TopicAuthorizationFailedError(f"no right to describe topic {topic['name']}: it needs the ACL Describe")
    if code and code != _UNKNOWN:
        failure: type[KafkaError] = for_code(code)
        raise failure(f"topic {topic['name']} cannot be described")
    return not code


def _broker(broker: Mapping[str, Any]) -> Broker:
    return Broker(broker["broker_id"], broker["host"], broker["port"], broker["rack"], bool(broker.get("is_fenced")))


def _topic(topic: Mapping[str, Any], ended: Reassignments, under_way: Reassignments) -> Topic:
    name = topic["name"]
    places = ((p, (name, p["partition_index"])) for p in topic["partitions"])
    partitions = [_partition(p, ended.get(place), under_way.get(place)) for p, place in places]
    return Topic(
        name=name,
        id=str(topic["topic_id"]),
        internal=topic["is_internal"],
        partitions=tuple(sorted(partitions, key=lambda partition: partition.partition)),
    )


def _partition(
    partition: Mapping[str, Any], ended: Mapping[str, Any] | None, under_way: Mapping[str, Any] | None
) -> Partition:
    replicas = tuple(partition["replica_nodes"])
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    if under_way:
        replicas = tuple(under_way["replicas"])
        adding, removing = tuple(under_way["adding_replicas"]), tuple(under_way["removing_replicas"])
    elif ended and set(replicas) == set(ended["replicas"]):
        replicas = tuple(broker for broker in replicas if broker not in ended["removing_replicas"])
    return Partition(
        partition=partition["partition_index"],
        replicas=replicas,
        leader=partition["leader_id"],
        leader_epoch=partition["leader_epoch"],
        isr=tuple(partition["isr_nodes"]),
        adding=adding,
        removing=removing,
    )
