"""The sticky assignor where all members subscribe to the same topics: everybody keeps up to a quota."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from placement.assignors.group import Group, TopicPartition
from placement.assignors.racks import Nearness
from placement.kafka.java_random import java_hash_order, java_string_hash, utf16_order


def fill_quotas(
    group: Group,
    nearness: Nearness,
    owned: Mapping[str, Sequence[TopicPartition]],
    contested: frozenset[TopicPartition],
) -> tuple[dict[str, list[TopicPartition]], frozenset[TopicPartition]]:
    """Keep what each member owns up to its quota, then hand out the rest: near members first, then in turn.

    Args:
        group: all of whose members subscribe to the same topics.
        nearness: which members are near which partitions.
        owned: what each member may keep.
        contested: what nobody may keep.

    Returns:
        The partitions of each member, and those among them that another member has to give up first.
    """
    quotas = _Quotas(group, nearness)
    # Who comes first gets the larger quota, and Kafka goes through a hash table.
    for member in java_hash_order(group.members, java_string_hash):
        keep = [tp for tp in owned[member] if tp not in contested and not nearness.far(member, tp)]
        quotas.keep(member, sorted(keep, key=lambda tp: (tp[1], utf16_order(tp[0]))))
    kept = {tp for partitions in quotas.assigned.values() for tp in partitions}
    topics = sorted(group.partitions, key=utf16_order)
    left = nearness.fewest_near_first([tp for tp in group.partitions_of(topics) if tp not in kept])
    quotas.sort()
    given = [tp for tp in left if not quotas.give_near(tp)] if nearness else left
    quotas.give_in_turn(given)
    had = {tp: member for member, partitions in owned.items() for tp in partitions}
    transferred = {
        tp
        for member, partitions in quotas.assigned.items()
        for tp in partitions
        if tp not in kept and (tp in contested or had.get(tp, member) != member)
    }
    return quotas.assigned, frozenset(transferred)


class _Quotas:
    """Every member gets ``least`` partitions, and as many as there are over get one more.

    ``below`` are the members that have less than ``least``, ``at_least`` those that have just that and may
    get one more.
    """

    __slots__ = ("_nearness", "_next", "_over", "assigned", "at_least", "below", "least", "most")

    def __init__(self, group: Group, nearness: Nearness) -> None:
        total, members = sum(group.partitions.values()), len(group.members)
        self._nearness = nearness
        self._over = total % members
        self._next = 0
        self.least = total // members
        self.most = self.least + (self._over > 0)
        self.assigned: dict[str, list[TopicPartition]] = {member: [] for member in group.members}
        self.below: list[str] = []
        self.at_least: list[str] = []

    def keep(self, member: str, partitions: Sequence[TopicPartition]) -> None:
        """Let a member keep as many as its quota allows."""
        if len(partitions) < self.least:
            self.assigned[member] += partitions
            self.below.append(member)
        elif len(partitions) >= self.most and self._over > 0:
            self._use_over()
            self.assigned[member] += partitions[: self.most]
        else:
            self.assigned[member] += partitions[: self.least]
            if self._over > 0:
                self.at_least.append(member)

    def sort(self) -> None:
        """Put the members that wait for more into the order of their ids."""
        self.below.sort(key=utf16_order)
        self.at_least.sort(key=utf16_order)

    def give_near(self, partition: TopicPartition) -> bool:
        """Give a partition to the next member near it that is below its quota, or else may get one more."""
        count = len(self.below)
        for index in ((self._next + i) % count for i in range(count)):
            if self._nearness.shares_rack(self.below[index], partition):
                self._give_below(index, partition)
                return True
        for index, member in enumerate(self.at_least):
            if self._nearness.shares_rack(member, partition):
                self.assigned[member].append(partition)
                del self.at_least[index]
                self._use_over()
                return True
        return False

    def _give_below(self, index: int, partition: TopicPartition) -> None:
        member = self.below[index]
        self.assigned[member].append(partition)
        if len(self.assigned[member]) >= self.least:
            del self.below[index]
            if self._over > 0:
                self.at_least.append(member)
        else:
            index += 1
        self._next = index % len(self.below) if self.below else 0

    def _use_over(self) -> None:
        """One more member has the larger quota; when all of those are found, nobody else waits for it."""
        self._over -= 1
        if not self._over:
            self.at_least.clear()

    def give_in_turn(self, partitions: Sequence[TopicPartition]) -> None:
        """Give partitions in turn to those below their quota, then one each to those that may get one more."""
        turn = 0
        for partition in partitions:
            if not self.below:
                self.assigned[self.at_least.pop(0)].append(partition)
                continue
            turn %= len(self.below)
            member = self.below[turn]
            self.assigned[member].append(partition)
            if len(self.assigned[member]) == self.least:
                del self.below[turn]
                self.at_least.append(member)
            else:
                turn += 1
