"""The heartbeat: a file that the job writes while its query makes progress, and that probes read without a JVM."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from streaming.config import Config
from streaming.errors import InputError, JobError


class Heartbeat(msgspec.Struct, frozen=True):
    """What the job last said of itself.

    ``batch_id``, ``rows`` and ``rows_behind`` are those of the last trigger; ``rows_behind`` is what waits in a Kafka
    topic, and ``None`` where the source does not tell. ``newest_event_at`` is when the newest event that is planned
    occurred. ``in_hand`` is the batch that was taken up last: it is under way while ``batch_id`` is another one.
    ``ended_at`` is set when the query ended, and ``failure`` when it failed.
    """

    process: int
    host: str
    started_at: datetime
    beat_at: datetime
    batch_id: int | None = None
    rows: int = 0
    rows_behind: int | None = None
    newest_event_at: datetime | None = None
    in_hand: int | None = None
    in_hand_since: datetime | None = None
    ended_at: datetime | None = None
    failure: str | None = None


def first_beat() -> Heartbeat:
    """The heartbeat of a job that starts now, in this process."""
    now = datetime.now(UTC)
    return Heartbeat(os.getpid(), socket.gethostname(), now, now)


def heartbeat_path(config: Config) -> Path | None:
    """The file that the conf names, or ``.heartbeat`` beside the tables; ``None`` where they are behind a URL."""
    if config.monitoring.heartbeat is not None:
        return Path(config.monitoring.heartbeat)
    return None if "://" in config.tables.root else Path(config.tables.root) / ".heartbeat"


def write_heartbeat(path: Path, beat: Heartbeat) -> None:
    """Replace the file in one step: a probe reads the old one or the new one.

    Raises:
        JobError: it cannot be written.
    """
    hidden = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden.write_bytes(msgspec.json.encode(beat))
        hidden.replace(path)
    except OSError as error:
        raise JobError(
            f"{path}: the heartbeat cannot be written: {error.strerror}; name another file in [monitoring] heartbeat"
        ) from error


def read_heartbeat(path: Path) -> Heartbeat | None:
    """The last heartbeat; ``None`` where no job has written one.

    Raises:
        InputError: the file cannot be read, or is no heartbeat.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Heartbeat)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(
            f"{path}: this is not a heartbeat of a job: {reason}; see [monitoring] heartbeat in the conf",
            path=str(path),
        ) from error
