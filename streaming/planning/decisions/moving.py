"""Plans that move replicas: heal, rebalance, another replication factor."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

from placement import PlacementError, Replan, Terms, WaveLimits, in_waves, replan, verify
from placement.verification.loads import limit_problems
from streaming.config import Policy
from streaming.errors import PlannerError, RejectedEvent
from streaming.events import ReplicationFactorChanged
from streaming.planning.by_load import band_of, loads_of
from streaming.planning.decisions.decision import Answer, Decision, NoEffect, numbers_of, unhealed_text
from streaming.planning.in_sync import replicas_in_sync
from streaming.planning.state import ClusterState
from streaming.record.kinds import Kind
from streaming.record.moves import moves_of
from streaming.record.version import MEMBERS, BrokerRecord


class NoRoomError(PlacementError):
    """Brokers cannot take what they would have to."""


def heal(state: ClusterState, policy: Policy, cause: str, brokers: Sequence[BrokerRecord]) -> Decision:
    """Take over changed brokers and place every replica again that they can no longer hold.

    Where that is impossible, the change itself is still a fact: it is taken over, and the cause says what waits. A
    replica where its topic is not wanted is better than one that is missing.
    """
    members = members_after(state, brokers)
    if not state.has_lost_replicas(members):
        return Decision("membership", cause, brokers=brokers)
    terms = _by_load(state, policy, members)
    try:
        try:
            plan = _replan(state, policy, members, mode="heal", **terms)
        except PlacementError as error:
            if not any(terms.pop("keep_off", {}).values()):
                raise
            plan = _replan(state, policy, members, mode="heal", **terms)
            cause = f"{cause}; keep_off was set aside: {error}"
    except PlacementError as error:
        return Decision("membership", f"{cause}; not healed: {error}", brokers=brokers)
    cause += unhealed_text(plan.unhealed)
    if not len(plan.moves):
        return Decision("membership", cause, brokers=brokers)
    return _decision("heal", cause, state, policy, plan, brokers=brokers, members=members)


def rebalance(
    state: ClusterState,
    policy: Policy,
    cause: str,
    *,
    brokers: Sequence[BrokerRecord] = (),
    topics: Sequence[str] | None = None,
    max_moves: int | None = None,
) -> Answer:
    """Even out the cluster with the fewest moves, or by load with the fewest bytes.

    Raises:
        RejectedEvent: a topic is not known, or no plan can be made, and no broker change is to be taken over.
    """
    unknown = sorted(set(topics or ()) - set(state.topics))
    if unknown:
        raise RejectedEvent(f"topic {unknown[0]} is not known")
    if not state.topics:
        return Decision("membership", cause, brokers=brokers) if brokers else NoEffect("the cluster has no topics")
    members = members_after(state, brokers)
    terms = _by_load(state, policy, members) | _budget(state, policy, max_moves)
    try:
        plan = _replan(state, policy, members, mode="rebalance", only=topics, **terms)
    except PlacementError as error:
        if brokers:
            return Decision("membership", f"{cause}; not rebalanced: {error}", brokers=brokers)
        raise RejectedEvent(str(error)) from error
    waits = unhealed_text(plan.unhealed)
    if not len(plan.moves):
        balanced = NoEffect(f"the cluster is in balance{waits}")
        return Decision("membership", cause + waits, brokers=brokers) if brokers else balanced
    cause += waits
    return _decision("rebalance", cause, state, policy, plan, brokers=brokers, members=members)


def replication_factor_changed(state: ClusterState, event: ReplicationFactorChanged, policy: Policy) -> Answer:
    """Give every partition of a topic more or fewer replicas.

    Raises:
        RejectedEvent: the topic is not known, or the factor cannot be had.
    """
    layout = state.topics.get(event.topic)
    if layout is None:
        raise RejectedEvent(f"topic {event.topic} is not known")
    others = [name for name in state.topics if name != event.topic]
    members = members_after(state, ())
    try:
        plan = _replan(
            state,
            policy,
            members,
            mode="heal",
            exclude=others,
            replication_factors={event.topic: event.replication_factor},
        )
    except PlacementError as error:
        raise RejectedEvent(str(error)) from error
    if not len(plan.moves):
        return NoEffect(f"topic {event.topic} has replication factor {event.replication_factor} already")
    cause = f"replication factor of topic {event.topic} set to {event.replication_factor}"
    return _decision("replication_factor", cause, state, policy, plan, members=members)


def members_after(state: ClusterState, brokers: Sequence[BrokerRecord]) -> list[BrokerRecord]:
    """The cluster's members once these brokers have changed, by id."""
    merged = state.brokers | {b.broker_id: b for b in brokers}
    return [merged[b] for b in sorted(merged) if merged[b].state in MEMBERS]


