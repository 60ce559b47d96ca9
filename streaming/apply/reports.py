"""Reports to the planner: ``plan_progress`` events, handed to the source that the job reads."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from streaming.config import Source
from streaming.delivery import deliver
from streaming.errors import StreamingError
from streaming.events import PlanProgress, encode


@dataclass(slots=True)
class Reports:
    """Collects reports about one plan version; what cannot be delivered now is kept for the next time."""

    source: Source
    cluster_id: str
    plan_version: int
    _waiting: list[bytes] = field(default_factory=list)

    def add(self, state: Literal["started", "partition_done", "completed", "failed"], **details: Any) -> None:
        """Note one report; :meth:`send` delivers it."""
        event = PlanProgress(
            event_id=f"apply-{uuid.uuid4()}",
            cluster_id=self.cluster_id,
            occurred_at=datetime.now(UTC),
            plan_version=self.plan_version,
            state=state,
            details=details,
        )
        self._waiting.append(encode(event))

    def send(self) -> str:
        """Deliver what was noted, in order; why that failed, empty where it did not."""
        if not self._waiting:
            return ""
        try:
            deliver(self.source, b"".join(line + b"\n" for line in self._waiting))
        except StreamingError as error:
            return str(error)
        self._waiting.clear()
        return ""
