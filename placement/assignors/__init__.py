"""Kafka's consumer group assignors behind one interface: a group in, partitions of each member out.

The pages ``docs/algorithms/*_assignor.md`` explain them. To use a rule of your own, pass an object with the
method of :class:`Assignor`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from placement.assignors.group import Assignor, Group, Member, TopicPartition, group_of
from placement.assignors.range_assignor import RangeAssignor
from placement.assignors.round_robin import RoundRobinAssignor
from placement.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from placement.checks import shown
from placement.errors import InvalidArgumentError, InvalidGroupError
from placement.kafka.java_random import utf16_order

__all__ = ["ASSIGNORS", "Assignor", "Group", "Member", "TopicPartition", "assign_consumers", "assign_group", "group_of"]

ASSIGNORS: Final[Mapping[str, type[Assignor]]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
"""The assignors by the names that Kafka gives them."""


def assign_consumers(
    assignor: str | Assignor,
    members: Mapping[str, Mapping[str, Any] | Member],
    partitions_per_topic: Mapping[str, int],
    *,
    partition_racks: Mapping[str, Sequence[Iterable[str | None]]] | None = None,
) -> dict[str, list[TopicPartition]]:
    """Who consumes what.

    Args:
        assignor: ``range``, ``roundrobin``, ``sticky``, ``cooperative-sticky``, or an object with that method.
        members: ``{"c1": {"topics": ["t0"], "instance": "i", "rack": "r", "owned": [["t0", 1]], "generation": 3}}``;
            all but ``topics`` may be left out.
        partitions_per_topic: the number of partitions of each topic of the cluster.
        partition_racks: per topic, the racks of the replicas of each partition.

    Returns:
        Topic and partition pairs per member, members and pairs in order. Under ``cooperative-sticky`` a
        partition that changes hands is missing until its owner has given it up.

    Raises:
        InvalidGroupError: there is no such assignor, or the group is described wrongly.
        InvalidArgumentError: an argument is of another type than it must be.
    """
    return assign_group(assignor, group_of(members, partitions_per_topic, partition_racks))


def assign_group(assignor: str | Assignor, group: Group) -> dict[str, list[TopicPartition]]:
    """As :func:`assign_consumers`, for a group that is checked already."""
    if isinstance(assignor, str):
        if assignor not in ASSIGNORS:
            raise InvalidGroupError(
                f"there is no assignor {shown(assignor)}: choose one of {', '.join(ASSIGNORS)}", where=assignor
            )
        assignor = ASSIGNORS[assignor]()
    if not callable(getattr(assignor, "assign", None)):
        raise InvalidArgumentError(
            f"assignor is {shown(assignor)}: it must be a name, or an object with the method assign",
            name="assignor",
            value=assignor,
        )
    assigned = assignor.assign(group)
    return {
        member: sorted(assigned.get(member, ()), key=lambda tp: (utf16_order(tp[0]), tp[1])) for member in group.members
    }
