"""A plan version: one row of the journal, as the planner makes it and the state is folded from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from msgspec import MsgspecError

from placement import Broker
from streaming.config import Policy
from streaming.errors import JobError
from streaming.events import Outcome
from streaming.record.kinds import Kind, Meaning, meaning_of
from streaming.record.loads import BrokerLimits, TopicLoads
from streaming.record.moves import TopicMoves

Approval = Literal["not_required", "proposed", "approved", "rejected", "reported"]
BrokerStatus = Literal["alive", "failed", "dead", "draining", "gone"]

SUSPECT: Final = "it stopped the cluster: "
"""Begins the reason of the held event that stopped its cluster; if it does so again, it is set aside."""

SET_ASIDE: Final = "set aside: it stopped the cluster, and failed again: "
"""Begins the reason of an event that a resumed cluster goes on without."""

EFFECTIVE: Final = ("not_required", "approved")
"""Approvals of versions whose moves are part of the state."""

MEMBERS: Final = ("alive", "failed", "dead", "draining")
"""States of brokers that belong to the cluster; a broker that is ``gone`` is only remembered."""

_CORE_STATE: Final = {"alive": "alive", "failed": "alive", "draining": "draining", "dead": "dead"}


@dataclass(frozen=True, slots=True)
class BrokerRecord:
    """A broker as the state knows it.

    ``failed`` is away and may come back until ``deadline``; its replicas stay where they are. ``dead`` stayed
    away longer. ``since`` is when the newest news about it occurred: older news is stale. An ``alive`` broker has a
    deadline while the cluster waits for more of a burst of joins before it is rebalanced.
    """

    broker_id: int
    rack: str | None
    capacity: float
    state: BrokerStatus
    since: datetime
    deadline: datetime | None = None

    def to_core(self) -> Broker:
        """The broker as the placement core sees it: what may still come back is not healed away."""
        return Broker(self.broker_id, self.rack, self.capacity, _CORE_STATE[self.state])  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class TopicChange:
    """A topic that appeared, with the strategy that placed it, or that is gone (``strategy`` is ``None``)."""

    topic: str
    strategy: str | None


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One received event and what became of it; ``sequence`` is its place among the lines of its batch, from 0."""

    event_id: str | None
    cluster_id: str | None
    type: str | None
    outcome: Outcome
    reason: str
    payload: str
    occurred_at: datetime | None
    entity: str
    place: str
    sequence: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether the same event again is a duplicate: what was malformed or held may be sent again."""
        return self.event_id is not None and self.outcome != "malformed" and not self.is_held

    @property
    def is_held(self) -> bool:
        """Whether its cluster was stopped when it came, or it stopped the cluster."""
        return self.outcome == "held"

    @property
    def is_suspect(self) -> bool:
        """Whether it stopped its cluster."""
        return self.is_held and self.reason.startswith(SUSPECT)

    @property
    def is_set_aside(self) -> bool:
        """Whether a resumed cluster goes on without it."""
        return self.reason.startswith(SET_ASIDE)

    @property
    def fault(self) -> str:
        """What it did to the planner when it stopped the cluster."""
        return self.reason.removeprefix(SUSPECT).removeprefix(SET_ASIDE)


@dataclass(frozen=True, slots=True)
class Balance:
    """The fewest and the most replicas, and preferred leaders, on any broker that may hold replicas."""

    replicas_min: int = 0
    replicas_max: int = 0
    leaders_min: int = 0
    leaders_max: int = 0


MOST_RESIDUAL: Final = 2**53


@dataclass(frozen=True, slots=True)
class LoadNumbers:
    """What a plan by load costs and brings, in bytes.

    ``lower_bound_bytes`` is certified. The residuals are how far the worst broker ends outside its band, in thousandths
    of its share, rounded up; 0 within, and ``MOST_RESIDUAL`` at most: a broker may have next to no share.
    """

    moved_bytes: int
    lower_bound_bytes: int
    residual_disk: int
    residual_bytes_in: int
    residual_bytes_out: int
    residual_cpu: int
    residual_replicas: int
    residual_leaders: int


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a plan costs and brings; ``lower_bound`` is proved, ``gap`` is what it may cost too much.

    ``loads`` is there where it was made by load.
    """

    partitions_changed: int = 0
    moved_replicas: int = 0
    lower_bound: int = 0
    gap: int = 0
    optimal: bool = True
    leader_changes: int = 0
    before: Balance = Balance()
    after: Balance = Balance()
    loads: LoadNumbers | None = None


