"""What policy decides: bursts, budgets, exclusions, waves, drift."""

from __future__ import annotations

import pytest

from tests.streaming.driving import RACKS, Driver, line


def test_moves_come_in_waves_that_spare_every_broker_and_take_the_endangered_first() -> None:
    driver = Driver("[policy]\nwave_moves = 1\n")
    driver.racks({"a": [1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9]})
    driver.batch(driver.event("topic_created", topic="t", partitions=9, replication_factor=3))
    replicas = next(row for row in driver.layout()["t"] if 1 in row)
    partition = driver.layout()["t"].index(replicas)
    alone = {"topic": "t", "partition": partition, "replicas": replicas, "isr": [replicas[-1]], "leader": replicas[-1]}
    driver.batch(driver.event("assignment_observed", partitions=[alone], minute=1))
    (heal,) = driver.batch(driver.event("broker_left", broker_id=1, reason="decommissioned", minute=2)).versions
    (block,) = heal.moves
    assert block.waves is not None
    pairs = zip(block.waves.tolist(), block.rows(), strict=True)
    copies = {(wave, broker) for wave, (_, old, new, _) in pairs for broker in set(new) - set(old)}
    assert len(copies) == heal.numbers.moved_replicas == 3
    assert block.waves[block.partitions.tolist().index(partition)] == 1


def test_policy_decides_what_a_departure_triggers() -> None:
    driver = Driver('[policy]\non_failed = "nothing"\non_decommissioned = "nothing"\n')
    driver.racks(RACKS)
    driver.batch(driver.event("topic_created", topic="t", partitions=6, replication_factor=3))
    before = driver.layout()
    driver.batch(driver.event("broker_left", broker_id=3, reason="failed", minute=1))
    driver.batch(driver.event("broker_left", broker_id=4, reason="decommissioned", minute=1))
    driver.batch(minute=999)
    assert driver.layout() == before


def test_joins_that_follow_one_another_are_answered_by_one_rebalance() -> None:
    driver = Driver('[policy]\non_joined = "rebalance"\nsettle = "2m"\napproval = []\n')
    driver.racks(RACKS)
    driver.batch(driver.event("topic_created", topic="t", partitions=12, replication_factor=3), minute=5)
    driver.batch(driver.event("broker_joined", broker_id=7, rack="a", minute=10))
    driver.batch(driver.event("broker_joined", broker_id=8, rack="b", minute=11))
    assert not driver.batch(minute=12.9).versions
    (version,) = driver.batch(minute=13).versions
    assert line(version) == "v5 rebalance not_required: brokers 7, 8 joined, settled at 2026-01-01T00:13:00Z"
    assert version.numbers.moved_replicas == version.numbers.lower_bound == 8
    assert not driver.batch(minute=99).versions


def test_failures_that_follow_one_another_are_healed_by_one_plan() -> None:
    driver = Driver('[policy]\nsettle = "2m"\n')
    driver.racks({"a": [1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9]})
    driver.batch(driver.event("topic_created", topic="t", partitions=9, replication_factor=3))
    for minute, broker in ((1, 1), (2, 4), (10, 7)):
        driver.batch(driver.event("broker_left", broker_id=broker, reason="failed", minute=minute))
    assert not driver.batch(minute=31.9).versions
    (first,) = driver.batch(minute=32).versions
    assert first.cause == "grace of brokers 1, 4 over at 2026-01-01T00:32:00Z"
    assert first.numbers.moved_replicas == first.numbers.lower_bound == 6
    (second,) = driver.batch(minute=40).versions
    assert second.cause == "grace of broker 7 over at 2026-01-01T00:40:00Z"


def test_a_decommissioning_waits_for_nothing() -> None:
    driver = Driver('[policy]\nsettle = "10m"\n')
    driver.racks(RACKS)
    driver.batch(driver.event("topic_created", topic="t", partitions=6, replication_factor=3))
    assert driver.batch(driver.event("broker_left", broker_id=3, reason="decommissioned")).versions[0].kind == "heal"


OBSERVED = [{"topic": "t", "partition": 0, "replicas": [6, 4, 2]}, {"topic": "new", "partition": 0, "replicas": [1, 3]}]


def drifting(policy: str) -> Driver:
    driver = Driver(f"[policy]\n{policy}\n")
    driver.racks(RACKS)
    driver.batch(driver.event("topic_created", topic="t", partitions=6, replication_factor=3))
    return driver


def test_drift_is_reported_and_changes_nothing() -> None:
    driver = drifting('on_drift = "report"')
    planned = driver.layout()["t"]
    adopted, drift = driver.batch(driver.event("assignment_observed", partitions=OBSERVED)).versions
    assert line(adopted) == "v3 observation not_required: observed: 1 partitions adopted, 0 corrected"
    assert line(drift) == "v4 drift reported: drift: 1 partitions are not where they were planned"
    assert [list(m.rows()) for m in drift.moves] == [[(0, planned[0], [6, 4, 2], "drifted")]]
    assert driver.layout() == {"new": [[1, 3]], "t": planned}


@pytest.mark.parametrize(("gated", "approval"), [("[]", "not_required"), ('["restore"]', "proposed")])
def test_drift_is_planned_back(gated: str, approval: str) -> None:
    driver = drifting(f'on_drift = "restore"\napproval = {gated}')
    planned = driver.layout()["t"]
    restore = driver.batch(driver.event("assignment_observed", partitions=OBSERVED)).versions[-1]
    assert (restore.kind, restore.approval) == ("restore", approval)
    assert [list(m.rows()) for m in restore.moves] == [[(0, [6, 4, 2], planned[0], "drifted")]]
    assert driver.layout()["t"] == planned


