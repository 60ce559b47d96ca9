"""Which versions may be carried out, and what they ask for, of journals made by the planner itself."""

from __future__ import annotations

import pytest

from streaming.apply.journal.tasks import Task, check_may_start, task_of, tasks_of, waiting
from streaming.apply.kafka.seen import Seen
from streaming.apply.planning import steps_of
from streaming.errors import ApplyError
from streaming.kafka.snapshot import Partition
from tests.streaming.driving import Driver

CONF = '[policy]\napproval = ["rebalance"]\ngrace = "1m"\n'


@pytest.fixture
def driver() -> Driver:
    """v1: four brokers. v2: topic t, partitions on [1, 2] and [2, 1]."""
    driver = Driver(CONF)
    driver.racks({"a": [1, 3], "b": [2, 4]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment={0: [1, 2], 1: [2, 1]}))
    return driver


def rows(task: Task) -> list[str]:
    return [
        f"{p.topic}-{p.partition} {list(p.before)} → {list(p.after)} from {sorted(map(list, p.starts))}"
        for p in task.partitions
    ]


def refusal(driver: Driver, version: int) -> str:
    with pytest.raises(ApplyError) as error:
        check_may_start(driver.journal, version)
    return str(error.value)


def test_versions_wait_that_take_effect_and_ask_for_something_and_are_not_reported_done(driver: Driver) -> None:
    driver.batch(driver.event("broker_left", broker_id=1, reason="decommissioned"))
    driver.batch(driver.event("rebalance_requested"))
    assert [(v.kind, v.approval) for v in driver.journal] == [
        ("membership", "not_required"),
        ("topics", "not_required"),
        ("heal", "not_required"),
        ("rebalance", "proposed"),
    ]
    assert waiting(driver.journal, ()) == [2, 3]
    assert waiting(driver.journal, {2}) == [3]


def test_a_partition_goes_straight_to_where_the_newest_version_wants_it(driver: Driver) -> None:
    driver.batch(driver.event("broker_left", broker_id=1, reason="decommissioned"))
    driver.batch(driver.event("broker_left", broker_id=3, reason="decommissioned"))
    heals = [list(map(str, rows(task_of([v])))) for v in driver.journal if v.kind == "heal"]
    assert heals == [
        ["t-0 [1, 2] → [3, 2] from [[1, 2], [3, 2]]", "t-1 [2, 1] → [2, 3] from [[2, 1], [2, 3]]"],
        ["t-0 [3, 2] → [4, 2] from [[3, 2], [4, 2]]", "t-1 [2, 3] → [2, 4] from [[2, 3], [2, 4]]"],
    ]
    created, first, second = tasks_of(driver.journal, [2, 3, 4])
    assert rows(created) == [
        "t-0 [] → [4, 2] from [[], [1, 2], [3, 2], [4, 2]]",
        "t-1 [] → [2, 4] from [[], [2, 1], [2, 3], [2, 4]]",
    ]
    assert (rows(first), first.left_to_later) == ([], 2)
    assert rows(second) == [
        "t-0 [3, 2] → [4, 2] from [[], [1, 2], [3, 2], [4, 2]]",
        "t-1 [2, 3] → [2, 4] from [[], [2, 1], [2, 3], [2, 4]]",
    ]


def test_one_version_alone_starts_from_where_it_was_planned_and_yields_to_later_ones(driver: Driver) -> None:
    driver.batch(driver.event("broker_left", broker_id=1, reason="decommissioned"))
    driver.batch(driver.event("partitions_added", topic="t", partitions=3))
    assert rows(task_of(driver.journal[2:])) == [
        "t-0 [1, 2] → [3, 2] from [[1, 2], [3, 2]]",
        "t-1 [2, 1] → [2, 3] from [[2, 1], [2, 3]]",
    ]
    with pytest.raises(ApplyError) as error:
        task_of(driver.journal[1:])
    assert str(error.value) == (
        "version 2 of c is not carried out: it is superseded by version 3, which changes t-0 again; "
        "name that one, or none"
    )


def test_a_topic_that_came_went_and_came_again_in_one_version_is_created_as_it_is_last(driver: Driver) -> None:
    driver.batch(
        driver.event("topic_created", topic="u", replica_assignment={0: [1, 2]}),
        driver.event("topic_deleted", topic="u", minute=1),
        driver.event("topic_created", topic="u", replica_assignment={0: [3, 4]}, minute=2),
        driver.event("topic_created", topic="gone", replica_assignment={0: [1, 2]}),
        driver.event("topic_deleted", topic="gone", minute=1),
    )
    assert rows(task_of(driver.journal[2:])) == ["u-0 [] → [3, 4] from [[], [3, 4]]"]


def test_an_observation_of_leaders_supersedes_nothing(driver: Driver) -> None:
    seen = [{"topic": "t", "partition": 0, "replicas": [1, 2], "leader": 2, "isr": [2]}]
    driver.batch(driver.event("assignment_observed", partitions=seen))
    assert driver.journal[-1].kind == "observation"
    assert len(task_of(driver.journal[1:]).partitions) == 2


