"""A story on nine brokers, played for real: a Spark job, Delta tables, and events in a folder.

Run it with ``make run``. Its conf, ``story.toml``, has a grace of two seconds instead of half an hour, and a folder
of its own, so that nothing of it is among what you plan yourself. It can be played again, with another cluster.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from streaming.cli.screens.render import draw, plan_table
from streaming.cli.screens.watching import event_line, version_line
from streaming.config import Config, load_config
from streaming.errors import HistoryError, StreamingError
from streaming.history.tables import History
from streaming.job.query import run_job
from streaming.kafka.delivery import deliver
from streaming.monitoring.logs import log_to_screen
from streaming.planning.batch import BatchResult
from streaming.record.version import PlanVersion

CONF = Path(__file__).with_suffix(".toml")
RACKS = {"a": (1, 2, 3, 4), "b": (5, 6, 7), "c": (8, 9)}
REMINDER = 60.0
"""Seconds after which whoever waits is told why; how long Spark takes is the machine's affair."""

screen = Console(highlight=False, soft_wrap=True)


class StoppedError(Exception):
    """The job ended before the story did."""


class Story:
    """Sends events, and waits until the job has answered."""

    def __init__(self, config: Config, cluster: str) -> None:
        self.config = config
        self.cluster = cluster
        self.stop = threading.Event()
        self.is_over = False
        self._results: queue.Queue[BatchResult] = queue.Queue()
        self._sent = 0

    def observe(self, result: BatchResult) -> None:
        """Print what the job decided about this cluster, and let the story go on."""
        for event in result.unplanned:
            screen.print(Text(f"   {event_line(event)}", style="yellow"))
        for version in result.versions:
            if version.cluster_id == self.cluster:
                screen.print(Text(f"   {version_line(version)}", style="green"))
        self._results.put(result)

    def say(self, text: str) -> None:
        """A sentence of the story."""
        screen.print(Text(f"\n{text}", style="bold"))

    def event(self, kind: str, **fields: Any) -> bytes:
        """One line of JSON."""
        self._sent += 1
        head = {"event_id": f"{self.cluster}-{self._sent}", "cluster_id": self.cluster, "type": kind}
        return msgspec.json.encode(head | {"occurred_at": datetime.now(UTC)} | fields) + b"\n"

    def send(self, *lines: bytes) -> None:
        """Hand lines to the job's source as one file."""
        deliver(self.config.source, b"".join(lines))

    def wait_for(self, reached: Callable[[PlanVersion], bool]) -> PlanVersion:
        """The first plan version that is what the story waits for."""
        asked = told = time.monotonic()
        while not self.stop.is_set():
            try:
                result = self._results.get(timeout=0.2)
            except queue.Empty:
                if time.monotonic() - told > REMINDER:
                    told = time.monotonic()
                    screen.print(Text(f"   no answer for {told - asked:.0f} s: this machine is busy", style="dim"))
                continue
            for version in result.versions:
                if version.cluster_id == self.cluster and reached(version):
                    return version
        raise StoppedError

    def tell(self) -> None:
        """The whole story; ends the job when it is over."""
        try:
            self._tell()
            self.is_over = True
        except StoppedError:
            pass
        finally:
            self.stop.set()

    def _tell(self) -> None:
        self.say("Nine brokers join, in three uneven racks: a has 4, b has 3, c has 2.")
        joins = [self.event("broker_joined", broker_id=b, rack=rack) for rack, ids in RACKS.items() for b in ids]
        self.send(*joins)
        self.wait_for(lambda v: any(b.broker_id == 9 for b in v.broker_changes))

        self.say("Topics arrive: by count, by hand, with gaps in the ids; one asks too much, one line is broken.")
        self.send(*self._topics())
        self.wait_for(lambda v: v.kind == "topics")

        grace = f"{self.config.policy.grace} to return (half an hour by default)"
        self.say(f"Broker 5 fails. It has {grace}; then its replicas are healed.")
        self.send(self.event("broker_left", broker_id=5, reason="failed"))
        self.wait_for(lambda v: v.kind == "heal")

        self.say("A tenth broker joins rack c. It stays empty until somebody asks for a rebalance.")
        self.send(self.event("broker_joined", broker_id=10, rack="c"), self.event("rebalance_requested"))
        proposal = self.wait_for(lambda v: v.approval == "proposed")

        self.say(f"Version {proposal.plan_version} waits for approval. It is approved, by its digest.")
        self.send(self.event("plan_approved", plan_version=proposal.plan_version, digest=proposal.digest))
        self.wait_for(lambda v: v.approval == "approved")

    def _topics(self) -> Iterator[bytes]:
        yield self.event("topic_created", topic="orders", partitions=24, replication_factor=3)
        yield self.event("topic_created", topic="clicks", partitions=60, replication_factor=2)
        yield self.event(
            "topic_created",
            topic="payments",
            partitions=12,
            replication_factor=3,
            strategy="adminutils",
            fixed_start_index=0,
        )
        yield self.event("topic_created", topic="audit", replica_assignment={"0": [1, 5, 8], "1": [2, 6, 9]})
        yield self.event(
            "topic_created",
            topic="sensors",
            replica_assignment={"10": [5, 8], "21": [6, 1], "33": [7, 2], "40": [8, 3]},
        )
        yield self.event("topic_created", topic="everything", partitions=3, replication_factor=12)
        yield b'{"type": "topic_created", "topic": "half a li\n'


def new_cluster(config: Config) -> str:
    """``demo``, or the next ``demo-N`` where the story was played before."""
    try:
        known = set(History(config.tables.root).clusters())
    except HistoryError:
        known = set()
    names = ["demo", *(f"demo-{n}" for n in range(2, len(known) + 3))]
    return next(name for name in names if name not in known)


def main() -> None:
    """Play the story and show its end.

    Raises:
        SystemExit: it was stopped, or the job could not go on.
    """
    config = load_config(str(CONF))
    log_to_screen(config.monitoring.log)
    story = Story(config, new_cluster(config))
    teller = threading.Thread(target=story.tell, name="story")
    began = time.monotonic()
    screen.print(Text(f"Starting Spark for cluster {story.cluster} ...", style="dim"))
    try:
        run_job(config, observer=story.observe, started=teller.start, stop=story.stop)
    except StreamingError as error:
        raise SystemExit(f"the story broke off: {error}") from error
    except KeyboardInterrupt:
        raise SystemExit("the story was stopped before Spark had started") from None
    finally:
        story.stop.set()
        if teller.is_alive():
            teller.join()
    if not story.is_over:
        raise SystemExit("the story was stopped; make run plays it again, with another cluster")
    screen.print(Text(f"\nThe end, after {time.monotonic() - began:.0f} seconds. What was decided:\n", style="bold"))
    show_end(story)


def show_end(story: Story) -> None:
    """The plans, and what can be asked about them."""
    history = History(story.config.tables.root)
    versions = history.versions(story.cluster)
    draw(screen, plan_table(versions, history.standings(story.cluster)))
    heal = next(v for v in versions if v.kind == "heal")
    screen.print("\nTry next:")
    for command in (
        f"show {story.cluster} {heal.plan_version}",
        f"status {story.cluster}",
        f"describe --cluster {story.cluster} --topic orders",
        f"report {story.cluster} --out report.html",
    ):
        screen.print(f"  .venv/bin/replica-planner {command} --conf {os.path.relpath(CONF)}")


if __name__ == "__main__":
    main()
