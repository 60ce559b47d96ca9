"""What a collector knows across restarts, in files by cluster: the last looks, and what is still to be sent."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from streaming.collect.measuring import TopicMeasure
from streaming.errors import InputError
from streaming.kafka.snapshot import Snapshot

Deliver = Callable[[bytes], None]
"""Hands lines to the job's source; raises a :class:`streaming.errors.StreamingError` if it cannot."""


class Memory(Struct, frozen=True):
    """The cluster as it was told to the job, and the lines of it that may not have arrived.

    Attributes:
        snapshot: ``None`` before the first look.
        observed_at: when that was; times of later events are later.
        unsent: lines, written down before they are sent, so that after a crash the very same ones are sent again.
        identified: the id of Kafka's that the job was told.
    """

    snapshot: Snapshot | None = None
    observed_at: datetime | None = None
    unsent: tuple[str, ...] = ()
    identified: str = ""


class LoadMemory(Struct, frozen=True):
    """The last look at the loads, and the lines of it that may not have arrived.

    Attributes:
        topics: what was measured.
        observed_at: when that was; ``None`` before the first look.
        unsent: as in :class:`Memory`.
    """

    topics: tuple[TopicMeasure, ...] = ()
    observed_at: datetime | None = None
    unsent: tuple[str, ...] = ()


Kept = TypeVar("Kept", bound=Struct)


class MemoryFile(Generic[Kept]):
    """Reads and writes one kind of memory of one cluster.

    Raises:
        InputError: the file or its folder cannot be used.
    """

    def __init__(self, folder: str | Path, cluster_id: str, kind: type[Kept]) -> None:
        self.path = Path(folder) / f"{quote(cluster_id, safe='')}.json"
        self._kind = kind

    def read(self) -> Kept:
        """What was written last; nothing before the first time."""
        try:
            memory: Kept = msgspec.json.decode(self.path.read_bytes(), type=self._kind)
        except FileNotFoundError:
            return self._kind()
        except OSError as error:
            raise self._failed(f"cannot be read: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise self._failed(f"is not what a collector writes ({error}); remove it to begin anew") from error
        return memory

    def write(self, memory: Kept) -> None:
        """Replace the file, whole or not at all."""
        hidden = self.path.with_name(f".{self.path.name}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with hidden.open("wb") as file:
                file.write(msgspec.json.encode(memory))
                file.flush()
                os.fsync(file.fileno())
            hidden.replace(self.path)
        except OSError as error:
            raise self._failed(f"cannot be written: {error.strerror}") from error

    def _failed(self, reason: str) -> InputError:
        return InputError(f"{self.path}: {reason}", path=str(self.path))


def next_moment(last: datetime | None) -> datetime:
    """Now, or just after the last look where the clock was set back: older news would count for nothing."""
    now = datetime.now(UTC)
    return now if last is None or now > last else last + timedelta(microseconds=1)


def as_lines(lines: Iterable[str]) -> bytes:
    """Lines as they are handed to the job's source."""
    return "".join(f"{line}\n" for line in lines).encode()
