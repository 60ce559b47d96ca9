"""The cluster that all live tests run on is what they take it for."""

from __future__ import annotations

import pytest
from kafka import KafkaAdminClient

from examples.local_kafka import LocalKafka
from tests.live_kafka.cluster import RACKS, alive, wait_until

pytestmark = pytest.mark.kafka


def test_brokers_are_killed_and_return_and_join_and_are_forgotten(kafka: LocalKafka, admin: KafkaAdminClient) -> None:
    kafka.kill_broker(5)
    wait_until(lambda: alive(admin) == {1, 2, 3, 4}, "broker 5 is fenced")
    kafka.start_broker(5)
    wait_until(lambda: alive(admin) == set(RACKS), "broker 5 is back")
    kafka.add_broker(6, "c")
    wait_until(lambda: alive(admin) == {*RACKS, 6}, "broker 6 has joined")
    racks = {broker["broker_id"]: broker["rack"] for broker in admin.describe_cluster()["brokers"]}
    assert racks == {**RACKS, 6: "c"}
    kafka.unregister(6)
    wait_until(lambda: len(admin.describe_cluster()["brokers"]) == len(RACKS), "broker 6 is forgotten")
    kafka.add_broker(6, "a")
    wait_until(lambda: alive(admin) == {*RACKS, 6}, "another broker 6 has joined")


def test_kafkas_own_tools_run(kafka: LocalKafka) -> None:
    servers = ("--bootstrap-server", kafka.bootstrap_servers())
    kafka.tool("TopicCommand", *servers, "--create", "--topic", "t", "--replica-assignment", "1:2:3,4:5:3")
    assert kafka.tool("TopicCommand", *servers, "--list").split() == ["t"]
    with pytest.raises(RuntimeError, match="Topic 't' already exists"):
        kafka.tool("TopicCommand", *servers, "--create", "--topic", "t")