def held_brokers(members: Sequence[BrokerRecord], policy: Policy) -> list[int]:
    """Brokers that keep what they have and get nothing."""
    held = {b.broker_id for b in members if b.state == "failed" or b.broker_id in policy.exclude_brokers}
    return sorted(held - {b.broker_id for b in members if b.state in ("dead", "draining")})


def goes_by_load(state: ClusterState, policy: Policy) -> bool:
    """Whether heal and rebalance go by load."""
    return policy.loads.plan and bool(state.loads.topics)


def _by_load(state: ClusterState, policy: Policy, members: Sequence[BrokerRecord]) -> dict[str, Any]:
    """What ``replan`` is told of loads."""
    if not goes_by_load(state, policy):
        return {}
    brokers = [b.broker_id for b in members]
    loads = loads_of(state.loads, state.assignment(), brokers, policy.loads)
    cost = 0 if policy.loads.move_cost is None else policy.loads.move_cost.bytes
    kept_off = {topic: policy.loads.closed_to(topic) for topic in state.topics} if policy.loads.keep_off else {}
    return {"loads": loads, "band": band_of(policy.loads), "keep_off": kept_off, "move_cost": cost}


def _budget(state: ClusterState, policy: Policy, max_moves: int | None) -> dict[str, int]:
    """What a rebalance may copy: what the request says and policy allows, in bytes where it goes by load."""
    if max_moves is None and policy.loads.max_bytes is not None and goes_by_load(state, policy):
        return {"max_bytes": policy.loads.max_bytes.bytes}
    budgets = [m for m in (max_moves, policy.max_moves) if m is not None]
    return {"max_moves": min(budgets)} if budgets else {}


def _replan(
    state: ClusterState,
    policy: Policy,
    members: Sequence[BrokerRecord],
    *,
    mode: Literal["heal", "rebalance"],
    only: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    **options: Any,
) -> Replan:
    """Plan on the whole cluster. A failed broker in its grace keeps what it has and gets nothing.

    Raises:
        NoRoomError: the plan puts more on a broker than it can take.
        PlacementError: there is no plan.
        PlannerError: the plan is unsound.
    """
    wanted = None if only is None else set(only)
    excluded = {*exclude} | {
        name
        for name in state.topics
        if (wanted is not None and name not in wanted) or any(fnmatchcase(name, p) for p in policy.exclude_topics)
    }
    terms = Terms(
        brokers=tuple(b.to_core() for b in members),
        mode=mode,
        exclude_topics=frozenset(excluded),
        exclude_brokers=frozenset(held_brokers(members, policy)),
        in_sync=replicas_in_sync(state, members),
        leaders=policy.leaders,
        **options,
    )
    plan = replan(state.assignment(), terms)
    full = next(limit_problems(plan), "")
    if full:
        raise NoRoomError(full)
    check = verify(plan)
    if not check:
        raise PlannerError(
            f"cluster {state.cluster_id}: the planner made a plan that its own check refuses: {check.violations[0]}",
            cluster_id=state.cluster_id,
        )
    return plan


def _decision(
    kind: Kind,
    cause: str,
    state: ClusterState,
    policy: Policy,
    plan: Replan,
    *,
    members: Sequence[BrokerRecord],
    brokers: Sequence[BrokerRecord] = (),
) -> Decision:
    assert plan.terms.in_sync is not None
    in_sync = plan.terms.in_sync[plan.moves.row]
    waves = in_waves(plan.moves, in_sync, WaveLimits(policy.wave_moves, policy.wave_moves))
    moves = moves_of(plan, waves.wave)
    return Decision(
        kind,
        cause,
        brokers=brokers,
        moves=moves,
        numbers=numbers_of(plan, state, members, moves),
        approval="proposed" if kind in policy.approval else "not_required",
        digest=plan.digest,
    )
