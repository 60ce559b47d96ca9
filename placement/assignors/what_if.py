"""Who consumes what before and after members of a group come and go, and which partitions change hands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from placement.assignors import Assignor, Group, Member, TopicPartition, assign_group, group_of
from placement.errors import InvalidAssignmentError, InvalidGroupError
from placement.model import Assignment, Broker

_MOST_ROUNDS = 8
"""A cooperative group settles in its second rebalance; no rule of one's own may go on for ever."""

Consumption = dict[str, list[TopicPartition]]


@dataclass(frozen=True, slots=True)
class Handover:
    """A partition that changes hands; None where nobody had it, or nobody gets it."""

    partition: TopicPartition
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A group before and after, once its rebalances are over.

    Attributes:
        before: the partitions of each member.
        after: the same, after members came and went.
        handovers: the partitions whose consumer is another one, by topic and partition id.
        rebalances: how many it takes; a cooperative group needs a second one for partitions that change hands.
    """

    before: Consumption
    after: Consumption
    handovers: tuple[Handover, ...]
    rebalances: int


def what_if(
    assignor: str | Assignor,
    members: Mapping[str, Mapping[str, Any] | Member],
    partitions_per_topic: Mapping[str, int],
    *,
    joining: Mapping[str, Mapping[str, Any] | Member] | None = None,
    leaving: Iterable[str] = (),
    partition_racks: Mapping[str, Sequence[Iterable[str | None]]] | None = None,
) -> WhatIf:
    """Compare a group with itself after members joined and left.

    Args:
        assignor: as in ``assign_consumers``.
        members: of the group now, as in ``assign_consumers``.
        partitions_per_topic: the number of partitions of each topic.
        joining: members that come, in the same form.
        leaving: ids of members that go.
        partition_racks: as in ``assign_consumers``.

    Raises:
        InvalidGroupError: the group is described wrongly, who joins is there already, or who leaves is not.
    """
    joining = dict(joining or {})
    gone = set(leaving)
    for member in sorted(joining.keys() & members.keys()):
        raise InvalidGroupError(f"member {member!r} cannot join: it is there already", where=member)
    for member in sorted(gone - members.keys()):
        raise InvalidGroupError(f"member {member!r} cannot leave: it is not there", where=member)
    now = group_of(members, partitions_per_topic, partition_racks)
    before, _ = _settle(assignor, now)
    everybody = {**{m.id: m for m in now.members.values() if m.id not in gone}, **joining}
    later = group_of(everybody, partitions_per_topic, partition_racks)
    after, rebalances = _settle(assignor, _owning(later, before))
    return WhatIf(before, after, _handovers(before, after), rebalances)


def topics_of(
    assignment: Assignment, brokers: Iterable[Broker]
) -> tuple[dict[str, int], dict[str, list[list[str | None]]]]:
    """The number of partitions of each topic of a layout, and the racks of their replicas.

    Raises:
        InvalidAssignmentError: the ids of a topic have gaps, which consumers would not see as partitions 0 to n-1.
    """
    rack = {broker.id: broker.rack for broker in brokers}
    counts = np.bincount(assignment.topic_index, minlength=len(assignment.topics)).tolist()
    partitions = dict(zip(assignment.topics, counts, strict=True))
    racks: dict[str, list[list[str | None]]] = {topic: [] for topic in partitions}
    for topic, partition, replicas in assignment.rows():
        if partition != len(racks[topic]):
            raise InvalidAssignmentError(
                f"topic {topic} has partition {partition} but no partition {len(racks[topic])}",
                topic=topic,
                partition=partition,
                replicas=replicas,
            )
        racks[topic].append([rack.get(broker) for broker in replicas])
    return partitions, racks


def _settle(assignor: str | Assignor, group: Group) -> tuple[Consumption, int]:
    """Rebalance until nothing changes; the result, and how many rebalances changed something."""
    assigned = assign_group(assignor, group)
    for rebalances in range(1, _MOST_ROUNDS):
        again = assign_group(assignor, _owning(group, assigned))
        if again == assigned:
            return assigned, rebalances
        assigned = again
    return assigned, _MOST_ROUNDS


def _owning(group: Group, assigned: Consumption) -> Group:
    """The group whose members own what they were assigned; all of one generation."""
    members = {
        member.id: replace(member, owned=tuple(assigned.get(member.id, ())), generation=1)
        for member in group.members.values()
    }
    return replace(group, members=members)


def _handovers(before: Consumption, after: Consumption) -> tuple[Handover, ...]:
    had = {tp: member for member, partitions in before.items() for tp in partitions}
    gets = {tp: member for member, partitions in after.items() for tp in partitions}
    return tuple(
        Handover(tp, had.get(tp), gets.get(tp))
        for tp in sorted(had.keys() | gets.keys())
        if had.get(tp) != gets.get(tp)
    )
