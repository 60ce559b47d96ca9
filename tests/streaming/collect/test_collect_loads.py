"""What is told of loads: tables from two looks at a cluster to the numbers of an event.

A partition in a look is written ``"size held start..end"``; ``?`` where nobody could say.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.collect.loads import AT_ONCE, BYTES_AT_ONCE, observed, written
from streaming.collect.measuring import Look, PartitionMeasure, TopicMeasure
from streaming.collect.rates.values import Rate, Rates
from streaming.collect.telling import told
from streaming.config import Collect, parse_config
from streaming.events import AnyEvent, LoadObserved, ObservedLimits, ObservedLogDir, decode, encode
from streaming.kafka.log_dirs import LogDir, LogDirs

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def part(number: int, text: str) -> PartitionMeasure:
    size, held, offsets = text.split()
    values = [None if v == "?" else int(v) for v in (size, held, *offsets.split(".."))]
    return PartitionMeasure(number, *values)


def topic(name: str, *partitions: str, topic_id: str = "1") -> TopicMeasure:
    return TopicMeasure(name, topic_id, tuple(part(n, text) for n, text in enumerate(partitions)))


def dirs(*found: tuple[str, int | None, int | None]) -> LogDirs:
    return LogDirs(tuple(LogDir(*one) for one in found), {}, {})


def events(
    before: list[TopicMeasure],
    now: list[TopicMeasure],
    *,
    seconds: float = 10,
    rates: Rates | None = None,
    settings: Collect | None = None,
    log_dirs: dict[int, LogDirs] | None = None,
) -> list[LoadObserved]:
    look = Look(tuple(now), log_dirs or {})
    found = observed(before, look, seconds, rates or {}, settings or Collect(), cluster_id="east", at=NOON)
    for event in found:
        assert decode(encode(event)).event == event
    return [event for event in found if isinstance(event, LoadObserved)]


def numbers(found: list[LoadObserved]) -> dict[str, tuple[int | None, int | None, int | None]]:
    return {f"{p.topic}-{p.partition}": (p.size, p.bytes_in, p.bytes_out) for e in found for p in e.partitions or ()}


GROWN = {
    "it has grown": ("100 100 0..10", "160 160 0..13", 60),
    "nothing came in": ("100 100 0..10", "100 100 0..10", 0),
    "nothing came in, and something went": ("100 100 0..10", "40 40 6..10", 0),
    "its beginning has moved: records of mean size": ("100 100 0..10", "120 120 4..16", 60),
    "it has shrunk without that, as compaction does: the same": ("100 100 0..10", "60 60 0..12", 10),
    "a client has moved its beginning: what is before still counts": ("100 100 0..10", "160 160 14..16", 60),
    "and it has grown by more than that": ("100 100 0..10", "180 180 14..16", 80),
    "all of it is gone: records as they were": ("100 100 0..10", "0 0 15..15", 50),
    "all of it is gone, and there was nothing before": ("0 0 5..5", "0 0 15..15", None),
    "it ends earlier than before": ("100 100 0..10", "90 90 0..9", None),
    "the leader's own log counts, not the largest": ("100 100 0..10", "300 150 0..12", 50),
    "nobody said where it ended": ("100 100 ?..?", "200 200 0..20", None),
    "nobody says where it ends": ("100 100 0..10", "200 200 ?..?", None),
    "nobody says how large the leader's log is": ("100 100 0..10", "200 ? 0..20", None),
}


@pytest.mark.parametrize(("before", "now", "expected"), GROWN.values(), ids=GROWN)
def test_what_came_in(before: str, now: str, expected: float | None) -> None:
    assert written(part(0, before), part(0, now)) == expected


offsets = st.integers(0, 100)
logs = st.builds(
    lambda held, start, records: PartitionMeasure(0, held, held, start, start + records),
    st.integers(0, 10_000),
    offsets,
    offsets,
)


@given(before=logs, now=logs)
def test_what_came_in_is_never_negative_and_at_least_what_the_log_has_grown_by(
    before: PartitionMeasure, now: PartitionMeasure
) -> None:
    amount = written(before, now)
    assert before.end is not None and now.end is not None and before.held is not None and now.held is not None
    if now.end < before.end:
        assert amount is None
    elif amount is not None:
        assert amount >= 0
        assert now.end == before.end or amount >= now.held - before.held


LOOKS = {
    "the first look has sizes": ([], [topic("t", "100 100 0..10")], {}, {"t-0": (100, None, None)}),
    "the second one has rates as well": (
        [topic("t", "100 100 0..10", "0 0 0..0")],
        [topic("t", "160 155 0..13", "7 7 0..1")],
        {},
        {"t-0": (160, 6, None), "t-1": (7, 1, None)},
    ),
    "of a new partition there is no rate": (
        [topic("t", "100 100 0..10")],
        [topic("t", "100 100 0..10", "5 5 0..1")],
        {},
        {"t-0": (100, 0, None), "t-1": (5, None, None)},
    ),
    "nor of one that was created again": (
        [topic("t", "100 100 0..10")],
        [topic("t", "900 900 0..90", topic_id="2")],
        {},
        {"t-0": (900, None, None)},
    ),
    "a source counts before what was seen": (
        [topic("t", "100 100 0..10", "100 100 0..10")],
        [topic("t", "160 160 0..13", "160 160 0..13")],
        {("t", 0): Rate(99.5, 200.4), ("t", 1): Rate(None, 3.0), ("gone", 0): Rate(1.0, 1.0)},
        {"t-0": (160, 100, 200), "t-1": (160, 6, 3)},
    ),
    "what a source says of a topic is divided: what is read by what came in": (
        [topic("t", "100 100 0..10", "100 100 0..10", "100 100 0..10")],
        [topic("t", "160 160 0..13", "220 220 0..13", "100 100 0..10")],
        {("t", None): Rate(None, 90.0)},
        {"t-0": (160, 6, 30), "t-1": (220, 12, 60), "t-2": (100, 0, 0)},
    ),
    "among those of which it says nothing more exact, evenly where nothing came in": (
        [],
        [topic("t", "1 1 0..1", "1 1 0..1", "1 1 0..1")],
        {("t", None): Rate(30.0, 40.0), ("t", 1): Rate(None, 7.0)},
        {"t-0": (1, 10, 20), "t-1": (1, 10, 7), "t-2": (1, 10, 20)},
    ),
    "that of which nothing is known is left out": (
        [],
        [topic("t", "? ? ?..?", "? ? ?..?")],
        {("t", 1): Rate(None, 5.0)},
        {"t-1": (None, None, 5)},
    ),
}


@pytest.mark.parametrize(("before", "now", "rates", "expected"), LOOKS.values(), ids=LOOKS)
def test_what_is_told_of_partitions(
    before: list[TopicMeasure],
    now: list[TopicMeasure],
    rates: Rates,
    expected: dict[str, tuple[int | None, int | None, int | None]],
) -> None:
    assert numbers(events(before, now, rates=rates)) == expected


@pytest.mark.parametrize("seconds", [0.0, -5.0])
def test_no_rate_is_told_where_no_time_has_passed(seconds: float) -> None:
    before, now = [topic("t", "100 100 0..10")], [topic("t", "160 160 0..13")]
    assert numbers(events(before, now, seconds=seconds)) == {"t-0": (160, None, None)}


CAPACITIES = """
[collect]
bytes_out_per_byte_in = 2.5

