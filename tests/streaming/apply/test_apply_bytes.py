"""Steps where sizes and log directories are known: what they copy, in which waves, and into which directories."""

from __future__ import annotations

from dataclasses import replace

from placement import WaveLimits
from streaming.apply.journal.tasks import Task, task_of, tasks_of
from streaming.apply.kafka.seen import Seen
from streaming.apply.planning import steps_of
from streaming.apply.steps import MoveWave, Step
from tests.streaming.apply.test_apply_planning import seen, task, text
from tests.streaming.driving import Driver

MB = 1 << 20
THREE = task("t-0 1,2 → 3,2 wave 1", "t-1 1,2 → 3,4 wave 1", "t-2 1,2 → 3,2 wave 2")
CLUSTER = replace(seen("t-0 1,2", "t-1 1,2", "t-2 1,2"), sizes={("t", 0): 40 * MB, ("t", 1): 10 * MB, ("t", 2): 5 * MB})


def waves(steps: tuple[Step, ...]) -> list[list[int]]:
    return [[move.partition for move in step.moves] for step in steps if isinstance(step, MoveWave)]


def test_what_a_wave_copies_is_said_and_how_long_it_takes_at_least() -> None:
    """Broker 3 receives 50 MB in the first wave, at 5 MB/s; broker 4 less."""
    assert [line for line in text(steps_of(THREE, CLUSTER, rate=5 * MB)) if not line.startswith(" ")] == [
        "throttle copies to 5.0 MiB/s on brokers 1,2,3,4: takes at least 10 s",
        "wave 1: move 2 partitions, copying 3 replicas of 60.0 MiB in all",
        "throttle copies to 5.0 MiB/s on brokers 1,2,3: takes at least 1 s",
        "wave 2: move 1 partition, copying 1 replica of 5.0 MiB in all",
        "elect the preferred leaders of t-0, t-1, t-2",
        "remove throttles: of brokers 1,2,3,4; of topics t",
    ]


def test_waves_are_divided_anew_where_bytes_are_limited() -> None:
    """Broker 1 sends 40, 2 x 10 and 5 MB: at most so much in a wave, unless a partition alone is more."""
    assert waves(steps_of(THREE, CLUSTER)) == [[0, 1], [2]]
    assert waves(steps_of(THREE, CLUSTER, limits=WaveLimits(5, 5))) == [[0, 1], [2]]
    assert waves(steps_of(THREE, CLUSTER, limits=WaveLimits(5, 5, 65 * MB, 65 * MB))) == [[0, 1, 2]]
    assert waves(steps_of(THREE, CLUSTER, limits=WaveLimits(5, 5, 25 * MB, 25 * MB))) == [[1, 2], [0]]
    assert waves(steps_of(THREE, CLUSTER, limits=WaveLimits(1, 1, 65 * MB, 65 * MB))) == [[1], [0], [2]]


def with_dirs(wanted: Task, *dirs: tuple[str, ...]) -> Task:
    parts = tuple(replace(part, log_dirs=named) for part, named in zip(wanted.partitions, dirs, strict=True))
    return replace(wanted, partitions=parts)


def test_new_replicas_go_into_the_directories_that_the_plan_names() -> None:
    """What is there stays where it is; ``any`` names none."""
    wanted = with_dirs(task("t-0 1,2 → 3,2 wave 1", "t-1 1,2 → 3,4 wave 1"), ("/a", "any"), ("any", "/b"))
    steps = steps_of(wanted, seen("t-0 1,2", "t-1 1,2"))
    assert text(steps)[:3] == [
        "wave 1: move 2 partitions, copying 3 replicas",
        "  t-0: 1,2 → 3,2, on 3 into /a",
        "  t-1: 1,2 → 3,4, on 4 into /b",
    ]
    (under_way,) = text(steps_of(with_dirs(task("t-0 1,2 → 3,2 wave 1"), ("/a", "any")), seen("t-0 3,2,1 +3 -1")))[1:2]
    assert under_way == "  t-0: 1,2 → 3,2, on 3 into /a (under way)"


CONF = """
[policy]
approval = []

[policy.loads]
plan = true
every = "1s"
disk_fill = 1
"""


def test_directories_are_taken_from_the_newest_plan_by_load() -> None:
    driver = Driver(CONF)
    driver.racks({"a": [1], "b": [2], "c": [3], "d": [4]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment={0: [1, 2], 1: [2, 1]}))
    dirs = {b: [{"path": f"/{b}/x", "limit": 1000, "used": 900}, {"path": f"/{b}/y", "limit": 1000}] for b in range(5)}
    loads = [{"topic": "t", "partition": p, "size": 50, "bytes_in": 1} for p in (0, 1)]
    limits = [{"broker_id": b, "log_dirs": dirs[b]} for b in range(1, 5)]
    driver.batch(driver.event("load_observed", partitions=loads, brokers=limits))
    driver.batch(driver.event("broker_left", broker_id=1, reason="decommissioned"))
    healed = driver.journal[-1]
    found = {p.place: dict(zip(p.after, p.log_dirs, strict=True)) for p in task_of([healed]).partitions}
    assert found
    for named in found.values():
        assert {path for path in named.values() if path != "any"} <= {f"/{b}/y" for b in (3, 4)}
        assert {b for b, path in named.items() if path != "any"} == set(named) - {2}

    driver.batch(driver.event("broker_left", broker_id=2, reason="decommissioned"))
    _, later = tasks_of(driver.journal, [healed.plan_version, driver.journal[-1].plan_version])
    assert {p.log_dirs for p in later.partitions} == {
        tuple(block.log_dirs[n]) for block in driver.journal[-1].moves if block.log_dirs for n in (0, 1)
    }


def test_sizes_that_nobody_says_change_nothing() -> None:
    unknown = Seen(CLUSTER.alive, CLUSTER.partitions)
    assert waves(steps_of(THREE, unknown, limits=WaveLimits(5, 5, 1, 1))) == [[0, 1, 2]]
    assert "copying 3 replicas" in text(steps_of(THREE, unknown))[0]
    assert text(steps_of(THREE, unknown, rate=MB))[0] == "throttle copies to 1.0 MiB/s on brokers 1,2,3,4"
