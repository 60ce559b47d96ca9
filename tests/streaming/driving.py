"""Drives the pure planner with events, without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from streaming.config import Config, parse_config
from streaming.events import decode
from streaming.planning.batch import BatchResult, Memory, PlanMany, plan_batch
from streaming.planning.state import ClusterState
from streaming.record.version import EventRecord, PlanVersion

RACKS = {"a": [1, 2], "b": [3, 4], "c": [5, 6]}
T0 = datetime(2026, 1, 1, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return T0 + timedelta(minutes=minutes)


class Driver:
    """One job's memory; each call of ``batch`` is a micro-batch."""

    def __init__(self, conf: str = "") -> None:
        self.config: Config = parse_config(conf, "test.toml")
        self.memory = Memory(self._load)
        self.journal: list[PlanVersion] = []
        self.quarantine: list[EventRecord] = []
        self._batches = 0
        self._events = 0
        self._now = T0

    def event(self, kind: str, *, cluster: str = "c", minute: float = 0, event_id: str = "", **fields: Any) -> bytes:
        self._events += 1
        head = {"event_id": event_id or f"e{self._events}", "cluster_id": cluster, "type": kind}
        return json.dumps(head | {"occurred_at": at(minute).isoformat()} | fields).encode()

    def batch(self, *lines: bytes, minute: float | None = None, plan_many: PlanMany | None = None) -> BatchResult:
        """Plan lines as one batch, at the given minute or as soon as the last of them occurred."""
        self._batches += 1
        decoded = [decode(line, f"test:{n}") for n, line in enumerate(lines, start=1)]
        newest = max((line.event.occurred_at for line in decoded if line.event), default=T0)
        now = max(newest, self._now) if minute is None else at(minute)
        self._now = max(now, self._now)
        result = plan_batch(self.memory, decoded, now, self._batches, self.config, self._find, plan_many)
        self.journal += result.versions
        self.quarantine += result.unplanned
        return result

    def _load(self, names: Sequence[str], _: int) -> dict[str, ClusterState]:
        """States as the journal and quarantine have them."""
        states = {name: ClusterState(name) for name in names}
        for version in self.journal:
            if version.cluster_id in states:
                states[version.cluster_id].fold(version)
        for event in self.quarantine:
            if event.cluster_id in states:
                states[event.cluster_id].remember([event])
        return states

    def _find(self, cluster: str, version: int) -> PlanVersion | None:
        return next((v for v in self.journal if (v.cluster_id, v.plan_version) == (cluster, version)), None)

    def racks(self, racks: Mapping[str, Sequence[int]], **fields: Any) -> BatchResult:
        """Brokers join, rack by rack."""
        return self.batch(
            *(self.event("broker_joined", broker_id=b, rack=r, **fields) for r, ids in racks.items() for b in ids)
        )

    def layout(self, cluster: str = "c") -> dict[str, list[list[int]]]:
        """Replica lists by topic, in order of the partition ids."""
        state = self.memory.clusters[cluster]
        return {
            name: [[b for b in row if b >= 0] for row in topic.replicas.tolist()]
            for name, topic in sorted(state.topics.items())
        }


def outcomes(result: BatchResult) -> dict[str, str]:
    """What became of each event: its id (or place) and outcome."""
    events = [*result.unplanned, *(e for v in result.versions for e in v.events)]
    return {e.event_id or e.place: e.outcome for e in events}


def reasons(result: BatchResult) -> dict[str, str]:
    return {e.event_id or e.place: e.reason for e in result.unplanned}


def line(version: PlanVersion) -> str:
    return f"v{version.plan_version} {version.kind} {version.approval}: {version.cause}"
