"""The numbers that a report shows, small enough for a page at a thousand brokers."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from placement import ReplicaCounts
from placement.model import NO_BROKER, Int32Array
from streaming.history.health import counts
from streaming.history.pruning import Span
from streaming.history.tables import History
from streaming.history.unhealed import unhealed_rows
from streaming.planning.state import ClusterState
from streaming.record.folding import flat_moves
from streaming.record.moves import canonical, counts_after, matrices
from streaming.record.rows import in_effect
from streaming.record.version import MEMBERS, Balance, BrokerRecord, PlanVersion, fate_of_proposal
from streaming.report.weights import load_data

LONGEST_TIMELINE: Final = 200
"""Versions that the slider reaches back."""

LONGEST_TABLE: Final = 200
"""Moves that are listed one by one."""

LONGEST_PROGRESS: Final = 3
"""Versions under way that are named."""

LARGEST_MATRIX: Final = 40
"""Brokers that a from-to matrix has room for; more are shown by rack."""


def report_data(history: History, cluster: str, version: int | None) -> dict[str, Any]:
    """Everything that the page needs, as JSON values."""
    headlines = history.headlines(cluster)
    if version is None:
        moving = [v.plan_version for v in headlines if v.numbers.moved_replicas]
        version = moving[-1] if moving else headlines[-1].plan_version
    plan = history.version(cluster, version)
    before = history.state(cluster, version - 1) if version > 1 else ClusterState(cluster)
    records = before.brokers | {b.broker_id: b for b in plan.broker_changes}
    brokers = [b for _, b in sorted(records.items()) if b.state in MEMBERS]
    after = counts_after(before.counts, plan.moves)
    moves = list(canonical(plan.moves))[:LONGEST_TABLE]
    loads = load_data(history, before, plan)
    unhealed = unhealed_rows(history.state(cluster, version), plan.known_policy)
    return {
        "cluster": cluster,
        "now": _now(history, headlines[-1]),
        "plan": _plan(plan) | {"fate": fate_of_proposal(plan, headlines) if plan.waits_for_approval else ""},
        "brokers": [
            {"id": b.broker_id, "rack": b.rack or "no rack", "state": b.state, "capacity": b.capacity} for b in brokers
        ],
        "replicas": [_counts(counts.replicas_on, brokers) for counts in (before.counts, after)],
        "leaders": [_counts(counts.leaders_on, brokers) for counts in (before.counts, after)],
        "matrix": _matrix(plan, records),
        "waves": _waves(plan),
        "moves": [
            {"topic": t, "partition": p, "before": old, "after": new, "reason": why} for t, p, old, new, why in moves
        ],
        "loads": loads and loads | {"moves": loads["moves"][:LONGEST_TABLE]},
        "unhealed": len(unhealed),
        "left_lost": unhealed[:LONGEST_TABLE],
        "timeline": _timeline(history, cluster, headlines[-LONGEST_TIMELINE:]),
    }


def _counts(counted: Any, brokers: list[BrokerRecord]) -> list[int]:
    found: list[int] = counted(np.array([b.broker_id for b in brokers], np.int32)).tolist()
    return found


def _now(history: History, newest: PlanVersion) -> dict[str, Any]:
    """How the cluster stands, whatever version the page is about."""
    cluster = newest.cluster_id
    actual = history.actual(cluster)
    state, members = actual.planned, actual.state.members()
    proposal = state.proposal
    standings = {v: each for (_, v), each in history.standings(cluster).items() if each.state != "completed"}
    return {
        "version": newest.plan_version,
        "at": _moment(newest.created_at),
        "proposal": proposal and {"version": proposal.plan_version, "cause": proposal.cause},
        "progress": [{"version": v, "text": str(each)} for v, each in sorted(standings.items())[-LONGEST_PROGRESS:]],
        "waiting": {"partitions": len(actual.waiting), "versions": actual.versions},
        "stopped": state.stopped,
        "partitions": counts(actual.state, newest.known_policy.min_insync_replicas),
        "members": len(members),
        "away": [{"id": b.broker_id, "state": b.state} for b in members if b.state != "alive"],
    }


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _plan(plan: PlanVersion) -> dict[str, Any]:
    n = plan.numbers
    return {
        "version": plan.plan_version,
        "base": plan.base_version,
        "kind": plan.kind,
        "cause": plan.cause,
        "approval": plan.approval,
        "created_at": _moment(plan.created_at),
        "effective": plan.effective,
        "sides": ["before", "after" if plan.effective else "as " + plan.approval],
        "moved": n.moved_replicas,
        "bound": n.lower_bound,
        "optimal": n.optimal,
        "leader_changes": n.leader_changes,
        "partitions": n.partitions_changed,
        "spread": [[n.before.replicas_min, n.before.replicas_max], [n.after.replicas_min, n.after.replicas_max]],
        "leader_spread": [[n.before.leaders_min, n.before.leaders_max], [n.after.leaders_min, n.after.leaders_max]],
        "reasons": Counter(reason for block in plan.moves for reason in block.reasons).most_common(),
        "events": [f"{e.type} {e.event_id}" for e in plan.events if e.outcome == "applied"],
        "policy": plan.policy,
        "digest": plan.digest,
        "software": plan.software_version,
        "supersedes": plan.supersedes,
    }


def _matrix(plan: PlanVersion, records: dict[int, BrokerRecord]) -> dict[str, Any]:
    """Replicas that go from one broker to another; by rack where there are too many brokers."""
    sources, targets = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for block in plan.moves:
        left, came = _only_in(block.before, block.after), _only_in(block.after, block.before)
        both = (left.sum(axis=1) == came.sum(axis=1))[:, None]  # others grow or shrink
        sources.append(block.before[left & both])
        targets.append(block.after[came & both])
    from_ids, to_ids = np.concatenate(sources), np.concatenate(targets)
    concerned = sorted({*from_ids.tolist(), *to_ids.tolist()})
    by_rack = len(concerned) > LARGEST_MATRIX
    names = {b: (records[b].rack or "no rack") if by_rack and b in records else str(b) for b in concerned}
    labels = list(dict.fromkeys(names[b] for b in concerned))
    if by_rack:
        labels.sort()
    place = {name: i for i, name in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), np.int64)
    rows, columns = ([place[names[b]] for b in ids.tolist()] for ids in (from_ids, to_ids))
    np.add.at(counts, (rows, columns), 1)
    return {"by": "rack" if by_rack else "broker", "labels": labels, "counts": counts.tolist()}


def _only_in(one: Int32Array, other: Int32Array) -> NDArray[np.bool_]:
    return np.asarray(~(one[:, :, None] == other[:, None, :]).any(axis=2) & (one != NO_BROKER))


def _waves(plan: PlanVersion) -> list[int]:
    """Partitions in each wave, the first wave first; empty where a plan has none."""
    waves = [block.waves for block in plan.moves if block.waves is not None]
    return np.bincount(np.concatenate(waves))[1:].tolist() if waves else []


def _timeline(history: History, cluster: str, headlines: list[PlanVersion]) -> dict[str, Any]:
    """For each version its words, and by how much it changed each broker's replicas and leaders."""
    first, last = headlines[0].plan_version, headlines[-1].plan_version
    start = history.state(cluster, first - 1).counts if first > 1 else ReplicaCounts.empty()
    columns = ["approval", *(f"moves.{part}" for part in ("topic", "partition", "before", "after"))]
    table = history.plans(columns, Span(cluster, first, last))
    changes = _changes(table.filter(in_effect(table)))
    return {
        "start": [[int(b), int(r), int(n)] for b, r, n in zip(start.ids, start.replicas, start.leaders, strict=True)],
        "versions": [
            {
                "version": v.plan_version,
                "at": f"{v.created_at:%Y-%m-%d %H:%M:%S}",
                "kind": v.kind,
                "cause": v.cause,
                "approval": v.approval,
                "effective": v.effective,
                "moved": v.numbers.moved_replicas,
                "low": _balance(v).replicas_min,
                "high": _balance(v).replicas_max,
                "changes": changes.get(v.plan_version, []),
            }
            for v in headlines
        ],
    }


