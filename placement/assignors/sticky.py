"""Kafka's sticky assignors: as even as possible, and of the even ones, near what members have already.

Source of the method: ``org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor`` (KIP-54),
``StickyAssignor`` and ``CooperativeStickyAssignor`` (KIP-429), racks from KIP-881. Where all members
subscribe to the same topics, quotas decide at once; otherwise partitions move until nothing improves.
"""

from __future__ import annotations

from dataclasses import dataclass

from placement.assignors.group import NO_GENERATION, Group, TopicPartition
from placement.assignors.racks import Nearness
from placement.assignors.sticky_general import balance
from placement.assignors.sticky_quotas import fill_quotas

Assigned = dict[str, list[TopicPartition]]


@dataclass(frozen=True, slots=True)
class Owned:
    """What members may keep: each partition with one owner at most.

    Attributes:
        by_member: the partitions that each member owns, in the order in which it named them.
        contested: partitions that two members of one generation claimed; nobody keeps those.
        generation: the latest generation that any member told.
    """

    by_member: Assigned
    contested: frozenset[TopicPartition]
    generation: int


class StickyAssignor:
    """The eager protocol: members give up everything before they get their new partitions."""

    def assign(self, group: Group) -> Assigned:
        """As ``Assignor`` says."""
        return _assign(group)[0]


class CooperativeStickyAssignor:
    """The cooperative protocol: a partition that changes hands is handed out in the next rebalance.

    Until its owner has given it up nobody has it, so it is missing from the result.
    """

    def assign(self, group: Group) -> Assigned:
        """As ``Assignor`` says."""
        assigned, transferred = _assign(group)
        return {member: [tp for tp in partitions if tp not in transferred] for member, partitions in assigned.items()}


def _assign(group: Group) -> tuple[Assigned, frozenset[TopicPartition]]:
    """The partitions of each member, and those among them that another member has to give up first."""
    if not group.members:
        return {}, frozenset()
    owned = owned_partitions(group)
    nearness = Nearness(group, list(group.partitions_of(group.partitions)))
    if len({(frozenset(m.topics), len(m.topics)) for m in group.members.values()}) == 1:
        return fill_quotas(group, nearness, owned.by_member, owned.contested)
    assigned = balance(group, nearness, owned.by_member, _claims_of_the_past(group, owned.generation))
    given_up: set[TopicPartition] = set()
    added: set[TopicPartition] = set()
    for member in group.members.values():
        given_up |= set(member.owned).difference(assigned[member.id])
        added |= set(assigned[member.id]).difference(member.owned)
    return assigned, frozenset(added & given_up)


def owned_partitions(group: Group) -> Owned:
    """Settle who owns what: the member of the later generation; of one generation, neither keeps it."""
    by_member: Assigned = {member: [] for member in group.members}
    owner: dict[TopicPartition, str] = {}
    contested = set()
    for member in group.members.values():
        for partition in member.owned:
            if partition[0] not in group.partitions:
                continue
            other = owner.get(partition)
            if other is not None:
                theirs, ours = _generation(group, other), _generation(group, member.id)
                if theirs > ours:
                    continue
                if partition in by_member[other]:
                    by_member[other].remove(partition)
                if theirs == ours:
                    contested.add(partition)
                    owner[partition] = member.id
                    continue
            by_member[member.id].append(partition)
            owner[partition] = member.id
    latest = max(_generation(group, member) for member in group.members)
    return Owned(by_member, frozenset(contested), latest)


def _claims_of_the_past(group: Group, latest: int) -> dict[TopicPartition, str]:
    """Who had a partition last, of the members whose generation is not the latest."""
    claims: dict[TopicPartition, tuple[int, str]] = {}
    for member in group.members.values():
        generation = _generation(group, member.id)
        if generation >= latest:
            continue
        for partition in member.owned:
            if partition not in claims or generation > claims[partition][0]:
                claims[partition] = generation, member.id
    return {partition: member for partition, (_, member) in claims.items()}


def _generation(group: Group, member: str) -> int:
    generation = group.members[member].generation
    return NO_GENERATION if generation is None else generation