def test_what_takes_no_effect_is_refused_with_what_to_do(driver: Driver) -> None:
    driver.batch(driver.event("rebalance_requested"))
    proposal = driver.journal[-1]
    assert refusal(driver, 1) == (
        "version 1 of c is not carried out: it is of kind membership and asks for nothing on the cluster"
    )
    assert refusal(driver, 3) == (
        "version 3 of c is not carried out: it waits for approval: "
        f"replica-planner approve c 3 --digest {proposal.digest}"
    )
    driver.batch(driver.event("plan_approved", plan_version=3, digest=proposal.digest))
    assert refusal(driver, 3) == "version 3 of c is not carried out: it was approved as version 4; carry that out"
    check_may_start(driver.journal, 4)
    assert refusal(driver, 9) == "c has no version 9: it has versions 1 to 4"


def test_rejected_superseded_and_rolled_back_versions_are_refused(driver: Driver) -> None:
    driver.batch(driver.event("rebalance_requested"))
    driver.batch(driver.event("plan_rejected", plan_version=3, digest=driver.journal[-1].digest))
    assert refusal(driver, 3) == "version 3 of c is not carried out: it was rejected by version 4"
    assert refusal(driver, 4) == "version 4 of c is not carried out: it records that version 3 was rejected"
    driver.batch(driver.event("rebalance_requested"))
    driver.batch(driver.event("topic_created", topic="u", partitions=1, replication_factor=2))
    assert refusal(driver, 5) == (
        "version 5 of c is not carried out: it is superseded by version 6, which came before it was approved"
    )
    driver.batch(driver.event("replication_factor_changed", topic="t", replication_factor=1))
    driver.batch(driver.event("plan_rolled_back", plan_version=7, digest=driver.journal[-1].digest))
    assert refusal(driver, 7) == "version 7 of c is not carried out: it is rolled back by version 8; carry that out"
    check_may_start(driver.journal, 8)


def seen(driver: Driver, *rows: tuple[int, list[int], int]) -> None:
    found = [{"topic": "t", "partition": p, "replicas": r, "leader": leader, "isr": r} for p, r, leader in rows]
    driver.batch(driver.event("assignment_observed", partitions=found))


def test_an_election_is_asked_for_whatever_waits_from_before_and_is_seen_meanwhile(driver: Driver) -> None:
    driver.batch(driver.event("replication_factor_changed", topic="t", replication_factor=1))
    seen(driver, (0, [1], 1), (1, [4], 4))
    driver.batch(driver.event("preferred_election_requested"))
    seen(driver, (0, [3], 3))
    assert [v.kind for v in driver.journal[1:]] == [
        "topics",
        "replication_factor",
        "observation",
        "election",
        "observation",
    ]
    election = tasks_of(driver.journal[1:], [2, 3, 5])[-1]
    assert rows(election) == ["t-0 [3] → [3] from [[3]]", "t-1 [4] → [4] from [[4]]"]
    assert election.left_to_later == 0
    assert rows(task_of(driver.journal[4:])) == rows(election)


def test_an_election_is_left_to_a_later_plan_which_elects_by_itself(driver: Driver) -> None:
    driver.batch(driver.event("preferred_election_requested"))
    driver.batch(driver.event("broker_left", broker_id=1, reason="decommissioned"))
    election, heal = tasks_of(driver.journal[2:], [3, 4])
    assert (rows(election), election.left_to_later) == ([], 2)
    assert len(heal.partitions) == 2


def test_what_was_only_seen_supersedes_no_plan(driver: Driver) -> None:
    """What somebody else has moved, and policy has taken over, is left out; the rest is carried out."""
    driver.batch(driver.event("broker_left", broker_id=1, reason="decommissioned"))
    seen(driver, (0, [4, 3], 4))
    assert driver.journal[-1].cause == "observed: 0 partitions adopted, 1 corrected"
    healed = task_of(driver.journal[2:])
    assert rows(healed) == ["t-1 [2, 1] → [2, 3] from [[2, 1], [2, 3]]"]
    assert healed.left_to_later == 1


def test_an_election_forgets_nobody_who_leads(driver: Driver) -> None:
    seen(driver, (0, [1, 2], 2))
    driver.batch(driver.event("preferred_election_requested"))
    layout = driver.memory.clusters["c"].topics["t"]
    assert layout.roles is not None and layout.roles.leader.tolist() == [2, -1]
    folded = Driver()
    folded.journal = driver.journal
    assert folded.memory.cluster("c").topics["t"].roles is not None


def test_what_somebody_else_has_chosen_is_known_to_all_that_waits() -> None:
    """The topic's own version, which waits as well, must not take their reassignment for ours."""
    driver = Driver('[policy]\non_drift = "restore"\n')
    driver.racks({"a": [1, 3], "b": [2, 4]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment={0: [1, 2]}))
    seen(driver, (0, [1, 2], 1))
    seen(driver, (0, [4, 2], 4))
    assert driver.journal[-1].kind == "restore"
    created, restored = tasks_of(driver.journal[1:], [2, 4])
    assert [p.foreign for task in (created, restored) for p in task.partitions] == [frozenset({(4, 2)})] * 2
    way = Partition(0, (4, 2, 1), 1, 0, (1, 2), (4,), (1,))
    on_the_way = Seen(frozenset(range(1, 5)), {("t", 0): way}, (1, 4), ("t",))
    assert steps_of(created, on_the_way) == ()
    assert [type(step).__name__ for step in steps_of(restored, on_the_way)] == ["LeaveOut"]
