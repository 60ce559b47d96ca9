"""The cluster: one controller that stays, and brokers that come and go."""

from __future__ import annotations

import atexit
import random
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree
from types import TracebackType
from typing import Final, Self

from examples.local_kafka.node import Node, java, new_id
from examples.local_kafka.security import Security

CONTROLLER: Final = 1000
"""The controller's node id; brokers have smaller ones."""

SESSION_TIMEOUT: Final = 3.0
"""Seconds without a heartbeat after which a broker is fenced."""

_PORTS: Final = range(20_000, 32_000)
"""Below those that systems hand out, so that nobody takes one before its broker is up."""


_given: Final[set[int]] = set()


def free_port() -> int:
    """A port that nothing listens on, and that this process was not given before."""
    while True:
        port = random.choice(_PORTS)
        if port in _given:
            continue  # its broker may not have got as far as listening
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("localhost", port))
            except OSError:
                continue
        _given.add(port)
        return port


class LocalKafka:
    """A KRaft cluster; use it in a ``with`` statement, or :meth:`start` and :meth:`stop` it.

    Each broker has ``disks`` log directories.
    Listener ``PLAINTEXT`` is always there; with ``security`` there are ``SASL_SSL`` (PLAIN and SCRAM) and ``SSL``
    (a client certificate is asked for) as well. Leaders stay where they are until somebody elects others, and topics
    are never created by asking for them.
    """

    def __init__(
        self, folder: Path, racks: Mapping[int, str], *, security: Security | None = None, disks: int = 1
    ) -> None:
        self.folder = folder
        self.disks = disks
        self.security = security
        self.brokers: dict[int, Node] = {}
        self._racks = dict(racks)
        self._cluster_id = new_id()
        self._listeners = ("PLAINTEXT", "SASL_SSL", "SSL") if security else ("PLAINTEXT",)
        self._ports: dict[int, dict[str, int]] = {}
        self._voters = f"{CONTROLLER}@localhost:{free_port()}"
        self._controller = Node(folder / "controller", self._controller_settings())

    def bootstrap_servers(self, listener: str = "PLAINTEXT") -> str:
        """The addresses of all brokers, also of those that are down."""
        return ",".join(f"localhost:{ports[listener]}" for ports in self._ports.values())

    def start(self) -> None:
        """Start everything and return when every broker has started."""
        atexit.register(self.stop)
        if self.security:
            self.security.create()
        self._controller.format(self._cluster_id, *(self.security.format_options() if self.security else ()))
        self._controller.start()
        for broker, rack in self._racks.items():
            self._new_broker(broker, rack).start()
        for node in (self._controller, *self.brokers.values()):
            node.wait()

    def stop(self) -> None:
        """End everything that runs; nobody needs the data, so nobody waits for a broker to hand over its leaders."""
        for node in (*self.brokers.values(), self._controller):
            node.kill()
        atexit.unregister(self.stop)

    def add_broker(self, broker: int, rack: str) -> None:
        """Let a new broker join, and return when it has started."""
        node = self._new_broker(broker, rack)
        node.start()
        node.wait()

    def start_broker(self, broker: int) -> None:
        """Start a broker that is down, and return when it has started."""
        self.brokers[broker].start()
        self.brokers[broker].wait()

    def stop_broker(self, broker: int) -> None:
        """Shut a broker down in order: it hands its leaders over and is fenced at once."""
        self.brokers[broker].stop()

    def kill_broker(self, broker: int) -> None:
        """``kill -9`` a broker: it is fenced after the session timeout."""
        self.brokers[broker].kill()

    def unregister(self, broker: int) -> None:
        """Make the cluster forget a broker; it is stopped if it runs, and its data are removed."""
        node = self.brokers.pop(broker)
        node.stop()
        rmtree(node.folder)
        del self._ports[broker]
        self.tool("ClusterTool", "unregister", "--bootstrap-server", self.bootstrap_servers(), "--id", str(broker))

    def tool(self, name: str, *arguments: str) -> str:
        """Run one of Kafka's tools (``TopicCommand``, ``reassign.ReassignPartitionsCommand``, ...); what it printed.

        Raises:
            RuntimeError: it failed; with what it printed.
        """
        command = java(f"org.apache.kafka.tools.{name}", *arguments)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{name} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def _new_broker(self, broker: int, rack: str) -> Node:
        ports = {listener: free_port() for listener in self._listeners}
        node = Node(self.folder / f"broker-{broker}", self._broker_settings(broker, rack, ports), self.disks)
        node.format_plainly(self._cluster_id)
        self.brokers[broker], self._ports[broker] = node, ports
        return node

    def _controller_settings(self) -> dict[str, object]:
        return {
            "process.roles": "controller",
            "node.id": CONTROLLER,
            "controller.quorum.voters": self._voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://{self._voters.partition('@')[2]}",
            "broker.session.timeout.ms": int(SESSION_TIMEOUT * 1000),
            **(self.security.authorizer if self.security else {}),
        }

    def _broker_settings(self, broker: int, rack: str, ports: Mapping[str, int]) -> dict[str, object]:
        listeners = ",".join(f"{name}://localhost:{port}" for name, port in ports.items())
        few = min(3, len(self._racks))
        return {
            "process.roles": "broker",
            "node.id": broker,
            "broker.rack": rack,
            "controller.quorum.voters": self._voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": listeners,
            "listener.security.protocol.map": ",".join(f"{n}:{n}" for n in self._listeners) + ",CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "broker.session.timeout.ms": int(SESSION_TIMEOUT * 1000),
            "broker.heartbeat.interval.ms": 500,
            "auto.create.topics.enable": "false",
            "auto.leader.rebalance.enable": "false",
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": few,
            "group.initial.rebalance.delay.ms": 0,
            "num.network.threads": 2,
            "num.io.threads": 2,
            "log.cleaner.dedupe.buffer.size": 2 << 20,  # the default alone is half of the heap
            **dict(self.security.broker_settings() if self.security else ()),
        }

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
