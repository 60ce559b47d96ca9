"""The claim of a run on the plan that it carries out, answered by the job that plans."""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from getpass import getuser
from socket import gethostname
from typing import Final

from streaming.config import Config
from streaming.errors import ApplyError, StreamingError
from streaming.events import PlanClaimed, encode
from streaming.guard import writer_of
from streaming.history.pruning import Span
from streaming.history.tables import History
from streaming.kafka.delivery import deliver

LEASE: Final = 600
"""Seconds for which a plan is claimed. A run that was killed goes on at once; on another machine only after this."""

_PATIENCE: Final = 60.0
"""Seconds that a job gets to answer."""

_POLL: Final = 0.5


@dataclass(slots=True)
class Claim:
    """One plan, claimed for as long as it is carried out.

    Nobody but a running job can answer. In a folder its lock says whether there is one; where there is none, nobody is
    asked, because the lock on the folder keeps others away. Behind a URL a job is asked that may not be there.
    """

    config: Config
    cluster_id: str
    plan_version: int
    _until: float = 0.0

    def take(self) -> str:
        """Wait for the job to grant the claim; what is to be said where no job answers.

        Raises:
            ApplyError: somebody else has claimed the plan, or the job that runs does not answer.
        """
        root = self.config.tables.root
        is_sure = "://" not in root
        if is_sure and writer_of(root) is None:
            return ""
        newest = History(root).version_at(self.cluster_id)
        event_id = self._send(LEASE)
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            answer = self._answer(event_id, newest)
            if answer is not None:
                if answer:
                    raise self._refused(answer)
                return ""
            time.sleep(_POLL)
        problem = f"no job has answered within {_PATIENCE:.0f} s"
        if is_sure:
            raise self._refused(f"{problem}: see replica-planner health")
        return f"{problem}, so nobody on another machine is kept from carrying out the same plan"

    def keep(self) -> None:
        """Prolong the lease once half of it is over; where that cannot be told, it is tried again the next time."""
        if self.is_held and time.monotonic() > self._until - LEASE / 2:
            with suppress(StreamingError):
                self._send(LEASE)

    def give_up(self) -> None:
        """Let others have what is not done; where that cannot be told, they have to wait for the end of the lease."""
        if self.is_held:
            with suppress(StreamingError):
                self._send(0)

    @property
    def is_held(self) -> bool:
        """Whether a job was asked, and may have granted it."""
        return self._until > 0

    def _send(self, seconds: int) -> str:
        event = PlanClaimed(
            event_id=f"apply-{uuid.uuid4()}",
            cluster_id=self.cluster_id,
            occurred_at=datetime.now(UTC),
            plan_version=self.plan_version,
            claimant=f"{getuser()}@{gethostname()}",
            lease_seconds=seconds,
        )
        deliver(self.config.source, encode(event) + b"\n")
        self._until = time.monotonic() + seconds
        return event.event_id

    def _answer(self, event_id: str, newest: int) -> str | None:
        """Why the claim is refused, empty where it is granted, ``None`` where nothing is recorded yet."""
        history = History(self.config.tables.root)
        about = ["event_id", "outcome", "reason"]
        planned = history.plans([f"events.{name}" for name in about], Span(self.cluster_id, newest + 1))
        rows = [event for events in planned["events"].to_pylist() for event in events]
        for row in rows + history.quarantine(self.cluster_id).select(about).to_pylist():
            if row["event_id"] == event_id:
                return "" if row["outcome"] == "applied" else str(row["reason"])
        return None

    def _refused(self, reason: str) -> ApplyError:
        self._until = 0.0
        return ApplyError(
            f"version {self.plan_version} of {self.cluster_id} is not carried out: {reason}",
            cluster_id=self.cluster_id,
            plan_version=self.plan_version,
        )
