"""A fault in one cluster stops that cluster, visibly, until somebody resumes it, and nothing else."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from streaming.audit.journal import verify_clusters
from streaming.cli import cli
from streaming.events import TopicCreated
from streaming.history.tables import History
from streaming.planning import planner as planner_module
from streaming.planning.batch import BatchResult, plan_alone
from streaming.planning.state import ClusterState
from streaming.record.rows import are_held, are_suspect
from tests.events_for import EventsFor
from tests.job_folder import JobFolder
from tests.streaming.driving import T0, Driver, outcomes, reasons
from tests.streaming.folding import assert_projected
from tests.streaming.record.test_journal import facts
from tests.streaming.writing import project, rewrite, write_batches

RACKS = {"a": [1, 2], "b": [3, 4], "c": [5, 6]}


def break_planner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the planner a fault: it fails on topics called ``poison``, after it has changed the state half."""
    sound = planner_module.topic_created

    def topic_created(state: ClusterState, event: TopicCreated, policy: object) -> object:
        if event.topic == "poison":
            state.topics.clear()
            raise ZeroDivisionError("half way through")
        return sound(state, event, policy)  # type: ignore[arg-type]

    monkeypatch.setattr(planner_module, "topic_created", topic_created)


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """A planner with that fault, and two clusters."""
    break_planner(monkeypatch)
    driver = Driver()
    for cluster in ("c", "other"):
        driver.batch(
            *(driver.event("broker_joined", broker_id=b, rack=r, cluster=cluster) for r, i in RACKS.items() for b in i)
        )
    return driver


def created(driver: Driver, topic: str, cluster: str = "c", minute: float = 1) -> bytes:
    return driver.event("topic_created", topic=topic, cluster=cluster, event_id=topic, minute=minute)


def test_only_the_cluster_of_the_poison_event_stops(faulty: Driver) -> None:
    result = faulty.batch(
        created(faulty, "before"),
        created(faulty, "poison"),
        created(faulty, "after"),
        created(faulty, "elsewhere", cluster="other"),
    )
    assert [(v.cluster_id, v.kind) for v in result.versions] == [("c", "topics"), ("c", "stop"), ("other", "topics")]
    assert result.versions[1].cause == "stopped at test:2: ZeroDivisionError: half way through"
    assert {e: o for e, o in outcomes(result).items() if o == "held"} == {"poison": "held", "after": "held"}
    assert reasons(result)["after"] == "stopped at test:2: ZeroDivisionError: half way through"
    assert list(faulty.layout()) == ["before"]
    assert list(faulty.layout("other")) == ["elsewhere"]


def test_a_stopped_cluster_stays_stopped_over_a_restart_and_lets_no_deadline_pass(faulty: Driver) -> None:
    faulty.batch(created(faulty, "t"), faulty.event("broker_left", broker_id=1, reason="failed", minute=1))
    faulty.batch(created(faulty, "poison", minute=2))
    faulty.memory.clusters.clear()
    assert not faulty.batch(minute=99).versions
    assert outcomes(faulty.batch(created(faulty, "later", minute=99))) == {"later": "held"}


