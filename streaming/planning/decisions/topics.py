"""Topics that are created, deleted or grown."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from placement import PlacementError
from placement.model import MAX_ID, NO_BROKER, Int32Array
from placement.strategies import STRATEGIES, Request
from streaming.config import Policy
from streaming.errors import RejectedEvent
from streaming.events import PartitionsAdded, TopicCreated, TopicDeleted
from streaming.planning.decisions.decision import Answer, Decision, NoEffect
from streaming.planning.decisions.manual import checked_assignment, is_assigned_so
from streaming.planning.state import ClusterState, TopicLayout
from streaming.record.moves import TopicMoves, no_replicas
from streaming.record.version import TopicChange

MAX_PARTITIONS: Final = 1_000_000
"""The most partitions of a topic, so that one line cannot ask for more than fits into memory."""

_OF_NO_STRATEGY: Final = STRATEGIES["balanced"]
"""Extends topics that no strategy has placed: their layout was given, or observed."""

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
    known = state.topics.get(event.topic)
    if known:
        named = event.replica_assignment or {}
        if len(named) == known.partitions.size and is_assigned_so(known, named):
            return NoEffect(f"topic {event.topic} is there already, with this assignment")
        raise RejectedEvent(f"Topic '{event.topic}' already exists.")
    if event.replica_assignment is not None:
        if event.partitions is not None or event.replication_factor is not None:
            raise RejectedEvent(
                "A manual partition assignment was specified, but partitions or replication_factor was also given."
            )
        ids, replicas = checked_assignment(state, event.replica_assignment)
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
    chosen = STRATEGIES[strategy]
    if not chosen.takes_start and (event.fixed_start_index is not None or event.disable_rack_aware):
        takers = ", ".join(name for name, each in STRATEGIES.items() if each.takes_start)
        raise RejectedEvent(
            f"fixed_start_index and disable_rack_aware belong to strategy {takers}, "
            f"and topic {event.topic} is placed by {strategy}"
        )
    _check_count(event.topic, partitions)
    more = {"fixed_start_index": event.fixed_start_index, "rack_aware": False if event.disable_rack_aware else None}
    return _answer(chosen.place, _request(state, event.topic, policy, partitions, factor, **more))


def _request(state: ClusterState, topic: str, policy: Policy, partitions: int, factor: int, **more: Any) -> Request:
    closed = policy.closed_to(topic)
    return Request(
        brokers=state.live_brokers(closed),
        partitions=partitions,
        replication_factor=factor,
        topic=topic,
        current=state.counts,
        fleet=partial(state.live_fleet, closed),
        **more,
    )


def _answer(method: Callable[..., Int32Array], *asked: Any) -> Int32Array:
    try:
        return method(*asked)
    except PlacementError as error:
        raise RejectedEvent(str(error)) from error


def _check_count(topic: str, partitions: int) -> None:
    if partitions > MAX_PARTITIONS:
        raise RejectedEvent(f"topic {topic} would have {partitions} partitions: {MAX_PARTITIONS} is the most")


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
    """Grow a topic to a new total, by an explicit assignment of what is added, or by the strategy that placed it.

    Raises:
        RejectedEvent: there is no such topic, the total is not above the present one, or nothing can be placed.
    """
    layout = state.topics.get(event.topic)
    if layout is None:
        raise RejectedEvent(f"topic {event.topic} is not known")
    present = layout.partitions.size
    if event.partitions == present:
        if event.replica_assignment and is_assigned_so(layout, event.replica_assignment):
            return NoEffect(f"topic {event.topic} has these partitions already, with this assignment")
        raise RejectedEvent(f"Topic {event.topic} already has {present} partition(s).")
    if event.partitions < present:
        raise RejectedEvent(
            f"The topic {event.topic} currently has {present} partition(s); "
            f"{event.partitions} would not be an increase."
        )
    added, start = event.partitions - present, int(layout.partitions[-1]) + 1
    _check_count(event.topic, event.partitions)
    if start + added - 1 > MAX_ID:
        raise RejectedEvent(
            f"{added} partitions more from id {start} of topic {event.topic} pass the largest id, {MAX_ID}."
        )
    ids = np.arange(start, start + added, dtype=np.int32)
    if event.replica_assignment is None:
        replicas = _extended(state, event.topic, layout, added, policy)
    else:
        named, replicas = checked_assignment(state, event.replica_assignment)
        if named.tolist() != ids.tolist():
            raise RejectedEvent(
                f"The manual partition assignment of topic {event.topic} must name partitions {start} to "
                f"{start + added - 1}, each of them and no others."
            )
    block = TopicMoves(event.topic, ids, no_replicas(added), replicas, ["partitions added"] * added)
    cause = f"topic {event.topic} grown from {present} to {event.partitions} partitions"
    return Decision("topics", cause, moves=(block,))


def _extended(state: ClusterState, topic: str, layout: TopicLayout, added: int, policy: Policy) -> Int32Array:
    """The replicas of partitions that are added, by the strategy that placed the topic."""
    factor = int((layout.replicas[0] != NO_BROKER).sum())
    request = _request(state, topic, policy, added, factor, start_partition_id=int(layout.partitions[-1]) + 1)
    strategy = STRATEGIES.get(layout.strategy or policy.strategy, _OF_NO_STRATEGY)
    return _answer(strategy.extend, request, layout.replicas[:, :factor])
