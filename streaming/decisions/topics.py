"""Topics that are created, deleted or grown."""

from __future__ import annotations

import re
from typing import Final
from zlib import crc32

import numpy as np

from placement import (
    PlacementError,
    extend_adminutils,
    place_adminutils,
    place_balanced,
    place_striped,
)
from placement.model import NO_BROKER, Int32Array
from streaming.config import Policy
from streaming.decisions.decision import Answer, Decision
from streaming.errors import RejectedEvent
from streaming.events import PartitionsAdded, TopicCreated, TopicDeleted
from streaming.moves import TopicMoves, no_replicas
from streaming.state import ClusterState
from streaming.version import TopicChange

_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def topic_created(state: ClusterState, event: TopicCreated, policy: Policy) -> Answer:
    """Place a new topic, by its explicit assignment or by a strategy.

    Raises:
        RejectedEvent: with Kafka's reason where Kafka would refuse it.
    """
    if not _LEGAL_NAME.fullmatch(event.topic) or event.topic in (".", ".."):
        raise RejectedEvent(
            f"topic name {event.topic!r} is illegal: it takes 1 to 249 ASCII letters, digits, '.', '_' and '-', "
            "and is neither '.' nor '..'"
        )
    if event.topic in state.topics:
        raise RejectedEvent(f"Topic '{event.topic}' already exists.")
    if event.replica_assignment is not None:
        ids, replicas = _manual(state, event)
        strategy, reason = "manual", "manual assignment"
    else:
        strategy = event.strategy or policy.strategy
        replicas = _placed(state, event, policy, strategy)
        ids, reason = np.arange(replicas.shape[0], dtype=np.int32), "created"
    block = TopicMoves(event.topic, ids, no_replicas(ids.size), replicas, [reason] * ids.size)
    return Decision(
        "topics",
        f"topic {event.topic} created with {ids.size} partitions ({strategy})",
        topics=(TopicChange(event.topic, strategy),),
        moves=(block,),
    )


def _placed(state: ClusterState, event: TopicCreated, policy: Policy, strategy: str) -> Int32Array:
    partitions = policy.default_partitions if event.partitions is None else event.partitions
    factor = policy.default_replication_factor if event.replication_factor is None else event.replication_factor
    if strategy != "adminutils" and (event.fixed_start_index is not None or event.disable_rack_aware):
        raise RejectedEvent(
            "fixed_start_index and disable_rack_aware belong to strategy adminutils, "
            f"and topic {event.topic} is placed by {strategy}"
        )
    try:
        if strategy == "balanced":
            fleet = state.live_fleet(policy.exclude_brokers)
            return place_balanced(fleet, partitions, factor, current=state.load, topic=event.topic)
        brokers = state.live_brokers(policy.exclude_brokers)
        if strategy == "striped":
            return place_striped(brokers, partitions, factor, seed=crc32(event.topic.encode()))
        return place_adminutils(
            brokers,
            partitions,
            factor,
            fixed_start_index=event.fixed_start_index,
            rack_aware=False if event.disable_rack_aware else None,
            seed=crc32(event.topic.encode()),
        )
    except PlacementError as error:
        raise RejectedEvent(str(error)) from error


def _manual(state: ClusterState, event: TopicCreated) -> tuple[Int32Array, Int32Array]:
    """An explicit assignment, checked as Kafka's controller checks it (ReplicationControlManager)."""
    assignment = event.replica_assignment or {}
    if event.partitions is not None or event.replication_factor is not None:
        raise RejectedEvent(
            "A manual partition assignment was specified, but partitions or replication_factor was also given."
        )
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


def _check_replica_list(state: ClusterState, partition: int, replicas: list[int]) -> None:
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


def topic_deleted(state: ClusterState, event: TopicDeleted) -> Answer:
    """Forget a topic.

    Raises:
        RejectedEvent: there is no such topic.
    """
    layout = state.topics.get(event.topic)
    if layout is None:
        raise RejectedEvent(f"topic {event.topic} is not known")
    n = layout.partitions.size
    block = TopicMoves(event.topic, layout.partitions, layout.replicas, no_replicas(n), ["deleted"] * n)
    return Decision("topics", f"topic {event.topic} deleted", topics=(TopicChange(event.topic, None),), moves=(block,))


def partitions_added(state: ClusterState, event: PartitionsAdded, policy: Policy) -> Answer:
    """Grow a topic to a new total, by the strategy that placed it.

    Raises:
        RejectedEvent: there is no such topic, the total is not above the present one, or nothing can be placed.
    """
    layout = state.topics.get(event.topic)
    if layout is None:
        raise RejectedEvent(f"topic {event.topic} is not known")
    present = layout.partitions.size
    if event.partitions == present:
        raise RejectedEvent(f"Topic {event.topic} already has {present} partition(s).")
    if event.partitions < present:
        raise RejectedEvent(
            f"The topic {event.topic} currently has {present} partition(s); "
            f"{event.partitions} would not be an increase."
        )
    brokers = state.live_brokers(policy.exclude_brokers)
    factor = int((layout.replicas[0] != NO_BROKER).sum())
    added, start = event.partitions - present, int(layout.partitions[-1]) + 1
    try:
        if (layout.strategy or policy.strategy) == "adminutils":
            replicas = extend_adminutils(brokers, layout.replicas[:, :factor], added)
        elif (layout.strategy or policy.strategy) == "striped":
            replicas = place_striped(brokers, added, factor, seed=crc32(f"{event.topic}-{start}".encode()))
        else:
            replicas = place_balanced(brokers, added, factor, current=state.load, topic=event.topic)
    except PlacementError as error:
        raise RejectedEvent(str(error)) from error
    ids = np.arange(start, start + added, dtype=np.int32)
    block = TopicMoves(event.topic, ids, no_replicas(added), replicas, ["partitions added"] * added)
    cause = f"topic {event.topic} grown from {present} to {event.partitions} partitions"
    return Decision("topics", cause, moves=(block,))
