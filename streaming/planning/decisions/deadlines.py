"""Deadlines: the grace of failed brokers, and the settling of joins that ask for a rebalance.

Neighbours in time form a burst: one plan answers all of them, when the last one's deadline has passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from streaming.config import Policy
from streaming.planning.decisions.decision import Decision, moment_text, named
from streaming.planning.decisions.moving import heal, rebalance
from streaming.planning.state import ClusterState
from streaming.record.version import BrokerRecord

LONGEST_BURST: Final = 10
"""In settle times: a burst that does not end is answered all the same."""


def next_burst(due: Sequence[BrokerRecord], settle: timedelta, now: datetime) -> list[BrokerRecord]:
    """The first burst among brokers with a deadline, earliest first, whose last deadline is not after ``now``.

    Failed brokers and joined ones are bursts of their own. Empty where none is due.
    """
    for state in ("failed", "alive"):
        brokers = [b for b in due if b.state == state and b.deadline is not None]
        burst: list[BrokerRecord] = []
        for broker in brokers:
            if burst and (_gap(burst[-1], broker) > settle or _gap(burst[0], broker) > LONGEST_BURST * settle):
                break
            burst.append(broker)
        if burst and burst[-1].deadline is not None and burst[-1].deadline <= now:
            return burst
    return []


def _gap(earlier: BrokerRecord, later: BrokerRecord) -> timedelta:
    assert earlier.deadline is not None
    assert later.deadline is not None
    return later.deadline - earlier.deadline


def deadline_passed(state: ClusterState, policy: Policy, burst: Sequence[BrokerRecord]) -> Decision:
    """Heal what failed brokers held, or rebalance onto brokers that joined."""
    moment = burst[-1].deadline
    assert moment is not None
    names = f"broker{'s' if len(burst) > 1 else ''} {named([b.broker_id for b in burst])}"
    if burst[0].state == "failed":
        dead = tuple(replace(b, state="dead", deadline=None) for b in burst)
        return heal(state, policy, f"grace of {names} over at {moment_text(moment)}", dead)
    settled = tuple(replace(b, deadline=None) for b in burst)
    answer = rebalance(state, policy, f"{names} joined, settled at {moment_text(moment)}", brokers=settled)
    assert isinstance(answer, Decision)
    return answer
