"""What a replanning run is asked to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from placement.model import Broker

Mode = Literal["heal", "rebalance"]


@dataclass(frozen=True, slots=True)
class Terms:
    """What a plan was asked to do; with the layout before, everything that it follows from."""

    brokers: tuple[Broker, ...]
    mode: Mode
    max_moves: int | None = None
    exclude_topics: frozenset[str] = frozenset()
    exclude_brokers: frozenset[int] = frozenset()
    replication_factors: Mapping[str, int] = field(default_factory=dict)
    strict_spread: bool = False
    keep_off: Mapping[str, frozenset[int]] = field(default_factory=dict)
