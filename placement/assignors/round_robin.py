"""Kafka's round-robin assignor: all partitions of all topics in turn to the members that subscribe.

Source of the method: ``org.apache.kafka.clients.consumer.RoundRobinAssignor``.
"""

from __future__ import annotations

from itertools import cycle

from placement.assignors.group import Group, TopicPartition
from placement.errors import InvalidGroupError
from placement.kafka.java_random import utf16_order


class RoundRobinAssignor:
    """The turn passes over members that do not subscribe to the topic."""

    def assign(self, group: Group) -> dict[str, list[TopicPartition]]:
        """As ``Assignor`` says.

        Raises:
            InvalidGroupError: there are no members.
        """
        if not group.members:
            raise InvalidGroupError("a group without members cannot take turns", where="members")
        result: dict[str, list[TopicPartition]] = {member: [] for member in group.members}
        topics = {m.id: set(m.topics) for m in group.members.values()}
        turn = cycle(group.sorted_members())
        for partition in group.partitions_of(sorted(group.subscribers(), key=utf16_order)):
            member = next(m.id for m in turn if partition[0] in topics[m.id])
            result[member].append(partition)
        return result
