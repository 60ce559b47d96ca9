"""What becomes of events: outcomes, versions, and whole layouts, without Spark."""

from __future__ import annotations

import pytest

from tests.streaming.driving import RACKS, Driver, line, outcomes, reasons


def test_events_that_move_nothing_share_a_version() -> None:
    driver = Driver()
    joined = driver.racks({"a": [1, 2], "b": [3]})
    created = driver.batch(
        driver.event("topic_created", topic="t", partitions=2, replication_factor=2),
        driver.event("topic_created", topic="u", partitions=1, replication_factor=1),
    )
    assert [line(v) for v in (*joined.versions, *created.versions)] == [
        "v1 membership not_required: 3 events: broker 1 joined, broker 2 joined, broker 3 joined",
        "v2 topics not_required: 2 events: topic t created with 2 partitions (balanced), "
        "topic u created with 1 partitions (balanced)",
    ]
    assert outcomes(created) == {"e4": "applied", "e5": "applied"}


def test_a_balanced_topic_is_spread_over_brokers_and_racks(six: Driver) -> None:
    (created,) = six.journal[1:]
    assert (created.numbers.after.replicas_min, created.numbers.after.replicas_max) == (3, 3)
    assert (created.numbers.after.leaders_min, created.numbers.after.leaders_max) == (1, 1)
    rack_of = {b: rack for rack, ids in RACKS.items() for b in ids}
    assert all(len({rack_of[b] for b in replicas}) == 3 for replicas in six.layout()["t"])


def test_strategies_give_kafkas_own_layouts() -> None:
    driver = Driver()
    driver.racks({"a": [0], "b": [1], "c": [2]})
    driver.batch(
        driver.event(
            "topic_created",
            topic="aware",
            partitions=3,
            replication_factor=2,
            strategy="adminutils",
            fixed_start_index=0,
        ),
        driver.event("topic_created", topic="striped", partitions=3, replication_factor=3, strategy="striped"),
    )
    assert driver.layout()["aware"] == [[0, 1], [1, 2], [2, 0]]
    assert [sorted(replicas) for replicas in driver.layout()["striped"]] == [[0, 1, 2]] * 3


def test_a_manual_assignment_is_honoured_with_its_gaps(six: Driver) -> None:
    six.batch(six.event("topic_created", topic="m", replica_assignment={"40": [5, 1], "10": [1, 3], "21": [3, 5]}))
    state = six.memory.clusters["c"]
    assert state.topics["m"].partitions.tolist() == [10, 21, 40]
    assert six.layout()["m"] == [[1, 3], [3, 5], [5, 1]]


def test_defaults_are_those_of_auto_creation(six: Driver) -> None:
    six.batch(six.event("topic_created", topic="auto"))
    assert len(six.layout()["auto"]) == 1
    assert len(six.layout()["auto"][0]) == 1


