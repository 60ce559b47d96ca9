"""One JVM of the cluster: started, awaited, stopped, killed, started again."""

from __future__ import annotations

import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from examples.local_kafka.maven import kept_jars
from streaming.spark.java import find_java

HERE: Final = Path(__file__).parent
PATIENCE: Final = 90.0
"""Seconds to wait for a node to start or stop; a laptop needs five."""

_STARTED: Final = b"Kafka Server started"
_JVM: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def new_id() -> str:
    """A random id as Kafka writes them; like Kafka's own it does not look like an option of a command."""
    found = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    return new_id() if found.startswith("-") else found


def java(main_class: str, *arguments: str) -> list[str]:
    """The command that runs a class of Kafka."""
    logging = f"-Dlog4j2.configurationFile={(HERE / 'log4j2.properties').as_uri()}"
    class_path = f"{kept_jars(HERE / 'pom.xml')}/*"
    return [str(find_java().executable), *_JVM, logging, "-cp", class_path, main_class, *arguments]


class Node:
    """A controller or broker with its settings, log and ``disks`` directories of data in ``folder``."""

    def __init__(self, folder: Path, settings: Mapping[str, object], disks: int = 1) -> None:
        self.folder = folder
        self.log_dirs = [folder / ("data" if disks == 1 else f"data-{n}") for n in range(1, disks + 1)]
        self.id = int(str(settings["node.id"]))
        self.log = folder / "log.txt"
        self._settings = folder / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        self._start_of_log = 0
        folder.mkdir(parents=True)
        settings = {"log.dirs": ",".join(map(str, self.log_dirs)), **settings}
        self._settings.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def format(self, cluster_id: str, *options: str) -> None:
        """Prepare the storage of a controller with Kafka's own tool."""
        command = java("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self._settings), *options)
        subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)

    def format_plainly(self, cluster_id: str) -> None:
        """Prepare the storage of a broker: of what the tool writes it needs this file alone, and no JVM to write it."""
        for log_dir in self.log_dirs:
            log_dir.mkdir()
            (log_dir / "meta.properties").write_text(
                f"version=1\ncluster.id={cluster_id}\nnode.id={self.id}\ndirectory.id={new_id()}\n"
            )

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process; :meth:`wait` says when it is ready."""
        if self.is_running:
            return
        self._start_of_log = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                java("kafka.Kafka", str(self._settings)), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def wait(self) -> None:
        """Return when the node has started.

        Raises:
            RuntimeError: it ended, or did not start in time; with the end of its log.
        """
        until = time.monotonic() + PATIENCE
        while _STARTED not in self.log.read_bytes()[self._start_of_log :]:
            if not self.is_running or time.monotonic() > until:
                end = self.log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"Kafka's node {self.id} did not start; the end of {self.log}:\n{end}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ask the process to end, and wait for that; a broker hands its leaders over first."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """End the process at once, as ``kill -9`` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
