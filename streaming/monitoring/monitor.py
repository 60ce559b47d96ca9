"""What a running job tells of itself: its heartbeat, and its numbers where somebody may scrape them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from streaming.config import Config
from streaming.errors import JobError
from streaming.monitoring.exporter import Exporter, Server
from streaming.monitoring.heartbeat import first_beat, heartbeat_path, write_heartbeat
from streaming.monitoring.measures import Measures
from streaming.monitoring.progress import Progress
from streaming.spark.failures import reason_of

_log: Final = logging.getLogger(__name__)


class Monitor:
    """Takes the numbers of batches and triggers, from whatever thread they come."""

    def __init__(self, config: Config) -> None:
        self.exporter = Exporter()
        self._path = heartbeat_path(config)
        self._spark_reads = config.folder is None
        self._beat = first_beat()
        self._lock = threading.Lock()
        if self._path is not None:
            write_heartbeat(self._path, self._beat)

    def begin(self, batch_id: int) -> None:
        """A batch is taken up: until it is over the query makes no progress that Spark would tell of."""
        self._note(in_hand=batch_id, in_hand_since=datetime.now(UTC))

    def batch(self, measures: Measures) -> None:
        """A batch is committed."""
        self.exporter.take(measures)
        if not self._spark_reads:  # else its listener tells, also where batches are planned in another process
            self.exporter.rows(sum(measures.events.values()))
        if measures.newest_event_at is not None:
            self._note(newest_event_at=measures.newest_event_at)

    def trigger(self, progress: Progress) -> None:
        """A trigger is over: the query lives."""
        self.exporter.progress(progress)
        self._note(
            beat_at=progress.at, batch_id=progress.batch_id, rows=progress.rows, rows_behind=progress.rows_behind
        )

    def end(self, failure: BaseException | None) -> None:
        """The query is over."""
        self._note(ended_at=datetime.now(UTC), failure=None if failure is None else reason_of(failure))

    def _note(self, **changes: Any) -> None:
        """Keep the heartbeat up to date; where that fails the job goes on, and the probe sees an old one."""
        with self._lock:
            self._beat = msgspec.structs.replace(self._beat, **changes)
            if self._path is not None:
                try:
                    write_heartbeat(self._path, self._beat)
                except JobError as error:
                    _log.warning("%s", error)


@contextmanager
def monitored(config: Config) -> Iterator[Monitor]:
    """A monitor for as long as the job runs, served to Prometheus where the conf names a port.

    Raises:
        JobError: the heartbeat cannot be written, or the port cannot be had.
    """
    monitor = Monitor(config)
    server: Server | None = None
    try:
        if config.monitoring.metrics_port is not None:
            server = monitor.exporter.serve(config.monitoring.metrics_address, config.monitoring.metrics_port)
            _log.info("metrics on %s", server.url)
        yield monitor
    except BaseException as error:
        monitor.end(error)
        raise
    else:
        monitor.end(None)
    finally:
        if server is not None:
            server.close()
