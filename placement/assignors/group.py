"""A consumer group as the assignors see it: members, topics, and where the partitions' replicas are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from placement import checks
from placement.arrays import MAX_ID
from placement.checks import shown
from placement.errors import InvalidGroupError
from placement.kafka.java_random import utf16_order

TopicPartition = tuple[str, int]
"""Topic and partition id."""

NO_GENERATION = -1
_MAX_PARTITIONS = 10_000_000
_MEMBER_FIELDS = frozenset({"topics", "instance", "rack", "owned", "generation"})


@dataclass(frozen=True, slots=True)
class Member:
    """One consumer of the group.

    Attributes:
        id: the member id.
        topics: that it subscribes to.
        instance: its ``group.instance.id``, if it is a static member.
        rack: its ``client.rack``.
        owned: the partitions that it says it had.
        generation: of the group when it had them; None: it did not say.
    """

    id: str
    topics: tuple[str, ...]
    instance: str | None = None
    rack: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int | None = None

    def sort_key(self) -> tuple[bool, bytes]:
        """Static members come first, by instance id, then the others by member id."""
        return self.instance is None, utf16_order(self.id if self.instance is None else self.instance)


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group and its topics.

    Attributes:
        members: by member id.
        partitions: how many partitions each topic has that somebody subscribes to; topics without any are left out.
        replica_racks: the racks of each partition's replicas, as far as known.
    """

    members: Mapping[str, Member]
    partitions: Mapping[str, int]
    replica_racks: Mapping[TopicPartition, frozenset[str]]

    def sorted_members(self) -> list[Member]:
        """The members in Kafka's order."""
        return sorted(self.members.values(), key=Member.sort_key)

    def subscribed(self, member: str) -> list[str]:
        """The member's topics that exist, each once."""
        return [topic for topic in dict.fromkeys(self.members[member].topics) if topic in self.partitions]

    def subscribers(self) -> dict[str, list[str]]:
        """Member ids per topic that exists and is subscribed to, in the order of member ids."""
        result: dict[str, list[str]] = {}
        for member in self.members:
            for topic in self.subscribed(member):
                result.setdefault(topic, []).append(member)
        return result

    def partitions_of(self, topics: Iterable[str]) -> Iterator[TopicPartition]:
        """All partitions of these topics, topic by topic."""
        for topic in topics:
            for partition in range(self.partitions[topic]):
                yield topic, partition


class Assignor(Protocol):
    """Hands out partitions to the members of a group; write one with this method to use your own rule."""

    def assign(self, group: Group) -> Mapping[str, Iterable[TopicPartition]]:
        """The partitions of each member; a member without any may be left out."""


def group_of(
    members: Mapping[str, Mapping[str, Any] | Member],
    partitions_per_topic: Mapping[str, int],
    partition_racks: Mapping[str, Sequence[Iterable[str | None]]] | None = None,
) -> Group:
    """Check what describes a group, and put it into canonical order.

    Args:
        members: ``{"c1": {"topics": ["t0"], "instance": "i", "rack": "r", "owned": [["t0", 1]], "generation": 3}}``;
            all but ``topics`` may be left out.
        partitions_per_topic: the number of partitions of each topic of the cluster.
        partition_racks: per topic, the racks of the replicas of each partition.

    Raises:
        InvalidGroupError: says which member or topic is wrong, and why.
    """
    for topic, count in checks.mapping(partitions_per_topic, "partitions_per_topic").items():
        if not isinstance(topic, str) or type(count) is not int or not 0 <= count <= MAX_ID:
            raise InvalidGroupError(
                f"partitions_per_topic gives topic {shown(topic)} {shown(count)} partitions: it must be a name and an"
                f" integer from 0 to {MAX_ID}",
                where=topic,
            )
    listed = [
        m if isinstance(m, Member) else _member(name, m) for name, m in checks.mapping(members, "members").items()
    ]
    wanted = {topic for member in listed for topic in member.topics}
    known = {topic: count for topic, count in sorted(partitions_per_topic.items()) if count and topic in wanted}
    if sum(known.values()) > _MAX_PARTITIONS:
        raise InvalidGroupError(
            f"{sum(known.values())} partitions are more than {_MAX_PARTITIONS}", where=max(known, key=known.__getitem__)
        )
    racks = {
        (topic, partition): replicas
        for topic, partitions in checks.by_topic(partition_racks, "partition_racks", _racks).items()
        for partition, replicas in enumerate(partitions)
    }
    return Group({m.id: m for m in sorted(listed, key=lambda m: utf16_order(m.id))}, known, racks)


def _racks(partitions: Sequence[Iterable[str | None]], name: str) -> list[frozenset[str]]:
    listed = [checks.instances(replicas, object, name) for replicas in checks.instances(partitions, object, name)]
    for rack in (rack for replicas in listed for rack in replicas if not isinstance(rack, str | None)):
        raise InvalidGroupError(f"{name} has {shown(rack)} in it: a rack is a string or None", where=name)
    return [frozenset(rack for rack in replicas if isinstance(rack, str)) for replicas in listed]


def _member(name: str, fields: Mapping[str, Any]) -> Member:
    if (
        not isinstance(name, str)
        or not isinstance(fields, Mapping)
        or not set(fields) <= _MEMBER_FIELDS
        or "topics" not in fields
    ):
        raise InvalidGroupError(
            f"members has {shown(name)}, which is {shown(fields)}: its id is a string, it needs topics, and may have"
            " instance, rack, owned and generation",
            where=name,
        )
    topics, owned, generation = fields["topics"], fields.get("owned") or (), fields.get("generation")
    if isinstance(topics, str) or not isinstance(topics, Sequence) or not all(isinstance(t, str) for t in topics):
        raise InvalidGroupError(f"member {name!r} has topics {shown(topics)}: they must be a list of names", where=name)
    if not isinstance(owned, Sequence) or not all(_is_partition(tp) for tp in owned):
        raise InvalidGroupError(
            f"member {name!r} owns {shown(owned)}: that must be a list of topic and partition pairs", where=name
        )
    if generation is not None and type(generation) is not int:
        raise InvalidGroupError(f"member {name!r} has generation {shown(generation)}: it is an integer", where=name)
    for field in ("instance", "rack"):
        if not isinstance(fields.get(field), str | None):
            raise InvalidGroupError(f"member {name!r} has {field} {shown(fields[field])}: it must be text", where=name)
    return Member(
        name,
        tuple(topics),
        fields.get("instance"),
        fields.get("rack"),
        tuple((topic, partition) for topic, partition in owned),
        generation,
    )


def _is_partition(value: object) -> bool:
    return (
        isinstance(value, Sequence)
        and len(value) == 2
        and isinstance(value[0], str)
        and type(value[1]) is int
        and value[1] >= 0
    )
