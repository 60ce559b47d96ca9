"""Lines of events that read like the story they tell: ``east.joined(1, "a")``, ``east.left(1, "failed", minute=5)``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

T0 = datetime(2026, 3, 1, 10, tzinfo=UTC)


@dataclass(frozen=True)
class EventsFor:
    """Events of one cluster. Ids say what happened, to whom and when, so that expected outcomes can be read."""

    cluster: str
    start: datetime = T0

    def event(self, kind: str, event_id: str, minute: float = 0, **fields: Any) -> bytes:
        head = {"event_id": event_id, "cluster_id": self.cluster, "type": kind, "occurred_at": self._at(minute)}
        return json.dumps(head | {name: value for name, value in fields.items() if value is not None}).encode()

    def _at(self, minute: float) -> str:
        return (self.start + timedelta(minutes=minute)).isoformat()

    def joined(self, broker: int, rack: str | None = None, minute: float = 0, **fields: Any) -> bytes:
        return self.event("broker_joined", f"join {broker} @{minute}", minute, broker_id=broker, rack=rack, **fields)

    def racks(self, racks: Mapping[str, Sequence[int]], minute: float = 0) -> list[bytes]:
        return [self.joined(broker, rack, minute) for rack, brokers in racks.items() for broker in brokers]

    def left(self, broker: int, reason: str, minute: float = 0) -> bytes:
        return self.event("broker_left", f"{reason} {broker} @{minute}", minute, broker_id=broker, reason=reason)

    def changed(self, broker: int, minute: float = 0, **fields: Any) -> bytes:
        return self.event("broker_changed", f"change {broker} @{minute}", minute, broker_id=broker, **fields)

    def created(self, topic: str, partitions: int | None = None, factor: int | None = None, minute: float = 0,
                **fields: Any) -> bytes:  # fmt: skip
        counts = {"partitions": partitions, "replication_factor": factor}
        return self.event("topic_created", f"create {topic} @{minute}", minute, topic=topic, **counts, **fields)

    def manual(self, topic: str, assignment: Mapping[int, Sequence[int]], minute: float = 0) -> bytes:
        return self.created(topic, minute=minute, replica_assignment={str(p): b for p, b in assignment.items()})

    def deleted(self, topic: str, minute: float = 0) -> bytes:
        return self.event("topic_deleted", f"delete {topic} @{minute}", minute, topic=topic)

    def grown(self, topic: str, partitions: int, minute: float = 0) -> bytes:
        return self.event("partitions_added", f"grow {topic} @{minute}", minute, topic=topic, partitions=partitions)

    def factor(self, topic: str, factor: int, minute: float = 0) -> bytes:
        fields = {"topic": topic, "replication_factor": factor}
        return self.event("replication_factor_changed", f"factor {topic} @{minute}", minute, **fields)

    def observed(self, replicas: Mapping[tuple[str, int], Sequence[int]], minute: float = 0) -> bytes:
        rows = [{"topic": t, "partition": p, "replicas": b} for (t, p), b in replicas.items()]
        return self.event("assignment_observed", f"observe @{minute}", minute, partitions=rows)

    def weighed(self, sizes: Mapping[tuple[str, int], int], minute: float = 0, **fields: Any) -> bytes:
        """Loads by topic and partition; writes and reads are a hundredth of the size a second."""
        rows = [{"topic": t, "partition": p, "size": n, "bytes_in": n // 100, "bytes_out": n // 100}
                for (t, p), n in sizes.items()]  # fmt: skip
        return self.event("load_observed", f"weigh @{minute}", minute, partitions=rows, **fields)

    def rebalance(self, minute: float = 0, **fields: Any) -> bytes:
        return self.event("rebalance_requested", f"rebalance @{minute}", minute, **fields)

    def election(self, minute: float = 0, **fields: Any) -> bytes:
        return self.event("preferred_election_requested", f"elect @{minute}", minute, **fields)

    def decided(self, kind: str, version: int, digest: str, minute: float = 0) -> bytes:
        """``approved``, ``rejected`` or ``rolled_back``."""
        return self.event(f"plan_{kind}", f"{kind} v{version} @{minute}", minute, plan_version=version, digest=digest)

    def progress(self, version: int, state: str, minute: float = 0, **fields: Any) -> bytes:
        return self.event("plan_progress", f"{state} v{version} @{minute}", minute, plan_version=version, state=state,
                          **fields)  # fmt: skip
