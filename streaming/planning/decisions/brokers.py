"""Brokers that join, leave or change."""

from __future__ import annotations

from dataclasses import replace

from streaming.config import Policy
from streaming.errors import RejectedEvent
from streaming.events import BrokerChanged, BrokerJoined, BrokerLeft
from streaming.planning.decisions.decision import Answer, Decision, NoEffect, moment_text
from streaming.planning.decisions.moving import heal
from streaming.planning.state import ClusterState
from streaming.record.version import MEMBERS, BrokerRecord


def broker_joined(state: ClusterState, event: BrokerJoined, policy: Policy) -> Answer:
    """A broker is up; what waits for a usable broker is healed, and policy may ask for a rebalance."""
    known = state.brokers.get(event.broker_id)
    back = known if known and known.state in MEMBERS else None
    broker = BrokerRecord(
        event.broker_id,
        event.rack if event.rack is not None or back is None else back.rack,
        event.capacity or (back.capacity if back else 1.0),
        "alive",
        event.occurred_at,
    )
    if back and back.state == "alive" and (back.rack, back.capacity) == (broker.rack, broker.capacity):
        return NoEffect(f"broker {event.broker_id} is alive already")
    cause = f"broker {event.broker_id} {_return_of(back)}"
    if back is None and policy.on_joined == "rebalance":
        broker = replace(broker, deadline=event.occurred_at + policy.settle.time)
    return heal(state, policy, cause, (broker,))


def _return_of(back: BrokerRecord | None) -> str:
    if back is None:
        return "joined"
    return {
        "failed": "returned within its grace",
        "dead": "returned after its grace",
        "draining": "stays: its decommissioning was called off",
    }.get(back.state, "changed")


def broker_left(state: ClusterState, event: BrokerLeft, policy: Policy) -> Answer:
    """A broker failed (a grace period begins), is to be drained, or is gone for good.

    Raises:
        RejectedEvent: the broker is not part of the cluster.
    """
    known = state.brokers.get(event.broker_id)
    if known is None or known.state not in MEMBERS:
        raise RejectedEvent(f"broker {event.broker_id} is not part of the cluster")
    if event.reason == "failed":
        return _failed(state, event, policy, known)
    if event.reason == "decommissioned":
        if known.state == "draining":
            return NoEffect(f"broker {event.broker_id} is draining already")
        gone = replace(known, state="draining", since=event.occurred_at, deadline=None)
        action = policy.on_decommissioned
    else:
        gone = replace(known, state="gone", since=event.occurred_at, deadline=None)
        action = policy.on_unregistered
    cause = f"broker {event.broker_id} {event.reason}"
    return heal(state, policy, cause, (gone,)) if action == "heal" else Decision("membership", cause, brokers=(gone,))


def _failed(state: ClusterState, event: BrokerLeft, policy: Policy, known: BrokerRecord) -> Answer:
    if known.state != "alive":
        return NoEffect(f"broker {event.broker_id} is {known.state} already")
    deadline = event.occurred_at + policy.grace.time if policy.on_failed == "heal" else None
    failed = replace(known, state="failed", since=event.occurred_at, deadline=deadline)
    wait = f"to be healed at {moment_text(deadline)} unless it returns" if deadline else "policy: no healing"
    return Decision("membership", f"broker {event.broker_id} failed; {wait}", brokers=(failed,))


def broker_changed(state: ClusterState, event: BrokerChanged, policy: Policy) -> Answer:
    """A broker has another rack or capacity.

    Raises:
        RejectedEvent: the broker is not part of the cluster.
    """
    known = state.brokers.get(event.broker_id)
    if known is None or known.state not in MEMBERS:
        raise RejectedEvent(f"broker {event.broker_id} is not part of the cluster")
    changed = replace(known, rack=event.rack or known.rack, capacity=event.capacity or known.capacity)
    if changed == known:
        return NoEffect(f"broker {event.broker_id} has that rack and capacity already")
    cause = f"broker {event.broker_id} changed: rack {changed.rack}, capacity {changed.capacity:g}"
    return heal(state, policy, cause, (replace(changed, since=event.occurred_at),))