class FoldDigests(NamedTuple):
    """Hexadecimal digests of what each projection has after a version; empty where an earlier release planned it."""

    brokers: str = ""
    assignments: str = ""
    loads: str = ""
    broker_limits: str = ""


NO_DIGESTS: Final = FoldDigests()


@dataclass(frozen=True, slots=True)
class PlanVersion:
    """One version of one cluster's plan: what came in, what changed, what was decided, and why.

    ``supersedes`` names the proposal that can no longer be approved because of this version. ``load_deadline`` is when
    the cluster is to be rebalanced by load, unless newer loads say otherwise. ``fold`` has the digests of what it
    leaves.
    """

    cluster_id: str
    plan_version: int
    base_version: int
    created_at: datetime
    kind: Kind
    cause: str
    approval: Approval
    events: Sequence[EventRecord]
    broker_changes: Sequence[BrokerRecord]
    topic_changes: Sequence[TopicChange]
    moves: Sequence[TopicMoves]
    numbers: Numbers
    policy: str
    software_version: str
    digest: str = ""
    supersedes: int | None = None
    seal: str = ""
    load_changes: Sequence[TopicLoads] = ()
    limit_changes: Sequence[BrokerLimits] = ()
    load_deadline: datetime | None = None
    fold: FoldDigests = NO_DIGESTS

    @property
    def means(self) -> Meaning:
        """What versions of its kind do."""
        return meaning_of(self.kind)

    @property
    def known_policy(self) -> Policy:
        """The policy on record.

        Raises:
            JobError: it is none that this release knows.
        """
        try:
            return _policy_of(self.policy)
        except MsgspecError as error:
            raise JobError(
                f"version {self.plan_version} of {self.cluster_id}: its policy cannot be read: {error}; "
                "where a newer release has written it, run that one"
            ) from error

    @property
    def only_observes(self) -> bool:
        """Whether it records who leads and who is in sync, and nothing else: there are many such versions."""
        return self.means.observes and not self.numbers.partitions_changed

    @property
    def leaves_proposals(self) -> bool:
        """Whether a proposal that waits for approval can still be approved after it.

        What was seen of leaders and ISR leaves it; where replicas were seen elsewhere, ``supersedes`` names it.
        """
        found_no_change = self.means.observes and self.supersedes is None
        return self.approval == "reported" or self.means.is_aside or found_no_change

    @property
    def waits_for_approval(self) -> bool:
        """Whether it is a proposal; whether that still stands, later versions say."""
        return self.approval == "proposed"

    @property
    def effective(self) -> bool:
        """Whether the moves are part of the state; those of a proposal are not."""
        return self.approval in EFFECTIVE


_policy_of: Final = lru_cache(maxsize=64)(Policy.from_json)


def proposal_in(versions: Sequence[PlanVersion]) -> PlanVersion | None:
    """The version that waits for approval, of a cluster's versions, oldest first."""
    last = next((version for version in reversed(versions) if not version.leaves_proposals), None)
    return last if last is not None and last.waits_for_approval else None


def fate_of_proposal(version: PlanVersion, versions: Sequence[PlanVersion]) -> str:
    """What has become of a proposal, from all versions of its cluster, oldest first."""
    number = version.plan_version
    for later in versions:
        if later.approval in ("approved", "rejected") and later.base_version == number:
            if later.approval == "approved":
                return f"it was approved as version {later.plan_version}; carry that out"
            return f"it was rejected by version {later.plan_version}"
        if later.supersedes == number and later.means.observes:
            return f"since version {later.plan_version} the cluster is not as it was planned for: {later.cause}"
        if later.supersedes == number:
            return f"it is superseded by version {later.plan_version}, which came before it was approved"
    return f"it waits for approval: replica-planner approve {version.cluster_id} {number} --digest {version.digest}"