def _balance(version: PlanVersion) -> Balance:
    """The balance once the version is there: that of a proposal changes nothing."""
    return version.numbers.after if version.effective else version.numbers.before


def _changes(table: pa.Table) -> dict[int, list[list[int]]]:
    """``[broker, replicas more, leaders more]`` by version."""
    moves = flat_moves(table)
    found: dict[int, list[list[int]]] = {}
    before, after = (matrices(moves.moves.field(side)) for side in ("before", "after"))
    starts = np.flatnonzero(np.diff(moves.version, prepend=-1)).tolist()
    for lo, hi in zip(starts, [*starts[1:], moves.version.size], strict=False):
        replicas: Counter[int] = Counter()
        leaders: Counter[int] = Counter()
        for side, sign in ((before[lo:hi], -1), (after[lo:hi], 1)):
            for counter, ids in ((replicas, side.ravel()), (leaders, side[:, :1].ravel())):
                brokers, counts = np.unique(ids[ids != NO_BROKER], return_counts=True)
                for broker, count in zip(brokers.tolist(), counts.tolist(), strict=True):
                    counter[broker] += sign * count
        rows = [[b, replicas[b], leaders[b]] for b in sorted({*replicas, *leaders}) if replicas[b] or leaders[b]]
        found[int(moves.version[lo])] = rows
    return found
