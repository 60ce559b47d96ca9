"""What one micro-batch brought and cost, as a value and as a row of ``metrics``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

import pyarrow as pa

from streaming.planning.batch import BatchResult
from streaming.record.schemas import METRICS, OUTCOMES
from streaming.record.version import EventRecord


@dataclass(frozen=True, slots=True)
class Upkeep:
    """How the job stands after a batch: its memory, and what is written behind.

    Attributes:
        clusters_in_memory, state_bytes: cluster states that the driver holds, and about how much they take.
        write_failures: failed writes of projections and metrics since the job started; they are tried again.
    """

    clusters_in_memory: int = 0
    state_bytes: int = 0
    write_failures: int = 0


@dataclass(frozen=True, slots=True)
class Measures:
    """One micro-batch in numbers.

    Attributes:
        seconds: from taking the batch up to its commit.
        newest_event_at: when the newest of its events occurred; ``None`` where it had none.
        events: received lines by outcome.
        plans: plan versions by kind.
        stopped: clusters that a fault stopped, with the cause.
        resumed: clusters that are planned again.
    """

    batch_id: int
    batch_time: datetime
    finished_at: datetime
    seconds: float
    newest_event_at: datetime | None
    events: Mapping[str, int]
    plans: Mapping[str, int]
    moved_replicas: int
    stopped: Mapping[str, str]
    resumed: Sequence[str]
    upkeep: Upkeep

    @property
    def lag_seconds(self) -> float | None:
        """From when the newest event occurred to the commit; ``None`` where there was no event."""
        if self.newest_event_at is None:
            return None
        return max(0.0, (self.finished_at - self.newest_event_at).total_seconds())


def measure(result: BatchResult, finished_at: datetime, seconds: float, upkeep: Upkeep) -> Measures:
    """The numbers of a committed batch."""
    records = list(_records(result))
    return Measures(
        batch_id=result.batch_id,
        batch_time=result.batch_time,
        finished_at=finished_at,
        seconds=seconds,
        newest_event_at=max((record.occurred_at for record in records if record.occurred_at), default=None),
        events=Counter(record.outcome for record in records),
        plans=Counter(version.kind for version in result.versions),
        moved_replicas=sum(version.numbers.moved_replicas for version in result.versions),
        stopped={version.cluster_id: version.cause for version in result.versions if version.means.stopped},
        resumed=[version.cluster_id for version in result.versions if version.means.stopped is False],
        upkeep=upkeep,
    )


def _records(result: BatchResult) -> Iterator[EventRecord]:
    yield from result.unplanned
    for version in result.versions:
        yield from version.events


def measures_to_arrow(measures: Sequence[Measures], app_id: str) -> pa.Table:
    """One row a batch, ready to append to ``metrics``."""
    rows = [
        {
            "app_id": app_id,
            "batch_id": each.batch_id,
            "batch_time": each.batch_time,
            "finished_at": each.finished_at,
            "seconds": each.seconds,
            "lag_seconds": each.lag_seconds,
            "events": {outcome: each.events.get(outcome, 0) for outcome in OUTCOMES},
            "plans": sum(each.plans.values()),
            "moved_replicas": each.moved_replicas,
            "stopped_clusters": sorted(each.stopped),
            **asdict(each.upkeep),
        }
        for each in measures
    ]
    return pa.Table.from_pylist(rows, METRICS.schema)
