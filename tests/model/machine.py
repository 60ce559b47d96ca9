"""Plays a history on the pure planner, and checks after each step what must always hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from streaming.audit.rederive import Batch, ClusterAudit
from streaming.config import Config, parse_config
from streaming.errors import RejectedEvent
from streaming.events import Line, decode
from streaming.planning.batch import BatchResult, Memory, plan_batch
from streaming.planning.decisions.decision import Decision
from streaming.planning.decisions.moving import heal, rebalance
from streaming.planning.state import ClusterState
from streaming.record.rows import versions_from_arrow, versions_to_arrow
from streaming.record.version import EventRecord, PlanVersion
from tests.model.facts import at_a_glance, copied, facts, layout
from tests.model.faults import Faults, Plans, faulty, planned_once
from tests.model.model import Model, must

Step = dict[str, Any]
T0: Final = datetime.fromisoformat("2026-01-01T00:00:00+00:00")


@dataclass(slots=True)
class Recorded:
    """What the tables have of a cluster, its state as the rows have it, and the model beside it."""

    name: str
    model: Model = field(default_factory=Model)
    journal: list[tuple[Batch, PlanVersion]] = field(default_factory=list)
    versions: dict[int, PlanVersion] = field(default_factory=dict)
    quarantine: list[tuple[Batch, EventRecord]] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    rows: ClusterState = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is known of it."""
        self.rows = ClusterState(self.name)

    def append(self, batch: Batch, versions: Sequence[PlanVersion], unplanned: Sequence[EventRecord]) -> None:
        """Take over what a batch brought, through rows and back."""
        self.journal += [(batch, version) for version in versions]
        self.versions |= {version.plan_version: version for version in versions}
        self.quarantine += [(batch, event) for event in unplanned]
        for version in versions_from_arrow(versions_to_arrow(versions, *batch)) if versions else ():
            self.rows.fold(version)
        self.rows.remember(unplanned)


