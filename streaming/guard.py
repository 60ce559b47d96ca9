"""One job writes to a set of tables. A second one is told so, and stops before it has written anything."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, Final

from streaming.errors import JobError

_LOCK: Final = ".writer"
_PATIENCE: Final = 0.5
_POLL: Final = 0.02
"""Seconds: a probe that looks whether the lock is free holds it for a moment."""

_LAST_COMMIT: Final = 20.0
"""Seconds in which the JVM of a job that was killed ends what it has in hand, and itself."""

_HOLDER: Final = re.compile(r"process (?P<pid>\d+) on (?P<host>\S+) since")


@contextmanager
def only_writer(root: str) -> Iterator[int | None]:
    """Hold the lock on a folder of tables, and yield its descriptor.

    Commits are made by the JVM, which may outlive a process that is killed: whoever inherits the descriptor holds the
    lock, too, so that it ends with the last of them. On the ordinary way out it ends here, for all of them.

    Behind a storage URL there is no such lock; there the cluster manager has to see to it that the job runs once.

    Raises:
        JobError: another job holds it, or the folder cannot be written to.
    """
    if "://" in root:
        yield None
        return
    unwritable, taken = f"{root}: the tables cannot be written here", f"{root}: another job writes to these tables"
    with _held(Path(root) / _LOCK, unwritable, taken) as descriptor:
        yield descriptor


def writer_of(root: str) -> str | None:
    """Who holds the lock on a folder of tables; ``None`` where nobody does."""
    try:
        file = (Path(root) / _LOCK).open("r", encoding="utf-8")
    except OSError:
        return None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return file.read().strip() or "another process"
        return None


@contextmanager
def only_collector(memory: Path) -> Iterator[None]:
    """Hold the lock on a collector's memory: two of them would tell everything twice, under two times.

    Raises:
        JobError: another collector holds it, or the folder cannot be written to.
    """
    taken = f"{memory}: another collector watches this cluster"
    with _held(memory.with_suffix(".lock"), f"{memory}: a collector cannot write here", taken):
        yield


@contextmanager
def only_executor(root: str, cluster_id: str) -> Iterator[None]:
    """Hold the lock on carrying out the plans of a cluster: in the folder of the tables, or on this machine.

    Raises:
        JobError: another process holds it, or the folder cannot be written to.
    """
    folder = Path(tempfile.gettempdir()) if "://" in root else Path(root)
    name = f"{root}/{cluster_id}" if "://" in root else cluster_id
    path = folder / f".apply-{sha256(name.encode()).hexdigest()[:16]}"
    taken = f"{root}: plans of {cluster_id} are being carried out by another apply"
    with _held(path, f"{path}: cannot be written to", taken):
        yield


@contextmanager
def _held(path: Path, unwritable: str, taken: str) -> Iterator[int]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise JobError(f"{unwritable}: {error.strerror}") from error
    with file:
        _lock(file, taken)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()} since {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
        file.flush()
        try:
            yield file.fileno()
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def _lock(file: IO[str], taken: str) -> None:
    """Lock the file.

    Raises:
        JobError: another process holds it, and does not let go.
    """
    began = time.monotonic()
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            holder = file.read().strip() or "another process"
            orphaned = _has_died(holder)
            if time.monotonic() - began < (_LAST_COMMIT if orphaned else _PATIENCE):
                time.sleep(_POLL)
                continue
            if orphaned:
                holder += f", which died; the JVM that it started has not ended: `fuser {file.name}` names it"
            raise JobError(f"{taken} ({holder}); stop it first") from error
        return


def _has_died(holder: str) -> bool:
    """Whether the process that took the lock is gone, and what holds it is what it left behind."""
    found = _HOLDER.match(holder)
    if found is None or found["host"] != socket.gethostname():
        return False
    try:
        os.kill(int(found["pid"]), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is there, and somebody else's
        pass
    return False
