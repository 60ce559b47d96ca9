"""The sticky assignor where members subscribe to different topics: move partitions until nothing improves."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence

from placement.assignors.group import Group, TopicPartition
from placement.assignors.racks import Nearness
from placement.assignors.sticky_movements import Movements
from placement.kafka.java_random import utf16_order

Assigned = dict[str, list[TopicPartition]]


def balance(
    group: Group,
    nearness: Nearness,
    owned: Mapping[str, Sequence[TopicPartition]],
    claims: Mapping[TopicPartition, str],
) -> Assigned:
    """Keep what is valid, hand out the rest to those who have least, then move what makes it more even.

    Args:
        group: the members and topics.
        nearness: which members are near which partitions.
        owned: what each member may keep.
        claims: who of an earlier generation had a partition; it goes back there rather than elsewhere.
    """
    return _Balance(group, nearness, owned, claims).run()


class _Balance:
    __slots__ = (
        "_assigned",
        "_claims",
        "_left",
        "_most",
        "_movements",
        "_nearness",
        "_order",
        "_owner",
        "_partitions",
        "_revoking",
        "_subscribed",
        "_subscribers",
    )

    def __init__(
        self,
        group: Group,
        nearness: Nearness,
        owned: Mapping[str, Sequence[TopicPartition]],
        claims: Mapping[TopicPartition, str],
    ) -> None:
        self._nearness = nearness
        self._claims = claims
        self._movements = Movements()
        self._subscribed = {member: group.subscribed(member) for member in group.members}
        self._most = {
            member: sum(group.partitions[topic] for topic in topics) for member, topics in self._subscribed.items()
        }
        subscribers = group.subscribers()
        self._subscribers = {topic: subscribers.get(topic, []) for topic in group.partitions}
        rarest = sorted(self._subscribers, key=lambda topic: (len(self._subscribers[topic]), utf16_order(topic)))
        self._partitions = list(group.partitions_of(rarest))
        self._assigned: Assigned = {}
        self._revoking = False
        for member, partitions in owned.items():
            kept = [tp for tp in partitions if tp[0] in self._subscribed[member] and not nearness.far(member, tp)]
            self._revoking |= len(kept) < len(partitions)
            self._assigned[member] = kept
        self._owner = {tp: member for member, partitions in self._assigned.items() for tp in partitions}
        self._left = [tp for tp in self._partitions if tp not in self._owner]
        self._order = sorted(map(self._rank, self._assigned))

    def run(self) -> Assigned:
        """Hand out, balance, and put the members back that had nothing to do with it."""
        nobody_had_any = self._order[-1][0] == 0
        left = self._left
        if self._nearness:
            left = [tp for tp in left if not self._hand_out(tp, near=True)]
        for partition in left:
            self._hand_out(partition, near=False)
        settled = self._set_settled_apart()
        before = {member: list(partitions) for member, partitions in self._assigned.items()}
        moveable = [tp for tp in self._partitions if len(self._subscribers[tp[0]]) > 1]
        if not self._revoking:
            had_none = set(self._left)
            self._move([tp for tp in moveable if tp in had_none])
        moved = self._move(moveable)
        if moved and not nobody_had_any and _imbalance(self._assigned) >= _imbalance(before):
            self._assigned = before
        return {member: self._assigned.get(member, settled.get(member, [])) for member in self._subscribed}

    def _rank(self, member: str) -> tuple[int, bytes, str]:
        return len(self._assigned[member]), utf16_order(member), member

    def _hand_out(self, partition: TopicPartition, *, near: bool) -> bool:
        """Give a partition to the subscriber that has least, near it if asked; False if there is none."""
        for _, _, member in self._order:
            if partition[0] in self._subscribed[member] and not (near and self._nearness.far(member, partition)):
                self._order.remove(self._rank(member))
                self._assigned[member].append(partition)
                self._owner[partition] = member
                insort(self._order, self._rank(member))
                return True
        return False

    def _set_settled_apart(self) -> Assigned:
        """Take out the members that have all they can get and share no topic with others."""
        settled = {}
        for member, most in self._most.items():
            partitions = self._assigned[member]
            if len(partitions) >= most and not any(len(self._subscribers[tp[0]]) > 1 for tp in partitions):
                self._order.remove(self._rank(member))
                settled[member] = self._assigned.pop(member)
        return settled

    def _move(self, partitions: Sequence[TopicPartition]) -> bool:
        """Move partitions to members that have less, round after round; whether any moved."""
        moved = False
        balanced = self._balanced()
        while not balanced:
            again = False
            for partition in partitions:
                target = self._target(partition)
                if target is not None:
                    self._reassign(partition, target)
                    moved = again = True
                    balanced = self._balanced()
                    if balanced:
                        break
            if not again:
                break
        return moved

    def _balanced(self) -> bool:
        """Whether nobody could get a partition from a member that has at least two more."""
        if not self._order or self._order[0][0] >= self._order[-1][0] - 1:
            return True
        largest: dict[str, int] = {}
        for partition, owner in self._owner.items():
            if owner in self._assigned:
                largest[partition[0]] = max(largest.get(partition[0], 0), len(self._assigned[owner]))
        return not any(
            largest.get(topic, 0) > len(partitions) + 1
            for member, partitions in self._assigned.items()
            if len(partitions) != self._most[member]
            for topic in self._subscribed[member]
        )

    def _target(self, partition: TopicPartition) -> str | None:
        """Whom a partition should go to: its owner of the past, or the subscriber that has least."""
        claimant = self._claims.get(partition)
        most = len(self._assigned[self._owner[partition]])
        # Like Kafka, this does not ask whether the claimant still subscribes to the topic.
        if claimant in self._assigned and most > len(self._assigned[claimant]) + 1:
            return claimant
        # Kafka looks among members near the partition first, but its choice is the same whoever is found.
        if any(most > len(self._assigned[member]) + 1 for member in self._subscribers[partition[0]]):
            return next(member for _, _, member in self._order if partition[0] in self._subscribed[member])
        return None

    def _reassign(self, partition: TopicPartition, target: str) -> None:
        partition = self._movements.better(partition, self._owner[partition], target)
        source = self._owner[partition]
        self._order.remove(self._rank(source))
        self._order.remove(self._rank(target))
        self._movements.record(partition, source, target)
        self._assigned[source].remove(partition)
        self._assigned[target].append(partition)
        self._owner[partition] = target
        insort(self._order, self._rank(source))
        insort(self._order, self._rank(target))


def _imbalance(assigned: Assigned) -> int:
    """The sum of the differences of sizes over all pairs of members."""
    sizes = sorted(len(partitions) for partitions in assigned.values())
    return sum(size * (2 * i - len(sizes) + 1) for i, size in enumerate(sizes))
