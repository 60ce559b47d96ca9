"""What a checkpoint knows of a folder of files: which parts of which file went into which batch, or why none did.

A file beside Spark's own logs in the checkpoint, one line of JSON a batch. A batch's line is written before anything of
it is planned, so a repeated batch reads the same parts again. A line that a kill left half written was never used.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from streaming.errors import JobError

_NAME: Final = "files.jsonl"
_SPARE: Final = 10_000
"""Lines that may be superfluous before the log is written anew."""

_GONE: Final = 100_000
"""Files that are not in the folder any more, of which the log remembers that they were read."""


class Part(msgspec.Struct, frozen=True, array_like=True):
    """A piece of a file that one batch reads.

    Attributes:
        name: the file's name in the folder; bytes that are not UTF-8 as Python's surrogates.
        size, modified: of the whole file when this was taken, in bytes and nanoseconds.
        start, end: the piece, in bytes after decompression.
        line, lines: the number of its first line, from 1, and how many there are.
        digest: sha256 of its bytes.
        done: whether nothing more of the file is to be read.
        problem: why the rest of the file is not read; empty where all is well.
    """

    name: str
    size: int
    modified: int
    start: int
    end: int
    line: int
    lines: int
    digest: str
    done: bool
    problem: str = ""


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    folder: str
    version: int = 1


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    batch: int
    parts: list[Part]


@dataclass(slots=True)
class FolderLog:
    """The log in memory.

    Attributes:
        known: the last part of every file, in the order in which they were taken.
        batch, parts: the newest batch that took anything, and what; -1 where there is none yet.
    """

    path: Path
    folder: Path
    known: dict[str, Part]
    batch: int = -1
    parts: Sequence[Part] = ()
    _lines: int = 0
    _kept: int = 0
    _size: int = 0

    @classmethod
    def read(cls, checkpoint: str, folder: Path) -> FolderLog:
        """The log in a checkpoint; where the checkpoint is new, a new one.

        Raises:
            JobError: the log is damaged, of another folder or of a newer release, or it is missing where there should
                be one.
        """
        log = cls(Path(checkpoint).absolute() / _NAME, folder, {})
        log.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            content = log.path.read_bytes()
        except FileNotFoundError:
            if any(log.path.parent.glob("offsets/[0-9]*")):
                raise JobError(
                    f"{checkpoint}: this checkpoint was not made by this release for a folder of files (there is no "
                    f"{_NAME} in it); {NEW_CHECKPOINT}"
                ) from None
            log._write_anew()
            return log
        for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines(keepends=True), start=1):
            try:
                log._take(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise JobError(f"{log.path}: line {number} is damaged: {error}; {NEW_CHECKPOINT}") from error
        return log

    def _take(self, line: bytes) -> None:
        if not self._size:
            header = msgspec.json.decode(line, type=_Header)
            if header.version != 1 or header.folder != os.fsencode(self.folder).decode(errors="backslashreplace"):
                raise JobError(
                    f"{self.path}: this checkpoint is of the folder {header.folder}, not of {self.folder} (version "
                    f"{header.version} of the log); {NEW_CHECKPOINT}"
                )
        else:
            entry = msgspec.json.decode(line, type=_Entry)
            self._kept = len(entry.parts) if entry.batch < 0 else self._kept
            self._learn(entry.batch, [msgspec.structs.replace(p, name=_from_json(p.name)) for p in entry.parts])
        self._size += len(line)

    def _learn(self, batch: int, parts: Sequence[Part]) -> None:
        self.batch, self.parts = batch, parts
        self._lines += len(parts)
        self.known.update((part.name, part) for part in parts)

    def append(self, batch: int, parts: Sequence[Part]) -> None:
        """Note what a batch reads, before it is planned."""
        if self._lines > 2 * self._kept + _SPARE:
            self._write_anew()
        line = _line(batch, parts)
        with self.path.open("r+b") as file:
            file.truncate(self._size)  # a line that a kill has left half written
            file.seek(self._size)
            file.write(line)
        self._size += len(line)
        self._learn(batch, parts)

    def _write_anew(self) -> None:
        """Leave only what is needed: the newest batch, and of every file its last part."""
        gone = [name for name in self.known if not os.path.lexists(self.folder / name)]
        for name in gone[:-_GONE]:
            del self.known[name]
        header = _Header(os.fsencode(self.folder).decode(errors="backslashreplace"))
        content = msgspec.json.encode(header) + b"\n"
        if self.known:
            content += _line(-1, list(self.known.values())) + _line(self.batch, self.parts)
        written = self.path.with_suffix(".new")
        written.write_bytes(content)
        written.replace(self.path)
        self._size, self._lines, self._kept = len(content), len(self.known), len(self.known)

    def identity(self, batch: int) -> str:
        """A digest of what the batch reads, whether or not it can still be read; empty where that is nothing."""
        return sha256(_line(batch, self.parts)).hexdigest() if batch == self.batch else ""


NEW_CHECKPOINT: Final = (
    "name a new folder in [job] checkpoint: the source is then read from its beginning, and events that are known by "
    "their id come out as duplicates"
)


def _line(batch: int, parts: Sequence[Part]) -> bytes:
    entry = _Entry(batch, [msgspec.structs.replace(part, name=_to_json(part.name)) for part in parts])
    return msgspec.json.encode(entry) + b"\n"


def _to_json(name: str) -> str:
    """JSON has no place for lone surrogates, which stand for bytes that are not UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("latin-1")


def _from_json(name: str) -> str:
    return name.encode("latin-1").decode("utf-8", "surrogateescape")


def shown(name: str) -> str:
    """A file's name for people and tables: on one line, in UTF-8."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
