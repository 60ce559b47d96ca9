"""Who leads, who is in sync, what is offline: observed where it was, expected elsewhere."""

from __future__ import annotations

import pytest

from streaming.history.health import counts, topic_health
from tests.streaming.driving import Driver

LAYOUT = {"0": [1, 2, 3], "1": [2, 3, 1], "2": [3, 1, 2]}


@pytest.fixture
def three() -> Driver:
    driver = Driver()
    driver.racks({"a": [1], "b": [2], "c": [3]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment=LAYOUT))
    return driver


def table(driver: Driver, minimum: int = 1) -> list[str]:
    """One line a partition: leader, ISR, high watermark, and what is wrong."""
    state = driver.memory.clusters["c"]
    health = topic_health(state, "t", minimum)
    wrong = ("under_replicated", "at_minimum", "offline", "not_preferred")
    return [
        f"{partition}: leader {health.leader[row]} isr {state.topics['t'].replicas[row][health.in_sync[row]].tolist()} "
        f"hw {health.high_watermark[row]} {' '.join(name for name in wrong if getattr(health, name)[row])}".rstrip()
        for row, partition in enumerate(health.partitions.tolist())
    ]


def test_where_nothing_was_observed_all_replicas_are_expected_in_sync(three: Driver) -> None:
    assert table(three) == [
        "0: leader 1 isr [1, 2, 3] hw -1",
        "1: leader 2 isr [2, 3, 1] hw -1",
        "2: leader 3 isr [3, 1, 2] hw -1",
    ]


def test_when_a_broker_fails_the_next_in_sync_replica_leads(three: Driver) -> None:
    three.batch(three.event("broker_left", broker_id=1, reason="failed", minute=1))
    assert table(three, minimum=2) == [
        "0: leader 2 isr [2, 3] hw -1 under_replicated at_minimum not_preferred",
        "1: leader 2 isr [2, 3] hw -1 under_replicated at_minimum",
        "2: leader 3 isr [3, 2] hw -1 under_replicated at_minimum",
    ]


def test_no_unclean_election_is_assumed(three: Driver) -> None:
    seen = {"topic": "t", "partition": 0, "replicas": [1, 2, 3], "leader": 1, "isr": [1]}
    three.batch(three.event("assignment_observed", partitions=[seen], minute=1))
    assert table(three)[0] == "0: leader 1 isr [1] hw -1 under_replicated at_minimum"
    three.batch(three.event("broker_left", broker_id=1, reason="failed", minute=2))
    assert table(three)[0] == "0: leader -1 isr [] hw -1 under_replicated offline"
    assert counts(three.memory.clusters["c"], 1) == {
        "under_replicated": 3,
        "at_minimum": 0,
        "offline": 1,
        "not_preferred": 0,
    }


def test_the_high_watermark_is_the_least_end_offset_in_the_isr(three: Driver) -> None:
    ends = {"1": 90, "2": 80, "3": 10}
    seen = {"topic": "t", "partition": 0, "replicas": [1, 2, 3], "leader": 2, "isr": [1, 2], "end_offsets": ends}
    three.batch(three.event("assignment_observed", partitions=[seen], minute=1))
    assert table(three)[0] == "0: leader 2 isr [1, 2] hw 80 under_replicated not_preferred"
