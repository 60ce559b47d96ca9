"""Plans for the real cluster, made by the planner itself without Spark, and what the cluster says of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ConfigResource

from streaming.apply.kafka.throttles import RATES, REPLICAS
from streaming.cli.main import cli
from streaming.record.version import PlanVersion
from tests.live_kafka.cluster import RACKS, wait_until
from tests.streaming.driving import Driver
from tests.streaming.writing import write_batches

CLUSTER = "east"
CONF = """\
[source]
type = "files"
path = "{folder}/events"

[tables]
root = "{folder}/tables"

[policy]
approval = []
grace = "1m"
wave_moves = 2
"""
RECORD = b"x" * 100_000


class Planned:
    """A journal in a folder, about the brokers of the live cluster."""

    def __init__(self, folder: Path, servers: str, more: str = "") -> None:
        self.folder = folder
        self.servers = servers
        self.conf = folder / "conf.toml"
        self.conf.write_text(CONF.format(folder=folder) + more)
        self.driver = Driver(self.conf.read_text())
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            self.identify(admin.describe_cluster()["cluster_id"])
        for broker, rack in RACKS.items():
            self.plan("broker_joined", broker_id=broker, rack=rack)

    def identify(self, kafka_id: str, minute: float = 0) -> None:
        """Tell which Kafka cluster this is, as ``collect`` does."""
        told = self.driver.event("cluster_identified", cluster=CLUSTER, kafka_cluster_id=kafka_id, minute=minute)
        write_batches(self.folder / "tables", self.driver.batch(told))

    def plan(self, kind: str, **fields: Any) -> PlanVersion:
        """Plan one event; the newest version then."""
        result = self.driver.batch(self.driver.event(kind, cluster=CLUSTER, **fields))
        assert result.versions, result.unplanned
        write_batches(self.folder / "tables", result)
        return result.versions[-1]

    def rolled_back(self, version: PlanVersion) -> PlanVersion:
        return self.plan("plan_rolled_back", plan_version=version.plan_version, digest=version.digest)

    def arguments(self, *arguments: str) -> list[str]:
        return ["apply", "--bootstrap-server", self.servers, CLUSTER, *arguments, "--conf", str(self.conf)]

    def apply(self, *arguments: str) -> Result:
        """Carry plans out in this process."""
        return CliRunner().invoke(cli, self.arguments(*arguments), catch_exceptions=False)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Carry plans out in a process of their own."""
        command = [str(Path(sys.executable).parent / "replica-planner"), *self.arguments(*arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def reports(self) -> list[dict[str, Any]]:
        """What was reported to the planner's source, oldest first."""
        files = sorted((self.folder / "events").glob("[!.]*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def states(self, version: PlanVersion) -> list[str]:
        return [r["state"] for r in self.reports() if r["plan_version"] == version.plan_version]


def planned_layout(version: PlanVersion) -> dict[str, list[int]]:
    """Where a plan wants its partitions."""
    return {f"{block.topic}-{p}": after for block in version.moves for p, _, after, _ in block.rows()}


def layout(admin: KafkaAdminClient) -> dict[str, list[int]]:
    """The replicas of each partition, as the cluster has them."""
    return {
        f"{topic['name']}-{p['partition_index']}": p["replica_nodes"]
        for topic in sorted(admin.describe_topics(), key=lambda topic: topic["name"])
        if not topic["is_internal"]
        for p in sorted(topic["partitions"], key=lambda p: p["partition_index"])
    }


def settles(admin: KafkaAdminClient, wanted: dict[str, list[int]]) -> None:
    """Wait until every broker that is asked says so: one may hear of the end of a move a moment later."""
    wait_until(lambda: layout(admin) == wanted, f"the cluster is as {wanted}")


def in_order(admin: KafkaAdminClient) -> None:
    """Wait until every partition is led by its preferred leader, with all replicas in sync."""
    wait_until(lambda: not _out_of_order(admin), "all replicas are in sync, and the preferred ones lead")


def _out_of_order(admin: KafkaAdminClient) -> list[str]:
    return [
        f"{topic['name']}-{p['partition_index']}"
        for topic in admin.describe_topics()
        if not topic["is_internal"]
        for p in topic["partitions"]
        if p["leader_id"] != p["replica_nodes"][0] or set(p["isr_nodes"]) != set(p["replica_nodes"])
    ]


def held(admin: KafkaAdminClient, *brokers: int) -> dict[int, dict[str, int]]:
    """Bytes in the logs of brokers, by partition, as their own disks have them; logs to be deleted do not count."""
    return {
        answer["broker"]: {
            f"{topic['name']}-{p['partition_index']}": p["partition_size"]
            for folder in answer["log_dirs"]
            for topic in folder["topics"]
            if not topic["name"].startswith("__")
            for p in topic["partitions"]
        }
        for answer in admin.describe_log_dirs(brokers=sorted(brokers))
    }


def throttles(admin: KafkaAdminClient, brokers: list[int]) -> dict[str, list[str]]:
    """Every throttle there is, by broker or topic."""
    resources = [ConfigResource("BROKER", str(b), dict.fromkeys(RATES)) for b in brokers]
    resources += [ConfigResource("TOPIC", t, dict.fromkeys(REPLICAS)) for t in admin.list_topics()]
    found = {
        f"{kind} {name}": sorted(value["value"] for value in values.values() if value["value"])
        for kind, named in admin.describe_configs(resources).items()
        for name, values in named.items()
    }
    return {name: values for name, values in found.items() if values}


def fill(servers: str, topic: str, partitions: int, megabytes: int) -> None:
    """Write so many megabytes to each partition."""
    producer = KafkaProducer(bootstrap_servers=servers, acks="all", linger_ms=5)
    for _ in range(megabytes * 10):
        for partition in range(partitions):
            producer.send(topic, RECORD, partition=partition)
    producer.flush()
    producer.close()