def test_a_resumed_cluster_takes_the_held_events_again(faulty: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    poison, after = created(faulty, "poison"), created(faulty, "after")
    faulty.batch(poison, after)
    monkeypatch.undo()
    resumed = faulty.batch(faulty.event("cluster_resumed", minute=2), poison, after)
    assert [v.kind for v in resumed.versions] == ["resume", "topics"]
    assert sorted(faulty.layout()) == ["after", "poison"]
    assert outcomes(faulty.batch(faulty.event("cluster_resumed", event_id="again", minute=3))) == {"again": "no_effect"}


def test_a_fault_that_time_brings_stops_the_cluster_too(faulty: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    faulty.batch(created(faulty, "t"), faulty.event("broker_left", broker_id=1, reason="failed", minute=1))

    def fails(*_: object) -> None:
        raise RuntimeError("no plan")

    monkeypatch.setattr(planner_module, "deadline_passed", fails)
    (stopped,) = faulty.batch(minute=99).versions
    assert stopped.cause == "stopped when time passed: RuntimeError: no plan"
    assert not faulty.batch(minute=100).versions


def test_a_line_that_comes_again_in_the_batch_that_resumes_its_cluster_is_set_aside(faulty: Driver) -> None:
    poison, after = created(faulty, "poison"), created(faulty, "after")
    result = faulty.batch(poison, faulty.event("cluster_resumed", minute=2), poison, after)
    assert [v.kind for v in result.versions] == ["stop", "resume", "topics"]
    assert [(event.outcome, event.reason[:10]) for event in result.unplanned] == [
        ("held", "it stopped"),
        ("rejected", "set aside:"),
    ]


def test_a_line_that_fails_again_is_set_aside_and_the_held_ones_are_taken(
    faulty: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    poison, after = created(faulty, "poison"), created(faulty, "after")
    faulty.batch(created(faulty, "before"), poison, after)
    faulty.memory.clusters.clear()
    caplog.clear()
    resumed = faulty.batch(faulty.event("cluster_resumed", minute=2), poison, after)
    assert [v.kind for v in resumed.versions] == ["resume", "topics"]
    assert reasons(resumed) == {
        "poison": "set aside: it stopped the cluster, and failed again: ZeroDivisionError: half way through"
    }
    assert "half way through" in caplog.text
    assert "Traceback" in caplog.text
    assert sorted(faulty.layout()) == ["after", "before"]
    faulty.memory.clusters.clear()
    assert outcomes(faulty.batch(poison, after)) == {"poison": "duplicate", "after": "duplicate"}


def test_two_lines_that_fail_are_told_apart(faulty: Driver) -> None:
    lines = [created(faulty, "poison"), created(faulty, "between")]
    other = faulty.event("topic_created", topic="poison", event_id="other", minute=1)
    faulty.batch(*lines, other)
    first = faulty.batch(faulty.event("cluster_resumed", minute=2), *lines, other)
    assert [v.kind for v in first.versions] == ["resume", "topics", "stop"]
    assert reasons(first)["other"] == "it stopped the cluster: ZeroDivisionError: half way through"
    second = faulty.batch(faulty.event("cluster_resumed", minute=3, event_id="resume"), *lines, other)
    assert [v.kind for v in second.versions] == ["resume"]
    assert outcomes(second) == {"resume": "applied", "poison": "duplicate", "between": "duplicate", "other": "rejected"}


def test_time_that_stopped_a_cluster_does_not_stop_it_again(faulty: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    faulty.batch(created(faulty, "t"), faulty.event("broker_left", broker_id=1, reason="failed", minute=1))

    def fails(*_: object) -> None:
        raise RuntimeError("no plan")

    monkeypatch.setattr(planner_module, "deadline_passed", fails)
    faulty.batch(created(faulty, "later", minute=99))
    assert {b.state for b in faulty.memory.clusters["c"].brokers.values() if b.broker_id == 1} == {"dead"}
    faulty.memory.clusters.clear()
    resumed = faulty.batch(faulty.event("cluster_resumed", minute=100), created(faulty, "later", minute=99))
    assert [v.kind for v in resumed.versions] == ["resume", "topics"]


def as_0_1_wrote_it(row: dict[str, Any]) -> dict[str, Any]:
    """Held was no outcome then, but the beginning of a reason."""
    return row | {"outcome": "rejected", "reason": f"held: {row['reason']}"} if row["outcome"] == "held" else row


@pytest.mark.parametrize(("mended", "older"), [(False, False), (True, False), (True, True)])
def test_what_was_set_aside_is_a_fact_to_the_audit(
    faulty: Driver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mended: bool, older: bool
) -> None:
    poison, after = created(faulty, "poison"), created(faulty, "after")
    results = [faulty.batch(created(faulty, "before"), poison, after)]
    results.append(faulty.batch(faulty.event("cluster_resumed", minute=2), poison, after))
    joined = (v for v in faulty.journal if v.plan_version == 1 and v.cluster_id == "c")
    started = BatchResult(1, T0, list(joined), [], [])
    write_batches(tmp_path, started, *results)
    project(tmp_path, [v for v in faulty.journal if v.cluster_id == "c"])
    if mended:
        monkeypatch.undo()
    if older:
        rewrite(tmp_path, "quarantine", lambda rows: [as_0_1_wrote_it(row) for row in rows])
    quarantine = History(str(tmp_path)).quarantine("c")
    assert quarantine.filter(are_held(quarantine))["event_id"].to_pylist() == ["poison", "after"]
    assert quarantine.filter(are_suspect(quarantine))["event_id"].to_pylist() == ["poison"]
    (found,) = verify_clusters(History(str(tmp_path)), ["c"])
    assert found.difference is None


def test_a_plan_made_elsewhere_leaves_the_same_state_and_the_same_versions() -> None:
    """What Spark's executors do: the state travels there, only the versions travel back."""
    here, there = Driver(), Driver()
    for driver in (here, there):
        driver.racks(RACKS)
        driver.batch(driver.event("topic_created", topic="t", partitions=12, replication_factor=3))
    lines = [
        here.event("broker_left", broker_id=3, reason="decommissioned", minute=1, event_id="a"),
        here.event("broker_joined", broker_id=9, rack="b", minute=2, event_id="b"),
        here.event("rebalance_requested", minute=3, event_id="c"),
        here.event("topic_deleted", topic="nope", minute=3, event_id="d"),
        here.event("broker_joined", broker_id=9, rack="b", minute=4, event_id="e"),
    ]

    def elsewhere(work: object) -> object:
        results = {}
        for state, each in work:  # type: ignore[attr-defined]
            shipped = pickle.loads(pickle.dumps((state, each)))
            results[each.cluster_id] = pickle.loads(pickle.dumps(plan_alone(*shipped, lambda *_: None)))
        return results

    direct = here.batch(*lines)
    remote = there.batch(*lines, plan_many=elsewhere)
    assert [v.seal for v in remote.versions] == [v.seal for v in direct.versions]
    assert outcomes(remote) == outcomes(direct)
    assert facts(there.memory.clusters["c"]) == facts(here.memory.clusters["c"])


def test_memory_forgets_the_clusters_that_were_used_least_and_reads_them_again() -> None:
    driver = Driver()
    for cluster in "xyz":
        driver.batch(driver.event("broker_joined", broker_id=1, cluster=cluster))
    driver.batch(driver.event("broker_left", broker_id=1, reason="failed", cluster="x", minute=1))
    driver.batch(driver.event("topic_created", topic="t", cluster="y", minute=1))
    driver.memory.shrink(driver.memory.clusters["y"].size())
    assert list(driver.memory.clusters) == ["y"]
    (healed,) = driver.batch(minute=99).versions
    assert (healed.cluster_id, healed.plan_version) == ("x", 3)
    driver.batch(driver.event("topic_created", topic="t", cluster="z", minute=100))
    assert {name: state.version for name, state in driver.memory.clusters.items()} == {"y": 2, "x": 3, "z": 2}


@pytest.mark.spark
def test_on_spark_a_stopped_cluster_is_resumed_by_command_with_all_that_was_held(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = JobFolder(tmp_path)
    east, west = EventsFor("east"), EventsFor("west")
    with monkeypatch.context() as patched:
        break_planner(patched)
        job.play(spark, *east.racks({"a": [1, 2]}), west.joined(1), east.created("poison", minute=1))
        job.play(spark, east.created("later", minute=2), west.created("fine", minute=2))
    assert job.brokers("west") == {1: "alive"}
    assert job.causes("east")[-1].startswith("v2 stop: stopped at 00.jsonl:4: ZeroDivisionError: half way through")
    assert job.layout("west") == {"fine-0": [1]}
    done = CliRunner().invoke(cli, ["resume", "east", "--conf", str(job.conf)])
    assert "with 2 held events" in done.output
    job.run(spark)
    assert sorted(job.layout("east")) == ["later-0", "poison-0"]
    assert job.causes("east")[2].startswith("v3 resume: resumed by event")
    assert_projected(spark, job)
