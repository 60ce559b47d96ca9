"""A cluster in plain words: dictionaries and lists, told by the versions and by nothing of the planner's own code.

It says of each event what its outcome has to be, and of each version whether it is one that a planner may make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from streaming.config import Policy
from streaming.events import AnyEvent
from streaming.record.version import SET_ASIDE, EventRecord, PlanVersion
from tests.model.faults import Faults

MOVING = ("heal", "rebalance", "replication_factor", "rollback", "restore")
MEMBERS = ("alive", "failed", "dead", "draining")


class BrokenError(AssertionError):
    """Something that must never be, in a sentence."""


def must(holds: object, sentence: str) -> None:
    """Raises BrokenError with the sentence where it does not hold."""
    if not holds:
        raise BrokenError(sentence)


@dataclass(slots=True)
class Model:
    """What there is after some versions.

    Attributes:
        brokers: state by id; racks beside it.
        topics: the replicas of each partition, by topic and id.
        isr: who was in sync when it was last seen, by topic and partition.
        stopped: whether the cluster is; ``holding`` says the same as far as the events of a batch are told.
        back: partitions that are planned or proposed back, with where they were seen and the version.
        told: the versions that tell of drift, newest last.
    """

    version: int = 0
    brokers: dict[int, str] = field(default_factory=dict)
    racks: dict[int, str | None] = field(default_factory=dict)
    topics: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    isr: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    suspects: set[str] = field(default_factory=set)
    stopped: bool = False
    holding: bool = False
    limited: bool = False
    proposal: int = 0
    back: dict[tuple[str, int], tuple[list[int], list[int], int, bool]] = field(default_factory=dict)
    told: list[int] = field(default_factory=list)

    def take(self, version: PlanVersion, policy: Policy, faults: Faults) -> None:
        """Check a version, and take it over."""
        what = f"version {version.plan_version} ({version.kind}, {version.approval}: {version.cause[:200]})"
        given = ("half way through",) * bool(faults.events) + ("time is stuck",) * faults.time
        must(version.kind != "stop" or version.cause.endswith(given), f"{what} stops the cluster")
        must(version.plan_version == self.version + 1, f"{what} follows {self.version}")
        self.version += 1
        if version.kind in ("stop", "resume"):
            self.stopped = self.holding = version.kind == "stop"
        self._check_way_back(what, version)
        self.limited |= bool(version.limit_changes)
        if version.approval == "rejected":
            return
        after = self.brokers | {b.broker_id: b.state for b in version.broker_changes}
        moves = [(m.topic, *row[:3]) for m in version.moves for row in m.rows()]
        if version.kind in MOVING:
            self._check_moves(what, version, moves, after, policy)
        if version.approval not in ("not_required", "approved"):
            return
        changed = {b.broker_id for b in version.broker_changes}
        must(
            len(changed) == len(version.broker_changes) or version.kind == "membership", f"{what} names a broker twice"
        )
        for b in version.broker_changes:
            self.brokers[b.broker_id], self.racks[b.broker_id] = b.state, b.rack
        for topic, partition, before, now in moves:
            held = self.topics.get(topic, {}).get(partition, [])
            if version.kind not in ("election", "restore"):
                must(held == before, f"{what} takes {topic}-{partition} from {before}, and it is on {held}")
            self._move(topic, partition, now)
        self._see(version)
        self._check_healed(what, version, policy)

    def _check_way_back(self, what: str, version: PlanVersion) -> None:
        """Drift that is planned or proposed back already is not planned back again."""
        waiting = self.proposal
        if not version.leaves_proposals:
            self.proposal = version.plan_version if version.approval == "proposed" else 0
        if version.kind not in ("drift", "restore"):
            return
        rows = [((m.topic, row[0]), row[1], row[2]) for m in version.moves for row in m.rows()]
        self.told = [*self.told[-19:], version.plan_version]
        if version.kind == "restore" and version.approval != "approved":
            known = {
                place: kept[:2]
                for place, kept in self.back.items()
                if kept[2] in self.told and (kept[3] or kept[2] == waiting)
            }
            new = [place for place, seen, planned in rows if known.get(place) != (seen, planned)]
            must(new, f"{what} plans back what is planned back already")
        for place, seen, planned in rows:
            self.back.pop(place, None)
            if version.kind == "restore":
                self.back[place] = (seen, planned, version.plan_version, version.approval != "proposed")

    def _move(self, topic: str, partition: int, now: list[int]) -> None:
        self.isr.pop((topic, partition), None)
        layout = self.topics.setdefault(topic, {})
        layout[partition] = now
        if not now:
            del layout[partition]
        if not layout:
            del self.topics[topic]

    def _see(self, version: PlanVersion) -> None:
        for block in version.moves:
            if block.roles is not None:
                for at, partition in enumerate(block.partitions.tolist()):
                    seen = [b for b in block.roles.isr[at].tolist() if b >= 0]
                    if seen:
                        self.isr[block.topic, partition] = seen

    def _check_moves(
        self, what: str, version: PlanVersion, moves: Sequence[Any], brokers: Mapping[int, str], policy: Policy
    ) -> None:
        for topic, partition, before, after in moves:
            name = f"{what}: {topic}-{partition} {before} -> {after}"
            must(len(set(after)) == len(after), f"{name} names a broker twice")
            must(after or version.kind == "rollback", f"{name} ends a partition")
            new = [b for b in after if b not in before]
            for b in new:
                must(brokers.get(b) in MEMBERS, f"{name} puts a replica on {b}, which is no member")
                if version.kind in ("heal", "rebalance", "replication_factor") and version.approval != "approved":
                    must(brokers[b] == "alive", f"{name} puts a replica on {b}, which is {brokers[b]}")
                    must(b not in policy.exclude_brokers, f"{name} puts a replica on {b}, which is excluded")
            if version.approval == "approved":
                continue
            if version.kind in ("heal", "rebalance"):
                must(len(before) == len(after), f"{name} has another number of replicas")
                excluded = any(fnmatchcase(topic, pattern) for pattern in policy.exclude_topics)
                must(not excluded, f"{name} is of an excluded topic")
            if version.kind == "heal":
                lost = [b for b in before if brokers.get(b) not in ("alive", "failed")]
                must(lost, f"{name} has lost nothing")
                must(set(before) - set(after) <= set(lost), f"{name} moves what was not lost")
            if version.kind in ("heal", "rebalance", "replication_factor"):
                self._check_sources(name, (topic, partition), before, after, brokers)

    def _check_sources(
        self, name: str, place: tuple[str, int], before: list[int], after: list[int], brokers: Mapping[int, str]
    ) -> None:
        """Of what is live, and of what is in sync, at least as many replicas are left as there is room for."""
        live = {b for b in before if brokers.get(b) in ("alive", "draining")}
        isr = self.isr.get(place)
        sources = [("live", live)] if isr is None else [("live", live), ("in sync", live & set(isr))]
        for word, good in sources:
            if good:
                kept = sum(b in good or b not in before for b in after)
                must(kept >= min(len(good), len(after)), f"{name} drops a replica that is {word}: {sorted(good)}")

    def _check_healed(self, what: str, version: PlanVersion, policy: Policy) -> None:
        """Where policy asks for healing at once, nothing that can be healed is left."""
        lost_now = {"dead": policy.on_failed, "draining": policy.on_decommissioned, "gone": policy.on_unregistered}
        asked = version.kind == "heal" and version.approval == "not_required"
        if version.kind == "membership" and "heal" not in policy.approval:
            asked = any(lost_now.get(b.state) == "heal" for b in version.broker_changes[-1:])
        racks = {self.racks[b] is None for b, state in self.brokers.items() if state in MEMBERS}
        full = policy.loads.plan and (self.limited or _limits(policy)) and "not healed: " in version.cause
        if not asked or full or len(racks) > 1:
            return
        usable = {b for b, state in self.brokers.items() if state == "alive" and b not in policy.exclude_brokers}
        for topic, layout in self.topics.items():
            if any(fnmatchcase(topic, pattern) for pattern in policy.exclude_topics):
                continue
            for partition, row in layout.items():
                kept = [b for b in row if self.brokers.get(b) in ("alive", "failed")]
                if len(kept) < len(row) and len(usable - set(kept)) >= len(row) - len(kept):
                    raise BrokenError(f"{what} leaves {topic}-{partition} on {row}, and {sorted(usable)} are there")

    def check_outcome(self, event: AnyEvent, record: EventRecord, faults: Faults) -> None:
        """The outcome of an event, as far as it can be told without planning."""
        name, reason = event.event_id, record.reason
        what = f"event {name} is {record.outcome}: {reason}"
        if name in self.outcomes:
            must(record.outcome == "duplicate", f"{what}; it was known")
            return
        must(record.outcome != "duplicate", f"{what}; it is new")
        poisoned = faults.at(event)
        if record.is_suspect:
            must(poisoned and not self.holding and name not in self.suspects, what)
            self.suspects.add(name)
            self.holding = True
        elif record.is_held:
            must((self.holding or faults.time) and event.type != "cluster_resumed", what)
            self.holding = True
        else:
            must(not self.holding or event.type == "cluster_resumed", f"{what}; the cluster is stopped")
            aside = poisoned and name in self.suspects and record.outcome != "stale"
            must(reason.startswith(SET_ASIDE) == aside and (aside or not poisoned or record.outcome == "stale"), what)
            self.holding &= event.type != "cluster_resumed"
            self.outcomes[name] = record.outcome


def _limits(policy: Policy) -> bool:
    """Whether policy says what brokers can take at most."""
    return policy.loads.bytes_in_limit is not None
