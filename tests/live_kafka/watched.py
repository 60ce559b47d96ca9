"""A collector beside the live cluster: started, stopped, killed; and what it handed over."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from kafka import KafkaAdminClient

from streaming.cli.main import cli
from tests.live_kafka.cluster import wait_until
from tests.streaming.driving import Driver

CLUSTER = "east"
CONF = """\
[source]
type = "files"
path = "{folder}/events"

[collect]
state = "{folder}/collect"

{more}
"""


class Watched:
    """A folder with a conf, the collector's memory and the events that it handed over."""

    def __init__(self, folder: Path, servers: str, more: str = "") -> None:
        self.folder = folder
        self.servers = servers
        self.conf = folder / "conf.toml"
        self.conf.write_text(CONF.format(folder=folder, more=more))
        self.memory = folder / "collect" / f"{CLUSTER}.json"
        self.log = folder / "collect.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def arguments(self) -> list[str]:
        return ["collect", "--bootstrap-server", self.servers, "--cluster", CLUSTER, "--conf", str(self.conf)]

    def once(self) -> Result:
        return CliRunner().invoke(cli, [*self.arguments, "--once"], catch_exceptions=False)

    def start(self) -> None:
        """Watch, in a process of its own; return when it does."""
        with self.log.open("ab") as log:
            command = [str(Path(sys.executable).parent / "replica-planner"), *self.arguments]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        said = len(self.said())
        wait_until(lambda: any("watching" in line for line in self.said()[said:]), "the collector watches")

    def stop(self, with_signal: int = signal.SIGTERM) -> int:
        """Its exit code."""
        assert self._process is not None
        self._process.send_signal(with_signal)
        return self._process.wait(30)

    def kill(self) -> None:
        """The end of a test, whatever happened in it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def said(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def lines(self) -> list[bytes]:
        """Lines handed over, oldest first."""
        files = sorted((self.folder / "events").glob("[!.]*.jsonl"))
        return [line for file in files for line in file.read_bytes().splitlines()]

    def events(self, skip: int = 0) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines()[skip:]]

    def told(self, kind: str, skip: int = 0, **fields: Any) -> dict[str, Any]:
        """Wait for the first event like that, beyond those to be skipped."""

        def found() -> dict[str, Any] | None:
            wanted = {"type": kind, **fields}
            return next((e for e in self.events(skip) if {name: e.get(name) for name in wanted} == wanted), None)

        return wait_until(lambda: found() or {}, f"{kind} {fields} is told")


def as_planned(driver: Driver, cluster: str = CLUSTER) -> dict[str, list[int]]:
    """The layout that the planner has, as :func:`tests.live_kafka.planned.layout` shows that of the cluster."""
    topics = driver.layout(cluster)
    return {f"{name}-{n}": row for name, rows in topics.items() for n, row in enumerate(rows) if name[:2] != "__"}


def create(admin: KafkaAdminClient, topic: str, *replicas: list[int]) -> None:
    admin.create_topics({topic: {"assignments": dict(enumerate(replicas))}})
