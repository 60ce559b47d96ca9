"""Loads that are observed: recorded, smoothed, folded and forgotten; and the plans that go by them. Without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from streaming.planning.batch import ClusterResult, ClusterWork, plan_alone
from streaming.planning.state import ClusterState
from streaming.record.loads import listed
from streaming.record.version import PlanVersion
from tests.streaming.driving import RACKS, Driver, line, outcomes, reasons

BY_LOAD = """
[policy]
settle = "30s"
[policy.loads]
plan = true
on_skew = "rebalance"
"""

Row = dict[str, Any]


def loads(topic: str, sizes: list[int | None], **fields: Any) -> list[Row]:
    """Partitions from 0 on with these sizes and the same rates."""
    return [{"topic": topic, "partition": p, "size": size} | fields for p, size in enumerate(sizes)]


def observe(driver: Driver, partitions: list[Row], minute: float, **fields: Any) -> bytes:
    return driver.event("load_observed", minute=minute, partitions=partitions, **fields)


def recorded(driver: Driver) -> list[tuple[str, int, int, int, int]]:
    known = driver.memory.clusters["c"].loads
    return listed(known.topics[name] for name in sorted(known.topics))


def folded(driver: Driver) -> ClusterState:
    """The state as the journal alone gives it."""
    state = ClusterState("c")
    for version in driver.journal:
        state.fold(version)
    return state


def cluster(conf: str = "", *, partitions: int = 6) -> Driver:
    driver = Driver(conf)
    driver.racks(RACKS)
    driver.batch(driver.event("topic_created", topic="t", partitions=partitions, replication_factor=3))
    return driver


def test_the_first_observation_is_recorded_as_it_is() -> None:
    driver = cluster()
    seen = [{"topic": "t", "partition": 1, "size": 100, "bytes_in": 7}, {"topic": "t", "partition": 0, "bytes_out": 5}]
    (version,) = driver.batch(observe(driver, seen, minute=1)).versions
    assert line(version) == "v3 loads not_required: observed: 2 partitions changed"
    assert recorded(driver) == [("t", 0, -1, -1, 5), ("t", 1, 100, 7, -1)]
    assert listed(version.load_changes) == recorded(driver)


def test_what_is_not_measured_keeps_its_value_and_only_changes_are_recorded() -> None:
    driver = cluster('[policy.loads]\nweight = 1.0\nevery = "1m"')
    driver.batch(observe(driver, loads("t", [100, 200], bytes_in=7), minute=1))
    (version,) = driver.batch(observe(driver, loads("t", [100, 300], bytes_in=None), minute=2)).versions
    assert listed(version.load_changes) == [("t", 1, 300, 7, -1)]
    assert recorded(driver) == [("t", 0, 100, 7, -1), ("t", 1, 300, 7, -1)]


def test_bytes_out_follow_bytes_in_where_the_event_says_so() -> None:
    driver = cluster()
    driver.batch(observe(driver, loads("t", [1], bytes_in=10), minute=1, bytes_out_per_byte_in=2.55))
    assert recorded(driver) == [("t", 0, 1, 10, 25)]


def test_topics_partitions_and_brokers_that_are_not_there_are_left_out() -> None:
    driver = cluster()
    seen = [*loads("gone", [1]), {"topic": "t", "partition": 77, "size": 5}, *loads("t", [9])]
    limits = [{"broker_id": 99, "disk": 5}, {"broker_id": 1, "disk": 50}]
    (version,) = driver.batch(observe(driver, seen, minute=1, brokers=limits)).versions
    assert line(version).endswith("observed: 1 partitions and limits of 1 brokers changed")
    assert recorded(driver) == [("t", 0, 9, -1, -1)]
    assert list(driver.memory.clusters["c"].loads.limits) == [1]


@pytest.mark.parametrize(
    ("partitions", "brokers", "said"),
    [
        ([*loads("t", [1]), *loads("t", [2])], [], "partition t-0 is in the list 2 times: name it once"),
        ([*loads("gone", [1]), *loads("gone", [2])], [], "partition gone-0 is in the list 2 times: name it once"),
        ([], [{"broker_id": 1}, {"broker_id": 1}], "broker 1 is in the list 2 times: name it once"),
        (
            [],
            [{"broker_id": 1, "log_dirs": [{"path": "/d", "limit": 1}, {"path": "/d", "limit": 2}]}],
            "log_dir of broker 1 /d is in the list 2 times: name it once",
        ),
    ],
)
def test_what_contradicts_itself_is_rejected(partitions: list[Row], brokers: list[Row], said: str) -> None:
    driver = cluster()
    result = driver.batch(observe(driver, partitions, minute=1, brokers=brokers))
    assert list(reasons(result).values()) == [said]
    assert not recorded(driver)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"partitions": [{"topic": "t", "partition": 0, "size": -1}]}, "Expected `int` >= 0 - at `partitions[0].size`"),
        ({"partitions": [{"topic": "t", "partition": 0, "size": 1.5}]}, "Expected `int | null`, got `float`"),
        ({"partitions": [{"topic": "t", "partition": 0, "size": 2**50 + 1}]}, "Expected `int` <= 1125899906842624"),
        ({"partitions": [{"topic": "t"}]}, "missing required field `partition` - at `partitions[0]`"),
        ({"partitions": [{"partition": 0}]}, "missing required field `topic`"),
        ({"partitions": {"t": 1}}, "Expected `array | null`, got `object` - at `partitions`"),
        ({"brokers": [{"id": 1}]}, "missing required field `broker_id` - at `brokers[0]`"),
        ({"brokers": [{"broker_id": -1}]}, "Expected `int` >= 0 - at `brokers[0].broker_id`"),
        ({"brokers": [{"broker_id": 1, "log_dirs": [{"path": "/d"}]}]}, "missing required field `limit`"),
        ({"brokers": [{"broker_id": 1, "log_dirs": [{"path": "", "limit": 1}]}]}, "Expected `str` of length >= 1"),
        ({"bytes_out_per_byte_in": -1}, "Expected `float` >= 0.0"),
        ({"bytes_out_per_byte_in": "2"}, "Expected `float | null`, got `str`"),
    ],
)
def test_what_is_no_observation_is_malformed_with_its_place(fields: Row, said: str) -> None:
    driver = cluster()
    (event,) = driver.batch(driver.event("load_observed", minute=1, **fields)).unplanned
    assert event.outcome == "malformed"
    assert said in event.reason


def test_an_observation_that_changes_nothing_has_no_effect() -> None:
    driver = cluster('[policy.loads]\nevery = "1m"')
    driver.batch(observe(driver, loads("t", [1000] * 6), minute=1))
    for minute, sizes in ((2, [1000] * 6), (3, [1004] * 6), (4, [])):
        result = driver.batch(observe(driver, loads("t", sizes), minute=minute))
        assert list(outcomes(result).values()) == ["no_effect"]
    assert recorded(driver)[0] == ("t", 0, 1000, -1, -1)


def test_an_observation_that_comes_too_soon_has_no_effect_but_parts_of_one_look_do() -> None:
    driver = cluster()
    driver.batch(observe(driver, loads("t", [1000]), minute=0))
    part = observe(driver, [{"topic": "t", "partition": 1, "size": 5}], minute=0)
    soon, late = (observe(driver, loads("t", [9000]), minute=m) for m in (59, 60))
    assert list(outcomes(driver.batch(part)).values()) == ["applied"]
    result = driver.batch(soon)
    assert list(reasons(result).values()) == ["loads were observed at 2026-01-01T00:00:00Z already; policy: every 1h"]
    assert list(outcomes(driver.batch(late)).values()) == ["applied"]
    assert recorded(driver) == [("t", 0, 2608, -1, -1), ("t", 1, 5, -1, -1)]


def test_older_loads_are_stale() -> None:
    driver = cluster()
    driver.batch(observe(driver, loads("t", [1000]), minute=100))
    result = driver.batch(observe(driver, loads("t", [9000]), minute=10))
    assert list(outcomes(result).values()) == ["stale"]


def test_nothing_is_known_of_a_topic_that_was_deleted_and_is_there_again() -> None:
    driver = cluster()
    driver.batch(observe(driver, loads("t", [10, 20]), minute=1))
    (version,) = driver.batch(driver.event("topic_deleted", topic="t", minute=2)).versions
    assert listed(version.load_changes) == [("t", 0, -1, -1, -1), ("t", 1, -1, -1, -1)]
    driver.batch(driver.event("topic_created", topic="t", partitions=2, replication_factor=1, minute=3))
    assert recorded(driver) == []
    assert folded(driver).loads.topics == {}


def test_the_limits_of_a_broker_that_is_gone_are_forgotten() -> None:
    driver = cluster()
    driver.batch(observe(driver, [], minute=1, brokers=[{"broker_id": 1, "disk": 5}, {"broker_id": 2, "cpu": 7}]))
    driver.batch(driver.event("broker_left", broker_id=1, reason="unregistered", minute=2))
    assert list(driver.memory.clusters["c"].loads.limits) == [2]
    assert folded(driver).loads.limits == driver.memory.clusters["c"].loads.limits


def test_limits_keep_what_was_known_and_the_fill_of_disks_is_rounded() -> None:
    driver = cluster('[policy.loads]\nevery = "1m"')
    dirs = [{"path": "/b", "limit": 90, "used": None}, {"path": "/a", "limit": 5000, "used": 1003}]
    driver.batch(observe(driver, [], minute=1, brokers=[{"broker_id": 1, "disk": 5, "log_dirs": dirs}]))
    driver.batch(observe(driver, [], minute=2, brokers=[{"broker_id": 1, "bytes_in": 8}]))
    found = driver.memory.clusters["c"].loads.limits[1]
    assert (found.disk, found.bytes_in, found.bytes_out) == (5, 8, None)
    assert [(one.path, one.limit, one.used) for one in found.log_dirs] == [("/a", 5000, 1004), ("/b", 90, 0)]


def test_the_fold_of_the_journal_is_the_state() -> None:
    driver = cluster('[policy.loads]\nevery = "1m"')
    rng = np.random.default_rng(5)
    for minute in range(1, 30):
        sizes = [int(s) if s > 50 else None for s in rng.integers(0, 1000, 6)]
        lines = [observe(driver, loads("t", sizes, bytes_in=int(rng.integers(9))), minute=2 * minute)]
        if minute % 7 == 0:
            lines.append(driver.event("partitions_added", topic="t", partitions=6 + minute, minute=2 * minute))
        driver.batch(*lines)
    state = folded(driver)
    known = state.loads.topics["t"]
    assert listed([known]) == recorded(driver)
    assert state.clocks == driver.memory.clusters["c"].clocks


def hot(driver: Driver, factor: float = 30.0, minute: float = 1, size: int = 10_000) -> bytes:
    """The partitions that broker 1 holds weigh much more."""
    layout = driver.layout()["t"]
    sizes = [int(size * (factor if 1 in row else 1)) for row in layout]
    return observe(driver, loads("t", list(sizes), bytes_in=100, bytes_out=100), minute=minute)


def moves_of(version: PlanVersion) -> list[tuple[str, int, list[int], list[int], str]]:
    return [(block.topic, *row) for block in version.moves for row in block.rows()]


@pytest.mark.parametrize("seen", [[], loads("t", [500] * 60, bytes_in=3, bytes_out=4)], ids=["none", "alike"])
def test_without_loads_or_with_all_alike_plans_are_those_by_count(seen: list[Row]) -> None:
    plans = []
    for conf in ("", BY_LOAD):
        driver = cluster(conf, partitions=60)
        driver.batch(observe(driver, seen, minute=1))
        driver.batch(driver.event("broker_left", broker_id=2, reason="decommissioned", minute=2))
        driver.batch(driver.event("broker_joined", broker_id=7, rack="a", minute=3))
        driver.batch(driver.event("rebalance_requested", minute=4))
        plans.append([(v.digest, moves_of(v), v.numbers.moved_replicas) for v in driver.journal if v.moves])
    assert plans[0] == plans[1]
    assert len(plans[0]) == 3


def test_a_skew_is_rebalanced_once_the_loads_have_settled() -> None:
    driver = cluster(BY_LOAD, partitions=60)
    assert [line(v) for v in driver.batch(hot(driver)).versions] == [
        "v3 loads not_required: observed: 60 partitions changed"
    ]
    assert driver.batch(minute=1.4).versions == []
    (version,) = driver.batch(minute=1.5).versions
    assert line(version).startswith("v4 rebalance proposed: loads settled at 2026-01-01T00:01:30Z: broker 1 carries ")
    numbers = version.numbers.loads
    assert numbers is not None
    assert 0 < numbers.lower_bound_bytes <= numbers.moved_bytes
    assert max(numbers.residual_disk, numbers.residual_bytes_in, numbers.residual_bytes_out) == 0
    assert driver.memory.clusters["c"].next_deadline() is None


def test_loads_do_not_make_a_proposal_stale_and_one_that_still_helps_stays() -> None:
    driver = cluster(BY_LOAD, partitions=60)
    driver.batch(hot(driver))
    (proposal,) = driver.batch(minute=2).versions
    driver.batch(hot(driver, factor=31, minute=65))
    (settled,) = driver.batch(minute=66).versions
    assert line(settled).startswith(
        "v6 loads not_required: loads settled at 2026-01-01T01:05:30Z: all brokers are within their bands, "
        "with proposal 4; broker "
    )
    assert settled.supersedes is None
    approval = driver.event("plan_approved", plan_version=4, digest=proposal.digest, minute=70)
    assert outcomes(driver.batch(approval)) == {"e10": "applied"}


def test_a_proposal_that_no_longer_helps_is_replaced() -> None:
    driver = cluster(BY_LOAD.replace("plan = true", "plan = true\nweight = 1.0"), partitions=60)
    driver.batch(hot(driver))
    driver.batch(minute=2)
    layout = driver.layout()["t"]
    sizes = [300_000 if 4 in row else 10_000 for row in layout]
    driver.batch(observe(driver, loads("t", list(sizes), bytes_in=100, bytes_out=100), minute=70))
    (replaced,) = driver.batch(minute=71).versions
    assert (replaced.kind, replaced.approval, replaced.supersedes) == ("rebalance", "proposed", 4)


def test_noise_does_not_replan() -> None:
    """20 % noise on every partition over 50 observations, on a cluster that is skewed at the beginning."""
    conf = BY_LOAD.replace("[policy.loads]", "approval = []\n[policy.loads]")
    driver = cluster(conf, partitions=120)
    rng = np.random.default_rng(11)
    base = np.exp(rng.normal(0, 1.2, 120)) * 1e6
    for number in range(50):
        noisy = (base * rng.uniform(0.8, 1.2, 120)).astype(int).tolist()
        driver.batch(observe(driver, loads("t", noisy, bytes_in=50, bytes_out=50), minute=60 * number + 1))
        driver.batch(minute=60 * number + 2)
    assert 1 <= sum(v.kind == "rebalance" for v in driver.journal) <= 2


def test_a_failure_is_healed_by_load() -> None:
    """Two survivors of one rack; the one with the small partitions gets more of what was lost."""
    conf = BY_LOAD.replace("[policy]", '[policy]\non_failed = "heal"\ngrace = "1m"')
    driver = cluster(conf, partitions=60)
    driver.batch(driver.event("broker_joined", broker_id=7, rack="a", minute=0.2))
    driver.batch(hot(driver, factor=3, minute=1))
    driver.batch(driver.event("broker_left", broker_id=2, reason="failed", minute=10))
    version = driver.batch(minute=20).versions[-1]
    assert version.kind == "heal"
    assert version.numbers.loads is not None
    fresh = [b for _, _, before, after, _ in moves_of(version) for b in after if b not in before]
    assert set(fresh) == {7}


def test_new_replicas_name_their_disks() -> None:
    driver = cluster(BY_LOAD, partitions=60)
    dirs = [{"path": f"/d{n}", "limit": 10**9, "used": 0} for n in (1, 2)]
    driver.batch(observe(driver, [], minute=0.5, brokers=[{"broker_id": b, "log_dirs": dirs} for b in range(1, 7)]))
    driver.batch(hot(driver, minute=0.5))
    (version,) = driver.batch(minute=2).versions
    named = {path for block in version.moves for paths in block.log_dirs or () for path in paths}
    assert named == {"any", "/d1", "/d2"}


def test_what_no_broker_can_take_is_not_healed_and_the_cause_says_so() -> None:
    driver = cluster(BY_LOAD, partitions=60)
    limits = [{"broker_id": b, "disk": 350_000} for b in range(1, 7)]
    driver.batch(observe(driver, loads("t", [10_000 + p for p in range(60)]), minute=1, brokers=limits))
    driver.batch(minute=1.9)
    (version,) = driver.batch(driver.event("broker_left", broker_id=1, reason="unregistered", minute=2)).versions
    assert (version.kind, version.moves) == ("membership", [])
    assert "; not healed: 30 partitions of t (broker 2 would end with disk " in version.cause
    assert version.cause.endswith("above its limit of 297500)")


def test_what_some_brokers_can_take_is_healed_and_the_rest_is_named() -> None:
    driver = cluster(BY_LOAD.replace("[policy]", "[policy]\napproval = []", 1), partitions=60)
    limits = [{"broker_id": b, "disk": 350_000 if b > 2 else 420_000} for b in range(1, 7)]
    driver.batch(observe(driver, loads("t", [10_000 + p for p in range(60)]), minute=1, brokers=limits))
    driver.batch(minute=1.9)
    (version,) = driver.batch(driver.event("broker_left", broker_id=1, reason="unregistered", minute=2)).versions
    assert version.kind == "heal"
    lost = [row for row in driver.layout()["t"] if 1 in row]
    assert 0 < len(lost) < 30
    assert f"; not healed: {len(lost)} partitions of t (broker 2 would end with disk " in version.cause
    more = driver.batch(driver.event("broker_joined", broker_id=7, rack="a", minute=3)).versions
    assert [v.kind for v in more] == ["heal"]
    assert not any(1 in row for row in driver.layout()["t"])


def test_a_cluster_that_is_planned_elsewhere_has_the_same_loads_and_plans() -> None:
    """As on Spark's executors: state and work travel there, versions travel back."""

    def elsewhere(work: Sequence[tuple[ClusterState, ClusterWork]]) -> dict[str, ClusterResult]:
        travelled = [pickle.loads(pickle.dumps(pair)) for pair in work]
        results = {each.cluster_id: plan_alone(state, each, lambda _c, _v: None) for state, each in travelled}
        found: dict[str, ClusterResult] = pickle.loads(pickle.dumps(results))
        return found

    seals = []
    for plan_many in (None, elsewhere):
        driver = cluster(BY_LOAD, partitions=60)
        driver.batch(hot(driver), plan_many=plan_many)
        driver.batch(minute=2, plan_many=plan_many)
        driver.batch(driver.event("topic_deleted", topic="t", minute=3), plan_many=plan_many)
        seals.append([version.seal for version in driver.journal])
        assert recorded(driver) == []
    assert seals[0] == seals[1]
    assert [version.kind for version in driver.journal[2:]] == ["loads", "rebalance", "topics"]


def test_a_proposal_that_was_rejected_comes_again_with_the_next_observation() -> None:
    driver = cluster(BY_LOAD, partitions=60)
    driver.batch(hot(driver))
    (proposal,) = driver.batch(minute=2).versions
    driver.batch(driver.event("plan_rejected", plan_version=4, digest=proposal.digest, minute=3))
    driver.batch(hot(driver, factor=31, minute=70))
    (again,) = driver.batch(minute=71).versions
    assert (again.kind, again.approval) == ("rebalance", "proposed")
