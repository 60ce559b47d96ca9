"""Partitions with replicas on brokers that are to hold none, and why nothing was done about them yet."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from placement.arrays import any_in_row
from placement.model import NO_BROKER
from streaming.config import Policy
from streaming.planning.decisions.moving import held_brokers
from streaming.planning.state import ClusterState


def unhealed_rows(state: ClusterState, policy: Policy) -> list[dict[str, Any]]:
    """Topic, partition, replicas, the brokers among them that are dead, draining or gone, and the reason."""
    members = state.members()
    held = set(held_brokers(members, policy))
    takers = {b.broker_id for b in members if b.state == "alive"} - held
    may_hold = np.array(sorted(takers | held), np.int32)
    found = []
    for topic, layout in sorted(state.topics.items()):
        lost = (layout.replicas != NO_BROKER) & ~np.isin(layout.replicas, may_hold)
        excluded = any(fnmatchcase(topic, pattern) for pattern in policy.exclude_topics)
        for row in np.flatnonzero(any_in_row(lost)).tolist():
            replicas = [b for b in layout.replicas[row].tolist() if b != NO_BROKER]
            room = len(takers) + len(held.intersection(replicas))
            found.append(
                {
                    "topic": topic,
                    "partition": int(layout.partitions[row]),
                    "replicas": replicas,
                    "lost": layout.replicas[row][lost[row]].tolist(),
                    "reason": "policy excludes its topic" if excluded else _reason(state, len(replicas), room),
                }
            )
    return found


def _reason(state: ClusterState, needed: int, room: int) -> str:
    if needed > room:
        return f"needs {needed} brokers, {room} can take replicas"
    if state.proposal is not None and state.proposal.means.may_heal:
        return f"version {state.proposal.plan_version} waits for approval"
    return "not planned yet: plans and policy say why"
