"""Loads for people: brokers beside their shares, and the bytes that moves copy."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from streaming.amounts import bytes_text
from streaming.config import Policy
from streaming.history.tables import History
from streaming.planning.state import ClusterState
from streaming.record.loads import MEASURED, UNKNOWN
from streaming.record.moves import moved_rows
from streaming.record.version import PlanVersion

_SHOWN: Final = {"disk": "", "bytes_in": "/s", "bytes_out": "/s", "cpu": None}
"""Resources that are shown, with what follows their amounts; CPU has no unit that people know."""


def broker_loads(
    history: History, state: ClusterState, policy: Policy, as_of: int | datetime | None
) -> list[dict[str, Any]]:
    """For each broker that may get replicas its load, share and limit of every resource; empty where none is known."""
    state.know_loads(history.loads(state.cluster_id, as_of))
    if not state.loads.topics:
        return []
    from placement import PlacementError
    from placement.loads.model import RESOURCES
    from streaming.planning.decisions.loads import cluster_standing

    try:
        found = cluster_standing(state, policy)
    except PlacementError:  # no broker may get replicas, so none has a share
        return []
    return [
        {"broker": broker}
        | {
            name: {
                "load": int(found.load[k, at]),
                "share": round(float(found.share[k, at])),
                "limit": int(found.limit[k, at]) if found.limit[k, at] < float("inf") else None,
            }
            for k, name in enumerate(RESOURCES)
        }
        for at, broker in enumerate(found.brokers.tolist())
    ]


def load_table(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The same as a table: amounts, and what part of the share they are."""
    return ["broker", *_SHOWN], [
        [str(row["broker"]), *(_cell(row[n], unit) for n, unit in _SHOWN.items())] for row in rows
    ]


def _cell(value: dict[str, Any], unit: str | None) -> str:
    part = f"{100 * value['load'] / max(value['share'], 1):.0f} %"
    above = ", above its limit" if value["limit"] is not None and value["load"] > value["limit"] else ""
    return f"{part}{above}" if unit is None else f"{bytes_text(value['load'])}{unit}, {part}{above}"


def bytes_of_moves(history: History, plan: PlanVersion) -> dict[tuple[str, int], int | None]:
    """The bytes that each move copies, by the sizes that were known then; empty where none were."""
    known = history.loads(plan.cluster_id, plan.plan_version)
    if not known.topics:
        return {}
    found: dict[tuple[str, int], int | None] = {}
    for block in plan.moves:
        sizes = known.values_of(block.topic, block.partitions)[:, MEASURED.index("size")].tolist()
        rows = zip(block.partitions.tolist(), moved_rows(block).tolist(), sizes, strict=True)
        found |= {(block.topic, p): None if size == UNKNOWN and n else size * n for p, n, size in rows}
    return found
