"""Replica lists that an event names itself, checked as Kafka's controller checks them (ReplicationControlManager)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from placement.model import NO_BROKER, Int32Array
from streaming.errors import RejectedEvent
from streaming.planning.state import ClusterState, TopicLayout


def checked_assignment(state: ClusterState, assignment: Mapping[int, Sequence[int]]) -> tuple[Int32Array, Int32Array]:
    """Partition ids, ascending, and their replicas, one row each.

    Raises:
        RejectedEvent: with Kafka's reason where Kafka would refuse it.
    """
    if not assignment:
        raise RejectedEvent("The manual partition assignment has no partitions.")
    first = min(assignment)
    for partition, replicas in sorted(assignment.items()):
        _check_replica_list(state, partition, replicas)
        if len(replicas) != len(assignment[first]):
            raise RejectedEvent(
                f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is "
                f"not consistent with previous partitions, which have {len(assignment[first])} replica(s)."
            )
    ids = sorted(assignment)
    return np.array(ids, np.int32), np.array([assignment[p] for p in ids], np.int32)


def is_assigned_so(layout: TopicLayout, assignment: Mapping[int, Sequence[int]]) -> bool:
    """Whether these partitions are there with exactly these replicas; there may be others."""
    held = dict(zip(layout.partitions.tolist(), layout.replicas.tolist(), strict=True))
    return all(
        [b for b in held.get(partition, ()) if b != NO_BROKER] == list(replicas)
        for partition, replicas in assignment.items()
    )


def _check_replica_list(state: ClusterState, partition: int, replicas: Sequence[int]) -> None:
    if not 0 <= partition < 2**31:
        raise RejectedEvent(f"The manual partition assignment names partition {partition}, which is no partition id.")
    if not replicas:
        raise RejectedEvent("The manual partition assignment includes an empty replica list.")
    repeated = sorted({b for b in replicas if replicas.count(b) > 1})
    if repeated:
        raise RejectedEvent(
            f"The manual partition assignment includes the broker {repeated[0]} more than once (partition {partition})."
        )
    members = {b.broker_id: b for b in state.members()}
    unknown = [b for b in replicas if b not in members]
    if unknown:
        raise RejectedEvent(
            f"The manual partition assignment includes broker {unknown[0]}, but no such broker is registered."
        )
    leaving = [b for b in replicas if members[b].state in ("draining", "dead")]
    if leaving:
        raise RejectedEvent(
            f"The manual partition assignment includes broker {leaving[0]}, which is {members[leaving[0]].state}: "
            "its replicas would be moved away at once."
        )
    if all(members[b].state != "alive" for b in replicas):
        raise RejectedEvent(
            f"All brokers specified in the manual partition assignment for partition {partition} are fenced or in "
            "controlled shutdown."
        )