def test_observed_roles_are_known_until_the_partition_moves(six: Driver) -> None:
    replicas = six.layout()["t"][0]
    seen = {"topic": "t", "partition": 0, "replicas": replicas, "leader": replicas[1], "isr": replicas[1:]}
    ends = {str(b): 100 - i for i, b in enumerate(replicas)}
    six.batch(six.event("assignment_observed", partitions=[seen | {"end_offsets": ends}], minute=1))
    roles = six.memory.clusters["c"].topics["t"].roles
    assert roles is not None
    assert (roles.leader[0], roles.isr[0, :2].tolist()) == (replicas[1], replicas[1:])
    assert roles.end_offsets[0].tolist() == [100, 99, 98]
    assert roles.leader[1:].tolist() == [-1] * 5
    six.batch(six.event("broker_left", broker_id=replicas[0], reason="decommissioned", minute=2))
    moved = six.memory.clusters["c"].topics["t"].roles
    assert moved is not None
    assert moved.leader[0] == -1


def test_the_budget_limits_a_rebalance() -> None:
    driver = Driver("[policy]\nmax_moves = 1\napproval = []\n")
    driver.racks(RACKS)
    driver.batch(driver.event("topic_created", topic="t", partitions=6, replication_factor=3))
    driver.batch(driver.event("broker_joined", broker_id=7, rack="a", minute=1))
    (version,) = driver.batch(driver.event("rebalance_requested", max_moves=5, minute=2)).versions
    assert version.numbers.moved_replicas == 1


@pytest.mark.parametrize(("leaders", "expected"), [("even", (2, 2)), ("keep", (1, 3))])
def test_policy_decides_whether_a_rebalance_evens_out_leaders_that_no_move_asks_for(
    leaders: str, expected: tuple[int, int]
) -> None:
    driver = Driver(f'[policy]\nleaders = "{leaders}"\napproval = []\n')
    driver.racks({"a": [1], "b": [2]})
    rows = {"0": [1, 2], "1": [1, 2], "2": [1, 2], "3": [2, 1]}
    driver.batch(driver.event("topic_created", topic="t", replica_assignment=rows))
    driver.batch(driver.event("rebalance_requested", minute=1))
    leading = [row[0] for row in driver.layout()["t"]]
    assert (min(leading.count(b) for b in (1, 2)), max(leading.count(b) for b in (1, 2))) == expected


def test_a_heal_changes_the_leaders_of_what_it_moves_and_no_others() -> None:
    driver = Driver()
    driver.racks(RACKS)
    rows = {str(p): [1, 3, 5] for p in range(5)} | {"5": [2, 3, 6], "6": [4, 2, 6]}
    driver.batch(driver.event("topic_created", topic="t", replica_assignment=rows))
    driver.batch(driver.event("broker_left", broker_id=2, reason="decommissioned", minute=1))
    assert driver.layout()["t"][:5] == [[1, 3, 5]] * 5
    healed, other = driver.layout()["t"][5:]
    assert (healed[0] in (3, 6), other[0]) == (True, 4)


def test_excluded_topics_are_left_alone() -> None:
    driver = Driver('[policy]\nexclude_topics = ["__*"]\napproval = []\n')
    driver.racks(RACKS)
    for topic in ("t", "__offsets"):
        driver.batch(driver.event("topic_created", topic=topic, partitions=6, replication_factor=3))
    before = driver.layout()
    driver.batch(driver.event("broker_joined", broker_id=7, rack="a", minute=1))
    driver.batch(driver.event("rebalance_requested", minute=2))
    assert driver.layout()["__offsets"] == before["__offsets"]
    assert driver.layout()["t"] != before["t"]


def test_a_heal_that_finds_only_excluded_partitions_is_no_plan() -> None:
    driver = Driver('[policy]\nexclude_topics = ["__*"]\n')
    driver.racks({"a": [1, 2, 3]})
    driver.batch(driver.event("topic_created", topic="__t", replica_assignment={"0": [1, 2]}))
    (left,) = driver.batch(driver.event("broker_left", broker_id=1, reason="decommissioned", minute=1)).versions
    (joined,) = driver.batch(driver.event("broker_joined", broker_id=4, rack="a", minute=2)).versions
    assert line(left) == "v3 membership not_required: broker 1 decommissioned"
    assert line(joined) == "v4 membership not_required: broker 4 joined"
    assert driver.layout() == {"__t": [[1, 2]]}


def test_drift_is_not_planned_back_where_that_would_cost_the_data() -> None:
    driver = Driver('[policy]\non_drift = "restore"\n')
    driver.racks({"a": [1, 2, 3]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment={"0": [1, 2]}))
    driver.batch(driver.event("broker_left", broker_id=1, reason="failed", minute=1))
    seen = [{"topic": "t", "partition": 0, "replicas": [1, 2, 3], "leader": 3, "isr": [3]}]
    (drift,) = driver.batch(driver.event("assignment_observed", partitions=seen, minute=2)).versions
    assert line(drift) == (
        "v4 drift reported: drift: 1 partitions are not where they were planned; not planned back: partition t-0 "
        "gives up a replica that is in sync and keeps one that is not: [1, 2, 3] -> [1, 2]"
    )


def test_drift_of_a_cluster_without_brokers_is_reported() -> None:
    driver = Driver('[policy]\non_drift = "restore"\n')
    driver.racks({"a": [1, 2]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment={"0": [1, 2]}))
    driver.batch(*(driver.event("broker_left", broker_id=b, reason="unregistered", minute=1) for b in (1, 2)))
    seen = [{"topic": "t", "partition": 0, "replicas": [2, 3]}]
    (drift,) = driver.batch(driver.event("assignment_observed", partitions=seen, minute=2)).versions
    assert (drift.kind, drift.approval) == ("drift", "reported")
