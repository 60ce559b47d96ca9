"""Plays a history on the pure planner, and checks after each step what must always hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from streaming.audit.rederive import Batch, ClusterAudit
from streaming.config import Config, parse_config
from streaming.errors import RejectedEvent
from streaming.events import decode
from streaming.planning.batch import Memory, plan_batch
from streaming.planning.decisions.decision import Decision
from streaming.planning.decisions.moving import heal, rebalance
from streaming.planning.state import ClusterState
from streaming.record.rows import versions_from_arrow, versions_to_arrow
from streaming.record.version import EventRecord, PlanVersion
from tests.model.chance import CLUSTER, T0, Chance, conf
from tests.model.model import BrokenError, Model, must

Step = dict[str, Any]


@dataclass(slots=True)
class Machine:
    """One job's memory and tables, and the model beside them."""

    config: Config
    memory: Memory = field(init=False)
    model: Model = field(default_factory=Model)
    journal: list[tuple[Batch, PlanVersion]] = field(default_factory=list)
    quarantine: list[tuple[Batch, EventRecord]] = field(default_factory=list)
    newest: dict[Batch, datetime] = field(default_factory=dict)
    events: int = 0
    batches: int = 0
    now: datetime = T0

    def __post_init__(self) -> None:
        """Start with empty tables."""
        self.memory = Memory(self._load)

    @property
    def state(self) -> ClusterState:
        """The cluster as the job has it in memory."""
        return self.memory.cluster(CLUSTER)

    def play(self, step: Step) -> None:
        """Play one step and check what can be checked cheaply.

        Raises:
            BrokenError: something is not as it must be.
        """
        if "lines" in step:
            self._batch([line.encode(errors="surrogatepass") for line in step["lines"]], step["minute"])
        elif "conf" in step:
            self.config = parse_config(step["conf"], "history.toml")
            self._restart()
        elif step["do"] == "restart":
            self._restart()
        else:
            self.memory.clusters.clear()

    def _restart(self) -> None:
        self.memory = Memory(self._load)
        self.memory.note_deadlines([self.state.cluster_id])

    def _load(self, names: Sequence[str], batch_id: int) -> dict[str, ClusterState]:
        """The state as rows have it."""
        state = ClusterState(CLUSTER)
        rows = versions_to_arrow([version for _, version in self.journal], "app", 0)
        for version in versions_from_arrow(rows):
            state.fold(version)
        state.remember([event for _, event in self.quarantine])
        return {CLUSTER: state}

    def _find(self, _: str, plan_version: int) -> PlanVersion | None:
        return next((v for _, v in self.journal if v.plan_version == plan_version), None)

    def _batch(self, raw: Sequence[bytes], minute: float) -> None:
        lines = [decode(self._digests(line), f"h:{n}") for n, line in enumerate(raw)]
        self.events += len(lines)
        self.batches += 1
        batch = Batch("app", self.batches)
        self.now = max(self.now, T0 + timedelta(minutes=minute))
        result = plan_batch(self.memory, lines, self.now, self.batches, self.config, self._find)
        policy = self.config.policy_for(CLUSTER)
        records = [*result.unplanned, *(e for v in result.versions for e in v.events)]
        places = sorted(record.sequence for record in records if record.sequence is not None)
        must(places == list(range(len(lines))), f"lines without one outcome each: {places} of {len(lines)}")
        for record in sorted(records, key=lambda e: e.sequence or 0):
            event = lines[record.sequence or 0].event
            must((event is None) == (record.outcome == "malformed"), f"{record.outcome}: {record.payload[:300]}")
            if event is not None:
                self.model.check_outcome(event, record)
        for version in result.versions:
            self.model.take(version, policy)
        moments = [line.event.occurred_at for line in lines if line.event]
        if moments:
            self.newest[batch] = max(moments)
        self.journal += [(batch, version) for version in result.versions]
        self.quarantine += [(batch, event) for event in result.unplanned if event.outcome != "malformed"]
        self._check_state()

    def _digests(self, line: bytes) -> bytes:
        """Events name digests by the version: only now it is known."""
        if b'"digest of ' not in line:
            return line
        event = json.loads(line)
        found = self._find(CLUSTER, event["plan_version"])
        return json.dumps(event | {"digest": found.digest if found else "?"}).encode()

    def _check_state(self) -> None:
        state = self.memory.clusters.get(CLUSTER)
        if state is None:
            return
        brokers = {b.broker_id: b.state for b in state.brokers.values()}
        must(brokers == self.model.brokers, f"brokers are {brokers} and should be {self.model.brokers}")
        must(layout(state) == self.model.topics, f"topics are {layout(state)} and should be {self.model.topics}")
        must(state.version == self.model.version, f"memory is at {state.version}, the journal at {self.model.version}")

    def check_rows(self) -> None:
        """Memory is what the rows say."""
        told, kept = facts(self._load([CLUSTER], 0)[CLUSTER]), facts(self.state)
        for name, value in told.items():
            must(value == kept[name], f"{name}: rows say {value}, memory has {kept[name]}")

    def check_fixed_point(self) -> None:
        """What was just planned is planned no further."""
        if not self.journal or self.state.stopped:
            return
        last = self.journal[-1][1]
        policy = self.config.policy_for(CLUSTER)
        if last.kind == "heal" and last.effective:
            again = heal(self.state, policy, "again", ())
            must(again.kind == "membership" or not again.moves, f"a heal is healed again: {again.cause} {told(again)}")
        if last.kind == "rebalance" and not policy.max_moves and not policy.loads.max_bytes and self._unlimited(last):
            try:
                more = rebalance(self.state, policy, "again")
            except RejectedEvent:
                return
            must(not isinstance(more, Decision), f"a rebalance is rebalanced again: {told(more)}")

    def _unlimited(self, last: PlanVersion) -> bool:
        """Whether the rebalance was of all topics, without a budget, and is of just now."""
        if last.approval != "not_required":
            return False
        asked = [json.loads(e.payload) for e in last.events]
        return all(not e.get("topics") and e.get("max_moves") is None for e in asked)

    def check_journal(self) -> None:
        """The audit derives every version again, and comes to the same state."""
        refused: dict[Batch, list[EventRecord]] = {}
        for batch, event in self.quarantine:
            refused.setdefault(batch, []).append(event)
        audit = ClusterAudit(CLUSTER, refused, self.newest)
        found = audit.run(self.journal)
        must(found is None, f"verify: {found} recorded {found and found.recorded} derived {found and found.derived}")
        must(layout(audit.state) == self.model.topics, "verify comes to another layout")


