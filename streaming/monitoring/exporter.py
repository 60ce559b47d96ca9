"""The job's numbers for Prometheus, in a registry of their own, served over HTTP where the conf names a port."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from streaming.errors import JobError
from streaming.monitoring.measures import Measures
from streaming.record.schemas import OUTCOMES

if TYPE_CHECKING:
    from streaming.monitoring.progress import Progress

_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Exporter:
    """Metrics that Prometheus scrapes. Names and meanings are part of what users rely on: docs/operations.md."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self.registry = registry

        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(f"replica_planner_{name}", what, labels, registry=registry)

        def gauge(name: str, what: str, *labels: str) -> Gauge:
            return Gauge(f"replica_planner_{name}", what, labels, registry=registry)

        self._events = counter("events", "Received lines, by outcome.", "outcome")
        self._plans = counter("plans", "Plan versions, by kind.", "kind")
        self._moves = counter("moved_replicas", "Replicas that plans move.")
        self._seconds = Histogram(
            "replica_planner_batch_seconds",
            "From the start of a batch with events to its commit.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._lag = gauge("event_lag_seconds", "From when the newest event of the last batch occurred to its commit.")
        self._stopped = gauge("cluster_stopped", "1 for each cluster that an error stopped.", "cluster")
        self._clusters = gauge("clusters_in_memory", "Cluster states that the driver holds.")
        self._bytes = gauge("state_bytes", "Approximate memory of these states.")
        self._failures = gauge("write_failures", "Failed writes of projections and metrics since the start.")
        self._progress = gauge("last_progress_timestamp_seconds", "When the query last made progress.")
        self._rows = counter("input_rows", "Lines that came from the source.")
        self._behind = gauge("source_rows_behind", "Lines that wait in the source, where it reports them.")
        self._trigger = gauge("trigger_seconds", "How long the last trigger took, Spark's own work included.")
        for outcome in OUTCOMES:
            self._events.labels(outcome)
        for unknown in (self._lag, self._behind):
            unknown.set(nan)

    def write_failures(self, count: Callable[[], int]) -> None:
        """Ask for the number of failed writes whenever somebody scrapes."""
        self._failures.set_function(count)

    def stopped(self, clusters: list[str]) -> None:
        """Clusters that were stopped when the job started."""
        for cluster in clusters:
            self._stopped.labels(cluster).set(1)

    def take(self, measures: Measures) -> None:
        """Count a committed batch."""
        for outcome, count in measures.events.items():
            self._events.labels(outcome).inc(count)
        for kind, count in measures.plans.items():
            self._plans.labels(kind).inc(count)
        self._moves.inc(measures.moved_replicas)
        self._seconds.observe(measures.seconds)
        if measures.lag_seconds is not None:
            self._lag.set(measures.lag_seconds)
        self.stopped(list(measures.stopped))
        for cluster in measures.resumed:
            self._stopped.remove(cluster)
        self._clusters.set(measures.upkeep.clusters_in_memory)
        self._bytes.set(measures.upkeep.state_bytes)

    def progress(self, progress: Progress) -> None:
        """Note what Spark says of a trigger."""
        self._progress.set(progress.at.timestamp())
        self.rows(progress.rows)
        self._trigger.set(progress.seconds)
        if progress.rows_behind is not None:
            self._behind.set(progress.rows_behind)

    def rows(self, count: int) -> None:
        """Count lines that came from the source."""
        self._rows.inc(count)

    def serve(self, address: str, port: int) -> Server:
        """Serve the metrics until the server is closed.

        Raises:
            JobError: the port cannot be had.
        """
        return Server(self.registry, address, port)


class Server:
    """Prometheus' endpoint, ``http://address:port/metrics``."""

    def __init__(self, registry: CollectorRegistry, address: str, port: int) -> None:
        try:
            self._server, self._thread = start_http_server(port, address, registry)
        except OSError as error:
            raise JobError(
                f"metrics cannot be served on {address}:{port}: {error.strerror}; "
                "name another metrics_port in [monitoring]"
            ) from error
        self.url = f"http://{address}:{self._server.server_port}/metrics"

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
