"""Durations and amounts of bytes as people write and read them, in conf and on the screen."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_BYTE_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_BYTES: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])i?B")
_LONGEST: Final = timedelta(days=3650)


def parse_duration(text: str) -> timedelta:
    """Read a duration such as ``500ms``, ``30 s``, ``30m``, ``2h`` or ``7d``.

    Raises:
        ValueError: not a number with one of these units, or longer than ten years.
    """
    match = _DURATION.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a duration: write a number and ms, s, m, h or d, as in '30m'")
    seconds = float(match[1]) * _UNITS[match[2]]
    if seconds > _LONGEST.total_seconds():
        raise ValueError(f"{text!r} is longer than ten years")
    return timedelta(seconds=seconds)


def parse_bytes(text: str) -> int:
    """Read an amount of bytes such as ``512MiB`` or ``2 GiB``; ``2GB`` is the same, as to Spark and the JVM.

    Raises:
        ValueError: not a number with one of these units.
    """
    match = _BYTES.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not an amount of bytes: write a number and KiB, MiB, GiB or TiB, as in '1GiB'")
    return int(float(match[1]) * _BYTE_UNITS[match[2]])


class Written:
    """A value as somebody wrote it: the text stays, because a policy is recorded as it was written."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and str(other) == self.text

    def __hash__(self) -> int:
        return hash(self.text)


class Duration(Written):
    """A duration, read when it is made.

    Raises:
        ValueError: as :func:`parse_duration`.
    """

    __slots__ = ("time",)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.time: Final = parse_duration(text)

    @property
    def seconds(self) -> float:
        """Its length in seconds."""
        return self.time.total_seconds()


class ByteAmount(Written):
    """An amount of bytes, read when it is made.

    Raises:
        ValueError: as :func:`parse_bytes`.
    """

    __slots__ = ("bytes",)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.bytes: Final = parse_bytes(text)


class PositiveByteAmount(ByteAmount):
    """An amount of bytes that is not nothing.

    Raises:
        ValueError: as :func:`parse_bytes`, or less than a byte.
    """

    __slots__ = ()

    def __init__(self, text: str) -> None:
        super().__init__(text)
        if not self.bytes:
            raise ValueError(f"{text!r} is nothing: write at least '1KiB'")


def bytes_text(amount: float) -> str:
    """An amount of bytes in the unit that suits it, such as ``1.5 GiB``."""
    for unit, size in reversed(_BYTE_UNITS.items()):
        if amount >= size:
            return f"{amount / size:.1f} {unit}iB"
    return f"{amount:.0f} B"


def duration_text(seconds: float) -> str:
    """A duration in the unit that suits it, such as ``90 s``, ``5 min`` or ``12 d``."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
