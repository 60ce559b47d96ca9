"""The cluster as it is, beside the cluster as it is planned.

The journal's fold is what is wanted. What is there differs while plans wait to be carried out: a move is a fact once a
progress event has reported it, or a later row of the journal has seen the partition. The newest fact of a partition
counts; what was planned since then waits.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.history.scanning import kept
from streaming.planning.state import ClusterState
from streaming.record.folding import FlatMoves, flat_moves, last_rows, layout_of, places, sizes
from streaming.record.kinds import MOVING, kinds_where
from streaming.record.moves import unpadded
from streaming.record.rows import in_effect, is_in
from streaming.record.version import TopicChange

COLUMNS: Final = (
    *("kind", "approval"),
    *(f"moves.{part}" for part in ("topic", "partition", "before", "after", "leader", "isr", "end_offsets")),
)
"""What :func:`actual_state` needs of the journal."""

_DRIFTED: Final = kinds_where(lambda kind: kind.tells_drift and not kind.restores)
_RESTORING: Final = kinds_where(lambda kind: kind.restores)
_ELECTING: Final = kinds_where(lambda kind: kind.elects)
_OBSERVING: Final = kinds_where(lambda kind: kind.observes)

Place = tuple[str, int]
"""A topic and a partition id."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The replicas that a partition is to have and has not, as far as anybody told, and the version that says so."""

    plan_version: int
    replicas: list[int]


@dataclass(frozen=True, slots=True)
class Actual:
    """A cluster as it is ``planned``, the ``state`` that is there, and where a plan is still to change that."""

    planned: ClusterState
    state: ClusterState
    waiting: dict[Place, Waiting]

    @property
    def versions(self) -> list[int]:
        """The versions that are still to be carried out, whole or in part, or that found drift."""
        return sorted({each.plan_version for each in self.waiting.values()})


def actual_state(planned: ClusterState, plans: pa.Table, reports: pa.Table) -> Actual:
    """Tell the cluster that is there from the one that is planned.

    Args:
        planned: the fold of the versions.
        plans: ``COLUMNS`` of the versions, in their order.
        reports: progress events by then: ``plan_version``, ``state`` and ``details``.
    """
    table = kept(plans, pc.or_(in_effect(plans), is_in(plans["kind"], (*_DRIFTED, *_RESTORING))))
    moves = flat_moves(table)
    kinds = np.array(table["kind"].to_pylist(), object)[np.searchsorted(table["plan_version"], moves.version)]
    intended = np.isin(kinds, MOVING) & (sizes(moves, "before") > 0)
    is_open = intended.copy()
    is_open[_made(moves, np.flatnonzero(intended), reports)] = False
    found = is_open & np.isin(kinds, _RESTORING)  # where it starts from was seen
    facts = (~is_open & ~_silent(moves, kinds)) | found

    place = places(moves)
    rows = np.flatnonzero(facts)
    newest = rows[last_rows(place[rows])] if rows.size else rows
    state = ClusterState(planned.cluster_id, planned.version)
    state.apply(planned.brokers.values(), (), layout_of(moves.take(newest[~found[newest]])))
    state.apply((), _strategies(planned), layout_of(moves.take(newest[found[newest]]), "before"))

    since = np.full(int(place.max(initial=-1)) + 1, -1, np.int64)
    since[place[newest]] = newest
    rows = np.flatnonzero(is_open | np.isin(kinds, _DRIFTED))
    return Actual(planned, state, _waiting(moves.take(rows[rows >= since[place[rows]]]), planned, state))


def _made(moves: FlatMoves, rows: NDArray[np.intp], reports: pa.Table) -> NDArray[np.intp]:
    """Those of the rows that were reported as done: with their version, or one by one."""
    completed = set(reports.filter(pc.equal(reports["state"], "completed"))["plan_version"].to_pylist())
    whole = np.isin(moves.version[rows], list(completed))
    open_versions = pa.array(np.unique(moves.version[rows[~whole]]), pa.int64())
    one_by_one = pc.and_(pc.equal(reports["state"], "partition_done"), pc.is_in(reports["plan_version"], open_versions))
    done = {
        (report["plan_version"], *place)
        for report in reports.filter(one_by_one).to_pylist()
        if (place := _place(report["details"]))
    }
    if done:
        keys = zip(
            moves.version[rows].tolist(), moves.topic[rows].tolist(), moves.partition[rows].tolist(), strict=True
        )
        whole |= np.array([(version, moves.topics[topic], p) in done for version, topic, p in keys], np.bool_)
    return rows[whole]


def _place(details: str | None) -> Place | None:
    """The partition that a report is about, if it names one."""
    said = json.loads(details) if details else None
    if not isinstance(said, dict):
        return None
    topic, partition = said.get("topic"), said.get("partition")
    return (topic, partition) if isinstance(topic, str) and isinstance(partition, int) else None


def _silent(moves: FlatMoves, kinds: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Rows that tell nothing of where a partition is.

    An election asks for leaders. What is seen without a leader, where it is planned, is still on its way there.
    """
    silent: NDArray[np.bool_] = np.isin(kinds, _ELECTING)
    leaderless = np.asarray(moves.moves.field("leader").is_null())
    rows = np.flatnonzero(np.isin(kinds, _OBSERVING) & leaderless & (sizes(moves, "before") > 0))
    if rows.size:
        before, after = (moves.moves.field(side).take(pa.array(rows)).to_pylist() for side in ("before", "after"))
        silent[rows] = [one == other for one, other in zip(before, after, strict=True)]
    return silent


def _strategies(planned: ClusterState) -> list[TopicChange]:
    return [TopicChange(name, layout.strategy) for name, layout in planned.topics.items() if layout.strategy]


def _waiting(moves: FlatMoves, planned: ClusterState, state: ClusterState) -> dict[Place, Waiting]:
    """The partitions of these moves that are not where they are planned; the newest move counts."""
    found: dict[Place, Waiting] = {}
    rows = zip(moves.topic.tolist(), moves.partition.tolist(), moves.version.tolist(), strict=True)
    for topic, partition, version in rows:
        place = moves.topics[topic], partition
        wanted = replicas_in(planned, place)
        if wanted != replicas_in(state, place):
            found[place] = Waiting(version, wanted)
    return found


def replicas_in(state: ClusterState, place: Place) -> list[int]:
    """The replicas of a partition; none where there is no such partition."""
    layout = state.topics.get(place[0])
    if layout is None:
        return []
    row = int(np.searchsorted(layout.partitions, place[1]))
    there = row < layout.partitions.size and layout.partitions[row] == place[1]
    return unpadded(layout.replicas[row].tolist()) if there else []
