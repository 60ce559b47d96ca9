"""When racks matter to an assignor, and whether a member is near a partition (KIP-881)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from placement.assignors.group import Group, TopicPartition


def racks_matter(consumer_racks: Collection[str], replica_racks: Mapping[TopicPartition, frozenset[str]]) -> bool:
    """Whether some member is near some partitions and not near others.

    Not where members tell no rack, where none of their racks has replicas, or where every partition has
    replicas in all racks that there are.
    """
    everywhere: frozenset[str] = frozenset().union(*replica_racks.values())
    if everywhere.isdisjoint(consumer_racks):
        return False
    return any(racks != everywhere for racks in replica_racks.values())


class Nearness:
    """Which members are near which partitions, where that matters; where it does not, all are."""

    __slots__ = ("_consumer_rack", "_near_members", "_replica_racks")

    def __init__(self, group: Group, partitions: Collection[TopicPartition]) -> None:
        consumer_rack = {m.id: m.rack for m in group.members.values() if m.rack}
        replica_racks = {tp: group.replica_racks.get(tp, frozenset()) for tp in partitions}
        matter = racks_matter(set(consumer_rack.values()), replica_racks)
        self._consumer_rack = consumer_rack if matter else {}
        self._replica_racks = replica_racks if matter else {}
        self._near_members = {
            tp: sum(rack in racks for rack in consumer_rack.values()) for tp, racks in self._replica_racks.items()
        }

    def __bool__(self) -> bool:
        """Whether racks matter."""
        return bool(self._consumer_rack)

    def far(self, member: str, partition: TopicPartition) -> bool:
        """Whether the member has a rack in which the partition has no replica."""
        rack = self._consumer_rack.get(member)
        return rack is not None and rack not in self._replica_racks.get(partition, frozenset())

    def shares_rack(self, member: str, partition: TopicPartition) -> bool:
        """Whether the member has a rack, and the partition a replica in it."""
        rack = self._consumer_rack.get(member)
        return rack is not None and rack in self._replica_racks.get(partition, frozenset())

    def fewest_near_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """The partitions that few members are near first, otherwise in their order."""
        return sorted(partitions, key=lambda tp: self._near_members.get(tp, 0))
