"""A folder of files as a source: each file is read once, part by part where it is large, or named with the reason.

Spark's own file source forgets files by their age, stops at names that Hadoop cannot spell, and says nothing of what it
leaves out. Files are taken by their time, then by their name; a batch takes so many files and bytes at most.
"""

from __future__ import annotations

import bz2
import gzip
import os
import stat
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from streaming.amounts import bytes_text
from streaming.config import Config
from streaming.errors import JobError
from streaming.events import Line, decode
from streaming.job.folder_log import NEW_CHECKPOINT, FolderLog, Part, shown

LONGEST: Final = 256 << 20
"""Bytes of a line; what is longer is not read, because it would have to be held in memory several times."""

_STEP: Final = 1 << 20
_WRITING: Final = 600
"""Seconds for which a name with a leading dot is taken for a file that somebody is writing."""

_LOOKED_AT: Final = 1000
"""Files that were read and are looked at again in one listing, in turn: whether they have changed since."""

_AGAIN: Final = "it is not read; submit it under another name"
_CHANGED: Final = f"the file has changed while it was read; the rest of {_AGAIN}"
_CANNOT: Final = (".snappy", ".lz4", ".deflate", ".zip", ".xz")


def folder_of(config: Config) -> Folder | None:
    """The folder that the conf reads, made if it is not there; ``None`` where Spark reads the source.

    Raises:
        JobError: the checkpoint does not belong to it.
    """
    source = config.folder
    if source is None:
        return None
    path = Path(source.path).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
        log = FolderLog.read(config.job.checkpoint, path)
    except OSError as error:
        raise JobError(f"{error.filename}: the folder of events cannot be read: {error.strerror}") from error
    return Folder(path, log, source.max_files_per_trigger, source.max_bytes_per_trigger.bytes)


@dataclass(frozen=True, slots=True)
class _File:
    """What a listing says of a file, and how far it was read; ``problem`` is why it is not."""

    name: str
    size: int
    modified: int
    before: Part | None = None
    problem: str = ""


@dataclass(slots=True)
class _Stream:
    """An open file, and where in it reading goes on."""

    name: str
    file: Any
    position: int = 0
    rest: bytes = b""
    ended: bool = False


@dataclass(slots=True)
class Folder:
    """The folder, and what its checkpoint knows of it."""

    path: Path
    log: FolderLog
    max_files: int
    max_bytes: int
    _open: _Stream | None = None
    _turn: list[str] = field(default_factory=list)

    def waiting(self) -> set[str]:
        """The names of what the next batches will read."""
        return {file.name for file in self._list() if file.before is None or not file.before.done}

    def take(self, batch: int) -> Iterator[Line]:
        """The lines of a batch: those that it took before, or else the next ones.

        Of a file that cannot be read there is one line, which names it and is malformed.

        Raises:
            JobError: the folder cannot be listed, or the checkpoint has later batches already.
        """
        if batch < self.log.batch:
            raise JobError(
                f"{self.log.path}: batch {self.log.batch} has read files already, and Spark has come to batch {batch}; "
                f"{NEW_CHECKPOINT}"
            )
        if batch == self.log.batch:
            for part in self.log.parts:
                yield from _lines(part, self._again(part))
            return
        taken = list(self._next())
        if taken:
            self.log.append(batch, [part for part, _ in taken])
        for part, data in taken:
            yield from _lines(part, data)

    def _next(self) -> Iterator[tuple[Part, bytes]]:
        files, left = 0, self.max_bytes
        for file in self._list():
            if files == self.max_files or left <= 0:
                return
            try:
                part, data = self._read(file, left)
            except FileNotFoundError:
                continue  # it was here a moment ago
            yield part, data
            if not part.done:
                return
            files += 1
            left -= len(data)

    def _list(self) -> list[_File]:
        """What there is to read or to name, in order; first of all the file that was begun."""
        try:
            present = set(os.listdir(self.path))  # noqa: PTH208 - many names, and no more than names
        except OSError as error:
            raise JobError(f"{self.path}: the folder of events cannot be read: {error.strerror}") from error
        known = self.log.known
        self._turn = self._turn or list(known)
        looked_at, self._turn = self._turn[:_LOOKED_AT], self._turn[_LOOKED_AT:]
        names = {name for name in present if name not in known}
        names.update(name for name in looked_at if name in present)
        names.update(part.name for part in self.log.parts if not part.done)
        return sorted(
            (file for name in names if (file := self._look(name)) is not None),
            key=lambda file: (file.before is None or file.before.done, file.modified, file.name),
        )

    def _look(self, name: str) -> _File | None:
        """A name in the folder; ``None`` where there is nothing to read and nothing to say."""
        before = self.log.known.get(name)
        begun = before is not None and not before.done
        path = self.path / name
        try:
            entry = path.stat()
        except OSError as error:
            if begun or (before is None and os.path.lexists(path)):
                return _File(name, 0, 0, before, f"the file cannot be read: {error.strerror}; {_AGAIN}")
            return None
        regular = stat.S_ISREG(entry.st_mode)
        file = _File(name, entry.st_size if regular else 0, entry.st_mtime_ns if regular else 0, before)
        if before is None:
            problem = _unfit(name, entry)
            return None if problem is None else replace(file, problem=problem)
        if begun:
            return file if file.size >= before.size else replace(file, problem=_CHANGED)
        if (before.size, before.modified) == (file.size, file.modified):
            return None
        return replace(file, problem=f"the file has changed since it was read; what is new in it {_AGAIN[3:]}")

    def _read(self, file: _File, limit: int) -> tuple[Part, bytes]:
        """The next piece of a file: whole lines, as many as fit into so many bytes, but one at least."""
        before = file.before
        start, line = (0, 1) if before is None or before.done else (before.end, before.line + before.lines)
        data, problem, ended = b"", file.problem, True
        if not problem:
            data, ended, problem = self._piece(file, start, limit)
        lines = data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))
        ended = ended or bool(problem)
        digest = sha256(data).hexdigest()
        part = Part(file.name, file.size, file.modified, start, start + len(data), line, lines, digest, ended, problem)
        if ended:
            self._close()
        return part, data

    def _piece(self, file: _File, start: int, limit: int) -> tuple[bytes, bool, str]:
        """The bytes from ``start`` on, whether the file ends there, and why the rest of it is not read."""
        try:
            stream = self._stream(file, start)
        except FileNotFoundError:
            raise
        except _Changed:
            return b"", True, _CHANGED
        except _UNREADABLE as error:
            return b"", True, f"the file cannot be read: {_why(error)}; {_AGAIN}"
        data, problem = bytearray(stream.rest), ""
        newline = data.rfind(b"\n")
        while not stream.ended and (len(data) < limit or newline < 0) and len(data) <= LONGEST:
            try:
                more = stream.file.read(max(_STEP, limit - len(data)))
            except _UNREADABLE as error:
                problem = f"the file cannot be read from here on: {_why(error)}; the rest of {_AGAIN}"
                break
            stream.ended = not more
            newline = max(newline, len(data) + more.rfind(b"\n") if b"\n" in more else -1)
            data += more
        if problem:
            return bytes(data[: newline + 1]), True, problem
        if stream.ended and (len(data) <= limit or newline < 0):
            return bytes(data), True, ""
        if newline < 0:
            return b"", True, f"this line is longer than {bytes_text(LONGEST)}; the rest of {_AGAIN}"
        # Wherever a start or a restart lies, a file is cut at the same lines.
        cut = data.rfind(b"\n", 0, limit) + 1 or data.find(b"\n") + 1
        stream.rest, stream.position = bytes(data[cut:]), start + cut
        return bytes(data[:cut]), False, ""

    def _stream(self, file: _File, start: int) -> _Stream:
        """The file at a position: as it was left, or opened again.

        Raises:
            _Changed: what was read of it before is not there any more.
            OSError, EOFError, ValueError, zlib.error: it cannot be read.
        """
        if self._open is not None and (self._open.name, self._open.position) == (file.name, start):
            return self._open
        self._close()
        stream = _Stream(file.name, _opened(self.path / file.name))
        self._open = stream
        if file.before is not None and start:
            if _bytes_of(stream.file, file.before) is None:
                raise _Changed
            stream.position = start
        return stream

    def _close(self) -> None:
        if self._open is not None:
            self._open.file.close()
            self._open = None

    def _again(self, part: Part) -> bytes | None:
        """A piece that was taken before; ``None`` where the file does not have it any more."""
        try:
            with _opened(self.path / part.name) as file:
                return _bytes_of(file, part)
        except _UNREADABLE:
            return None


