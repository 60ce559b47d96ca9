"""A micro-batch, planned: lines are grouped by cluster, every cluster is planned by itself. No Spark, no tables."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import pyarrow as pa

from streaming.config import Config, Policy
from streaming.events import Line, PlanProgress
from streaming.planning.planner import ClusterPlanner, record
from streaming.planning.state import ClusterState, History
from streaming.record.version import EventRecord, PlanVersion

_log: Final = logging.getLogger(__name__)

NEVER = -1
"""No batch of this query is in the journal yet."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What one micro-batch brought; ``encoded`` are the versions of some clusters as rows of the journal, by name."""

    batch_id: int
    batch_time: datetime
    versions: Sequence[PlanVersion]
    unplanned: Sequence[EventRecord]
    progress: Sequence[PlanProgress]
    encoded: Mapping[str, pa.Table] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterWork:
    """What there is to plan for one cluster: its lines in order, and the time that has come after them."""

    cluster_id: str
    lines: Sequence[Line]
    now: datetime
    batch_time: datetime
    policy: Policy


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """What came of it; ``encoded`` are the versions as rows of the journal, if they travelled so."""

    versions: Sequence[PlanVersion]
    unplanned: Sequence[EventRecord]
    progress: Sequence[PlanProgress]
    encoded: pa.Table | None = None


Loader = Callable[[Sequence[str], int], dict[str, ClusterState]]
"""Reads the state of clusters from the tables, as they were before a batch; clusters without plans may be left out."""


def _nothing_stored(names: Sequence[str], batch_id: int) -> dict[str, ClusterState]:
    return {}


@dataclass(frozen=True, slots=True)
class Partial:
    """What an interrupted attempt at a batch has appended already.

    Attributes:
        batch_id: the batch.
        progress: whether ``plan_progress`` has its rows.
        recorded: the sequences of its lines that ``quarantine`` has. Their outcome stands, whatever the policy is by
            now.
    """

    batch_id: int = NEVER
    progress: bool = False
    recorded: frozenset[int] = frozenset()


@dataclass(slots=True)
class Memory:
    """The clusters in memory, the least recently used first, and what must be known of all the others.

    Attributes:
        committed: the last batch of this query that the journal has.
        in_hand: the batch that is planned: what an interrupted attempt at it has left is not known to the clusters.
        ticked: the last time without a batch that the journal has of it, numbered from 0.
        deadlines: when time alone may change a cluster, in memory or not.
        clusters: states that are loaded.
        behind: versions that the projections do not have yet.
        partial: what a batch that was interrupted before its commit point has left.
        journal: the table version of ``plans`` that all this was read at, or written.
        reached: the last batch of this query that any table knows.
    """

    load: Loader = _nothing_stored
    committed: int = NEVER
    in_hand: int = NEVER
    ticked: int = NEVER
    deadlines: dict[str, datetime] = field(default_factory=dict)
    clusters: OrderedDict[str, ClusterState] = field(default_factory=OrderedDict)
    behind: list[PlanVersion] = field(default_factory=list)
    partial: Partial = field(default_factory=Partial)
    journal: int = 0
    reached: int = NEVER

    def left_by(self, batch_id: int) -> Partial:
        """What an interrupted attempt at this batch has appended; nothing, if there was none."""
        return self.partial if self.partial.batch_id == batch_id else Partial()

    def cluster(self, cluster_id: str) -> ClusterState:
        """The state of a cluster; a new one where nothing is known of it."""
        self.need([cluster_id])
        return self.clusters[cluster_id]

    def need(self, names: Iterable[str]) -> None:
        """Load, all at once, those of the clusters that are not in memory."""
        wanted = list(names)
        missing = [name for name in wanted if name not in self.clusters]
        if missing:
            loaded = self.load(missing, self.in_hand)
            for name in missing:
                self.clusters[name] = loaded.get(name) or ClusterState(name)
        for name in wanted:
            self.clusters.move_to_end(name)

    def reload(self, cluster_id: str) -> ClusterState:
        """The cluster as the tables have it, whatever was done to it in memory."""
        self.clusters.pop(cluster_id, None)
        return self.cluster(cluster_id)

    def note_deadlines(self, names: Iterable[str]) -> None:
        """Remember when these clusters are to be looked at again."""
        for name in names:
            deadline = self.clusters[name].next_deadline()
            if deadline is None:
                self.deadlines.pop(name, None)
            else:
                self.deadlines[name] = deadline

    def shrink(self, budget: int) -> None:
        """Forget the least recently used clusters until the rest fits the budget, in bytes; one always stays."""
        sizes = {name: state.size() for name, state in self.clusters.items()}
        total = sum(sizes.values())
        while total > budget and len(self.clusters) > 1:
            name, _ = self.clusters.popitem(last=False)
            total -= sizes[name]


PlanMany = Callable[[Sequence[tuple[ClusterState, ClusterWork]]], dict[str, ClusterResult]]
"""Plans many clusters elsewhere, without their states being changed; clusters that failed are left out."""


