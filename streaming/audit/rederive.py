"""The audit of a cluster's journal: every plan version is derived again from what is on record, and must be the same.

Batch by batch the recorded lines go through the planner of this release, in the order in which they were received,
under the recorded policy, at the recorded time, on the state folded from the rows before. The first difference ends the
audit, because everything after it builds on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from streaming.audit.comparison import NotTheSame, compare_refused, compare_versions
from streaming.config import Policy
from streaming.errors import JobError
from streaming.events import Line, decode
from streaming.planning.batch import ClusterResult, ClusterWork, plan_alone
from streaming.planning.planner import SOFTWARE_VERSION, ClusterPlanner
from streaming.planning.soundness import check_moves
from streaming.planning.state import ClusterState
from streaming.record.moves import digest
from streaming.record.seal import seal_of
from streaming.record.version import BrokerRecord, EventRecord, PlanVersion


class Batch(NamedTuple):
    """A transaction of the journal: the query's id and the number of its micro-batch."""

    app_id: str
    batch_id: int


@dataclass(frozen=True, slots=True)
class Difference:
    """The first thing that is not as it must be.

    Attributes:
        what: one sentence.
        recorded, derived: what the journal has, and what it ought to have.
        context: what the version was made from: batch, events, policy, brokers, software.
    """

    cluster_id: str
    plan_version: int
    what: str
    recorded: Any = None
    derived: Any = None
    context: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """One sentence for a person."""
        return f"cluster {self.cluster_id} version {self.plan_version}: {self.what}"


