"""The values that rules return, and the numbers that describe them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from typing import Final

import numpy as np

from placement import LoadReport, Replan, Unhealed
from streaming.planning.state import ClusterState, balance_on
from streaming.record.kinds import Kind, Meaning, meaning_of
from streaming.record.loads import BrokerLimits, TopicLoads
from streaming.record.moves import TopicMoves, counts_after
from streaming.record.version import (
    EFFECTIVE,
    MOST_RESIDUAL,
    Approval,
    BrokerRecord,
    LoadNumbers,
    Numbers,
    TopicChange,
)


@dataclass(frozen=True, slots=True)
class Decision:
    """Something changes, or is proposed to."""

    kind: Kind
    cause: str
    brokers: Sequence[BrokerRecord] = ()
    topics: Sequence[TopicChange] = ()
    moves: Sequence[TopicMoves] = ()
    numbers: Numbers | None = None
    approval: Approval = "not_required"
    base_version: int | None = None
    digest: str = ""
    loads: Sequence[TopicLoads] = ()
    limits: Sequence[BrokerLimits] = ()
    load_deadline: datetime | None = None

    @property
    def means(self) -> Meaning:
        """What versions of its kind do."""
        return meaning_of(self.kind)

    @property
    def effective(self) -> bool:
        """Whether it becomes part of the state; a proposal does not."""
        return self.approval in EFFECTIVE

    @property
    def leaves_proposals(self) -> bool:
        """Whether a proposal that waits for approval can still be approved after it."""
        found_no_change = self.means.observes and not self._changes_replicas
        return self.approval == "reported" or self.means.is_aside or found_no_change

    @property
    def _changes_replicas(self) -> bool:
        """Whether a partition is to have other replicas than before, or is new, or gone."""
        return any(not np.array_equal(block.before, block.after) for block in self.moves)


@dataclass(frozen=True, slots=True)
class NoEffect:
    """The event is fine and changes nothing; ``reason`` says why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stale:
    """The event comes too late; ``reason`` names what is known since."""

    reason: str


Answer = Decision | NoEffect | Stale

MAX_NAMED: Final = 3


def numbers_of(
    plan: Replan, state: ClusterState, brokers: Sequence[BrokerRecord], moves: Sequence[TopicMoves]
) -> Numbers:
    """The numbers of a replan, with the balance of the whole cluster before and after."""
    return Numbers(
        partitions_changed=sum(m.partitions.size for m in moves),
        moved_replicas=plan.moved_replicas,
        lower_bound=plan.lower_bound,
        gap=plan.moved_replicas - plan.lower_bound,
        optimal=plan.optimal,
        leader_changes=plan.leader_changes,
        before=balance_on(state.counts, brokers),
        after=balance_on(counts_after(state.counts, moves), brokers),
        loads=None if plan.loads is None else _load_numbers(plan.loads),
    )


def _load_numbers(report: LoadReport) -> LoadNumbers:
    residuals = {
        f"residual_{weight}": min(ceil(1000 * left), MOST_RESIDUAL) for weight, left in report.residuals().items()
    }
    return LoadNumbers(report.moved_bytes, report.lower_bound_bytes, **residuals)


def named(items: Sequence[object], most: int = MAX_NAMED) -> str:
    """A short list for a sentence: the first items, and how many more there are."""
    shown = ", ".join(str(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"


def unhealed_text(unhealed: Sequence[Unhealed]) -> str:
    """What the cause says of partitions that lack brokers or room, topic by topic; nothing where there are none."""
    topics: Counter[tuple[str, str]] = Counter()
    limits: dict[str, str] = {}
    for one in unhealed:
        # Of a topic's partitions that lack room, one limit is enough for a sentence.
        limit = limits.setdefault(one.topic, one.limit) if one.limit else ""
        topics[one.topic, limit or f"needs {one.needed} brokers, {one.brokers} can take replicas"] += 1
    said = [f"{count} partition{'s' if count > 1 else ''} of {topic} ({why})" for (topic, why), count in topics.items()]
    return f"; not healed: {named(said)}" if said else ""


def moment_text(moment: datetime) -> str:
    """A moment for a sentence, to the second, UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