def plan_batch(
    memory: Memory,
    lines: Sequence[Line],
    batch_time: datetime,
    batch_id: int,
    config: Config,
    history: History,
    plan_many: PlanMany | None = None,
) -> BatchResult:
    """Plan every cluster that the lines, or the time, concern; the memory advances with it.

    Time is what the events say while there are events, so that a backlog heals nothing whose return is still to be
    read; it is the batch's own time once the source is quiet.
    """
    memory.in_hand = batch_id
    work, unplanned = divide(memory, lines, batch_time, config, memory.left_by(batch_id).recorded)
    memory.need(each.cluster_id for each in work)
    planned: dict[str, ClusterResult] = {}
    if plan_many is not None:
        planned = plan_many([(memory.clusters[each.cluster_id], each) for each in work])
        for cluster_id, result in planned.items():
            take_over(memory.clusters[cluster_id], result)
    results = [planned.get(each.cluster_id) or plan_cluster(memory, each, history) for each in work]
    memory.note_deadlines(each.cluster_id for each in work)
    return BatchResult(
        batch_id,
        batch_time,
        [version for result in results for version in result.versions],
        unplanned + [event for result in results for event in result.unplanned],
        [report for result in results for report in result.progress],
        {name: result.encoded for name, result in planned.items() if result.encoded is not None},
    )


def divide(
    memory: Memory,
    lines: Sequence[Line],
    batch_time: datetime,
    config: Config,
    recorded: frozenset[int] = frozenset(),
) -> tuple[list[ClusterWork], list[EventRecord]]:
    """The work of each cluster, by name, and the lines that are no events."""
    by_cluster: dict[str, list[Line]] = {}
    malformed: list[EventRecord] = []
    for sequence, received in enumerate(lines):
        line = received._replace(sequence=sequence, recorded=sequence in recorded)
        if line.event is None:
            if not line.recorded:
                malformed.append(record(line, "malformed", line.problem))
        else:
            by_cluster.setdefault(line.event.cluster_id, []).append(line)
    newest = max((line.event.occurred_at for line in lines if line.event), default=batch_time)
    now = min(newest, batch_time)
    due = {name for name, deadline in memory.deadlines.items() if deadline <= now}
    return [
        ClusterWork(name, by_cluster.get(name, ()), now, batch_time, config.policy_for(name))
        for name in sorted(by_cluster.keys() | due)
    ], malformed


def plan_cluster(memory: Memory, work: ClusterWork, history: History) -> ClusterResult:
    """Plan one cluster. A fault of the planner stops this cluster, visibly, and nothing else.

    What fails is planned again up to the fault, on a state that the fault did not touch. A line that fails a second
    time, when the cluster was resumed, is set aside.
    """
    faults: dict[int, tuple[str, datetime | None]] = {}
    while True:
        planner = _planner(memory.clusters[work.cluster_id], work, history)
        at = 0
        try:
            for at, line in enumerate(work.lines):
                _handle(planner, line, *faults.get(at, ("", None)))
            at = len(work.lines)
            if at in faults:
                _handle(planner, None, *faults[at])
            planner.advance(work.now)
            return _finished(planner)
        except Exception as error:
            if at in faults:
                raise
            place = work.lines[at].place if at < len(work.lines) else "the end of the batch"
            _log.exception("cluster %s: the planner failed at %s", work.cluster_id, place)
            faults[at] = f"{type(error).__name__}: {error}", planner.passing
            memory.reload(work.cluster_id)


def _handle(planner: ClusterPlanner, line: Line | None, fault: str, passing: datetime | None) -> None:
    """Take a line in that may be known to fail, by itself or because of the time that passes before it."""
    event = line.event if line else None
    if fault and (passing or event is None):
        planner.stop(f"stopped when time passed: {fault}", passing)
    elif fault and line and event and event.event_id in planner.state.suspects:
        planner.advance(min(event.occurred_at, planner.batch_time))
        planner.set_aside(line, fault)
        return
    elif fault and line:
        planner.stop(f"stopped at {line.place}: {fault}")
        planner.suspect(line, fault)
        return
    if line:
        planner.handle(line)


def _planner(state: ClusterState, work: ClusterWork, history: History) -> ClusterPlanner:
    return ClusterPlanner(state, work.policy, work.batch_time, history)


def _finished(planner: ClusterPlanner) -> ClusterResult:
    unplanned = planner.finish()
    return ClusterResult(planner.versions, unplanned, planner.progress)


def plan_alone(state: ClusterState, work: ClusterWork, history: History) -> ClusterResult:
    """Plan one cluster far from the tables.

    Raises:
        Exception: whatever failed; the state is of no use then.
    """
    planner = _planner(state, work, history)
    for line in work.lines:
        planner.handle(line)
    planner.advance(work.now)
    return _finished(planner)


def take_over(state: ClusterState, result: ClusterResult) -> None:
    """Bring a state to where a planner elsewhere brought its copy."""
    for version in result.versions:
        state.fold(version)
    state.remember(result.unplanned)
