"""What a state knows, as plain values."""

from __future__ import annotations

import pickle
from typing import Any

from streaming.planning.state import ClusterState


def layout(state: ClusterState) -> dict[str, dict[int, list[int]]]:
    """Topics as the model has them."""
    return {
        name: {
            p: [b for b in row if b >= 0]
            for p, row in zip(topic.partitions.tolist(), topic.replicas.tolist(), strict=True)
        }
        for name, topic in state.topics.items()
    }


def copied(state: ClusterState) -> ClusterState:
    """The state as it travels to an executor, without what a state from the tables has not worked out yet."""
    copy: ClusterState = pickle.loads(pickle.dumps(state))
    copy.told = copy._live = copy._due = copy._balance = None
    return copy


def at_a_glance(state: ClusterState) -> tuple[Any, ...]:
    """All of it: brokers, layout, ISRs, loads and limits by their digests, which cost what has changed."""
    proposal = state.proposal and (state.proposal.plan_version, state.proposal.digest)
    return (
        state.version,
        state.digests(),
        state.seen,
        state.suspects,
        state.clocks,
        proposal,
        state.stopped,
        state.moving,
        state.claims,
        state.drifts,
        state.seal,
        state.load_deadline,
        state.next_deadline(),
    )


def facts(state: ClusterState) -> dict[str, Any]:
    """All of it, field by field."""
    roles = {
        (name, p): (int(t.roles.leader[i]), sorted(b for b in t.roles.isr[i].tolist() if b >= 0),
                    [n for n in t.roles.end_offsets[i].tolist() if n >= 0])
        for name, t in state.topics.items() if t.roles is not None
        for i, p in enumerate(t.partitions.tolist())
    }  # fmt: skip
    return {
        "glance": at_a_glance(state),
        "brokers": state.brokers,
        "layout": layout(state),
        "roles": {k: v for k, v in roles.items() if v != (-1, [], [])},
        "loads": {name: (b.partitions.tolist(), b.values.tolist()) for name, b in state.loads.topics.items()},
        "limits": state.loads.limits,
        "strategies": {name: t.strategy for name, t in state.topics.items()},
        "replicas": {b: n for b, n in enumerate(state.counts.replicas.tolist()[:1000]) if n},
    }
