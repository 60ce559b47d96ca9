"""What Spark says of each trigger, by its listener."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

TICKS: Final = "RatePerMicroBatchStream"
"""How Spark names the source of ticks; its rows are no input."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One trigger of the query.

    Attributes:
        at: when it was over.
        seconds: how long it took, Spark's own work included.
        rows: lines that the source handed over.
        rows_behind: lines that wait in it; ``None`` where it does not tell.
    """

    at: datetime
    batch_id: int
    seconds: float
    rows: int
    rows_behind: int | None


def progress_of(report: Mapping[str, Any]) -> Progress:
    """Read Spark's own report, a ``StreamingQueryProgress`` in JSON."""
    sources = [source for source in report["sources"] if not source["description"].startswith(TICKS)]
    behind = [int(float(m)) for source in sources if (m := (source.get("metrics") or {}).get("maxOffsetsBehindLatest"))]
    seconds = report["durationMs"].get("triggerExecution", 0) / 1000
    return Progress(
        at=datetime.fromisoformat(report["timestamp"]).astimezone(UTC) + timedelta(seconds=seconds),
        batch_id=report["batchId"],
        seconds=seconds,
        rows=sum(max(0, source["numInputRows"]) for source in sources),
        rows_behind=max(behind, default=None),
    )


class Listener(StreamingQueryListener):
    """Passes on the progress of one query, by name: a session may run others."""

    def __init__(self, query: str, tell: Callable[[Progress], None]) -> None:
        self._query = query
        self._tell = tell

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's names
        """A trigger is over."""
        if event.progress.name == self._query:
            self._tell(progress_of(json.loads(event.progress.json)))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing to tell: the job knows."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Never the case: every trigger has a tick."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Nothing to tell: the job knows."""
