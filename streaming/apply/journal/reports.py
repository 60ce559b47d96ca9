"""Reports to the planner: ``plan_progress`` events, handed to the source that the job reads."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from streaming.config import Source
from streaming.errors import StreamingError
from streaming.events import PlanProgress, encode
from streaming.kafka.delivery import deliver

_AGAIN: Final = 10.0
"""Seconds after which a source that could not be written to is tried again."""


@dataclass(slots=True)
class Reports:
    """Collects reports about one plan version; what cannot be delivered now is kept for the next time."""

    source: Source
    cluster_id: str
    plan_version: int
    _waiting: list[bytes] = field(default_factory=list)
    _not_before: float = 0.0

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

    def send(self, *, last: bool = False) -> str:
        """Deliver what was noted, in order; why that failed, empty where it did not.

        After a failure it is tried again after a while, or if it is the ``last`` chance: the moves go on meanwhile.
        """
        if not self._waiting or (time.monotonic() < self._not_before and not last):
            return ""
        try:
            deliver(self.source, b"".join(line + b"\n" for line in self._waiting))
        except StreamingError as error:
            self._not_before = time.monotonic() + _AGAIN
            return str(error)
        self._waiting.clear()
        return ""
