"""Kafka's own tools and this project mean the same by the same files, and say the same of the same cluster."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from kafka import KafkaAdminClient

from examples.local_kafka import LocalKafka
from placement import Assignment
from streaming.cli.main import cli
from tests.live_kafka.by_load import BY_LOAD, drained_by_load, elsewhere, incoming, second_ones
from tests.live_kafka.cluster import wait_until
from tests.live_kafka.planned import CLUSTER, Planned, layout, planned_layout

pytestmark = pytest.mark.kafka

REASSIGN = "reassign.ReassignPartitionsCommand"


@pytest.fixture
def planned(kafka: LocalKafka, tmp_path: Path) -> Planned:
    return Planned(tmp_path, kafka.bootstrap_servers())


def as_layout(assignment: Assignment) -> dict[str, list[int]]:
    return {f"{topic}-{partition}": list(replicas) for topic, partition, replicas in assignment.rows()}


def printed(planned: Planned, *arguments: str) -> str:
    done = CliRunner().invoke(cli, [*arguments, "--conf", str(planned.conf)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_kafkas_tool_executes_our_plan_and_we_read_its_way_back(
    planned: Planned, kafka: LocalKafka, admin: KafkaAdminClient
) -> None:
    created = planned.plan("topic_created", topic="t", partitions=6, replication_factor=2)
    planned.apply()
    drained = planned.plan("broker_left", broker_id=3, reason="decommissioned")
    file = planned.folder / "plan.json"
    file.write_text(printed(planned, "show", CLUSTER, str(drained.plan_version), "--format", "kafka-json"))
    servers = ("--bootstrap-server", planned.servers, "--reassignment-json-file", str(file))

    answer = kafka.tool(REASSIGN, *servers, "--execute")
    assert "Successfully started partition reassignment" in answer
    way_back = next(line for line in answer.splitlines() if line.startswith("{"))
    moved = planned_layout(drained)
    assert as_layout(Assignment.from_json(way_back)) == {p: planned_layout(created)[p] for p in moved}
    ours = printed(planned, "show", CLUSTER, str(drained.plan_version), "--format", "rollback-json")
    assert as_layout(Assignment.from_json(ours)) == as_layout(Assignment.from_json(way_back))

    wait_until(lambda: layout(admin) == planned_layout(created) | moved, "the tool has moved everything")
    assert planned.apply().output == "nothing is left to do\n"
    verified = kafka.tool(REASSIGN, *servers, "--verify")
    assert set(re.findall(r"Reassignment of partition (\S+) is completed\.", verified)) == set(moved)


def test_kafkas_tool_agrees_that_what_we_did_is_done(planned: Planned, kafka: LocalKafka) -> None:
    planned.plan("topic_created", topic="t", partitions=6, replication_factor=2)
    planned.apply()
    drained = planned.plan("broker_left", broker_id=3, reason="decommissioned")
    assert planned.apply("--throttle", "10000000").exit_code == 0
    file = planned.folder / "plan.json"
    file.write_text(printed(planned, "show", CLUSTER, str(drained.plan_version), "--format", "kafka-json"))
    verified = kafka.tool(
        REASSIGN, "--bootstrap-server", planned.servers, "--reassignment-json-file", str(file), "--verify"
    )
    states = re.findall(r"Reassignment of partition (\S+) is (.*)\.", verified)
    assert dict(states) == dict.fromkeys(planned_layout(drained), "completed")


def test_kafkas_tool_puts_replicas_into_the_directories_that_our_plan_names(
    kafka: LocalKafka, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    planned = Planned(tmp_path, kafka.bootstrap_servers(), BY_LOAD)
    drained = drained_by_load(planned, second_ones(kafka))
    file = planned.folder / "plan.json"
    file.write_text(printed(planned, "show", CLUSTER, str(drained.plan_version), "--format", "kafka-json"))
    servers = ("--bootstrap-server", planned.servers, "--reassignment-json-file", str(file))
    assert "Successfully started partition reassignment" in kafka.tool(REASSIGN, *servers, "--execute")
    wait_until(lambda: layout(admin) == planned_layout(drained), "the tool has moved everything")
    # The tool names directories after it has started the moves: what began in another one is copied once more.
    wait_until(lambda: not elsewhere(kafka, drained), "every replica is in its directory")
    assert planned.apply().output == "nothing is left to do\n"


def test_kafkas_tool_agrees_that_what_we_put_into_directories_is_there(kafka: LocalKafka, tmp_path: Path) -> None:
    planned = Planned(tmp_path, kafka.bootstrap_servers(), BY_LOAD)
    drained = drained_by_load(planned, second_ones(kafka))
    assert planned.apply().exit_code == 0
    file = planned.folder / "plan.json"
    file.write_text(printed(planned, "show", CLUSTER, str(drained.plan_version), "--format", "kafka-json"))
    verified = kafka.tool(
        REASSIGN, "--bootstrap-server", planned.servers, "--reassignment-json-file", str(file), "--verify"
    )
    moved = re.findall(r"Reassignment of replica (\S+) completed successfully\.", verified)
    assert set(moved) == {f"{place}-{broker}" for place, broker in incoming(drained).items()}, verified


def described(text: str) -> dict[str, dict[str, object]]:
    """``kafka-topics --describe`` by partition; the order of the ISR says nothing."""
    found: dict[str, dict[str, object]] = {}
    for line in text.splitlines():
        if not line.lstrip().startswith("Topic:"):
            continue  # that a broker is down is a warning to the tool
        fields = dict(re.findall(r"(\w+): ?([^\t]*)", line))
        if "Partition" in fields:
            name = f"{fields['Topic']}-{fields['Partition']}"
            found[name] = {"leader": fields["Leader"], "replicas": fields["Replicas"]}
            found[name]["isr"] = sorted(fields["Isr"].split(","))
        else:
            found[fields["Topic"]] = {key: fields[key] for key in ("PartitionCount", "ReplicationFactor")}
    return found


def test_describe_says_what_kafka_topics_says(planned: Planned, kafka: LocalKafka, admin: KafkaAdminClient) -> None:
    """Also of partitions whose leader is down, whose ISR has shrunk, and that nobody leads."""
    planned.plan("topic_created", topic="t", replica_assignment={0: [5, 1, 2], 1: [2, 5, 3], 2: [3, 4, 1]})
    planned.plan("topic_created", topic="u", replica_assignment={0: [5], 1: [1]})
    planned.apply()
    kafka.kill_broker(5)
    wait_until(lambda: all(p["leader_id"] != 5 for p in partitions(admin)), "broker 5 leads nothing any more")
    names = {"partition_index": "partition", "replica_nodes": "replicas", "leader_id": "leader", "isr_nodes": "isr"}
    seen = [{"topic": p["topic"]} | {names[key]: p[key] for key in names} for p in partitions(admin)]
    planned.plan("broker_left", broker_id=5, reason="failed")
    planned.plan("assignment_observed", partitions=seen)
    theirs = kafka.tool("TopicCommand", "--bootstrap-server", planned.servers, "--describe", "--exclude-internal")
    assert described(theirs)["u-0"] == {"leader": "none", "replicas": "5", "isr": [""]}
    assert described(printed(planned, "describe")) == described(theirs)


def partitions(admin: KafkaAdminClient) -> list[dict[str, Any]]:
    return [{"topic": t["name"]} | p for t in admin.describe_topics(["t", "u"]) for p in t["partitions"]]