class _Changed(Exception):  # noqa: N818 - a finding, which becomes a reason
    pass


_UNREADABLE: Final = (OSError, EOFError, ValueError, zlib.error)
"""What reading a file may raise, broken compression included."""


def _opened(path: Path) -> Any:
    if path.name.endswith(".gz"):
        return gzip.open(path)
    if path.name.endswith(".bz2"):
        return bz2.open(path)
    file = path.open("rb")
    return pa.CompressedInputStream(pa.PythonFile(file), "zstd") if path.name.endswith(".zst") else file


def _bytes_of(file: Any, part: Part) -> bytes | None:
    """A piece of an open file; ``None`` where it is another one now."""
    if isinstance(file, pa.CompressedInputStream):
        for left in range(part.start, 0, -_STEP):
            file.read(min(_STEP, left))
    else:
        file.seek(part.start)
    data = bytearray()
    while len(data) < part.end - part.start and (more := file.read(part.end - part.start - len(data))):
        data += more
    return bytes(data) if sha256(data).hexdigest() == part.digest else None


def _unfit(name: str, entry: os.stat_result) -> str | None:
    """Why a new name is not read, empty where it is; ``None`` where it may be read later."""
    if stat.S_ISDIR(entry.st_mode):
        return "this is a folder: files in folders below the source's own are not read"
    if not stat.S_ISREG(entry.st_mode):
        return "this is not a file, and is not read"
    if name.startswith("."):
        if name.endswith(".crc") or abs(time.time() - entry.st_mtime) < _WRITING:
            return None
        return f"a leading dot means that the file is being written, so {_AGAIN}"
    return f"files are compressed as .gz, .bz2 or .zst, so {_AGAIN}" if name.endswith(_CANNOT) else ""


def _why(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).rstrip(".")


def _lines(part: Part, data: bytes | None) -> Iterator[Line]:
    """The lines of a piece, decoded, and one more that names the file where the rest of it is not read."""
    place = shown(part.name)
    if data is None:
        problem = "before this line was planned its file changed or was removed; submit it again"
        for number in range(part.line, part.line + part.lines):
            yield Line(f"{place}:{number}", b"", None, problem)
    elif data:
        for number, raw in enumerate(data.removesuffix(b"\n").split(b"\n"), start=part.line):
            yield decode(raw, f"{place}:{number}")
    if part.problem:
        where = f"{place}:{part.line + part.lines}" if part.end else place
        yield Line(where, os.fsencode(part.name), None, part.problem)
