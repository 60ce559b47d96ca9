"""What a collector tells: tables from two looks at a cluster to the events between them.

A look is written ``"1a 2b 3c!"`` (brokers with racks, ``!`` is fenced) and ``"t 1,2 2,3"`` (a topic and the replicas
of its partitions). Behind the replicas may stand ``@`` with leader and ISR, ``+`` and ``-`` with what a reassignment
adds and removes, and ``#`` with the leader epoch; behind the topic's name ``:`` with its id.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from streaming.collect.differ import OBSERVED_AT_ONCE, believed, news
from streaming.collect.telling import told
from streaming.events import AnyEvent, AssignmentObserved, decode, encode
from streaming.kafka.snapshot import Broker, Partition, Snapshot, Topic

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ABC = "1a 2b 3c"
PARTITION = re.compile(r"([\d,]+)(?:@(-?\d+)(?:/([\d,]*))?)?(?:\+([\d,]+))?(?:-([\d,]+))?(?:#(\d+))?")


def ids(text: str | None) -> tuple[int, ...]:
    return tuple(int(broker) for broker in (text or "").split(",") if broker)


def partition(number: int, text: str) -> Partition:
    match = PARTITION.fullmatch(text)
    assert match, text
    replicas, leader, isr, adding, removing, epoch = match.groups()
    first = ids(replicas)[0]
    in_sync = ids(replicas) if isr is None else ids(isr)
    leading = first if leader is None else int(leader)
    return Partition(number, ids(replicas), leading, int(epoch or 0), in_sync, ids(adding), ids(removing))


def look(brokers: str = "", *topics: str, kafka_id: str = "k") -> Snapshot:
    found = []
    for text in topics:
        name, *rows = text.split()
        name, _, topic_id = name.partition(":")
        found.append(Topic(name, topic_id or "1", False, tuple(partition(n, row) for n, row in enumerate(rows))))
    members = []
    for text in brokers.split():
        rack = text.strip("0123456789!")
        number = int(text.rstrip("!").removesuffix(rack) if rack else text.rstrip("!"))
        members.append(Broker(number, "host", 9092, rack or None, text.endswith("!")))
    return Snapshot(kafka_id, tuple(members), tuple(found))


def lines(events: list[AnyEvent]) -> list[str]:
    """An event a line: its type, and what it says beyond that."""
    found = []
    for event in events:
        fields = {name: getattr(event, name) for name in event.__struct_fields__[3:]}
        if isinstance(event, AssignmentObserved):
            fields = {f"{p.topic}-{p.partition}": f"{p.replicas} @{p.leader}/{p.isr}" for p in event.partitions}
        shown = ", ".join(f"{name} {value}" for name, value in fields.items() if value not in (None, False))
        found.append(f"{event.type}: {shown}")
    return found


ONE = look(ABC, "t 1,2 2,3")

CHANGES = {
    "the first look: brokers, those that are down with that news too, and the whole assignment": (
        None,
        look("1a 2b 3c!", "t 1,2 2,3@2/2"),
        [
            "broker_joined: broker_id 1, rack a",
            "broker_joined: broker_id 2, rack b",
            "broker_joined: broker_id 3, rack c",
            "broker_left: broker_id 3, reason failed",
            "assignment_observed: t-0 [1, 2] @1/[1, 2], t-1 [2, 3] @2/[2]",
        ],
    ),
    "nothing is different": (ONE, ONE, []),
    "a broker without a rack joins": (look("1"), look("1 2"), ["broker_joined: broker_id 2"]),
    "a broker fails, and others lead what it led": (
        ONE,
        look("1a! 2b 3c", "t 1,2@2/2 2,3"),
        ["broker_left: broker_id 1, reason failed", "assignment_observed: t-0 [1, 2] @2/[2]"],
    ),
    "a broker is back": (look("1a!"), look("1a"), ["broker_joined: broker_id 1, rack a"]),
    "a broker is back in another rack": (look("1a!"), look("1b"), ["broker_joined: broker_id 1, rack b"]),
    "a broker has another rack": (look("1a"), look("1b"), ["broker_changed: broker_id 1, rack b"]),
    "a broker has another rack and is down": (
        look("1a"),
        look("1b!"),
        ["broker_changed: broker_id 1, rack b", "broker_left: broker_id 1, reason failed"],
    ),
    "a broker joins and fails between two looks": (
        look("1a"),
        look("1a 2b!"),
        ["broker_joined: broker_id 2, rack b", "broker_left: broker_id 2, reason failed"],
    ),
    "a broker is forgotten, after what was on it has left": (
        ONE,
        look("1a 2b", "t 1,2 2,1"),
        ["assignment_observed: t-1 [2, 1] @2/[2, 1]", "broker_left: broker_id 3, reason unregistered"],
    ),
    "a topic comes": (
        look(ABC),
        ONE,
        [
            "topic_created: topic t, replica_assignment {0: [1, 2], 1: [2, 3]}",
            "assignment_observed: t-0 [1, 2] @1/[1, 2], t-1 [2, 3] @2/[2, 3]",
        ],
    ),
    "a topic comes that nobody leads yet": (
        look(ABC),
        look(ABC, "t 1,2@-1/"),
        ["topic_created: topic t, replica_assignment {0: [1, 2]}", "assignment_observed: t-0 [1, 2] @-1/[]"],
    ),
    "a topic goes": (ONE, look(ABC), ["topic_deleted: topic t"]),
    "a topic grows": (
        ONE,
        look(ABC, "t 1,2 2,3 3,1"),
        [
            "partitions_added: topic t, partitions 3, replica_assignment {2: [3, 1]}",
            "assignment_observed: t-2 [3, 1] @3/[3, 1]",
        ],
    ),
    "a topic is deleted and created again": (
        ONE,
        look(ABC, "t:2 3,1"),
        [
            "topic_deleted: topic t",
            "topic_created: topic t, replica_assignment {0: [3, 1]}",
            "assignment_observed: t-0 [3, 1] @3/[3, 1]",
        ],
    ),
    "another leader": (ONE, look(ABC, "t 1,2@2 2,3"), ["assignment_observed: t-0 [1, 2] @2/[1, 2]"]),
    "the ISR in another order is no news": (ONE, look(ABC, "t 1,2@1/2,1 2,3"), []),
    "another replication factor": (ONE, look(ABC, "t 1,2,3 2,3"), ["assignment_observed: t-0 [1, 2, 3] @1/[1, 2, 3]"]),
    "a reassignment begins: the partition is where it goes": (
        ONE,
        look(ABC, "t 3,2,1@1/1,2+3-1 2,3"),
        ["assignment_observed: t-0 [3, 2] @None/[1, 2]"],
    ),
    "it goes on: the ISR grows": (look(ABC, "t 3,2,1@1/1,2+3-1"), look(ABC, "t 3,2,1@1/1,2,3+3-1"), []),
    "it goes on: the ISR shrinks": (
        look(ABC, "t 3,2,1@1/1,2+3-1"),
        look(ABC, "t 3,2,1@1/1+3-1"),
        ["assignment_observed: t-0 [3, 2] @None/[1]"],
    ),
    "it ends as it was seen last": (
        look(ABC, "t 1,2,3@1/1,2,3+3"),
        look(ABC, "t 1,2,3@1/1,2,3"),
        ["assignment_observed: t-0 [1, 2, 3] @1/[1, 2, 3]"],
    ),
    "it ends": (
        look(ABC, "t 3,2,1@1/1,2,3+3-1"),
        look(ABC, "t 3,2@3/2,3"),
        ["assignment_observed: t-0 [3, 2] @3/[2, 3]"],
    ),
}


@pytest.mark.parametrize(("before", "after", "expected"), CHANGES.values(), ids=CHANGES)
def test_what_is_different_is_told(before: Snapshot | None, after: Snapshot, expected: list[str]) -> None:
    assert lines(news(before, after, "east", NOON)) == expected


DOUBTS = {
    "what is new is believed at once": (look("1a"), None, look("1a 2b", "t 1"), look("1a 2b", "t 1")),
    "a broker that has registered and is not up yet": (look("1a"), None, look("1a 2b!"), look("1a")),
    "a broker that is down and holds replicas": (look("1a"), None, look("1a 2b!", "t 2"), look("1a 2b!", "t 2")),
    "a failure is believed at once": (look("1a"), look("1a"), look("1a!"), look("1a!")),
    "a return is not": (look("1a!"), look("1a!"), look("1a"), look("1a!")),
    "a return is believed when it is seen again": (look("1a!"), look("1a"), look("1a"), look("1a")),
    "a broker that is not there": (look("1a 2b"), look("1a 2b"), look("1a"), look("1a 2b")),
    "a broker that is not there in the first look": (look("1a 2b"), None, look("1a"), look("1a 2b")),
    "a broker that is not there, twice": (look("1a 2b"), look("1a"), look("1a"), look("1a")),
    "a topic that is not there": (ONE, ONE, look(ABC), ONE),
    "a topic that is not there in the first look": (ONE, None, look(ABC), ONE),
    "a topic that is not there, twice": (ONE, look(ABC), look(ABC), look(ABC)),
    "a topic of another id": (ONE, ONE, look(ABC, "t:2 3,1"), ONE),
    "a topic of another id, twice": (ONE, look(ABC, "t:2 3,1"), look(ABC, "t:2 3,1"), look(ABC, "t:2 3,1")),
    "a topic of the id before": (look(ABC, "t:2 3,1"), look(ABC, "t:2 3,1"), ONE, look(ABC, "t:2 3,1")),
    "news of an older leader epoch": (look("", "t 1,2#4 2,1#4"), None, look("", "t 1,2@2#3 2,1@1#5"),
                                      look("", "t 1,2#4 2,1@1#5")),
    "replicas that a broker names": (look("", "t 1,2"), look("", "t 1,2"), look("", "t 1,2,3"), look("", "t 1,2")),
    "replicas that a broker names twice": (look("", "t 1,2"), look("", "t 1,2,3"), look("", "t 1,2,3"),
                                           look("", "t 1,2,3")),
    "replicas that the controller names": (look("", "t 1,2"), None, look("", "t 3,2,1+3-1"), look("", "t 3,2,1+3-1")),
    "the end of a reassignment that was known": (look("", "t 3,2,1+3-1"), None, look("", "t 3,2@3/2,3"),
                                                 look("", "t 3,2@3/2,3")),
    "another leader and ISR": (look("", "t 1,2"), None, look("", "t 1,2@2/2#1"), look("", "t 1,2@2/2#1")),
    "fewer partitions": (look("", "t 1,2 2,1"), look("", "t 1,2"), look("", "t 1,2"), look("", "t 1,2 2,1")),
}  # fmt: skip


@pytest.mark.parametrize(("known", "earlier", "now", "expected"), DOUBTS.values(), ids=DOUBTS)
def test_what_a_broker_that_lags_behind_says_is_doubted(
    known: Snapshot, earlier: Snapshot | None, now: Snapshot, expected: Snapshot
) -> None:
    assert believed(known, earlier, now) == expected


def test_the_same_news_has_the_same_id_and_other_news_another() -> None:
    failed = look("1a! 2b 3c", "t 1,2 2,3")
    once, again = news(ONE, failed, "east", NOON), news(ONE, failed, "east", NOON)
    assert once == again
    later, elsewhere = news(ONE, failed, "east", NOON + timedelta(seconds=1)), news(ONE, failed, "west", NOON)
    assert len({event.event_id for event in [*once, *later, *elsewhere]}) == 3


def test_what_is_told_can_be_read_by_the_job() -> None:
    for before, after, _ in CHANGES.values():
        for event in news(before, after, "east", NOON):
            assert decode(encode(event)).event == event


def test_a_large_cluster_is_observed_in_parts_that_a_kafka_record_can_hold() -> None:
    n = 2 * OBSERVED_AT_ONCE + 1
    name = "t" * 249
    topic = f"{name} " + " ".join(["2147483645,2147483646,2147483647"] * n)
    events = news(look(), look("", topic), "east", NOON)
    parts = [event for event in events if isinstance(event, AssignmentObserved)]
    assert [len(part.partitions) for part in parts] == [OBSERVED_AT_ONCE, OBSERVED_AT_ONCE, 1]
    assert [p.partition for part in parts for p in part.partitions] == list(range(n))
    assert max(len(encode(part)) for part in parts) < 1_000_000


def test_people_are_told_in_a_line() -> None:
    assert told(news(look("1a 2b 4a"), look("1a! 2c 3c", "t 1,2"), "east", NOON)) == (
        "broker 1 failed; broker 2 is in rack c; broker 3 is up in rack c; "
        "topic t created with 1 partitions; 1 partitions observed; broker 4 unregistered"
    )
    assert told(news(look(), look(" ".join(map(str, range(9)))), "east", NOON)).endswith("; broker 5 is up; and 3 more")


def test_what_may_no_longer_be_described_is_not_gone() -> None:
    """Kafka hides it; asked by name it says that there is no right."""
    hidden = replace(look(ABC), hidden=("t",))
    assert believed(ONE, hidden, hidden) == ONE
    assert news(ONE, believed(ONE, hidden, hidden), "east", NOON) == []
    assert believed(ONE, look(ABC), look(ABC)) == look(ABC)