@dataclass(slots=True)
class ClusterAudit:
    """Derives the versions of one cluster again.

    Attributes:
        refused: events that no version records, by their batch.
        newest: when the newest event of a batch occurred, whatever cluster it is about.
        state: the cluster as far as the audit has come.
        known: the versions that came out the same.
        moves: how many moves those have.
    """

    cluster_id: str
    refused: Mapping[Batch, Sequence[EventRecord]]
    newest: Mapping[Batch, datetime]
    state: ClusterState = field(init=False)
    known: dict[int, PlanVersion] = field(default_factory=dict)
    moves: int = 0
    _at: int = 0

    def __post_init__(self) -> None:
        """Begin with nothing."""
        self.state = ClusterState(self.cluster_id)

    def take(self, versions: Iterable[PlanVersion]) -> None:
        """Apply these versions to the state without auditing them."""
        for version in versions:
            self.state.fold(version)
            self.known[version.plan_version] = version

    def run(self, rows: Iterable[tuple[Batch, PlanVersion]]) -> Difference | None:
        """Audit rows in the order of their versions; the first difference, if there is one."""
        for batch, group in groupby(rows, key=lambda row: row[0]):
            versions = [version for _, version in group]
            before, brokers = self.state.version, self.state.members()
            try:
                self._check_order(versions)
                self._check_seals(versions)
                self._derive(batch, versions)
            except NotTheSame as found:
                what = f"{found}{'' if found.certain else _release(versions[0])}"
                context = self._context(batch, versions, before, brokers)
                return Difference(self.cluster_id, self._at, what, found.recorded, found.derived, context)
            self.known |= {version.plan_version: version for version in versions}
            self.moves += sum(block.partitions.size for version in versions for block in version.moves)
        return None

    def _context(
        self, batch: Batch, versions: Sequence[PlanVersion], before: int, brokers: Sequence[BrokerRecord]
    ) -> dict[str, Any]:
        return {
            "app_id": batch.app_id,
            "batch_id": batch.batch_id,
            "created_at": versions[0].created_at,
            "software_version": versions[0].software_version,
            "policy": versions[0].policy,
            "version_before": before,
            "brokers_before": [(b.broker_id, b.rack, b.capacity, b.state) for b in brokers],
            "events": [(e.outcome, e.reason, e.payload) for e in self._events(batch, versions)],
        }

    def _check_order(self, versions: Sequence[PlanVersion]) -> None:
        before = self.known.get(self.state.version)
        for expected, version in enumerate(versions, start=self.state.version + 1):
            self._at = expected
            if version.plan_version != expected:
                found = version.plan_version
                what = "is there twice" if found < expected else f"is missing: the next row is version {found}"
                raise NotTheSame(what, found, expected, certain=True)
            if before is not None and before.fold.brokers and not version.fold.brokers:
                what = "the digests of the projections are missing, and the version before has its own"
                raise NotTheSame(what, version.fold, before.fold, certain=True)
            before = version

    def _check_seals(self, versions: Sequence[PlanVersion]) -> None:
        """Digest and seal are those of the row's own content."""
        previous = self.state.seal
        for version in versions:
            self._at = version.plan_version
            own = digest(version.moves)
            if version.approval != "rejected" and own != version.digest:
                raise NotTheSame("its digest is not that of its moves", version.digest, own)
            if version.seal or previous:
                seal = seal_of(version, previous)
                if version.seal != seal:
                    raise NotTheSame("its seal is broken: this row was changed, or the one before", version.seal, seal)
            previous = version.seal

    def _derive(self, batch: Batch, versions: Sequence[PlanVersion]) -> None:
        """The planner makes the same versions, with the same outcome for every event."""
        self._at = versions[0].plan_version
        brokers = dict(self.state.brokers)
        result = self._planned(self._work(batch, versions), batch, versions)
        for version, derived in zip(versions, result.versions, strict=False):
            self._at = version.plan_version
            compare_versions(version, derived)
            brokers |= {b.broker_id: b for b in version.broker_changes}
            _check_sound(version, brokers)
        if len(result.versions) != len(versions):
            self._at = versions[0].plan_version + min(len(result.versions), len(versions))
            what = f"its batch makes {len(result.versions)} versions, and {len(versions)} are recorded"
            raise NotTheSame(what, [v.cause for v in versions], [v.cause for v in result.versions])
        compare_refused(self.refused.get(batch, ()), result.unplanned)
        # Repeated events are not fed in, so the seal of what was derived is another one.
        self.state.go_on_from(versions[-1].seal)

    def _events(self, batch: Batch, versions: Sequence[PlanVersion]) -> list[EventRecord]:
        """The events of a batch in the order in which they were received; the first release did not record it."""
        events = [*(event for version in versions for event in version.events), *self.refused.get(batch, ())]
        return sorted(events, key=lambda event: (event.sequence is None, event.sequence or 0))

    def _work(self, batch: Batch, versions: Sequence[PlanVersion]) -> ClusterWork:
        """What the batch had to plan, from the record."""
        terms = [(version.created_at, version.policy, version.software_version) for version in versions]
        for version, term in zip(versions, terms, strict=True):
            self._at = version.plan_version
            if term != terms[0]:
                raise NotTheSame("time, policy or release differ from those of its batch", term, terms[0])
        self._at = versions[0].plan_version
        batch_time = versions[0].created_at
        now = min(self.newest.get(batch, batch_time), batch_time)
        lines = [_line(event) for event in self._events(batch, versions) if event.outcome != "duplicate"]
        return ClusterWork(self.cluster_id, lines, now, batch_time, _policy(versions[0]))

    def _planned(self, work: ClusterWork, batch: Batch, versions: Sequence[PlanVersion]) -> ClusterResult:
        refused = {event.sequence: event for event in self.refused.get(batch, ())}
        stops = [version for version in versions if version.means.stopped]
        try:
            if not stops and not any(event.is_set_aside for event in refused.values()):
                return plan_alone(self.state, work, self._find)
            return self._with_faults(work, refused, stops)
        except Exception as error:
            raise NotTheSame(f"its batch cannot be planned again: {type(error).__name__}: {error}") from error

    def _with_faults(
        self, work: ClusterWork, refused: Mapping[int | None, EventRecord], stops: Sequence[PlanVersion]
    ) -> ClusterResult:
        """A fault of the planner is a fact, as an event is: it is taken where it happened."""
        planner = ClusterPlanner(self.state, work.policy, work.batch_time, self._find)
        waiting = iter(stops)
        for line in work.lines:
            event = refused.get(line.sequence)
            if event and event.is_held and not self.state.stopped:
                stop = next(waiting)
                planner.stop_with(stop.cause, stop.broker_changes, stop.load_deadline)
            if event and event.is_suspect:
                planner.suspect(line, event.fault)
            elif event and event.is_set_aside and line.event is not None:
                planner.advance(min(line.event.occurred_at, work.batch_time))
                planner.set_aside(line, event.fault)
            else:
                planner.handle(line)
        for stop in waiting:
            planner.stop_with(stop.cause, stop.broker_changes, stop.load_deadline)
        planner.advance(work.now)
        unplanned = planner.finish()
        return ClusterResult(planner.versions, unplanned, planner.progress)

    def _find(self, _: str, plan_version: int) -> PlanVersion | None:
        return self.known.get(plan_version)


def _release(recorded: PlanVersion) -> str:
    """What to do where the difference may be that of two releases."""
    if recorded.software_version == SOFTWARE_VERSION:
        return ""
    return (
        f" (planned by release {recorded.software_version}, derived by {SOFTWARE_VERSION}: "
        f"verify with {recorded.software_version} to tell a changed planner from a changed journal)"
    )


def _check_sound(version: PlanVersion, brokers: Mapping[int, BrokerRecord]) -> None:
    """The independent check of moves, against the members as they are with the version's changes."""
    check = check_moves(version, brokers.values())
    if not check:
        raise NotTheSame(f"it is unsound: {check.violations[0]}", [str(violation) for violation in check.violations])


def _line(record: EventRecord) -> Line:
    """The received line again."""
    line = decode(record.payload.encode(), record.place)._replace(sequence=record.sequence or 0)
    if line.event is None:
        raise NotTheSame(f"the line at {record.place} is recorded as an event: {line.problem}", record.payload)
    event = line.event
    said = (event.event_id, event.cluster_id, event.type, event.entity, event.occurred_at)
    told = (record.event_id, record.cluster_id, record.type, record.entity, record.occurred_at)
    if said != told:
        raise NotTheSame(f"the event at {record.place} is not what its line says", told, said)
    return line


def _policy(version: PlanVersion) -> Policy:
    try:
        return version.known_policy
    except JobError as error:
        raise NotTheSame(f"its policy cannot be read: {error.__cause__}", version.policy) from error
