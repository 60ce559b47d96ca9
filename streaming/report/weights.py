"""What a plan does to the loads of brokers, and what each of its moves buys."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from placement import Assignment, Loads, PlacementError
from placement.loads.model import RESOURCES
from streaming.history.tables import History
from streaming.planning.by_load import Standing, located
from streaming.planning.decisions.loads import cluster_standing, known_loads
from streaming.planning.state import ClusterState
from streaming.record.moves import moved_rows
from streaming.record.version import PlanVersion

Matrix = NDArray[Any]

LONGEST_LIST: Final = 10
"""Hot brokers that are named."""


def load_data(history: History, before: ClusterState, plan: PlanVersion) -> dict[str, Any] | None:
    """Loads before and after by resource, hot brokers, and by move its bytes and what it takes off the hottest broker.

    None where no loads were known, or nothing that is there is moved. ``before`` is the cluster before the plan; it
    takes over the brokers that changed with it.
    """
    if not plan.means.moves_replicas or not plan.moves:
        return None
    before.apply(plan.broker_changes, (), ())
    before.know_loads(history.loads(plan.cluster_id, plan.plan_version))
    if not before.loads.topics:
        return None
    policy = plan.known_policy
    try:
        old, new = cluster_standing(before, policy), cluster_standing(before, policy, plan.moves)
    except PlacementError:  # no broker may get replicas, so none has a share
        return None
    parts = [_parts(old, new.share), _parts(new, new.share)]
    k, at = (int(i) for i in np.unravel_index(int(parts[0].argmax()), parts[0].shape))
    assignment = before.assignment()
    loads = known_loads(before, assignment, policy)
    bought = _bought(plan, assignment, loads, k, int(new.brokers[at]))
    return {
        "resources": list(RESOURCES),
        "brokers": new.brokers.tolist(),
        "parts": [part.round(1).tolist() for part in parts],
        "loads": [standing.load[: len(RESOURCES)].tolist() for standing in (old, new)],
        "hot": _hot(old, parts),
        "trigger": round(100 * policy.loads.trigger),
        "hottest": {"broker": int(new.brokers[at]), "resource": RESOURCES[k], "load": int(old.load[k, at])},
        "moves": bought,
        "bytes": sum(size for size, _ in bought),
        "bound": plan.numbers.loads.lower_bound_bytes if plan.numbers.loads else None,
    }


def _parts(standing: Standing, share: Matrix) -> Matrix:
    """Loads in per cent of shares, shape ``(resources, brokers)``."""
    n = len(RESOURCES)
    return np.asarray(100 * standing.load[:n] / np.maximum(share[:n], 1.0))


def _hot(old: Standing, parts: list[Matrix]) -> list[dict[str, Any]]:
    """Brokers above their band before the plan, the hottest first, each with its worst resource."""
    n = len(RESOURCES)
    above = (old.load[:n] > old.high[:n]).any(axis=0)
    worst = np.where(old.load[:n] > old.high[:n], parts[0], 0.0).argmax(axis=0)
    found: list[dict[str, Any]] = [
        {
            "broker": int(old.brokers[at]),
            "resource": RESOURCES[worst[at]],
            "before": round(float(parts[0][worst[at], at])),
            "after": round(float(parts[1][worst[at], at])),
        }
        for at in np.flatnonzero(above).tolist()
    ]
    return sorted(found, key=lambda one: (-one["before"], one["broker"]))[:LONGEST_LIST]


def _bought(plan: PlanVersion, assignment: Assignment, loads: Loads, k: int, broker: int) -> list[tuple[int, int]]:
    """For each move by topic and partition the bytes that it copies, and by how much it lowers one load of a broker."""
    leader, follower = loads.leader()[k], loads.follower()[k]
    found: list[tuple[int, int]] = []
    for block, rows in located(assignment, sorted(plan.moves, key=lambda one: one.topic)):
        relief = _carried(block.before, broker, leader[rows], follower[rows])
        relief -= _carried(block.after, broker, leader[rows], follower[rows])
        found += zip((moved_rows(block) * loads.size[rows]).tolist(), relief.tolist(), strict=True)
    return found


def _carried(replicas: Matrix, broker: int, leader: Matrix, follower: Matrix) -> Matrix:
    """What the broker carries of each partition."""
    follows = (replicas[:, 1:] == broker).any(axis=1)
    return np.asarray(np.where(replicas[:, 0] == broker, leader, np.where(follows, follower, 0)))
