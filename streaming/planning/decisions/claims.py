"""Who may carry a plan out: one reassignment executor at a time, for as long as its lease lasts."""

from __future__ import annotations

from datetime import datetime, timedelta

from streaming.errors import RejectedEvent
from streaming.events import PlanClaimed, decode
from streaming.planning.decisions.decision import Answer, Decision, NoEffect, moment_text
from streaming.planning.state import ClusterState, History


def plan_claimed(state: ClusterState, event: PlanClaimed, history: History) -> Answer:
    """Grant a claim on a plan, renew its lease, or release it.

    Time is what the claims say, so that the answer is the same whenever it is worked out.

    Raises:
        RejectedEvent: there is no such version, it is not in effect, or somebody else has claimed it.
    """
    name = f"version {event.plan_version}"
    version = history(state.cluster_id, event.plan_version) if 0 < event.plan_version <= state.version else None
    if version is None or not version.effective:
        raise RejectedEvent(f"{name} cannot be claimed: there is no such version that takes effect")
    held = _holder(state, event.plan_version, history)
    if held is not None and held.claimant != event.claimant and event.occurred_at < _end(held):
        raise RejectedEvent(
            f"{name} is carried out by {held.claimant}, whose claim lasts until {moment_text(_end(held))}"
        )
    if not event.lease_seconds and (held is None or held.claimant != event.claimant):
        return NoEffect(f"{event.claimant} has no claim on {name}")
    what = f"claimed until {moment_text(_end(event))}" if event.lease_seconds else "given up"
    return Decision("claim", f"{name} {what} by {event.claimant}", base_version=event.plan_version)


def _holder(state: ClusterState, plan_version: int, history: History) -> PlanClaimed | None:
    """The claim that was granted last, if one was and it was not given up."""
    number = state.claims.get(plan_version)
    granted = history(state.cluster_id, number) if number is not None else None
    for record in granted.events if granted else ():
        event = decode(record.payload.encode()).event if record.outcome == "applied" else None
        if isinstance(event, PlanClaimed) and event.plan_version == plan_version:
            return event if event.lease_seconds else None
    return None


def _end(claim: PlanClaimed) -> datetime:
    return claim.occurred_at + timedelta(seconds=claim.lease_seconds)
