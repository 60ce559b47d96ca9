"""From the events of one cluster in one micro-batch to plan versions; pure, so it runs in any process.

Events are taken in source order. Each gets one outcome. Decisions become versions: changes of topics that follow
one another share a version, and so do changes of brokers that move nothing; everything else has one of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib.metadata import version as distribution_version
from typing import Final, assert_never

from placement import verify_moves
from placement.strategies import STRATEGIES
from streaming.config import Policy
from streaming.errors import PlannerError, RejectedEvent
from streaming.events import (
    AnyEvent,
    AssignmentObserved,
    BrokerChanged,
    BrokerJoined,
    BrokerLeft,
    ClusterIdentified,
    ClusterResumed,
    Line,
    LoadObserved,
    Outcome,
    PartitionsAdded,
    PlanApproved,
    PlanClaimed,
    PlanProgress,
    PlanRejected,
    PlanRolledBack,
    PreferredElectionRequested,
    RebalanceRequested,
    ReplicationFactorChanged,
    TopicCreated,
    TopicDeleted,
)
from streaming.planning.decisions.approvals import (
    check_progress,
    plan_approved,
    plan_rejected,
    plan_rolled_back,
    preferred_election_requested,
)
from streaming.planning.decisions.brokers import broker_changed, broker_joined, broker_left
from streaming.planning.decisions.claims import plan_claimed
from streaming.planning.decisions.deadlines import deadline_passed, next_burst
from streaming.planning.decisions.decision import Answer, Decision, NoEffect, Stale, moment_text, named
from streaming.planning.decisions.loads import load_observed, loads_settled
from streaming.planning.decisions.moving import rebalance, replication_factor_changed
from streaming.planning.decisions.observed import assignment_observed
from streaming.planning.decisions.topics import partitions_added, topic_created, topic_deleted
from streaming.planning.state import ClusterState, History
from streaming.record.loads import BrokerLimits
from streaming.record.moves import TopicMoves, change_of, digest
from streaming.record.version import (
    SET_ASIDE,
    SUSPECT,
    Balance,
    BrokerRecord,
    EventRecord,
    Numbers,
    PlanVersion,
)

_CHECKED: Final = frozenset(name for name, strategy in STRATEGIES.items() if not strategy.is_kafkas)

SOFTWARE_VERSION: Final = distribution_version("replica-planner")


def record(line: Line, outcome: Outcome, reason: str = "") -> EventRecord:
    """What became of a received line."""
    event = line.event
    header = line.header
    return EventRecord(
        event_id=event.event_id if event else header.text("event_id"),
        cluster_id=event.cluster_id if event else header.text("cluster_id"),
        type=event.type if event else header.text("type"),
        outcome=outcome,
        reason=reason,
        payload=line.text,
        occurred_at=event.occurred_at if event else None,
        entity=event.entity if event else "",
        place=line.place,
        sequence=line.sequence,
    )


def _cause(causes: list[str]) -> str:
    return causes[0] if len(causes) == 1 else f"{len(causes)} events: {named(causes)}"


@dataclass(slots=True)
class ClusterPlanner:
    """Plans one cluster through one micro-batch, advancing its state as it goes.

    Attributes:
        versions: the plan versions made so far, oldest first.
        progress: progress events, to be kept in ``plan_progress``.
        passing: until when deadlines are passing right now; still there where that failed.
    """

    state: ClusterState
    policy: Policy
    batch_time: datetime
    history: History
    versions: list[PlanVersion] = field(default_factory=list)
    progress: list[PlanProgress] = field(default_factory=list)
    passing: datetime | None = None
    _settled: list[EventRecord] = field(default_factory=list)
    _refused: list[EventRecord] = field(default_factory=list)
    _open: list[Decision] = field(default_factory=list)
    _open_events: list[EventRecord] = field(default_factory=list)
    _open_balance: Balance = field(default_factory=Balance)

    def handle(self, line: Line) -> None:
        """Take one event in and settle its outcome."""
        event = line.event
        assert event is not None
        if line.recorded:
            self._pass_over(event)
            return
        if event.event_id in self.state.seen:
            self._settled.append(record(line, "duplicate", "an event with this id was received before"))
            return
        if self.state.stopped and not isinstance(event, ClusterResumed):
            self._refused.append(record(line, "held", self.state.stopped))
            return
        self.state.note_seen(event.event_id)
        self.advance(min(event.occurred_at, self.batch_time))
        known = self.state.clocks.get(event.entity)
        if known is not None and event.occurred_at < known:
            self._settled.append(
                record(line, "stale", f"newer news of {event.entity} occurred at {moment_text(known)}")
            )
            return
        try:
            answer = self._decide(event)
        except RejectedEvent as reason:
            self._refused.append(record(line, "rejected", str(reason)))
            return
        self._take(answer, line)

    def _pass_over(self, event: AnyEvent) -> None:
        """Let time pass as the event did when its outcome was recorded; a duplicate and what was held did nothing."""
        if event.event_id not in self.state.seen and (not self.state.stopped or isinstance(event, ClusterResumed)):
            self.state.note_seen(event.event_id)
            self.advance(min(event.occurred_at, self.batch_time))

    def _take(self, answer: Answer | list[Decision] | None, line: Line) -> None:
        if answer is None:
            self._settled.append(record(line, "applied"))
        elif isinstance(answer, NoEffect):
            self._settled.append(record(line, "no_effect", answer.reason))
        elif isinstance(answer, Stale):
            self._settled.append(record(line, "stale", answer.reason))
        else:
            decisions = answer if isinstance(answer, list) else [answer]
            for place, decision in enumerate(decisions):
                self._accept(decision, [record(line, "applied")] if place == 0 else [])

    def _decide(self, event: AnyEvent) -> Answer | list[Decision] | None:  # noqa: PLR0911, PLR0912 - one case an event type
        """The rule of each event type; ``None`` for what is put on record and changes nothing."""
        state, policy = self.state, self.policy
        match event:
            case TopicCreated():
                return topic_created(state, event, policy)
            case TopicDeleted():
                return topic_deleted(state, event)
            case PartitionsAdded():
                return partitions_added(state, event, policy)
            case ReplicationFactorChanged():
                return replication_factor_changed(state, event, policy)
            case BrokerJoined():
                return broker_joined(state, event, policy)
            case BrokerLeft():
                return broker_left(state, event, policy)
            case BrokerChanged():
                return broker_changed(state, event, policy)
            case AssignmentObserved():
                return assignment_observed(state, event, policy, self._version)
            case LoadObserved():
                return load_observed(state, event, policy)
            case RebalanceRequested():
                cause = f"rebalance requested by event {event.event_id}"
                return rebalance(state, policy, cause, topics=event.topics, max_moves=event.max_moves)
            case PreferredElectionRequested():
                return preferred_election_requested(state, event)
            case PlanApproved():
                self._close_before_proposal()
                return plan_approved(state, event)
            case PlanRejected():
                self._close_before_proposal()
                return plan_rejected(state, event)
            case PlanRolledBack():
                self._close()
                return plan_rolled_back(state, event, self._version)
            case PlanClaimed():
                self._close()
                return plan_claimed(state, event, self._version)
            case PlanProgress():
                check_progress(state, event)
                self.progress.append(event)
                return None
            case ClusterIdentified():
                return None
            case ClusterResumed():
                if not state.stopped:
                    return NoEffect("the cluster is not stopped")
                return Decision("resume", f"resumed by event {event.event_id}")
            case _:
                assert_never(event)

    def _close_before_proposal(self) -> None:
        """End what is being collected: it may be what a proposal no longer holds for."""
        if self.state.proposal is not None:
            self._close()

    def _version(self, cluster_id: str, plan_version: int) -> PlanVersion | None:
        made = (v for v in self.versions if v.plan_version == plan_version)
        return next(made, None) or self.history(cluster_id, plan_version)

    def advance(self, now: datetime) -> None:
        """Let deadlines pass that are not after ``now``; those of one burst pass together, at the last of them."""
        self.passing = now
        while not self.state.stopped:
            settled = self.state.load_deadline
            if burst := next_burst(self.state.deadlines(), self.policy.settle.time, now):
                self._accept(deadline_passed(self.state, self.policy, burst), [])
            elif settled is not None and settled <= now:
                self._close()  # it may be what a proposal no longer holds for
                self._accept(loads_settled(self.state, self.policy), [])
            else:
                break
        self.passing = None

    def _accept(self, decision: Decision, events: list[EventRecord]) -> None:
        """Make the decision part of the state and of a version."""
        if decision.approval == "proposed" and decision.brokers:
            # The brokers' change is a fact and takes effect at once; only the moves wait.
            fact = replace(decision, kind="membership", moves=(), numbers=None, approval="not_required", digest="")
            self._accept(fact, events)
            decision, events = replace(decision, brokers=()), []
        if self._open and (not decision.means.is_shared or decision.kind != self._open[0].kind):
            self._close()
        if not self._open:
            # It exists from now on, whatever joins it: events that name it come to the same however batches are cut.
            self.state.begin_version()
            self._open_balance = self.state.balance()
        if decision.effective:
            decision = self._forgetting(decision)
            self.state.apply(decision.brokers, decision.topics, decision.moves)
            self.state.loads.take(decision.loads, decision.limits)
        self.state.settle_loads(decision.means, decision.load_deadline)
        self._open.append(decision)
        self._open_events += events
        self.state.remember(events)
        if not decision.means.is_shared:
            self._close()

    def _forgetting(self, decision: Decision) -> Decision:
        """The decision, and that nothing is known any more of what it ends."""
        known = self.state.loads
        loads = known.forgotten(decision.moves)
        limits = [
            BrokerLimits(b.broker_id) for b in decision.brokers if b.state == "gone" and b.broker_id in known.limits
        ]
        if not loads and not limits:
            return decision
        return replace(decision, loads=[*decision.loads, *loads], limits=[*decision.limits, *limits])

    def _close(self) -> None:
        """End the version that is being collected, if there is one."""
        if not self._open:
            return
        first = self._open[0]
        moves = [block for decision in self._open for block in decision.moves]
        self._check_placed(moves)
        version = PlanVersion(
            cluster_id=self.state.cluster_id,
            plan_version=self.state.version,
            supersedes=self._superseded(first),
            base_version=self.state.version - 1 if first.base_version is None else first.base_version,
            created_at=self.batch_time,
            kind=first.kind,
            cause=_cause([decision.cause for decision in self._open]),
            approval=first.approval,
            events=self._open_events,
            broker_changes=[b for decision in self._open for b in decision.brokers],
            topic_changes=[t for decision in self._open for t in decision.topics],
            moves=moves,
            numbers=first.numbers or self._plain_numbers(moves),
            policy=self.policy.to_json(),
            software_version=SOFTWARE_VERSION,
            digest=first.digest or digest(moves),
            load_changes=[block for decision in self._open for block in decision.loads],
            limit_changes=[broker for decision in self._open for broker in decision.limits],
            load_deadline=self._open[-1].load_deadline,
            fold=self.state.digests(),
        )
        self.state.record(version)
        self.versions.append(version)
        self._open, self._open_events = [], []

    def stop(self, cause: str, passed: datetime | None = None) -> None:
        """Plan this cluster no further until it is resumed; what arrives is kept in quarantine.

        Where it is time that cannot pass, nothing is planned for the deadlines until then any more: the brokers are
        what they are by then.
        """
        due = [b for b in self.state.deadlines() if passed and b.deadline and b.deadline <= passed]
        settled = self.state.load_deadline
        self.stop_with(
            cause,
            [replace(b, state="dead" if b.state == "failed" else b.state, deadline=None) for b in due],
            None if passed and settled and settled <= passed else settled,
        )

    def stop_with(self, cause: str, brokers: Sequence[BrokerRecord], load_deadline: datetime | None) -> None:
        """The same as it is on record."""
        self._accept(Decision("stop", cause, brokers=brokers, load_deadline=load_deadline), [])

    def suspect(self, line: Line, fault: str) -> None:
        """Hold the line that has stopped the cluster."""
        assert line.event is not None
        self.state.suspects.add(line.event.event_id)  # it may come again in this batch, after a resume
        self._refused.append(record(line, "held", f"{SUSPECT}{fault}"))

    def set_aside(self, line: Line, fault: str) -> None:
        """Go on without a line that stopped the cluster once, and failed again when that was resumed."""
        assert line.event is not None
        self.state.note_seen(line.event.event_id)
        self._refused.append(record(line, "rejected", f"{SET_ASIDE}{fault}"))

    def _superseded(self, decision: Decision) -> int | None:
        """The proposal that can no longer be approved once this version is there."""
        waiting = self.state.proposal
        if waiting is None or decision.leaves_proposals or decision.base_version == waiting.plan_version:
            return None
        return waiting.plan_version

    def _check_placed(self, moves: Sequence[TopicMoves]) -> None:
        """Prove that what was placed is sound, but for strategies that are Kafka's, and as good as Kafka's.

        Raises:
            PlannerError: it is not.
        """
        placed = {t.topic for decision in self._open for t in decision.topics if t.strategy in _CHECKED}
        fresh: dict[tuple[frozenset[int], int], list[TopicMoves]] = {}
        times = Counter[str]()  # a topic that was deleted in between is placed more than once
        for block in moves:
            if block.topic in placed and not block.before.size:
                fresh.setdefault((self.policy.closed_to(block.topic), times[block.topic]), []).append(block)
            elif not block.after.size:
                times[block.topic] += 1
        for (closed, _), blocks in fresh.items():
            check = verify_moves(change_of(blocks), self.state.live_members(closed))
            if not check:
                raise PlannerError(
                    f"cluster {self.state.cluster_id}: a topic was placed in a way that the check refuses: "
                    f"{check.violations[0]}",
                    cluster_id=self.state.cluster_id,
                )

    def _plain_numbers(self, moves: Sequence[TopicMoves]) -> Numbers:
        changed = sum(block.partitions.size for block in moves)
        return Numbers(partitions_changed=changed, before=self._open_balance, after=self.state.balance())

    def finish(self) -> list[EventRecord]:
        """Close the last version and return the events that no version records."""
        self._close()
        self.state.remember([*self._settled, *self._refused])
        if self.versions and self._settled:
            last = self.versions[-1]
            self.versions[-1] = replace(last, events=[*last.events, *self._settled])
            self._settled = []
        self.versions = [self.state.sealed(version) for version in self.versions]
        return [*self._refused, *self._settled]
