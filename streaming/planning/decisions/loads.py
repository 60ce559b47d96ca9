"""Loads that were observed, and what follows once they have settled."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from placement import Assignment, Loads, LogDir, PlacementError
from streaming.config import Policy
from streaming.errors import RejectedEvent
from streaming.events import LoadObserved, ObservedLimits, ObservedLoad
from streaming.planning.by_load import Standing, loads_of, moved, standing
from streaming.planning.decisions.decision import Answer, Decision, NoEffect, moment_text
from streaming.planning.decisions.moving import goes_by_load, held_brokers, members_after, rebalance
from streaming.planning.smoothing import rounded, smoothed
from streaming.planning.state import ClusterState
from streaming.record.loads import LIMITED, MEASURED, UNKNOWN, BrokerLimits, Int64Array, TopicLoads, count
from streaming.record.moves import TopicMoves
from streaming.record.version import MEMBERS

_WORTH: Final = 0.9
"""A plan must leave at most this much of what is outside the bands, or it is not worth its copies."""

_MOST: Final = 2**50
_MOST_TOGETHER: Final = 2**53
"""With copies and CPU, of which a byte counts 85, sums stay below 2^63."""


def load_observed(state: ClusterState, event: LoadObserved, policy: Policy) -> Answer:
    """Record what changed. Partitions and brokers that the cluster does not have are left out of account.

    Raises:
        RejectedEvent: a partition, broker or log directory is named twice.
    """
    known = state.clocks.get(event.entity)
    if known is not None and known < event.occurred_at < known + policy.loads.every.time:
        return NoEffect(f"loads were observed at {moment_text(known)} already; policy: every {policy.loads.every}")
    loads, limits = _load_changes(state, event, policy), _limit_changes(state, event, policy)
    if not loads and not limits:
        return NoEffect("every load and limit that it names is as recorded, or of nothing that the cluster has")
    deadline = None
    if policy.loads.on_skew == "rebalance" and policy.loads.plan:
        deadline = event.occurred_at + policy.settle.time
    what = [f"{count(loads)} partitions"] if loads else []
    what += [f"limits of {len(limits)} brokers"] if limits else []
    return Decision(
        "loads", f"observed: {' and '.join(what)} changed", loads=loads, limits=limits, load_deadline=deadline
    )


def _load_changes(state: ClusterState, event: LoadObserved, policy: Policy) -> list[TopicLoads]:
    by_topic: dict[str, list[ObservedLoad]] = defaultdict(list)
    for one in event.partitions or ():
        by_topic[one.topic].append(one)
    changes = []
    for topic, seen in sorted(by_topic.items()):
        _refuse_twice([one.partition for one in seen], f"partition {topic}-")
        layout = state.topics.get(topic)
        if layout is None:
            continue
        seen.sort(key=lambda one: one.partition)
        ids = np.array([one.partition for one in seen], np.int32)
        there = np.isin(ids, layout.partitions)
        ids, observed = ids[there], _observed(seen, event.bytes_out_per_byte_in)[there]
        recorded = state.loads.values_of(topic, ids)
        values = smoothed(recorded, observed, policy.loads.weight, policy.loads.step)
        changed = (values != recorded).any(axis=1)
        if changed.any():
            changes.append(TopicLoads(topic, ids[changed], values[changed]))
    _refuse_too_much(state, changes)
    return changes


def _refuse_too_much(state: ClusterState, changes: Sequence[TopicLoads]) -> None:
    """Refuse loads that could not be added exactly any more, copies included."""
    total = np.zeros(len(MEASURED), np.float64)
    for block in state.loads.topics.values():
        total += np.maximum(block.values, 0).sum(axis=0, dtype=np.float64)
    for block in changes:
        before = state.loads.values_of(block.topic, block.partitions)
        total += (np.maximum(block.values, 0) - np.maximum(before, 0)).sum(axis=0, dtype=np.float64)
    for name, amount in zip(MEASURED, total.tolist(), strict=True):
        if amount > _MOST_TOGETHER:
            raise RejectedEvent(
                f"{name} of all partitions would be {amount:g} together: more than {_MOST_TOGETHER} cannot be planned"
            )


def _observed(seen: Sequence[ObservedLoad], out_per_in: float | None) -> Int64Array:
    """What was measured, int64, shape ``(n, 3)``."""
    rows = [[UNKNOWN if v is None else v for v in (one.size, one.bytes_in, one.bytes_out)] for one in seen]
    values = np.array(rows, np.int64).reshape(len(rows), 3)
    if out_per_in is not None:
        estimated = np.minimum(np.floor(values[:, 1] * out_per_in), _MOST).astype(np.int64)
        missing = (values[:, 2] == UNKNOWN) & (values[:, 1] != UNKNOWN)
        values[missing, 2] = estimated[missing]
    return values


def _limit_changes(state: ClusterState, event: LoadObserved, policy: Policy) -> list[BrokerLimits]:
    seen = sorted(event.brokers or (), key=lambda one: one.broker_id)
    _refuse_twice([one.broker_id for one in seen], "broker ")
    changes = []
    for one in seen:
        broker = state.brokers.get(one.broker_id)
        if broker is None or broker.state not in MEMBERS:
            continue
        recorded = state.loads.limits.get(one.broker_id, BrokerLimits(one.broker_id))
        limits = _limits(one, recorded, policy)
        if limits != recorded:
            changes.append(limits)
    return changes


def _limits(seen: ObservedLimits, recorded: BrokerLimits, policy: Policy) -> BrokerLimits:
    """What is recorded then; the fill of a disk is rounded as loads are, and not smoothed: a full disk is full."""
    dirs = recorded.log_dirs
    if seen.log_dirs is not None:
        _refuse_twice([one.path for one in seen.log_dirs], f"log_dir of broker {seen.broker_id} ")
        used = rounded(np.array([one.used or 0 for one in seen.log_dirs], np.int64), policy.loads.step).tolist()
        found = (LogDir(one.path, one.limit, fill) for one, fill in zip(seen.log_dirs, used, strict=True))
        dirs = tuple(sorted(found, key=lambda one: one.path))
    values = {n: getattr(recorded if getattr(seen, n) is None else seen, n) for n in LIMITED}
    return BrokerLimits(seen.broker_id, **values, log_dirs=dirs)


def _refuse_twice(names: Iterable[object], what: str) -> None:
    name, times = next(iter(Counter(names).most_common(1)), ("", 0))
    if times > 1:
        raise RejectedEvent(f"{what}{name} is in the list {times} times: name it once")


def loads_settled(state: ClusterState, policy: Policy) -> Decision:
    """Rebalance where a broker is outside its band; put on record where that is not so, or not worth it.

    A rebalance that waits for approval counts as done: it is proposed anew only where a new plan is clearly better.
    """
    assert state.load_deadline is not None
    settled = f"loads settled at {moment_text(state.load_deadline)}"
    if not goes_by_load(state, policy):
        return Decision("loads", f"{settled}; policy: no plan by load")
    waiting = state.proposal if state.proposal and state.proposal.means.rebalances else None
    try:
        now = cluster_standing(state, policy, waiting.moves if waiting else ())
    except PlacementError as error:
        return Decision("loads", f"{settled}; not rebalanced: {error}")
    after = f", with proposal {waiting.plan_version}" if waiting else ""
    if not now.outside:
        return Decision("loads", f"{settled}: all brokers are within their bands{after}; {now.worst()}")
    cause = f"{settled}: {now.worst()}"
    try:
        answer = rebalance(state, policy, cause)
    except RejectedEvent as reason:
        return Decision("loads", f"{cause}{after}; not rebalanced: {reason}")
    if isinstance(answer, Decision):
        better = cluster_standing(state, policy, answer.moves).outside
        if better <= _WORTH * now.outside:
            return answer
    return Decision("loads", f"{cause}{after}; no plan is clearly better")


def cluster_standing(state: ClusterState, policy: Policy, moves: Iterable[TopicMoves] = ()) -> Standing:
    """The cluster after some moves, as its loads are now.

    Raises:
        PlacementError: there are no partitions, or no broker may get replicas.
    """
    members = members_after(state, ())
    assignment = moved(state.assignment(), moves)
    loads = known_loads(state, assignment, policy)
    return standing(assignment, [b.to_core() for b in members], loads, policy.loads, held_brokers(members, policy))


def known_loads(state: ClusterState, assignment: Assignment, policy: Policy) -> Loads:
    """The loads of a layout of this cluster, and the limits of its brokers."""
    return loads_of(state.loads, assignment, state.brokers, policy.loads)
