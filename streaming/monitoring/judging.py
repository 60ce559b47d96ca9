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
    longest_batch: timedelta,
    ends_by_itself: bool,
    locks: bool,
) -> Health:
    """Judge a job.

    Args:
        beat: its last heartbeat.
        writer: who holds the lock on the tables.
        stopped: clusters that a fault stopped.
        now: the present moment.
        patience: how long a query may be without progress between two batches.
        longest_batch: how long it may work on one batch, or start.
        ends_by_itself: its trigger is ``available-now``: between two runs nothing is wrong.
        locks: there is a lock to hold; behind a storage URL there is none.
    """
    if beat is None:
        return Health(False, "no job has run here yet; start it: replica-planner run", stopped)
    ended = _end(beat, writer, ends_by_itself=ends_by_itself, locks=locks)
    alive, state = ended or _progress(beat, now, patience, longest_batch)
    lag = None if beat.newest_event_at is None else max(0.0, (now - beat.newest_event_at).total_seconds())
    return Health(alive, state, stopped, lag, beat.rows_behind)


def _end(beat: Heartbeat, writer: str | None, *, ends_by_itself: bool, locks: bool) -> tuple[bool, str] | None:
    """How the job ended; ``None`` while it runs."""
    if beat.ended_at is not None and writer is None:
        if beat.failure is not None:
            return False, f"the job failed at {_text(beat.ended_at)}: {beat.failure}; fix that, then start it again"
        if ends_by_itself:
            return True, f"the last run ended at {_text(beat.ended_at)}"
        return False, f"the job was stopped at {_text(beat.ended_at)}; start it: replica-planner run"
    if locks and writer is None:
        return False, f"{_who(beat)} is gone, and ended without a word after {_text(beat.beat_at)}; start it again"
    return None


def _progress(beat: Heartbeat, now: datetime, patience: timedelta, longest_batch: timedelta) -> tuple[bool, str]:
    """Whether it does something: a batch may take long, and what comes between two of them may not."""
    silence = now - beat.beat_at
    doing, since = "", beat.beat_at
    if beat.in_hand is not None and beat.in_hand_since is not None and beat.in_hand != beat.batch_id:
        doing, since = f"works on batch {beat.in_hand}", beat.in_hand_since
    elif beat.batch_id is None:
        doing = "starts"
    if not doing and silence <= patience:
        return True, f"{_who(beat)} runs: batch {beat.batch_id}, {silence.total_seconds():.0f} s ago"
    if doing and now - since <= longest_batch:
        return True, f"{_who(beat)} {doing}, for {(now - since).total_seconds():.0f} s now"
    doing = f"{doing}, for {(now - since).total_seconds():.0f} s now, and " if doing else ""
    return False, (
        f"{_who(beat)} {doing}has made no progress for {silence.total_seconds():.0f} s; "
        "look at its log, then start it again"
    )


def _who(beat: Heartbeat) -> str:
    return f"process {beat.process} on {beat.host}"


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