[collect.capacities]
bytes_in = "1KiB"
cpu = 500

[collect.capacities.brokers.2]
disk = "2KiB"
bytes_in = "3KiB"
"""


def test_what_is_told_of_brokers() -> None:
    """Conf and disks together; a disk whose size nobody tells is left out."""
    settings = parse_config(CAPACITIES, "test.toml").collect
    log_dirs = {
        1: dirs(("/a", 1000, 900), ("/b", 500, 0)),
        2: dirs(("/a", 1000, 1000)),
        3: dirs(("/a", None, None)),
    }
    (event,) = events([], [], settings=settings, log_dirs=log_dirs)
    assert event.partitions is None
    assert event.bytes_out_per_byte_in == 2.5
    assert event.brokers == [
        ObservedLimits(1, None, 1024, None, 500, [ObservedLogDir("/a", 1000, 100), ObservedLogDir("/b", 500, 500)]),
        ObservedLimits(2, 2048, 3072, None, 500, [ObservedLogDir("/a", 1000, 0)]),
        ObservedLimits(3, None, 1024, None, 500, None),
    ]
    assert events([], [], log_dirs={3: log_dirs[3]}) == []


def test_a_large_cluster_is_told_in_parts_that_a_kafka_record_can_hold() -> None:
    small = topic("t", *["1 1 0..1"] * (2 * AT_ONCE))
    large = topic("u" * 249, *["1000000000 1000000000 0..1"] * AT_ONCE)
    found = events([], [small, large], log_dirs={1: dirs(("/d", 10, 5))})
    assert [len(e.partitions or ()) + len(e.brokers or ()) for e in found[:2]] == [AT_ONCE, AT_ONCE]
    assert len(numbers(found)) == 3 * AT_ONCE
    assert len({e.event_id for e in found}) == len(found) > 4
    assert {e.occurred_at for e in found} == {NOON}
    assert BYTES_AT_ONCE / 2 < max(len(encode(e)) for e in found) < 1_000_000
    assert told(found) == "loads of 30000 partitions and limits of 1 brokers observed"


def test_the_same_look_has_the_same_ids_and_another_one_others() -> None:
    def look(at: datetime, size: int) -> list[AnyEvent]:
        now = Look((topic("t", f"{size} {size} 0..1"),), {})
        return observed([], now, 0.0, {}, Collect(), cluster_id="east", at=at)

    later = NOON + timedelta(minutes=5)
    assert look(NOON, 1) == look(NOON, 1)
    assert len({event.event_id for at in (NOON, later) for size in (1, 2) for event in look(at, size)}) == 4