def told(decision: Any) -> list[Any]:
    """The moves of a decision."""
    return [(m.topic, *row) for m in getattr(decision, "moves", ()) for row in m.rows()]


def layout(state: ClusterState) -> dict[str, dict[int, list[int]]]:
    """Topics as the model has them."""
    return {
        name: {
            p: [b for b in row if b >= 0]
            for p, row in zip(topic.partitions.tolist(), topic.replicas.tolist(), strict=True)
        }
        for name, topic in state.topics.items()
    }


def facts(state: ClusterState) -> dict[str, Any]:
    """All that a state knows, as plain values."""
    roles = {
        (name, p): (int(t.roles.leader[i]), sorted(b for b in t.roles.isr[i].tolist() if b >= 0),
                    [n for n in t.roles.end_offsets[i].tolist() if n >= 0])
        for name, t in state.topics.items() if t.roles is not None
        for i, p in enumerate(t.partitions.tolist())
    }  # fmt: skip
    loads = {name: (b.partitions.tolist(), b.values.tolist()) for name, b in state.loads.topics.items()}
    return {
        "version": state.version, "brokers": state.brokers, "layout": layout(state), "seen": state.seen,
        "clocks": state.clocks, "proposal": state.proposal and (state.proposal.plan_version, state.proposal.digest),
        "stopped": state.stopped, "moving": state.moving, "seal": state.seal, "deadline": state.load_deadline,
        "roles": {k: v for k, v in roles.items() if v != (-1, [], [])}, "loads": loads, "limits": state.loads.limits,
        "strategies": {name: t.strategy for name, t in state.topics.items()}, "next": state.next_deadline(),
        "replicas": {b: n for b, n in enumerate(state.load.replicas.tolist()[:1000]) if n},
    }  # fmt: skip


@dataclass(slots=True)
class Played:
    """A history that was played; ``broken`` says what did not hold."""

    seed: int
    steps: list[Step]
    events: int
    broken: str = ""


def play(seed: int, events: int = 200, dear: int = 40) -> Played:
    """Draw a history from a seed and play it until it ends or something breaks."""
    draw = Random(seed)
    steps: list[Step] = [{"conf": conf(draw)}]
    machine = Machine(parse_config(steps[0]["conf"], "history.toml"))
    chance = Chance(draw)
    try:
        step = chance.first()
        while True:
            steps.append(step)
            machine.play(step)
            if machine.batches % dear == 0 and "lines" in step:
                machine.check_rows()
            if "lines" in step:
                machine.check_fixed_point()
            if machine.events >= events:
                break
            step = chance.step(machine.state, events - machine.events)
        machine.check_rows()
        machine.check_journal()
    except BrokenError as broken:
        return Played(seed, steps, machine.events, str(broken))
    except Exception as error:
        return Played(seed, steps, machine.events, f"{type(error).__name__}: {error}")
    return Played(seed, steps, machine.events)


def replay(steps: Sequence[Step]) -> str:
    """Play recorded steps; what broke, or nothing."""
    machine = Machine(parse_config(steps[0]["conf"], "history.toml"))
    try:
        for step in steps[1:]:
            machine.play(step)
            machine.check_rows()
            machine.check_fixed_point()
        machine.check_journal()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
