"""Steps from what a plan asks for and what the cluster shows, as ``apply --dry-run`` prints them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from placement import WaveLimits
from streaming.apply.explain import explain
from streaming.apply.journal.tasks import PartitionTask, Task, task_of
from streaming.apply.kafka.seen import Seen
from streaming.apply.planning import steps_of
from streaming.apply.steps import Step, outcome
from streaming.kafka.snapshot import Partition
from streaming.record.version import PlanVersion
from tests.streaming.driving import Driver

PARTITION = re.compile(r"(\w+)-(\d+) ([\d,]+)(?: lead (-?\d+))?(?: isr ([\d,]*))?(?: \+([\d,]+))?(?: -([\d,]+))?")


def seen(
    *lines: str, alive: Sequence[int] = range(1, 7), throttled: tuple[Sequence[int], Sequence[str]] = ((), ())
) -> Seen:
    """A cluster; ``t-0 4,1,2 isr 1,2 +4 -2`` is a partition that moves from 1,2 to 4,1."""
    partitions = {}
    for line in lines:
        match = PARTITION.fullmatch(line)
        assert match, line
        replicas = ids(match[3])
        isr = replicas if match[5] is None else ids(match[5])
        leader = int(match[4]) if match[4] else replicas[0]
        partitions[match[1], int(match[2])] = Partition(
            int(match[2]), replicas, leader, 0, isr, ids(match[6]), ids(match[7])
        )
    return Seen(frozenset(alive), partitions, tuple(throttled[0]), tuple(throttled[1]))


def ids(text: str | None) -> tuple[int, ...]:
    return tuple(int(b) for b in (text or "").split(",") if b)


PLACEHOLDER = Driver()
PLACEHOLDER.racks({"a": [1]})
VERSION: PlanVersion = PLACEHOLDER.journal[0]


def task(*lines: str) -> Task:
    """A task; ``t-0 1,2 → 3,2 wave 1`` moves a partition, without the left side it is created."""
    parts = []
    for line in lines:
        place, _, rest = line.partition(" ")
        (before, _, after), wave = rest.partition(" wave ")[0].partition("→"), rest.partition(" wave ")[2]
        topic, _, number = place.rpartition("-")
        old, new = ids(before.strip()), ids(after.strip())
        parts.append(PartitionTask(topic, int(number), old, new, int(wave or 0), frozenset({old, new})))
    return Task(VERSION, tuple(parts))


def text(steps: Sequence[Step]) -> list[str]:
    return [line for step in steps for line in explain(step)]


def test_moves_are_made_wave_by_wave_and_leaders_elected_at_the_end() -> None:
    steps = steps_of(
        task("t-0 1,2 → 3,2 wave 1", "t-1 2,1 → 2,3 wave 2", "t-2 1,4 → 3,4 wave 2"),
        seen("t-0 1,2", "t-1 2,1", "t-2 1,4"),
    )
    assert text(steps) == [
        "wave 1: move 1 partition, copying 1 replica",
        "  t-0: 1,2 → 3,2",
        "wave 2: move 2 partitions, copying 2 replicas",
        "  t-1: 2,1 → 2,3",
        "  t-2: 1,4 → 3,4",
        "elect the preferred leaders of t-0, t-1, t-2",
    ]


def test_topics_are_created_and_grown_with_the_planned_replicas() -> None:
    steps = steps_of(task("new-0 → 1,2", "new-1 → 2,3", "t-1 → 3,1"), seen("t-0 1,2"))
    assert text(steps) == [
        "create topic new with 2 partitions",
        "  new-0: 1,2",
        "  new-1: 2,3",
        "add 1 partition to topic t, from 1 on",
        "  t-1: 3,1",
    ]


def test_a_topic_that_is_there_as_an_earlier_version_placed_it_is_left_to_the_later_one() -> None:
    created = task("t-0 → 3,2")
    part = replace(created.partitions[0], starts=frozenset({(), (1, 2), (3, 2)}))
    assert steps_of(replace(created, partitions=(part,)), seen("t-0 1,2")) == ()


def test_what_is_done_drops_out_and_what_is_under_way_is_waited_for() -> None:
    wanted = task("t-0 1,2 → 3,2 wave 1", "t-1 1,2 → 4,1 wave 1", "t-2 1,2 → 3,2 wave 2")
    steps = steps_of(wanted, seen("t-0 3,2", "t-1 4,1,2 lead 1 isr 1,2 +4 -2", "t-2 1,2"))
    assert text(steps) == [
        "wave 1: move 1 partition, copying 1 replica",
        "  t-1: 1,2 → 4,1 (under way)",
        "wave 2: move 1 partition, copying 1 replica",
        "  t-2: 1,2 → 3,2",
        "elect the preferred leaders of t-1, t-2",
    ]
    assert steps_of(wanted, outcome(steps, seen("t-0 3,2", "t-1 4,1,2 +4 -2", "t-2 1,2"))) == ()


def test_after_a_kill_before_the_election_only_the_election_is_left() -> None:
    steps = steps_of(task("t-0 1,2 → 3,2 wave 1", "t-1 1,2 → 3,1 wave 1"), seen("t-0 3,2 lead 2", "t-1 3,1"))
    assert text(steps) == ["elect the preferred leaders of t-0"]


def test_throttles_are_set_for_each_wave_that_copies_and_removed_at_the_end() -> None:
    steps = steps_of(task("t-0 1,2 → 3,2 wave 1", "u-0 2,1 → 1,2 wave 2"), seen("t-0 1,2", "u-0 2,1"), rate=3 << 19)
    assert text(steps) == [
        "throttle copies to 1.5 MiB/s on brokers 1,2,3",
        "wave 1: move 1 partition, copying 1 replica",
        "  t-0: 1,2 → 3,2",
        "wave 2: move 1 partition, copying 0 replicas",
        "  u-0: 2,1 → 1,2",
        "elect the preferred leaders of t-0, u-0",
        "remove throttles: of brokers 1,2,3; of topics t",
    ]


@pytest.mark.parametrize(
    ("at", "rate", "expected"),
    [
        ("t-0 3,2", None, ["remove throttles: of brokers 1,5; of topics u"]),
        (
            "t-0 1,2",
            None,
            [
                "remove throttles: of brokers 1,5; of topics u",
                "wave 1: move 1 partition, copying 1 replica",
                "  t-0: 1,2 → 3,2",
                "elect the preferred leaders of t-0",
            ],
        ),
        (
            "t-0 1,2",
            1000,
            [
                "throttle copies to 1000 B/s on brokers 1,2,3",
                "wave 1: move 1 partition, copying 1 replica",
                "  t-0: 1,2 → 3,2",
                "elect the preferred leaders of t-0",
                "remove throttles: of brokers 1,2,3,5; of topics t, u",
            ],
        ),
        (
            "t-0 7,9",
            1000,
            [
                "remove throttles: of brokers 1,5; of topics u",
                "stop: partition t-0 is on [7, 9], and the plan starts from [1, 2]; somebody else has moved it",
            ],
        ),
    ],
)
def test_throttles_that_a_killed_run_left_are_removed(at: str, rate: int | None, expected: list[str]) -> None:
    found = steps_of(task("t-0 1,2 → 3,2 wave 1"), seen(at, throttled=([1, 5], ["u"])), rate=rate)
    assert text(found) == expected


def test_throttles_stay_while_somebody_else_moves_partitions_under_them() -> None:
    others = seen("t-0 3,2", "u-0 4,1,2 isr 1,2 +4 -2", throttled=([1, 4], ["u"]))
    assert text(steps_of(task("t-0 1,2 → 3,2 wave 1"), others)) == []
    ours = seen("t-0 3,2,1 isr 1,2 +3 -1", throttled=([1, 4], ["u"]))
    assert text(steps_of(task("t-0 1,2 → 3,2 wave 1"), ours))[0] == "remove throttles: of brokers 1,4; of topics u"


@pytest.mark.parametrize(
    ("wanted", "cluster", "problem"),
    [
        ("t-0 1,2 → 3,2", (), "partition t-0 is not on the cluster"),
        (
            "t-0 1,2 → 3,2",
            ("t-0 2,5",),
            "partition t-0 is on [2, 5], and the plan starts from [1, 2]; somebody else has moved it",
        ),
        (
            "t-0 1,2 → 3,2",
            ("t-0 5,1,2 +5 -1",),
            "partition t-0 is being moved to [5, 2], and the plan starts from [1, 2]; somebody else has moved it",
        ),
        (
            "t-0 → 3,2",
            ("t-0 5,6",),
            "partition t-0 is on [5, 6], and the plan creates it on [3, 2]; somebody else has moved it",
        ),
        ("t-3 → 3,2", (), "topic t is to have partitions 3, and Kafka can only go on from 0"),
        (
            "t-0 1,2 → 7,2",
            ("t-0 1,2",),
            "broker 7, which is to get 1 replicas, is not alive; "
            "start it, or report it as gone so that a new plan is made",
        ),
    ],
)
def test_what_does_not_fit_the_cluster_is_refused(wanted: str, cluster: Sequence[str], problem: str) -> None:
    assert text(steps_of(task(wanted), seen(*cluster))) == [f"stop: {problem}"]


def test_a_reassignment_that_waits_for_a_dead_broker_is_cancelled_before_it_is_refused() -> None:
    steps = steps_of(task("t-0 1,2 → 7,2 wave 1"), seen("t-0 7,2,1 lead 1 isr 1,2 +7 -1"))
    assert text(steps) == [
        "cancel the reassignment of t-0: it waits for a broker that is down",
        "stop: broker 7, which is to get 1 replicas, is not alive; "
        "start it, or report it as gone so that a new plan is made",
    ]


def test_a_replica_that_stays_on_a_dead_broker_is_no_obstacle() -> None:
    steps = steps_of(task("t-0 1,7 → 3,7 wave 1"), seen("t-0 1,7 isr 1"))
    assert text(steps)[:2] == ["wave 1: move 1 partition, copying 1 replica", "  t-0: 1,7 → 3,7"]


def test_what_has_no_live_replica_in_sync_is_left_out() -> None:
    steps = steps_of(task("t-0 8,9 → 1,2 wave 1", "t-1 1,2 → 3,2 wave 1"), seen("t-0 8,9 lead -1 isr 9", "t-1 1,2"))
    assert text(steps) == [
        "leave out t-0: no in-sync replica is alive to copy from",
        "wave 1: move 1 partition, copying 1 replica",
        "  t-1: 1,2 → 3,2",
        "elect the preferred leaders of t-1",
    ]


def test_an_election_is_asked_of_the_cluster_and_moves_nothing() -> None:
    """Led as it should be; led by another; on its way elsewhere; without the one that is to lead; gone."""
    wanted = task("t-0 1,2 → 1,2", "t-1 1,2 → 1,2", "t-2 1,2 → 1,2", "t-3 9,2 → 9,2", "t-4 1,2 → 1,2")
    there = seen("t-0 1,2", "t-1 1,2 lead 2", "t-2 2,1 lead 2", "t-3 9,2 lead 2")
    assert text(steps_of(wanted, there)) == [
        "leave out t-2: it is on [2, 1], and the election is about [1, 2]",
        "leave out t-3: broker 9, which is to lead it, is not alive",
        "leave out t-4: it is not on the cluster",
        "elect the preferred leaders of t-1",
    ]
    assert steps_of(task("t-0 1,2 → 1,2"), there) == ()


def test_what_somebody_else_is_moving_is_left_to_them_with_its_throttle() -> None:
    """A restore of two drifted partitions, one of which is still on its way; then with consent."""
    wanted = task("t-0 4,2 → 1,2", "t-1 4,2 → 1,2", "u-0 4,2 → 1,2")
    wanted = replace(wanted, partitions=tuple(replace(p, foreign=frozenset([p.before])) for p in wanted.partitions))
    there = seen("t-0 4,2,1 lead 1 isr 1,2 +4 -1", "t-1 4,2", "u-0 4,2", throttled=([2, 4], ["t"]))
    left_alone = (
        "leave out t-0: somebody else moves it to [4, 2]; apply again once that has ended, or with --cancel-others"
    )
    assert text(steps_of(wanted, there, rate=1000))[:2] == [
        left_alone,
        "throttle copies to 1000 B/s on brokers 1; throttles of somebody else stay as they are",
    ]
    assert text(steps_of(wanted, there, rate=1000))[-1] == "remove throttles: of brokers 1; of topics u"
    assert text(steps_of(wanted, there)) == [
        left_alone,
        "wave 1: move 2 partitions, copying 2 replicas",
        "  t-1: 4,2 → 1,2",
        "  u-0: 4,2 → 1,2",
        "elect the preferred leaders of t-1, u-0",
    ]
    assert text(steps_of(wanted, there, cancel_others=True))[:3] == [
        "remove throttles: of brokers 2,4; of topics t",
        "wave 1: move 3 partitions, copying 2 replicas",
        "  t-0: 1,2 → 1,2",
    ]


def test_a_topic_that_is_deleted_is_left_out_and_the_rest_is_moved() -> None:
    wanted = task("t-0 1,2 → 3,2 wave 1", "u-0 1,2 → 3,2 wave 1")
    assert text(steps_of(wanted, seen("u-0 1,2"))) == [
        "leave out t-0: the topic is no longer on the cluster",
        "wave 1: move 1 partition, copying 1 replica",
        "  u-0: 1,2 → 3,2",
        "elect the preferred leaders of u-0",
    ]


def test_only_what_is_ours_is_cancelled_where_it_waits_for_a_dead_broker() -> None:
    theirs = seen("t-0 7,2,1 lead 1 isr 1,2 +7 -1", "t-1 1,2")
    assert [line for line in text(steps_of(task("t-0 1,2 → 3,2", "t-1 1,2 → 3,2"), theirs)) if "cancel" in line] == []


def test_moves_without_waves_get_them_from_who_is_in_sync_after_the_planned_ones() -> None:
    wanted = task(*(f"t-{p} 1,2 → 3,2" for p in range(3)), "u-0 1,2 → 4,2 wave 1")
    found = steps_of(wanted, seen(*(f"t-{p} 1,2" for p in range(3)), "u-0 1,2"), limits=WaveLimits(1, 1))
    assert [line for line in text(found) if not line.startswith("wave")] == [
        "  u-0: 1,2 → 4,2",
        "  t-0: 1,2 → 3,2",
        "  t-1: 1,2 → 3,2",
        "  t-2: 1,2 → 3,2",
        "elect the preferred leaders of t-0, t-1, t-2, u-0",
    ]


def test_a_topic_that_the_plan_gave_up_is_kept() -> None:
    assert text(steps_of(task("t-0 1,2 → ", "u-0 1,2 → "), seen("t-0 1,2"))) == [
        "keep topic t, which the plan has given up: deleting data is left to you"
    ]


def test_from_wherever_it_was_killed_the_steps_lead_to_the_plan() -> None:
    """A planned heal, cut off after any number of its partitions, some of them half moved."""
    driver = Driver()
    driver.racks({"a": [1, 2], "b": [3, 4], "c": [5, 6]})
    driver.batch(driver.event("topic_created", topic="t", partitions=30, replication_factor=3))
    driver.batch(driver.event("broker_left", broker_id=1, reason="decommissioned"))
    heal = task_of(driver.journal[2:])
    assert heal.version.kind == "heal" and len(heal.partitions) == 15
    wanted = {part.place: part.after for part in heal.partitions}
    rng = np.random.default_rng(0)
    for seed in range(50):
        fates = rng.integers(0, 3, len(heal.partitions)).tolist()
        cluster = {}
        for part, fate in zip(heal.partitions, fates, strict=True):
            new = tuple(b for b in part.after if b not in part.before)
            old = tuple(b for b in part.before if b not in part.after)
            shapes = [(part.before, (), ()), (part.after + old, new, old), (part.after, (), ())]
            replicas, adding, removing = shapes[fate]
            in_sync = tuple(b for b in replicas if b not in adding)
            cluster[part.place] = Partition(part.partition, replicas, in_sync[0], 0, in_sync, adding, removing)
        before = Seen(frozenset(range(1, 7)), cluster)
        after = outcome(steps_of(heal, before), before)
        assert {place: p.replicas for place, p in after.partitions.items()} == wanted, f"seed {seed}: {fates}"
