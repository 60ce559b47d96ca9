"""What a replanning run is asked to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from placement.arrays import BoolArray, Int64Array
from placement.loads.model import Band, Loads
from placement.model import NO_BROKER, Assignment, Broker, Int32Array

Mode = Literal["heal", "rebalance"]
Leaders = Literal["even", "keep", "everywhere"]
"""Which partitions that keep their replicas may get another preferred leader: all when rebalancing, none, or all even
when healing, as plans did once.
"""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a plan is asked to do; with the layout before, everything that it follows from.

    ``replan`` checks them, and a plan carries them as they were checked.

    Attributes:
        brokers: all brokers, in any order.
        mode: ``heal`` moves only replicas on dead and draining brokers; ``rebalance`` may move all.
        max_moves: replicas that may be copied at most; lost ones come first.
        exclude_topics: topics in which nothing changes.
        exclude_brokers: brokers that get no new replica and keep those that they have, unless a lower replication
            factor leaves no other to give up.
        replication_factors: the replication factor that topics must end with, where it changes.
        strict_spread: when rebalancing, every topic evenly over the brokers, even at the cost of more moves; a
            budget that is too small for it goes to the balance of the brokers instead.
        home: a layout that partitions return to where that costs nothing; not regarded with loads that differ.
        loads: what each partition of the layout weighs, and what brokers can take.
        band: how close to their shares brokers are brought; only with loads.
        max_bytes: bytes that may be copied at most, lost replicas first; only with loads.
        keep_off: by topic, brokers that get no replica of it, and that a rebalance takes those away from that they
            have; only with loads. Its racks are only as large as the brokers that are left for it.
        move_cost: bytes that the search counts for a copy besides its own; only with loads.
        in_sync: int32 broker ids, shape ``(P, S)``, padded with -1: the replicas of each partition that are up and in
            the ISR. Without it, those on brokers that are not dead. Where a replication factor is lowered, no other
            is kept in the place of one of them.
        leaders: who may lead anew to even leaders out. Healing, only partitions that lost a replica; rebalancing,
            ``even``: all, ``keep``: those whose replicas change. ``everywhere``: all, even when healing.
    """

    brokers: tuple[Broker, ...]
    mode: Mode = "heal"
    max_moves: int | None = None
    exclude_topics: frozenset[str] = frozenset()
    exclude_brokers: frozenset[int] = frozenset()
    replication_factors: Mapping[str, int] = field(default_factory=dict)
    strict_spread: bool = False
    keep_off: Mapping[str, frozenset[int]] = field(default_factory=dict)
    in_sync: Int32Array | None = None
    leaders: Leaders = "even"
    home: Assignment | None = None
    loads: Loads | None = None
    band: Band | None = None
    max_bytes: int | None = None
    move_cost: int = 0

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