@pytest.mark.parametrize(
    ("kind", "fields", "reason"),
    [
        ("topic_created", {"topic": "t"}, "Topic 't' already exists."),
        ("topic_created", {"topic": "a b"}, "topic name 'a b' is illegal"),
        ("topic_created", {"topic": ""}, "topic name '' is illegal"),
        ("topic_created", {"topic": ".."}, "topic name '..' is illegal"),
        ("topic_created", {"topic": "x" * 250}, "is illegal"),
        ("topic_created", {"topic": "n", "partitions": 0, "replication_factor": 1}, "0"),
        ("topic_created", {"topic": "n", "partitions": 1, "replication_factor": 0}, "0"),
        ("topic_created", {"topic": "n", "partitions": 1, "replication_factor": 7}, "7"),
        ("topic_created", {"topic": "n", "partitions": 10**30, "replication_factor": 1}, "0" * 30),
        ("topic_created", {"topic": "n", "fixed_start_index": 1}, "belong to strategy adminutils"),
        ("topic_created", {"topic": "n", "replica_assignment": {}}, "has no partitions"),
        ("topic_created", {"topic": "n", "replica_assignment": {"0": []}}, "empty replica list"),
        ("topic_created", {"topic": "n", "replica_assignment": {"0": [1, 1]}}, "broker 1 more than once"),
        ("topic_created", {"topic": "n", "replica_assignment": {"0": [9]}}, "no such broker is registered"),
        ("topic_created", {"topic": "n", "replica_assignment": {"-1": [1]}}, "no partition id"),
        ("topic_created", {"topic": "n", "replica_assignment": {"0": [1], "1": [1, 2]}}, "not consistent"),
        ("topic_created", {"topic": "n", "partitions": 1, "replica_assignment": {"0": [1]}}, "was also given"),
        ("topic_deleted", {"topic": "nope"}, "topic nope is not known"),
        ("partitions_added", {"topic": "nope", "partitions": 3}, "topic nope is not known"),
        ("partitions_added", {"topic": "t", "partitions": 6}, "already has 6"),
        ("partitions_added", {"topic": "t", "partitions": 5}, "would not be an increase"),
        (
            "partitions_added",
            {"topic": "t", "partitions": 7, "replica_assignment": {"7": [1]}},
            "name partitions 6 to 6",
        ),
        ("partitions_added", {"topic": "t", "partitions": 7, "replica_assignment": {"6": [9]}}, "no such broker"),
        ("partitions_added", {"topic": "t", "partitions": 6, "replica_assignment": {"5": [6, 4]}}, "already has 6"),
        ("topic_created", {"topic": "t", "replica_assignment": {"0": [1, 3, 5]}}, "Topic 't' already exists."),
        ("replication_factor_changed", {"topic": "nope", "replication_factor": 2}, "topic nope is not known"),
        ("replication_factor_changed", {"topic": "t", "replication_factor": 7}, "7"),
        ("replication_factor_changed", {"topic": "t", "replication_factor": 10**8}, "above the 9 brokers"),
        ("replication_factor_changed", {"topic": "t", "replication_factor": 2**62}, "above the 9 brokers"),
        ("replication_factor_changed", {"topic": "t", "replication_factor": 10**30}, "above the 9 brokers"),
        ("replication_factor_changed", {"topic": "t", "replication_factor": -(2**62)}, "must be at least 1"),
        ("topic_created", {"topic": "n", "partitions": 10**6 + 1, "replication_factor": 1}, "1000000 is the most"),
        ("partitions_added", {"topic": "t", "partitions": 2**31 - 1}, "1000000 is the most"),
        ("partitions_added", {"topic": "t", "partitions": 2**62}, "1000000 is the most"),
        ("broker_left", {"broker_id": 9, "reason": "failed"}, "broker 9 is not part of the cluster"),
        ("broker_changed", {"broker_id": 9, "rack": "a"}, "broker 9 is not part of the cluster"),
        ("rebalance_requested", {"topics": ["nope"]}, "topic nope is not known"),
        ("preferred_election_requested", {"topics": ["nope"]}, "topic nope is not known"),
        ("plan_approved", {"plan_version": 7, "digest": "d"}, "there is no version 7: the cluster has versions 1 to 2"),
        ("plan_rolled_back", {"plan_version": 1, "digest": "d"}, "moved no replicas"),
        ("plan_progress", {"plan_version": 0, "state": "started"}, "there is no version 0"),
        (
            "assignment_observed",
            {"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]},
            "names a broker more than once",
        ),
    ],
)
def test_what_cannot_be_is_rejected_with_the_reason_and_changes_nothing(
    six: Driver, kind: str, fields: dict[str, object], reason: str
) -> None:
    before = six.layout()
    result = six.batch(six.event(kind, event_id="bad", **fields))
    assert outcomes(result) == {"bad": "rejected"}
    assert reason in reasons(result)["bad"]
    assert not result.versions
    assert six.layout() == before


def test_a_failed_broker_keeps_its_replicas_until_its_grace_is_over(six: Driver) -> None:
    before = six.layout()
    failed = six.batch(six.event("broker_left", broker_id=3, reason="failed", minute=1))
    assert [v.kind for v in failed.versions] == ["membership"]
    assert six.layout() == before
    assert not six.batch(minute=30.9).versions
    (healed,) = six.batch(minute=31).versions
    assert line(healed) == "v4 heal not_required: grace of broker 3 over at 2026-01-01T00:31:00Z"
    assert healed.numbers.moved_replicas == healed.numbers.lower_bound == 3
    assert all(3 not in replicas for replicas in six.layout()["t"])
    assert not six.batch(minute=99).versions


def test_a_failed_broker_that_returns_is_not_healed(six: Driver) -> None:
    before = six.layout()
    six.batch(six.event("broker_left", broker_id=3, reason="failed", minute=1))
    (back,) = six.batch(six.event("broker_joined", broker_id=3, minute=5)).versions
    assert line(back) == "v4 membership not_required: broker 3 returned within its grace"
    assert not six.batch(minute=99).versions
    assert six.layout() == before


def test_a_backlog_is_planned_by_the_time_of_its_events(six: Driver) -> None:
    """The return is in the same backlog, hours ago: nothing may be healed away meanwhile."""
    first = six.batch(six.event("broker_left", broker_id=3, reason="failed", minute=1), minute=600)
    second = six.batch(six.event("broker_joined", broker_id=3, minute=20), minute=601)
    assert [v.kind for v in (*first.versions, *second.versions)] == ["membership", "membership"]


def test_a_deadline_passes_before_a_later_event_of_the_same_batch(six: Driver) -> None:
    result = six.batch(
        six.event("broker_left", broker_id=3, reason="failed", minute=1),
        six.event("topic_created", topic="u", partitions=6, replication_factor=3, minute=45),
        minute=45,
    )
    assert [v.kind for v in result.versions] == ["membership", "heal", "topics"]


def test_no_deadline_passes_for_an_event_from_the_future(six: Driver) -> None:
    failed = six.event("broker_left", broker_id=3, reason="failed", minute=1)
    six.batch(failed, six.event("topic_deleted", topic="t", minute=45), minute=2)
    assert [v.kind for v in six.journal[2:]] == ["membership", "topics"]


def test_nothing_new_is_placed_on_a_failed_broker(six: Driver) -> None:
    six.batch(six.event("broker_left", broker_id=3, reason="failed", minute=1))
    six.batch(six.event("topic_created", topic="u", partitions=6, replication_factor=3, minute=2))
    assert all(3 not in replicas for replicas in six.layout()["u"])


@pytest.mark.parametrize("reason", ["decommissioned", "unregistered"])
def test_a_broker_that_leaves_for_good_is_emptied_at_once(six: Driver, reason: str) -> None:
    (healed,) = six.batch(six.event("broker_left", broker_id=3, reason=reason, minute=1)).versions
    assert (healed.kind, healed.cause) == ("heal", f"broker 3 {reason}")
    assert (healed.numbers.moved_replicas, healed.numbers.lower_bound) == (3, 3)
    assert all(3 not in replicas for replicas in six.layout()["t"])


def test_what_cannot_be_healed_is_healed_when_a_broker_joins() -> None:
    driver = Driver()
    driver.racks({"a": [1, 2, 3]})
    driver.batch(driver.event("topic_created", topic="t", partitions=1, replication_factor=3))
    (left,) = driver.batch(driver.event("broker_left", broker_id=3, reason="unregistered", minute=1)).versions
    assert line(left) == (
        "v3 membership not_required: broker 3 unregistered; not healed: 1 partition of t (needs 3 brokers, 2 can take "
        "replicas)"
    )
    (joined,) = driver.batch(driver.event("broker_joined", broker_id=4, rack="a", minute=2)).versions
    assert joined.kind == "heal"
    assert sorted(driver.layout()["t"][0]) == [1, 2, 4]


def test_a_balanced_cluster_needs_no_rebalance(six: Driver) -> None:
    result = six.batch(six.event("rebalance_requested", event_id="r"))
    assert outcomes(result) == {"r": "no_effect"}
    assert reasons(result) == {"r": "the cluster is in balance"}


def test_the_replication_factor_is_raised_and_lowered(six: Driver) -> None:
    (lowered,) = six.batch(six.event("replication_factor_changed", topic="t", replication_factor=2, minute=1)).versions
    assert (lowered.kind, lowered.numbers.moved_replicas) == ("replication_factor", 0)
    assert {len(replicas) for replicas in six.layout()["t"]} == {2}
    (raised,) = six.batch(six.event("replication_factor_changed", topic="t", replication_factor=3, minute=2)).versions
    assert raised.numbers.moved_replicas == 6
    assert {len(replicas) for replicas in six.layout()["t"]} == {3}


def test_partitions_added_continue_the_layout_of_adminutils() -> None:
    driver = Driver('[policy]\nstrategy = "adminutils"\n')
    driver.racks({"a": [0], "b": [1], "c": [2]})
    driver.batch(
        driver.event("topic_created", topic="t", partitions=2, replication_factor=2, fixed_start_index=1),
        driver.event("topic_created", topic="whole", partitions=5, replication_factor=2, fixed_start_index=1),
        driver.event("partitions_added", topic="t", partitions=5),
    )
    assert driver.layout()["t"] == driver.layout()["whole"]


def test_partitions_added_by_hand_are_where_the_event_says(six: Driver) -> None:
    six.batch(six.event("topic_created", topic="m", replica_assignment={"0": [1, 3], "1": [5, 2]}))
    added = {"topic": "m", "partitions": 4, "replica_assignment": {"2": [6, 4], "3": [2, 1]}}
    six.batch(six.event("partitions_added", **added))
    assert six.layout()["m"] == [[1, 3], [5, 2], [6, 4], [2, 1]]


def test_what_is_there_already_as_the_event_says_is_no_news(six: Driver) -> None:
    assignment = {"0": [1, 3], "1": [5, 2]}
    six.batch(six.event("topic_created", topic="m", replica_assignment=assignment))
    result = six.batch(
        six.event("topic_created", event_id="again", topic="m", replica_assignment=assignment),
        six.event("partitions_added", event_id="grown", topic="m", partitions=2, replica_assignment={"1": [5, 2]}),
    )
    assert outcomes(result) == {"again": "no_effect", "grown": "no_effect"}
    assert reasons(result) == {
        "again": "topic m is there already, with this assignment",
        "grown": "topic m has these partitions already, with this assignment",
    }


def test_partitions_added_to_a_topic_with_gaps_come_after_its_last_id(six: Driver) -> None:
    six.batch(six.event("topic_created", topic="m", replica_assignment={"10": [1, 3], "40": [5, 1]}))
    six.batch(six.event("partitions_added", topic="m", partitions=4))
    assert six.memory.clusters["c"].topics["m"].partitions.tolist() == [10, 40, 41, 42]


def test_an_observation_adopts_what_is_new_and_corrects_what_differs(six: Driver) -> None:
    observed = [
        {"topic": "t", "partition": 0, "replicas": [6, 4, 2], "leader": 6, "isr": [6, 4]},
        {"topic": "old", "partition": 0, "replicas": [1, 2]},
    ]
    (version,) = six.batch(six.event("assignment_observed", partitions=observed)).versions
    assert line(version) == "v3 observation not_required: observed: 1 partitions adopted, 1 corrected"
    assert six.layout()["old"] == [[1, 2]]
    assert six.layout()["t"][0] == [6, 4, 2]
    again = six.batch(six.event("assignment_observed", event_id="again", partitions=observed))
    assert outcomes(again) == {"again": "no_effect"}


def test_progress_is_recorded_and_changes_no_version(six: Driver) -> None:
    result = six.batch(six.event("plan_progress", event_id="p", plan_version=2, state="completed"))
    assert outcomes(result) == {"p": "applied"}
    assert [report.state for report in result.progress] == ["completed"]
    assert not result.versions


def test_the_same_event_again_is_a_duplicate(six: Driver) -> None:
    event = six.event("topic_created", topic="u", event_id="once")
    assert outcomes(six.batch(event)) == {"once": "applied"}
    again = six.batch(event, event)
    assert [e.outcome for e in again.unplanned] == ["duplicate", "duplicate"]
    assert not again.versions


def test_a_rejected_event_sent_again_is_a_duplicate(six: Driver) -> None:
    event = six.event("topic_deleted", topic="nope", event_id="once")
    assert outcomes(six.batch(event)) == {"once": "rejected"}
    assert outcomes(six.batch(event)) == {"once": "duplicate"}


def test_the_same_id_in_another_cluster_is_another_event(six: Driver) -> None:
    event = six.event("broker_joined", broker_id=1, event_id="e1", cluster="other")
    assert outcomes(six.batch(event)) == {"e1": "applied"}


def test_older_news_than_what_is_known_is_stale(six: Driver) -> None:
    six.batch(six.event("broker_left", broker_id=3, reason="unregistered", minute=10))
    late = six.batch(six.event("broker_joined", event_id="late", broker_id=3, rack="b", minute=5))
    assert outcomes(late) == {"late": "stale"}
    assert "newer news of broker:3 occurred at 2026-01-01T00:10:00Z" in reasons(late)["late"]
    assert all(b.broker_id != 3 for b in six.memory.clusters["c"].members())


def test_outcomes_that_change_nothing_ride_along_with_a_version_of_their_batch(six: Driver) -> None:
    result = six.batch(
        six.event("broker_joined", event_id="same", broker_id=1, rack="a"),
        six.event("topic_created", event_id="new", topic="u"),
        six.event("topic_deleted", event_id="bad", topic="nope"),
        b"no json",
    )
    assert [(e.event_id, e.outcome) for v in result.versions for e in v.events] == [
        ("new", "applied"),
        ("same", "no_effect"),
    ]
    assert [(e.event_id, e.outcome) for e in result.unplanned] == [(None, "malformed"), ("bad", "rejected")]


def test_clusters_do_not_disturb_each_other(six: Driver) -> None:
    before = six.layout()
    six.batch(
        six.event("broker_joined", broker_id=1, cluster="other", rack="z"),
        six.event("topic_created", topic="t", cluster="other"),
        six.event("broker_left", broker_id=1, reason="decommissioned", cluster="other", minute=1),
    )
    assert six.layout() == before
    assert six.memory.clusters["other"].version == 3


def test_a_lower_replication_factor_gives_up_the_copies_on_a_failed_broker() -> None:
    driver = Driver()
    driver.racks({"a": [1, 2, 3]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment={"0": [1, 2], "1": [2, 3], "2": [3, 1]}))
    driver.batch(driver.event("broker_left", broker_id=1, reason="failed", minute=1))
    driver.batch(driver.event("replication_factor_changed", topic="t", replication_factor=1, minute=2))
    assert [driver.layout()["t"][0], driver.layout()["t"][2]] == [[2], [3]]


def test_a_lower_replication_factor_keeps_the_replica_that_was_seen_in_sync() -> None:
    driver = Driver()
    driver.racks({"a": [1, 2, 3]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment={"0": [1, 2, 3]}))
    seen = [{"topic": "t", "partition": 0, "replicas": [1, 2, 3], "leader": 3, "isr": [3]}]
    driver.batch(driver.event("assignment_observed", partitions=seen, minute=1))
    driver.batch(driver.event("replication_factor_changed", topic="t", replication_factor=1, minute=2))
    assert driver.layout()["t"] == [[3]]


def test_a_lower_replication_factor_is_rejected_where_no_replica_is_up() -> None:
    driver = Driver()
    driver.racks({"a": [1, 2, 3]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment={"0": [1, 2]}))
    driver.batch(*(driver.event("broker_left", broker_id=b, reason="failed", minute=1) for b in (1, 2)))
    lower = driver.event("replication_factor_changed", event_id="x", topic="t", replication_factor=1, minute=2)
    result = driver.batch(lower)
    assert reasons(result) == {
        "x": "partition t-0 has no replica in sync: its replication factor of 2 cannot be lowered until its replicas "
        "have caught up"
    }


def test_no_partition_follows_the_one_with_the_greatest_id(six: Driver) -> None:
    six.batch(six.event("topic_created", topic="last", replica_assignment={"2147483647": [1]}))
    grown = six.batch(six.event("partitions_added", topic="last", partitions=2, event_id="grow"))
    assert reasons(grown) == {
        "grow": "1 partitions more from id 2147483648 of topic last pass the largest id, 2147483647."
    }


def test_loads_that_could_not_be_added_are_rejected() -> None:
    """CPU counts a byte 85 times and every replica counts: the sums would pass 2^63 and come out negative."""
    driver = Driver('[policy.loads]\nplan = true\non_skew = "rebalance"\n[policy]\nsettle = "0s"\n')
    driver.racks(RACKS)
    driver.batch(driver.event("topic_created", topic="t", partitions=300, replication_factor=2))
    rows = [{"topic": "t", "partition": p, "size": 2**50, "bytes_in": 2**50 - p} for p in range(300)]
    seen = driver.batch(driver.event("load_observed", partitions=rows, event_id="much", minute=1))
    assert reasons(seen)["much"].startswith("size of all partitions would be 3.3777e+17 together")
    few = driver.event("load_observed", partitions=rows[:7], bytes_out_per_byte_in=1000, minute=2)
    assert outcomes(driver.batch(few)) == {"e9": "applied"}


@pytest.mark.parametrize("cut", [False, True])
def test_a_version_exists_as_soon_as_something_is_part_of_it(cut: bool) -> None:
    """However the batches are cut, what names a version comes to the same."""
    driver = Driver()
    lines = [
        driver.event("broker_joined", broker_id=1),
        driver.event("plan_progress", plan_version=1, state="started", event_id="known"),
        driver.event("plan_progress", plan_version=2, state="started", event_id="not yet"),
        driver.event("plan_approved", plan_version=1, digest="d", event_id="approved"),
        driver.event("plan_rejected", plan_version=1, digest="d", event_id="rejected"),
    ]
    results = [driver.batch(line) for line in lines] if cut else [driver.batch(*lines)]
    found = {event: outcome for result in results for event, outcome in outcomes(result).items()}
    assert found == {
        "e1": "applied",
        "known": "applied",
        "not yet": "rejected",
        "approved": "stale",
        "rejected": "stale",
    }
    assert [(v.plan_version, v.base_version) for v in driver.journal] == [(1, 0)]
