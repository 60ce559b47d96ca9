"""What ``kafka-reassign-partitions --generate`` proposes: topics laid out anew on a list of brokers.

Source of the method: ``org.apache.kafka.tools.reassign.ReassignPartitionsCommand.generateAssignment``. It
does not look at where replicas are, so nearly all of them move; ``replan`` is the better way. It is here
because people know its output, and to compare.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from placement.errors import DuplicateBrokerError, InvalidAssignmentError, InvalidBrokerError
from placement.kafka.adminutils.place import place_adminutils
from placement.kafka.adminutils.ring import ring_of
from placement.kafka.java_random import JavaRandom, java_hash_order, java_string_hash, topic_partition_hash
from placement.kafka.reassignment_json import assignment_to_json, topics_to_move
from placement.kafka.striped import place_striped
from placement.model import Assignment, Broker, Int32Array, distinct_brokers

_CURRENT = "Current partition replica assignment"


def _by_adminutils(brokers: Sequence[Broker], partitions: int, factor: int, random: JavaRandom) -> Int32Array:
    return place_adminutils(brokers, partitions, factor, seed=random)


def _by_striped(brokers: Sequence[Broker], partitions: int, factor: int, random: JavaRandom) -> Int32Array:
    return place_striped(brokers, partitions, factor, draw=random.next_int)


PROPOSERS: Final = {"adminutils": _by_adminutils, "striped": _by_striped}
"""Kafka's placers by name, each drawing from a generator that goes on from topic to topic."""


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """The layout of the topics now, and the one that is proposed."""

    current: Assignment
    proposed: Assignment

    @property
    def text(self) -> str:
        """What the tool prints: both layouts under their headings."""
        return (
            f"{_CURRENT}\n{assignment_to_json(self.current)}\n\n"
            f"Proposed partition reassignment configuration\n{assignment_to_json(self.proposed)}\n"
        )


def generate(
    topics_json: str,
    broker_list: str,
    current: Assignment,
    brokers: Iterable[Broker],
    *,
    rack_aware: bool = True,
    seed: int = 0,
    strategy: str = "adminutils",
) -> Generated:
    """Lay out topics anew on the listed brokers, as Kafka does.

    Args:
        topics_json: the text of the topics-to-move file.
        broker_list: broker ids with commas between them, as in ``0,2``.
        current: the layout of the cluster.
        brokers: of the cluster, in its order; those of the list that are alive take replicas.
        rack_aware: False: racks are ignored (``--disable-rack-aware``).
        seed: of ``java.util.Random``, from which one topic after the other is drawn.
        strategy: ``adminutils`` as up to Kafka 4.0, ``striped`` as from 4.1 on.

    Raises:
        InvalidJsonError: the topics-to-move file is wrong.
        InvalidBrokerError: the list has an entry that is no id, or a broker that the cluster does not have.
        DuplicateBrokerError: the list, or the cluster, has a broker twice.
        InvalidAssignmentError: a topic does not exist.
        PlacementError: as ``place_adminutils`` or ``place_striped`` raises.
    """
    usable = _listed(broker_list, distinct_brokers(brokers))
    topics = set(topics_to_move(topics_json))
    for topic in sorted(topics - set(current.topics)):
        raise InvalidAssignmentError(f"topic {topic} does not exist", topic=topic)
    if rack_aware:
        ring_of(usable, None)
    else:
        usable = [Broker(broker.id, state=broker.state) for broker in usable]
    random = JavaRandom(seed)

    def place(partitions: int, replication_factor: int) -> Int32Array:
        return PROPOSERS[strategy](usable, partitions, replication_factor, random)

    rows = [row for row in current.rows() if row[0] in topics]
    return Generated(Assignment.from_rows(rows), Assignment.from_rows(_lay_out(rows, place)))


def rollback_text(current: Assignment, proposed: Assignment) -> str:
    """What ``--execute`` prints first: the present layout of the partitions that will change."""
    changing = {(topic, partition) for topic, partition, _ in proposed.rows()}
    rows = [row for row in current.rows() if row[:2] in changing]
    return (
        f"{_CURRENT}\n\n{assignment_to_json(Assignment.from_rows(rows))}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )


def _lay_out(
    rows: Sequence[tuple[str, int, tuple[int, ...]]], place: Callable[[int, int], Int32Array]
) -> Iterator[tuple[str, int, list[int]]]:
    """Topic by topic in the order of Kafka's hash tables, because all topics draw from one generator."""
    factor = {(topic, partition): len(replicas) for topic, partition, replicas in rows}
    hashed = java_hash_order(factor, topic_partition_hash)
    count = Counter(topic for topic, _ in hashed)
    # The tool takes the replication factor of whichever partition comes first in its table.
    first = {topic: factor[topic, partition] for topic, partition in reversed(hashed)}
    for topic in java_hash_order((topic for topic, _ in hashed), java_string_hash):
        for partition, replicas in enumerate(place(count[topic], first[topic]).tolist()):
            yield topic, partition, replicas


def _listed(broker_list: str, fleet: Sequence[Broker]) -> list[Broker]:
    """The brokers of the list, in the cluster's order."""
    listed = _broker_ids(broker_list)
    known = {broker.id for broker in fleet}
    wanted = set(listed)
    for broker in listed:
        if broker not in known:
            raise InvalidBrokerError(
                f"the broker list has {broker}, which the cluster does not have",
                broker=broker,
                field="id",
                value=broker,
            )
    return [broker for broker in fleet if broker.id in wanted]


def _broker_ids(broker_list: str) -> list[int]:
    """The ids of a broker list; a comma at the end is let pass, as in Kafka."""
    entries = broker_list.rstrip(",").split(",")
    for entry in entries:
        if not (entry.isascii() and entry.isdigit()):
            raise InvalidBrokerError(
                f"the broker list {broker_list!r} has {entry!r}, which is not a broker id",
                broker=entry,
                field="id",
                value=entry,
            )
    ids = [int(entry) for entry in entries]
    twice = tuple(sorted(broker for broker, times in Counter(ids).items() if times > 1))
    if twice:
        raise DuplicateBrokerError(f"the broker list contains duplicate entries: {list(twice)}", brokers=twice)
    return ids
