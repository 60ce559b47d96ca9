"""What a replanning run is asked to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from placement.arrays import BoolArray, Int64Array
from placement.model import NO_BROKER, Broker, Int32Array

Mode = Literal["heal", "rebalance"]
Leaders = Literal["even", "keep", "everywhere"]
"""Which partitions that keep their replicas may get another preferred leader: all when rebalancing, none, or all even
when healing, as plans did once.
"""


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
    in_sync: Int32Array | None = None
    leaders: Leaders = "even"

    def in_sync_among(self, replicas: Int32Array, row: Int64Array) -> BoolArray:
        """Which replicas of these rows of the layout are in sync; where that is not known, which are on brokers up."""
        if self.in_sync is None:
            up = np.array([b.id for b in self.brokers if b.state != "dead"], np.int32)
            return np.isin(replicas, up)
        found = (replicas[:, :, None] == self.in_sync[row][:, None, :]).any(axis=2)
        return np.asarray(found & (replicas != NO_BROKER))

    @property
    def lead_all_anew(self) -> bool:
        """Whether partitions that keep their replicas may get another preferred leader."""
        return self.leaders == "everywhere" or (self.leaders == "even" and self.mode == "rebalance")
