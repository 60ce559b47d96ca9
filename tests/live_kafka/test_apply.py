"""``apply`` on a real cluster: every result is read from the cluster, not from us."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition

from examples.local_kafka import LocalKafka
from streaming.apply.kafka.cluster import Cluster
from streaming.apply.kafka.throttles import throttle
from streaming.apply.steps import Move, Throttle
from streaming.config import Kafka
from streaming.kafka.connection import Connection
from streaming.record.version import PlanVersion
from tests.live_kafka.by_load import BY_LOAD, drained_by_load, elsewhere, incoming, second_ones
from tests.live_kafka.cluster import RACKS, alive, wait_until
from tests.live_kafka.planned import CLUSTER, Planned, fill, held, in_order, layout, planned_layout, settles, throttles

pytestmark = pytest.mark.kafka

SLOW = "1000000"


@pytest.fixture
def planned(kafka: LocalKafka, tmp_path: Path) -> Planned:
    return Planned(tmp_path, kafka.bootstrap_servers())


def moved_on(before: dict[str, list[int]], after: dict[str, list[int]]) -> int:
    """Replicas that are on a broker which had none of that partition before."""
    return sum(len(set(after[place]) - set(before[place])) for place in after)


def assert_clean(admin: KafkaAdminClient, brokers: set[int] = frozenset(RACKS)) -> None:
    assert admin.list_partition_reassignments() == {}
    assert throttles(admin, sorted(brokers)) == {}


def test_a_cluster_follows_its_plans_and_goes_back(planned: Planned, admin: KafkaAdminClient) -> None:
    """Topics are created and grown, a broker is drained to the last byte, and all of it is undone."""
    created = planned.plan("topic_created", topic="t", partitions=10, replication_factor=3)
    done = planned.apply()
    assert done.exit_code == 0, done.output
    settles(admin, planned_layout(created))
    fill(planned.servers, "t", 10, megabytes=1)

    grown = planned.plan("partitions_added", topic="t", partitions=12)
    drained = planned.plan("broker_left", broker_id=2, reason="decommissioned")
    before = planned_layout(created) | planned_layout(grown)
    dry = planned.apply("--dry-run")
    assert dry.exit_code == 0 and layout(admin) == planned_layout(created)
    done = planned.apply()
    assert done.exit_code == 0, done.output
    settles(admin, before | planned_layout(drained))
    assert moved_on(before, layout(admin)) == drained.numbers.moved_replicas > 0
    in_order(admin)
    wait_until(lambda: held(admin, 2) == {2: {}}, "broker 2 holds nothing")
    promised = [line.strip() for line in dry.output.splitlines() if not line.startswith("    ")]
    assert [line for line in done.output.splitlines() if line in promised] == promised
    moved = planned_layout(drained).keys() - planned_layout(grown).keys()
    assert planned.states(drained) == ["started", *["partition_done"] * len(moved), "completed"]

    planned.plan("broker_joined", broker_id=2, rack="b", minute=1)
    back = planned.rolled_back(drained)
    assert planned.apply(str(back.plan_version)).exit_code == 0
    settles(admin, before)
    in_order(admin)
    assert planned.apply().output == "nothing is left to do\n"
    assert_clean(admin)


def test_a_throttle_holds_and_leaves_nothing_behind(planned: Planned, admin: KafkaAdminClient) -> None:
    """One broker receives 12 MB at 1.5 MB/s, as measured on its disk."""
    rate = 1_500_000
    planned.plan("topic_created", topic="t", replica_assignment={0: [1, 2]})
    planned.apply()
    fill(planned.servers, "t", 1, megabytes=12)
    drained = planned.plan("broker_left", broker_id=1, reason="decommissioned")
    process = planned.start("--throttle", str(rate))
    wait_until(lambda: held(admin, 4)[4], "the copy has begun")
    began, first = time.monotonic(), held(admin, 4)[4]["t-0"]
    during = throttles(admin, sorted(RACKS))
    wait_until(lambda: layout(admin) == planned_layout(drained) == {"t-0": [2, 4]}, "the copy has ended")
    copied, seconds = held(admin, 4)[4]["t-0"] - first, time.monotonic() - began
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")
    assert "t-0" in output and "about" in output
    assert during == {"broker 1": [str(rate)] * 2, "broker 2": [str(rate)] * 2, "broker 4": [str(rate)] * 2} | {
        "topic t": ["0:1,0:2", "0:4"]
    }
    assert copied / seconds < 1.2 * rate
    assert_clean(admin)


@pytest.fixture
def slow_drain(planned: Planned) -> PlanVersion:
    """A plan that takes a throttled run some ten seconds: broker 5 is drained of 4 MB in each of six partitions."""
    others = [1, 3, 4, 1, 3, 4]
    planned.plan("topic_created", topic="t", replica_assignment={p: [5, b] for p, b in enumerate(others)})
    assert planned.apply().exit_code == 0
    fill(planned.servers, "t", len(others), megabytes=4)
    return planned.plan("broker_left", broker_id=5, reason="decommissioned")


def wait_for_moves(admin: KafkaAdminClient, plan: PlanVersion, done: int, process: subprocess.Popen[str]) -> None:
    """Return when so many partitions are where the plan wants them, and others are under way."""
    wanted = planned_layout(plan)

    def reached() -> bool:
        assert process.poll() is None, process.communicate()
        there = layout(admin)
        return sum(there[place] == after for place, after in wanted.items()) >= done and bool(
            admin.list_partition_reassignments()
        )

    wait_until(reached, f"{done} partitions are moved")


def test_killed_three_times_it_goes_on_where_the_cluster_is(
    planned: Planned, admin: KafkaAdminClient, slow_drain: PlanVersion
) -> None:
    for done in (0, 2, 4):
        process = planned.start("--throttle", SLOW)
        wait_for_moves(admin, slow_drain, done, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert throttles(admin, sorted(RACKS))
    assert planned.apply("--throttle", SLOW).exit_code == 0
    settles(admin, planned_layout(slow_drain))
    in_order(admin)
    assert_clean(admin)
    assert planned.states(slow_drain).count("completed") == 1


def test_throttles_of_a_killed_run_are_removed_when_nothing_is_left_to_move(
    planned: Planned, admin: KafkaAdminClient, slow_drain: PlanVersion
) -> None:
    process = planned.start("--throttle", SLOW)
    wait_for_moves(admin, slow_drain, 0, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    everything = {TopicPartition("t", int(place[2:])): after for place, after in planned_layout(slow_drain).items()}
    admin.alter_partition_reassignments(everything)
    wait_until(lambda: layout(admin) == planned_layout(slow_drain), "somebody else has moved the rest", patience=60)
    assert throttles(admin, sorted(RACKS))
    assert planned.apply().exit_code == 0
    assert_clean(admin)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_it_leaves_every_partition_here_or_there_and_no_throttle(
    planned: Planned, admin: KafkaAdminClient, slow_drain: PlanVersion, number: signal.Signals
) -> None:
    before = layout(admin)
    process = planned.start("--throttle", SLOW)
    wait_for_moves(admin, slow_drain, 1, process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert errors.splitlines()[-1].startswith(
        f"replica-planner: version {slow_drain.plan_version} of {CLUSTER}: stopped"
    )
    assert_clean(admin)
    wanted = planned_layout(slow_drain)
    wait_until(
        lambda: all(row in (before[place], wanted[place]) for place, row in layout(admin).items()),
        "all are here or there",
    )
    assert layout(admin) not in (before, wanted)
    assert planned.states(slow_drain)[-1] == "failed"
    assert planned.apply().exit_code == 0
    settles(admin, wanted)


def test_a_target_that_dies_is_given_up_and_the_rest_is_moved(
    planned: Planned, kafka: LocalKafka, admin: KafkaAdminClient, slow_drain: PlanVersion
) -> None:
    """Broker 2 is to get replicas; it dies on the way. What waits for it is cancelled, not waited for."""
    before, wanted = layout(admin), planned_layout(slow_drain)
    waiting = {place for place, after in wanted.items() if 2 in after}
    process = planned.start("--throttle", SLOW)
    wait_for_moves(admin, slow_drain, 0, process)
    kafka.kill_broker(2)
    _, errors = process.communicate(timeout=90)
    assert process.returncode == 1, errors
    assert errors.startswith(
        f"replica-planner: version {slow_drain.plan_version} of {CLUSTER} is carried out but for t-"
    )
    assert "broker 2" in errors and errors.count("\n") == 1
    with KafkaAdminClient(bootstrap_servers=planned.servers) as fresh:
        assert fresh.list_partition_reassignments() == {}
        report = next(r for r in planned.reports() if r["state"] == "failed")
        lost = {f"{p['topic']}-{p['partition']}" for p in report["details"]["partitions"]}
        assert lost and lost <= waiting
        settles(fresh, {place: before[place] if place in lost else wanted[place] for place in wanted})

    refused = planned.apply()
    assert (refused.exit_code, refused.stderr) == (
        2,
        f"replica-planner: version {slow_drain.plan_version} of {CLUSTER} is not carried out: broker 2, which is to "
        f"get {len(lost)} replicas, is not alive; start it, or report it as gone so that a new plan is made\n",
    )
    kafka.start_broker(2)
    with KafkaAdminClient(bootstrap_servers=planned.servers) as fresh:
        wait_until(lambda: alive(fresh) == set(RACKS), "broker 2 is back")
        assert planned.apply().exit_code == 0
        settles(fresh, wanted)
        assert_clean(fresh)


def test_what_somebody_else_has_moved_is_left_alone_and_other_plans_are_carried_out(
    planned: Planned, admin: KafkaAdminClient
) -> None:
    planned.plan("topic_created", topic="t", replica_assignment={0: [1, 2], 1: [1, 2]})
    planned.apply()
    drained = planned.plan("broker_left", broker_id=1, reason="decommissioned")
    other = planned.plan("topic_created", topic="u", replica_assignment={0: [3, 4]})
    admin.alter_partition_reassignments({TopicPartition("t", 1): [2, 5]})
    wait_until(lambda: layout(admin)["t-1"] == [2, 5], "somebody has moved t-1")
    problem = (
        f"replica-planner: version {drained.plan_version} of {CLUSTER} is not carried out: "
        "partition t-1 is on [2, 5], and the plan starts from [1, 2]; somebody else has moved it\n"
    )
    refused = planned.apply(str(drained.plan_version))
    assert (refused.exit_code, refused.stderr) == (2, problem)
    assert layout(admin) == {"t-0": [1, 2], "t-1": [2, 5]}
    assert planned.states(drained) == ["started", "failed"]
    assert planned.apply().exit_code == 2
    settles(admin, {"t-0": [1, 2], "t-1": [2, 5]} | planned_layout(other))


def test_replicas_go_into_the_directories_that_a_plan_by_load_names(
    kafka: LocalKafka, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    """Kafka alone would put them where fewer replicas are; the plan, where there is room."""
    planned = Planned(tmp_path, kafka.bootstrap_servers(), BY_LOAD)
    drained = drained_by_load(planned, second_ones(kafka))
    dry = planned.apply("--dry-run", "--wave-bytes", "1200000")
    said = {
        line.strip().partition(":")[0]: line.rpartition(", on ")[2]
        for line in dry.output.splitlines()
        if " into " in line
    }
    assert said == {p: f"{broker} into {kafka.brokers[broker].log_dirs[1]}" for p, broker in incoming(drained).items()}
    sizes = [float(size) for size in re.findall(r"copying 1 replica of (\d+\.\d) KiB in all", dry.output)]
    assert [round(size * 1024 / 1e6, 1) for size in sizes] == [1.0] * 6  # broker 5 sends one in each wave
    done = planned.apply("--wave-bytes", "1200000")
    assert done.exit_code == 0, done.output
    settles(admin, planned_layout(drained))
    in_order(admin)
    assert elsewhere(kafka, drained) == []
    assert_clean(admin)


def test_what_a_broker_cannot_put_into_a_directory_is_reported_and_not_moved(
    kafka: LocalKafka, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    planned = Planned(tmp_path, kafka.bootstrap_servers(), BY_LOAD)
    nowhere = {broker: [{"path": "/nowhere", "limit": 90_000_000, "used": 0}] for broker in RACKS}
    drained = drained_by_load(planned, nowhere)
    before = layout(admin)
    done = planned.apply()
    assert done.exit_code == 1
    assert "is not moved: broker " in done.output and " cannot put it into /nowhere: Kafka refuses: " in done.output
    assert layout(admin) == before
    assert planned.states(drained) == ["started", "failed"]
    assert_clean(admin)


def test_a_topic_that_is_deleted_meanwhile_fails_alone(planned: Planned, admin: KafkaAdminClient) -> None:
    for topic in ("t", "u"):
        planned.plan("topic_created", topic=topic, replica_assignment={p: [5, b] for p, b in enumerate([1, 3, 4])})
    assert planned.apply().exit_code == 0
    for topic in ("t", "u"):
        fill(planned.servers, topic, 3, megabytes=4)
    drained = planned.plan("broker_left", broker_id=5, reason="decommissioned")
    process = planned.start("--throttle", SLOW)
    wait_until(lambda: bool(admin.list_partition_reassignments()), "partitions are moved")
    admin.delete_topics(["u"])
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1, errors
    assert "is carried out but for u-0, u-1, u-2: " in errors
    rest = {place: row for place, row in planned_layout(drained).items() if place.startswith("t-")}
    settles(admin, rest)
    again = planned.apply(str(drained.plan_version))
    assert (again.exit_code, "the topic is no longer on the cluster" in again.output) == (1, True), again.output
    assert_clean(admin)


def test_what_somebody_else_is_moving_is_restored_only_by_consent(
    kafka: LocalKafka, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    planned = Planned(tmp_path, kafka.bootstrap_servers(), 'on_drift = "restore"\n')
    created = planned.plan("topic_created", topic="t", replica_assignment={0: [1, 2]})
    assert planned.apply().exit_code == 0
    fill(planned.servers, "t", 1, megabytes=4)
    seen = {"topic": "t", "partition": 0, "replicas": [1, 2], "leader": 1, "isr": [1, 2]}
    planned.plan("assignment_observed", partitions=[seen])
    with Cluster(Connection.to(planned.servers, Kafka())) as theirs:
        throttle(theirs, Throttle(100_000, (Move("t", 0, (1, 2), (4, 2)),)))
        theirs.reassign({("t", 0): (4, 2)})
    set_by_them = throttles(admin, sorted(RACKS))
    restore = planned.plan("assignment_observed", partitions=[seen | {"replicas": [4, 2], "leader": None, "isr": [2]}])
    assert restore.kind == "restore"
    left = planned.apply("--throttle", SLOW)
    assert left.exit_code == 1 and "t-0: somebody else moves it to [4, 2]" in left.output
    assert list(admin.list_partition_reassignments()) == [TopicPartition("t", 0)]
    assert throttles(admin, sorted(RACKS)) == set_by_them
    taken_back = planned.apply("--cancel-others")
    assert taken_back.exit_code == 0, taken_back.output
    settles(admin, planned_layout(created))
    in_order(admin)
    assert_clean(admin)


def test_leaders_are_elected_whatever_waits_and_another_kafka_is_refused(
    planned: Planned, admin: KafkaAdminClient
) -> None:
    created = planned.plan("topic_created", topic="t", replica_assignment={0: [1, 2], 1: [2, 3]})
    assert planned.apply().exit_code == 0
    for row in ([2, 1], [1, 2]):
        admin.alter_partition_reassignments({TopicPartition("t", 0): row})
        wait_until(lambda row=row: layout(admin)["t-0"] == row, "somebody has changed the order")
        if row == [2, 1]:
            admin.elect_leaders(0, {"t": [0]}, raise_errors=False)
    seen = {"topic": "t", "partition": 0, "replicas": [1, 2], "leader": 2, "isr": [1, 2]}
    planned.plan("assignment_observed", partitions=[seen])
    election = planned.plan("preferred_election_requested")
    refused = planned.apply("--dry-run", str(created.plan_version))
    assert refused.exit_code == 0
    done = planned.apply()
    assert done.exit_code == 0 and "elect the preferred leaders of t-0" in done.output
    in_order(admin)
    assert planned.states(election) == ["started", "completed"]

    planned.identify("another", minute=1)
    other = planned.apply()
    assert other.exit_code == 2 and "and east is cluster another by what collect saw" in other.stderr
