"""Which replicas are up, and in sync as far as anybody has seen: those that can serve copies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from placement.model import NO_BROKER, Int32Array
from streaming.planning.state import ClusterState
from streaming.record.moves import Roles
from streaming.record.version import BrokerRecord

BoolArray = NDArray[np.bool_]


def brokers_up(brokers: Iterable[BrokerRecord]) -> Int32Array:
    """The brokers that are up, int32 ids: alive, or draining."""
    return np.array([b.broker_id for b in brokers if b.state in ("alive", "draining")], np.int32)


def in_sync_among(replicas: Int32Array, roles: Roles | None, up: Int32Array) -> BoolArray:
    """Which replicas are on brokers that are up, and in the ISR where one was observed; shape of ``replicas``."""
    result = np.isin(replicas, up)
    if roles is not None:
        known = (roles.isr != NO_BROKER).any(axis=1)
        result &= (replicas[:, :, None] == roles.isr[:, None, :]).any(axis=2) | ~known[:, None]
    return result


def replicas_in_sync(
    state: ClusterState, brokers: Iterable[BrokerRecord], topics: Sequence[str] | None = None
) -> Int32Array:
    """The replicas that could serve copies, were these the brokers: as in ``state.assignment(topics)``, else -1."""
    up = brokers_up(brokers)
    layouts = [state.topics[name] for name in sorted(state.topics if topics is None else topics)]
    width = max((layout.replicas.shape[1] for layout in layouts), default=0)
    result = np.full((sum(layout.partitions.size for layout in layouts), width), NO_BROKER, np.int32)
    row = 0
    for layout in layouts:
        n, r = layout.replicas.shape
        result[row : row + n, :r] = np.where(
            in_sync_among(layout.replicas, layout.roles, up), layout.replicas, NO_BROKER
        )
        row += n
    return result
