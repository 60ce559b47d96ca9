"""Rates of partitions, or of whole topics, and how they are read from text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

QUANTITIES: Final = ("bytes_in", "bytes_out")


class Rate(NamedTuple):
    """Bytes a second that producers write and consumers read; ``None`` is not known."""

    bytes_in: float | None = None
    bytes_out: float | None = None


Rated = tuple[str, int | None]
"""A topic and a partition id, or ``None`` for all partitions of the topic together."""

Rates = Mapping[Rated, Rate]


def rated_of(topic: str | None, partition: str | None) -> Rated | None:
    """What a row or a series is about; ``None`` where it does not say."""
    number = (partition or "").strip()
    if not topic or (number and not (number.isascii() and number.isdecimal())):
        return None
    return topic, int(number) if number else None


def rate_of(text: str) -> float | None:
    """A rate, if the text is one: finite, and not below 0."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
