"""What a collector knows across restarts, in one file a cluster: the last snapshot, and what is still to be sent."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import msgspec
from msgspec import Struct

from streaming.errors import InputError
from streaming.live.snapshot import Snapshot


class Memory(Struct, frozen=True):
    """The cluster as it was told to the job, and the lines of it that may not have arrived.

    Attributes:
        snapshot: ``None`` before the first look.
        observed_at: when that was; times of later events are later.
        unsent: lines, written down before they are sent, so that after a crash the very same ones are sent again.
    """

    snapshot: Snapshot | None = None
    observed_at: datetime | None = None
    unsent: tuple[str, ...] = ()


class MemoryFile:
    """Reads and writes the memory of one cluster.

    Raises:
        InputError: the file or its folder cannot be used.
    """

    def __init__(self, folder: str, cluster_id: str) -> None:
        self.path = Path(folder) / f"{quote(cluster_id, safe='')}.json"

    def read(self) -> Memory:
        """What was written last; nothing before the first time."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=Memory)
        except FileNotFoundError:
            return Memory()
        except OSError as error:
            raise self._failed(f"cannot be read: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise self._failed(f"is not what a collector writes ({error}); remove it to begin anew") from error

    def write(self, memory: Memory) -> None:
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


def as_lines(lines: Iterable[str]) -> bytes:
    """Lines as they are handed to the job's source."""
    return "".join(f"{line}\n" for line in lines).encode()
