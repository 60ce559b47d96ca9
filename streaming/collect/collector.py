"""The collector: looks at a cluster again and again, and hands what changed to the job."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from types import TracebackType
from typing import Final, Self

from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from msgspec.structs import replace

from streaming.collect.differ import believed, identity, news
from streaming.collect.load_watch import LoadWatch
from streaming.collect.memory import Deliver, Memory, MemoryFile, as_lines, next_moment
from streaming.errors import AnotherClusterError, StreamingError
from streaming.events import AnyEvent, encode
from streaming.guard import only_collector
from streaming.kafka.connection import Connection
from streaming.kafka.snapshot import Snapshot, read_snapshot

_REQUEST_SECONDS: Final = 3.0
_MOST_SECONDS: Final = 10.0
"""To connect. The first attempt after a loss takes less, because of the brokers to try one may be what hangs."""

_SOON_SECONDS: Final = 2.0
_NAMED: Final = 3


class Collector:
    """Watches one cluster; use it in a ``with`` statement.

    Attributes:
        cluster_id: what events call the cluster.
    """

    def __init__(
        self,
        connection: Connection,
        cluster_id: str | None,
        state: str,
        deliver: Deliver,
        watch_loads: Callable[[str], LoadWatch] | None = None,
    ) -> None:
        """Connect; without ``cluster_id`` the cluster is called what Kafka calls it.

        ``watch_loads`` makes for the cluster of that name what looks at its loads; without it nobody does.

        Raises:
            ClusterError: the cluster cannot be reached.
            InputError: the memory in the folder ``state`` cannot be used.
            JobError: another collector watches this cluster.
        """
        self._connection = connection
        self._deliver = deliver
        self._admin: KafkaAdminClient | None = None
        self._patience = _MOST_SECONDS
        self._earlier: Snapshot | None = None
        self._memory = Memory()
        self._held = ExitStack()
        try:
            kafka_id = self._look().id
            self.cluster_id = cluster_id or kafka_id
            self._file = MemoryFile(state, self.cluster_id, Memory)
            self._held.enter_context(only_collector(self._file.path))
            self._memory = self._file.read()
            self._loads = watch_loads(self.cluster_id) if watch_loads else None
        except BaseException:
            self.close()
            raise

    def poll(self) -> list[AnyEvent]:
        """Poll once, send what changed, and return it. After a failure the next call resumes where this one stopped.

        Raises:
            ClusterError: the cluster cannot be asked, or is another one than before.
            StreamingError: the events cannot be sent, or the state file cannot be written.
        """
        self._send()
        if self._loads:
            self._loads.send()
        now = self._look()
        known = self._memory.snapshot
        if known and known.id != now.id:
            raise AnotherClusterError(
                f"Kafka at {self._connection.bootstrap_servers} is cluster {now.id}, and {self.cluster_id} was cluster"
                f" {known.id} so far: give another --cluster",
                bootstrap_servers=self._connection.bootstrap_servers,
            )
        after = believed(known, self._earlier, now) if known else now
        self._earlier = now
        is_news = after != known or self._memory.identified != now.id
        events = self._tell(known, after) if is_news else []
        if self._loads and self._admin:
            events += self._loads.poll(self._admin, now)
        return events

    @property
    def hidden(self) -> tuple[str, ...]:
        """Topics that are known, and that the principal may no longer describe: what is known of them stays."""
        return self._earlier.hidden if self._earlier else ()

    def _tell(self, known: Snapshot | None, after: Snapshot) -> list[AnyEvent]:
        at = next_moment(self._memory.observed_at)
        events = news(known, after, self.cluster_id, at)
        if self._memory.identified != after.id:
            events.insert(0, identity(after, self.cluster_id, at))
        self._remember(after, at, tuple(encode(event).decode() for event in events))
        self._send()
        return events

    def _remember(self, snapshot: Snapshot, at: datetime, unsent: tuple[str, ...]) -> None:
        memory = replace(self._memory, snapshot=snapshot, observed_at=at, unsent=unsent, identified=snapshot.id)
        self._file.write(memory)
        self._memory = memory

    def _send(self) -> None:
        if self._memory.unsent:
            self._deliver(as_lines(self._memory.unsent))
            memory = replace(self._memory, unsent=())
            self._file.write(memory)
            self._memory = memory

    def _look(self) -> Snapshot:
        if self._admin is not None:
            try:
                return self._ask()
            except (KafkaError, OSError):
                # A client goes on asking brokers that are gone; a new one finds those that are there.
                self._disconnect()
        try:
            return self._ask()
        except (KafkaError, OSError) as error:
            self._disconnect()
            raise self._connection.failed("does not answer", error) from error

    def _ask(self) -> Snapshot:
        if self._admin is None:
            patience, self._patience = self._patience, _MOST_SECONDS
            self._admin = self._connection.admin(patience, _REQUEST_SECONDS)
        known = self._memory.snapshot
        snapshot = read_snapshot(self._admin, known=[topic.name for topic in known.topics] if known else ())
        self._patience = _SOON_SECONDS
        self._connection = self._connection.through(f"{b.host}:{b.port}" for b in snapshot.brokers if not b.fenced)
        return snapshot

    def _disconnect(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def close(self) -> None:
        """Let go of the connections and of the memory."""
        self._disconnect()
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def hidden_text(topics: Sequence[str]) -> str:
    """What is said of topics that may not be described."""
    if not topics:
        return "all known topics may be described again"
    names = ", ".join(topics[:_NAMED]) + (f" and {len(topics) - _NAMED} more" if len(topics) > _NAMED else "")
    return f"no right to describe {names}: what is known of them stays; grant the ACL Describe on topics"


def watch(
    collector: Collector,
    interval: float,
    stop: threading.Event,
    told: Callable[[list[AnyEvent]], None],
    say: Callable[[str], None],
) -> None:
    """Poll every ``interval`` seconds until ``stop``. What fails is said once and tried again until it works.

    Args:
        collector: what polls.
        interval: seconds from the beginning of one look to that of the next.
        stop: ends the watch.
        told: called with the events of every look that had some.
        say: called with one sentence when something begins to fail, and when it works again.

    Raises:
        AnotherClusterError: waiting does not mend that.
    """
    trouble = ""
    hidden: tuple[str, ...] = ()
    while not stop.is_set():
        begin = time.monotonic()
        try:
            events = collector.poll()
        except AnotherClusterError:
            raise
        except StreamingError as error:
            if str(error) != trouble:
                trouble = str(error)
                say(f"{trouble}; trying again")
        else:
            if trouble:
                say("all is well again")
                trouble = ""
            if hidden != collector.hidden:
                hidden = collector.hidden
                say(hidden_text(hidden))
            if events:
                told(events)
        stop.wait(max(0.0, begin + interval - time.monotonic()))
