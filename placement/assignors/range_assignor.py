"""Kafka's range assignor: of each topic, every member gets a run of neighbouring partitions.

Source of the method: ``org.apache.kafka.clients.consumer.RangeAssignor``, racks from KIP-881.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from placement.assignors.group import Group, Member, TopicPartition
from placement.assignors.racks import racks_matter


class RangeAssignor:
    """Each topic by itself; members near a partition first, as far as the sizes of the runs allow."""

    def assign(self, group: Group) -> dict[str, list[TopicPartition]]:
        """As ``Assignor`` says."""
        subscribers = group.subscribers()
        order = group.sorted_members()
        runs = []
        for topic in group.partitions:
            ids = set(subscribers[topic])
            runs.append(_Runs(topic, group, [member for member in order if member.id in ids]))
        if any(run.racks_matter for run in runs):
            _assign_near(runs)
        for run in runs:
            run.assign_runs(lambda member, partition: True)
        result: dict[str, list[TopicPartition]] = {member: [] for member in group.members}
        for run in runs:
            for member, partitions in run.assigned.items():
                result[member] += [(run.name, partition) for partition in partitions]
        return result


class _Runs:
    """The state of one topic: who has what, and what is left."""

    __slots__ = ("_extra", "_least", "_left", "assigned", "members", "name", "racks", "racks_matter")

    def __init__(self, name: str, group: Group, members: Sequence[Member]) -> None:
        count = group.partitions[name]
        self.name = name
        self.members = {m.id: m.rack for m in members}
        self.assigned: dict[str, list[int]] = {m.id: [] for m in members}
        self._least, self._extra = divmod(count, len(members))
        self._left = dict.fromkeys(range(count))
        consumer_racks = {m.rack for m in members if m.rack}
        known = range(count) if consumer_racks else ()
        self.racks = {p: group.replica_racks.get((name, p), frozenset()) for p in known}
        self.racks_matter = racks_matter(consumer_racks, {(name, p): racks for p, racks in self.racks.items()})

    def near(self, member: str, partition: int) -> bool:
        """Whether the member has no rack, or the partition a replica in it."""
        rack = self.members[member]
        return not rack or rack in self.racks.get(partition, ())

    def room(self, member: str) -> int:
        """How many more partitions the member may get."""
        return max(0, self._least + (self._extra > 0) - len(self.assigned[member]))

    def give(self, member: str, partitions: Sequence[int]) -> None:
        """Hand out partitions that are left."""
        self.assigned[member] += partitions
        if len(self.assigned[member]) > self._least:
            self._extra -= 1
        for partition in partitions:
            del self._left[partition]

    def assign_runs(self, may: Callable[[str, int], bool]) -> None:
        """Give each member in turn the first partitions that are left and that it may get."""
        for member in self.members:
            room = self.room(member)
            partitions = [partition for partition in self._left if may(member, partition)][:room]
            if partitions:
                self.give(member, partitions)


def _assign_near(runs: Sequence[_Runs]) -> None:
    """Assign partitions to members that are near them; topics with the same members and size together.

    Such topics are co-partitioned: equal partition ids go to one member, for joins.
    """
    alike: dict[tuple[object, ...], list[_Runs]] = {}
    for topic in runs:
        alike.setdefault((tuple(topic.members.items()), len(topic.racks)), []).append(topic)
    for topics in alike.values():
        if len(topics) > 1:
            _assign_together(topics)
        elif topics[0].racks_matter:
            topics[0].assign_runs(topics[0].near)


def _assign_together(topics: Sequence[_Runs]) -> None:
    waiting = dict.fromkeys(topics[0].members)
    for partition in topics[0].racks:
        chosen = next(
            (m for m in waiting if all(topic.near(m, partition) and topic.room(m) > 0 for topic in topics)), None
        )
        if chosen is None:
            continue
        for topic in topics:
            topic.give(chosen, [partition])
        if not any(topic.room(chosen) > 0 for topic in topics):
            del waiting[chosen]
