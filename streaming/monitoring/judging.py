"""Is the job well? Judged from its heartbeat, its lock and the journal; pure, so that a probe needs no JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from streaming.monitoring.heartbeat import Heartbeat


@dataclass(frozen=True, slots=True)
class Health:
    """What a probe is told.

    Attributes:
        alive: the job runs and its query makes progress; or it has nothing left to do, and is not meant to run on.
        state: that in one sentence, with what to do where it is not.
        stopped: clusters that are not planned, each with the cause.
        lag_seconds: how old the newest planned event is; ``None`` where there is none yet.
        rows_behind: lines that wait in the source, where it tells.
    """

    alive: bool
    state: str
    stopped: Mapping[str, str] = field(default_factory=dict)
    lag_seconds: float | None = None
    rows_behind: int | None = None

    @property
    def well(self) -> bool:
        """Alive, and every cluster is planned."""
        return self.alive and not self.stopped


def judge(
    beat: Heartbeat | None,
    writer: str | None,
    stopped: Mapping[str, str],
    now: datetime,
    *,
    patience: timedelta,
    ends_by_itself: bool,
    locks: bool,
) -> Health:
    """Judge a job.

    Args:
        beat: its last heartbeat.
        writer: who holds the lock on the tables.
        stopped: clusters that a fault stopped.
        now: the present moment.
        patience: how long a query may be without progress.
        ends_by_itself: its trigger is ``available-now``: between two runs nothing is wrong.
        locks: there is a lock to hold; behind a storage URL there is none.
    """
    if beat is None:
        return Health(False, "no job has run here yet; start it: replica-planner run", stopped)
    alive, state = _life(beat, writer, now, patience, ends_by_itself=ends_by_itself, locks=locks)
    lag = None if beat.newest_event_at is None else max(0.0, (now - beat.newest_event_at).total_seconds())
    return Health(alive, state, stopped, lag, beat.rows_behind)


def _life(
    beat: Heartbeat, writer: str | None, now: datetime, patience: timedelta, *, ends_by_itself: bool, locks: bool
) -> tuple[bool, str]:
    who = f"process {beat.process} on {beat.host}"
    if beat.ended_at is not None and writer is None:
        if beat.failure is not None:
            return False, f"the job failed at {_text(beat.ended_at)}: {beat.failure}; mend that, then start it again"
        if ends_by_itself:
            return True, f"the last run ended at {_text(beat.ended_at)}"
        return False, f"the job was stopped at {_text(beat.ended_at)}; start it: replica-planner run"
    if locks and writer is None:
        return False, f"{who} is gone, and ended without a word after {_text(beat.beat_at)}; start it again"
    silence = now - beat.beat_at
    if silence > patience:
        return False, (
            f"{who} has made no progress for {silence.total_seconds():.0f} s; look at its log, then start it again"
        )
    batch = "starting" if beat.batch_id is None else f"batch {beat.batch_id}"
    return True, f"{who} runs: {batch}, {silence.total_seconds():.0f} s ago"


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
