"""The whole loop on a real Kafka cluster of this machine: collect, plan, approve, apply, and Kafka's own word for it.

Run it with ``make quickstart-kafka``. Everything is kept in ``.data/quickstart-kafka``, which the next run replaces.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from kafka import KafkaAdminClient
from rich.text import Text

from examples.local_kafka import LocalKafka
from examples.story import Story, screen
from streaming.cli.screens.render import draw, plan_table
from streaming.cli.screens.watching import version_line
from streaming.collect.collector import Collector, watch
from streaming.collect.telling import told
from streaming.config import load_config
from streaming.history.tables import History
from streaming.job.query import run_job
from streaming.kafka.connection import Connection
from streaming.kafka.delivery import deliver
from streaming.planning.batch import BatchResult
from streaming.record.version import PlanVersion

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b"}
CLUSTER = "quickstart"
EVENTS = "replica-planner-events"
HOME = Path(".data/quickstart-kafka")
CONF = HOME / "conf.toml"
SETTINGS = """\
[source]
type = "kafka"
bootstrap_servers = "{servers}"
topic = "{topic}"

[tables]
root = "{home}/tables"

[job]
checkpoint = "{home}/checkpoint"

[collect]
state = "{home}/collect"

[policy]
grace = "3s"        # half an hour by default
"""


class LiveStory(Story):
    """The story, told to a job whose events come from the cluster itself."""

    def __init__(self, kafka: LocalKafka) -> None:
        self.kafka = kafka
        self.servers = kafka.bootstrap_servers()
        CONF.write_text(SETTINGS.format(servers=self.servers, topic=EVENTS, home=HOME))
        super().__init__(load_config(CONF), CLUSTER)

    def observe(self, result: BatchResult) -> None:
        """Print what was decided, and let the story go on; that leaders and ISR are others is no decision."""
        shown = [version for version in result.versions if is_decision(version)]
        screen.print(*(Text(f"   {version_line(version)}\n", style="green") for version in shown), sep="", end="")
        self._results.put(result)

    def run(self, *arguments: str) -> str:
        """A command as people type it; what it printed."""
        screen.print(Text(f"$ replica-planner {' '.join(arguments)}".replace(self.servers, "..."), style="cyan"))
        command = [str(Path(sys.executable).with_name("replica-planner")), *arguments, "--conf", str(CONF)]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

    def apply(self) -> None:
        """Carry out what is planned, and count what each broker holds then."""
        screen.print(Text(self.run("apply", "--bootstrap-server", self.servers, CLUSTER).rstrip(), style="dim"))
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            held = Counter(
                b for topic in admin.describe_topics() for p in topic["partitions"] for b in p["replica_nodes"]
            )
        counts = ", ".join(f"{broker}: {held[broker]}" for broker in sorted(self.kafka.brokers))
        screen.print(f"   replicas on the cluster's brokers now: {counts}")

    def collect(self) -> None:
        """Watch the cluster until the end, as ``replica-planner collect`` does."""
        connection = Connection.to(self.servers, self.config.kafka)
        state = self.config.collect.state

        def say(text: str) -> None:
            screen.print(Text(f"   collected: {text}", style="blue"))

        with Collector(connection, CLUSTER, state, lambda lines: deliver(self.config.source, lines)) as collector:
            watch(collector, 0.4, self.stop, lambda events: say(told(events)), say)

    def _tell(self) -> None:
        self.say("The collector looks at the cluster for the first time, and tells the job about it.")
        threading.Thread(target=self.collect, name="collector").start()
        self.wait_for(lambda v: v.kind == "observation")

        self.say("A topic is asked for. The job plans it, apply creates it, and finding it there is no drift.")
        topic = ("--type", "topic_created", "--topic", "orders", "--partitions", "24", "--replication-factor", "3")
        self.run("submit", "--cluster", CLUSTER, *topic)
        self.wait_for(lambda v: v.kind == "topics")
        self.apply()

        self.say("Broker 5 is killed. The cluster fences it after 3 s, its grace is over 3 s later.")
        self.kafka.kill_broker(5)
        heal = self.wait_for(lambda v: v.kind == "heal")
        self.apply()
        self.verify(heal)

        self.say("It returns, a sixth broker joins, and somebody asks for a rebalance, which waits for approval.")
        self.kafka.start_broker(5)
        self.kafka.add_broker(6, "c")
        self.wait_for(lambda v: any((b.broker_id, b.state) == (6, "alive") for b in v.broker_changes))
        self.run("submit", "--type", "rebalance_requested", "--cluster", CLUSTER)
        proposal = self.wait_for(lambda v: v.approval == "proposed")
        self.run("approve", CLUSTER, str(proposal.plan_version), "--digest", proposal.digest)
        approved = self.wait_for(lambda v: v.approval == "approved")
        self.apply()
        self.verify(approved)

    def verify(self, version: PlanVersion) -> None:
        """Ask Kafka's own tool whether the plan is carried out."""
        plan = HOME / f"plan-{version.plan_version}.json"
        plan.write_text(self.run("show", CLUSTER, str(version.plan_version), "--format", "kafka-json"))
        options = ("--bootstrap-server", self.servers, "--reassignment-json-file", str(plan), "--verify")
        screen.print(Text(f"$ kafka-reassign-partitions --verify --reassignment-json-file {plan}", style="cyan"))
        said = self.kafka.tool("reassign.ReassignPartitionsCommand", *options)
        complete = said.count("is completed.")
        screen.print(f"   {complete} of {len(json.loads(plan.read_text())['partitions'])} reassignments are completed")


def is_decision(version: PlanVersion) -> bool:
    """Whether more than leaders and ISR of known partitions is new."""
    return version.kind != "observation" or version.numbers.before != version.numbers.after


def main() -> None:
    """Start the cluster, play the story, and show what was decided."""
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    began = time.monotonic()
    screen.print(Text("Starting a Kafka cluster of five brokers and a controller, and Spark ...", style="dim"))
    with LocalKafka(HOME.absolute() / "kafka", RACKS) as kafka:
        story = LiveStory(kafka)
        with KafkaAdminClient(bootstrap_servers=story.servers) as admin:
            admin.create_topics({EVENTS: {"num_partitions": 1, "replication_factor": 3}})
            admin.wait_for_topics([EVENTS])
        teller = threading.Thread(target=story.tell, name="story")
        run_job(story.config, observer=story.observe, started=teller.start, stop=story.stop)
        teller.join()
        if story.failure:
            raise SystemExit(f"the story broke off: {story.failure}")
        screen.print(
            Text(f"\nThe end, after {time.monotonic() - began:.0f} seconds. What was decided:\n", style="bold")
        )
        history = History(story.config.tables.root)
        versions = [version for version in history.versions(CLUSTER) if is_decision(version)]
        draw(screen, plan_table(versions, history.standings(CLUSTER)))
    screen.print(f"Try next: .venv/bin/replica-planner why {CLUSTER} orders 0 --conf {CONF}")


if __name__ == "__main__":
    main()
