"""What the principal may not see or do is said, and nothing is planned from it: a small cluster with an authorizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from examples.local_kafka import LocalKafka, Security
from streaming.cli.main import cli
from streaming.kafka.connection import PASSWORD_VARIABLE
from tests.live_kafka.cluster import PASSWORD, USER, wait_until
from tests.live_kafka.watched import CLUSTER, Watched, create
from tests.streaming.driving import Driver
from tests.streaming.writing import write_batches

pytestmark = pytest.mark.kafka

TOPICS = ("orders", "payments", "refunds")
MORE = """\
[kafka]
security_protocol = "SASL_SSL"
sasl_mechanism = "SCRAM-SHA-256"
sasl_username = "{user}"
ssl_ca_file = "{ca}"

[tables]
root = "{folder}/tables"
"""
STAYS = "what is known of them stays; grant the ACL Describe on topics"


class Guarded:
    """A principal with the rights that the cluster's ACLs give it, and its collector."""

    def __init__(self, kafka: LocalKafka, folder: Path) -> None:
        assert kafka.security
        self._kafka = kafka
        more = MORE.format(user=USER, ca=kafka.security.ca, folder=folder)
        self.watched = Watched(folder, kafka.bootstrap_servers("SASL_SSL"), more)

    def may(self, operation: ACLOperation, name: str, *, no_more: bool = False) -> None:
        """Give the principal a right on topics of this name, or on the cluster, or take it away."""
        kind = ResourceType.CLUSTER if name == "kafka-cluster" else ResourceType.TOPIC
        rights = [ACL(f"User:{USER}", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(kind, name))]
        with KafkaAdminClient(bootstrap_servers=self._kafka.bootstrap_servers()) as admin:
            assert admin.delete_acls(rights) if no_more else admin.create_acls(rights)

    def collected(self, said: str) -> str:
        """Look until this is said: brokers hear of ACLs a moment later."""
        return until_said(self.watched.once, said)

    def collected_until(self, told: Callable[[], bool]) -> None:
        """Look until the events tell so."""
        wait_until(lambda: self.watched.once().exit_code == 0 and told(), "the events tell it")

    def handed_over(self) -> str:
        return b"".join(self.watched.lines()).decode()

    def apply(self, *arguments: str) -> Result:
        command = ["apply", "--bootstrap-server", self.watched.servers, CLUSTER, *arguments]
        return CliRunner().invoke(cli, [*command, "--conf", str(self.watched.conf)], catch_exceptions=False)

    def deleted(self) -> list[str]:
        return [event["topic"] for event in self.watched.events() if event["type"] == "topic_deleted"]


def until_said(command: Callable[[], Result], said: str) -> str:
    """The output of the command, once this is in it."""

    def found() -> str:
        output = command().output
        return output if said in output else ""

    return wait_until(found, f"{said!r} is said")


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKafka]:
    folder = tmp_path_factory.mktemp("guarded")
    security = Security(folder / "tls", {USER: PASSWORD}, authorizes=True)
    with LocalKafka(folder / "nodes", {1: "a", 2: "b"}, security=security) as cluster:
        yield cluster


def test_what_may_not_be_described_or_done_is_said_and_changes_nothing(
    kafka: LocalKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    guarded = Guarded(kafka, tmp_path)
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers()) as admin:
        for topic in TOPICS:
            create(admin, topic, [1, 2])
        refused = guarded.watched.once()
        assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
        assert "the principal lacks a right on the cluster: collect needs Describe, apply also Alter" in refused.stderr

        guarded.may(ACLOperation.DESCRIBE, "kafka-cluster")
        guarded.may(ACLOperation.DESCRIBE, "*")
        guarded.collected_until(lambda: all(topic in guarded.handed_over() for topic in TOPICS))

        guarded.may(ACLOperation.DESCRIBE, "orders")
        guarded.may(ACLOperation.DESCRIBE, "*", no_more=True)
        assert f"no right to describe payments, refunds: {STAYS}" in guarded.collected("no right to describe")
        admin.delete_topics(["refunds"])  # which nobody can tell from a lost right
        guarded.may(ACLOperation.DESCRIBE, "orders", no_more=True)
        assert f"no right to describe orders, payments, refunds: {STAYS}" in guarded.collected("describe orders")
        assert guarded.deleted() == []
        guarded.may(ACLOperation.DESCRIBE, "*")
        guarded.collected_until(lambda: bool(guarded.deleted()))
        assert guarded.deleted() == ["refunds"]

    plan_a_smaller_factor(guarded, tmp_path)
    refused = guarded.apply()
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "the principal lacks a right on the cluster: collect needs Describe, apply also Alter" in refused.stderr
    guarded.may(ACLOperation.ALTER, "kafka-cluster")
    wait_until(lambda: guarded.apply().exit_code == 0, "the plan is carried out")
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers()) as admin:
        assert [p["replica_nodes"] for p in admin.describe_topics(["orders"])[0]["partitions"]] == [[1]]


def plan_a_smaller_factor(guarded: Guarded, folder: Path) -> None:
    driver = Driver()
    shrinks = driver.event(
        "replication_factor_changed", cluster=CLUSTER, topic="orders", replication_factor=1, minute=10**6
    )
    write_batches(folder / "tables", driver.batch(*guarded.watched.lines()), driver.batch(shrinks))
