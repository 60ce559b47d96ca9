"""Measures the loads of a cluster at an interval, and sends them to the job."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from kafka import KafkaAdminClient
from msgspec.structs import replace

from streaming.collect.loads import observed
from streaming.collect.measuring import look_at_loads
from streaming.collect.memory import Deliver, LoadMemory, MemoryFile, as_lines, next_moment
from streaming.collect.rates.source import read_rates
from streaming.collect.rates.values import Rates
from streaming.config import Collect
from streaming.errors import InputError
from streaming.events import AnyEvent, encode
from streaming.kafka.snapshot import Snapshot


class LoadWatch:
    """Watches the loads of one cluster, beside a collector that holds the lock on its memory."""

    def __init__(self, cluster_id: str, *, settings: Collect, deliver: Deliver, say: Callable[[str], None]) -> None:
        """Read what the last look saw.

        Args:
            cluster_id: what events call the cluster.
            settings: how often loads are looked at; ``loads`` is set.
            deliver: hands lines to the job's source.
            say: takes a sentence about what is left out.

        Raises:
            InputError: the memory cannot be used.
        """
        assert settings.loads is not None
        self._cluster_id = cluster_id
        self._settings = settings
        self._every = settings.loads.seconds
        self._deliver = deliver
        self._say = say
        self._said: frozenset[str] = frozenset()
        self._file = MemoryFile(Path(settings.state) / "loads", cluster_id, LoadMemory)
        self._memory = self._file.read()
        self._looked: float | None = None

    def send(self) -> None:
        """Hand over what is still to be sent.

        Raises:
            StreamingError: it cannot be sent, or the state file cannot be written.
        """
        if self._memory.unsent:
            self._deliver(as_lines(self._memory.unsent))
            self._remember(replace(self._memory, unsent=()))

    def poll(self, admin: KafkaAdminClient, snapshot: Snapshot) -> list[AnyEvent]:
        """Measure if it is due, send the observation, and return it.

        Raises:
            StreamingError: as :meth:`send`.
        """
        since = self._seconds_since()
        if since is not None and 0 <= since < self._every:
            return []
        at, clock = next_moment(self._memory.observed_at), time.monotonic()
        now = look_at_loads(admin, snapshot)
        rates, problems = self._rates()
        self._tell_problems(now.problems | problems)
        events = observed(
            self._memory.topics, now, since or 0.0, rates, self._settings, cluster_id=self._cluster_id, at=at
        )
        self._remember(LoadMemory(now.topics, at, tuple(encode(event).decode() for event in events)))
        self._looked = clock
        self.send()
        return events

    def _seconds_since(self) -> float | None:
        """Since the last look: by a clock that nobody sets, or after a restart by that of the wall."""
        if self._looked is not None:
            return time.monotonic() - self._looked
        last = self._memory.observed_at
        return None if last is None else (datetime.now(UTC) - last).total_seconds()

    def _rates(self) -> tuple[Rates, dict[str, str]]:
        try:
            return read_rates(self._settings.rates), {}
        except InputError as error:
            return {}, {"rates are left out": str(error)}

    def _tell_problems(self, problems: Mapping[str, str]) -> None:
        """Once each, for as long as it lasts, whatever reason is given meanwhile."""
        for what, reason in problems.items():
            if what not in self._said:
                self._say(f"{what}: {reason}")
        self._said = frozenset(problems)

    def _remember(self, memory: LoadMemory) -> None:
        self._file.write(memory)
        self._memory = memory