@dataclass(slots=True)
class Machine:
    """One job's memory and tables, and the models beside them. ``base`` stands before the policies in a conf."""

    config: Config
    base: str = ""
    memory: Memory = field(init=False)
    clusters: dict[str, Recorded] = field(default_factory=dict)
    newest: dict[Batch, datetime] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    plans: Plans = field(default_factory=dict)
    events: int = 0
    batches: int = 0
    now: datetime = T0

    def __post_init__(self) -> None:
        """Start with empty tables."""
        self.memory = Memory(self._load)

    def state(self, name: str) -> ClusterState:
        """A cluster as the job has it in memory."""
        return self.memory.cluster(name)

    def play(self, step: Step) -> None:
        """Play one step and check what must hold after it.

        Raises:
            BrokenError: something is not as it must be.
        """
        if "lines" in step:
            self._batch(step)
        elif "conf" in step:
            self.config = parse_config(self.base + step["conf"], "history.toml")
            self.restart()
        elif step["do"] == "restart":
            self.restart()
        elif step["do"] == "mend":
            self.faults = Faults()
        else:
            self.memory.clusters.clear()

    def restart(self) -> None:
        """Begin anew with what the rows say."""
        for name in self.clusters:
            self._check_rows(name)
        self.memory = Memory(self._load)
        self.memory.need(self.clusters)
        self.memory.note_deadlines(self.clusters)

    def _load(self, names: Sequence[str], _: int) -> dict[str, ClusterState]:
        """The states as rows have them."""
        return {name: copied(self.clusters[name].rows) for name in names if name in self.clusters}

    def _find(self, name: str, plan_version: int) -> PlanVersion | None:
        return self.clusters[name].versions.get(plan_version)

    def _batch(self, step: Step) -> None:
        raw = [line.encode(errors="surrogatepass") for line in step["lines"]]
        raw = [self._digests(line) for line in raw]
        lines = [decode(line, f"h:{n}") for n, line in enumerate(raw, start=1)]
        self.events += len(lines)
        self.batches += 1
        self.now = max(self.now, T0 + timedelta(minutes=step["minute"]))
        self.faults.add(step)
        for line in lines:
            if line.event:
                self.clusters.setdefault(line.event.cluster_id, Recorded(line.event.cluster_id))
        with faulty(self.faults), planned_once(self.plans):
            result = self.planned(raw, lines)
        self._check_outcomes(step, lines, result)
        self._append(lines, result)
        for name in {v.cluster_id for v in result.versions}:
            self._check_state(name)
            self._check_fixed_point(name)

    def planned(self, raw: Sequence[bytes], lines: Sequence[Line]) -> BatchResult:
        """Plan the lines as one batch."""
        return plan_batch(self.memory, lines, self.now, self.batches, self.config, self._find)

    def _check_outcomes(self, step: Step, lines: Sequence[Line], result: BatchResult) -> None:
        """Every line has one outcome, and it is the one that the model expects."""
        records = [*result.unplanned, *(e for v in result.versions for e in v.events)]
        places = sorted(record.sequence for record in records if record.sequence is not None)
        must(places == list(range(len(lines))), f"lines without one outcome each: {places} of {len(lines)}")
        for record in sorted(records, key=lambda e: e.sequence or 0):
            event = lines[record.sequence or 0].event
            must((event is None) == (record.outcome == "malformed"), f"{record.outcome}: {record.payload[:300]}")
            if event is not None:
                cluster = self.clusters[event.cluster_id]
                cluster.model.check_outcome(event, record, self.faults)
                if record.is_held:
                    cluster.held.append(step["lines"][record.sequence or 0])
        policy = self.config.policy_for
        for version in result.versions:
            self.clusters[version.cluster_id].model.take(version, policy(version.cluster_id), self.faults)

    def _append(self, lines: Sequence[Line], result: BatchResult) -> None:
        batch = Batch("app", self.batches)
        moments = [line.event.occurred_at for line in lines if line.event]
        if moments:
            self.newest[batch] = max(moments)
        for name, cluster in self.clusters.items():
            versions = [v for v in result.versions if v.cluster_id == name]
            unplanned = [e for e in result.unplanned if e.cluster_id == name and e.outcome != "malformed"]
            if versions or unplanned:
                cluster.append(batch, versions, unplanned)

    def _digests(self, line: bytes) -> bytes:
        """Events name digests by the version: only now it is known."""
        if b'"digest of ' not in line:
            return line
        event = json.loads(line)
        cluster = self.clusters.get(event["cluster_id"])
        found = cluster and cluster.versions.get(event["plan_version"])
        return json.dumps(event | {"digest": found.digest if found else "?"}).encode()

    def _check_state(self, name: str) -> None:
        """Memory is what the model says, and what the rows say as far as digests show it."""
        state, cluster = self.memory.clusters[name], self.clusters[name]
        brokers, model = {b.broker_id: b.state for b in state.brokers.values()}, cluster.model
        must(brokers == model.brokers, f"brokers are {brokers} and should be {model.brokers}")
        must(layout(state) == model.topics, f"topics are {layout(state)} and should be {model.topics}")
        must(bool(state.stopped) == model.stopped, f"stopped: {state.stopped!r} and should be {model.stopped}")
        for told, kept in zip(at_a_glance(cluster.rows), at_a_glance(state), strict=True):
            must(told == kept, f"rows say {told}, memory has {kept}")

    def _check_rows(self, name: str) -> None:
        """Memory is what the rows say, in every field."""
        told, kept = facts(self.clusters[name].rows), facts(self.state(name))
        for fact, value in told.items():
            must(value == kept[fact], f"{fact}: rows say {value}, memory has {kept[fact]}")

    def _check_fixed_point(self, name: str) -> None:
        """What was just planned is planned no further."""
        state, last = self.state(name), self.clusters[name].journal[-1][1]
        policy = self.config.policy_for(name)
        if last.kind == "heal" and last.approval == "not_required":  # since a proposal, policy may have changed
            again = heal(state, policy, "again", ())
            must(again.kind == "membership" or not again.moves, f"a heal is healed again: {again.cause} {_told(again)}")
        if last.kind == "rebalance" and not policy.max_moves and not policy.loads.max_bytes and _unlimited(last):
            with planned_once(self.plans):
                try:
                    more = rebalance(state, policy, "again")
                except RejectedEvent:
                    return
            must(not isinstance(more, Decision), f"a rebalance is rebalanced again: {_told(more)}")

    def finish(self) -> None:
        """Compare everything once more: memory, one fold of all rows, and the audit, which derives every version again.

        Raises:
            BrokenError: something is not as it must be.
        """
        for name, cluster in self.clusters.items():
            self._check_rows(name)
            folded = ClusterState(name)
            for version in versions_from_arrow(versions_to_arrow(list(cluster.versions.values()), "app", 0)):
                folded.fold(version)
            folded.remember([event for _, event in cluster.quarantine])
            must(facts(folded) == facts(cluster.rows), "one fold of all rows is another than that of each batch")
            self._check_journal(cluster)

    def _check_journal(self, cluster: Recorded) -> None:
        refused: dict[Batch, list[EventRecord]] = {}
        for batch, event in cluster.quarantine:
            refused.setdefault(batch, []).append(event)
        audit = ClusterAudit(cluster.name, refused, self.newest)
        with planned_once(self.plans):
            found = audit.run(cluster.journal)
        must(found is None, f"verify: {found} recorded {found and found.recorded} derived {found and found.derived}")
        must(layout(audit.state) == cluster.model.topics, "verify comes to another layout")


def _unlimited(last: PlanVersion) -> bool:
    """Whether the rebalance was of all topics, without a budget, and is of just now."""
    if last.approval != "not_required":
        return False
    asked = [json.loads(e.payload) for e in last.events]
    return all(not e.get("topics") and e.get("max_moves") is None for e in asked)


def _told(decision: Any) -> list[Any]:
    """The moves of a decision."""
    return [(m.topic, *row) for m in getattr(decision, "moves", ()) for row in m.rows()]
