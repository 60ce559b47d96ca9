"""What replanning answers with: the moves, the new layout, and the numbers that certify it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from placement import checks
from placement.arrays import BoolArray, Float64Array, Int64Array
from placement.loads.report import LoadReport
from placement.model import NO_BROKER, Assignment, Int32Array
from placement.terms import Terms

REASONS: Final = (
    "lost",
    "drained",
    "replication factor",
    "rack violation",
    "returned home",
    "spread",
    "over its share",
    "preferred leader",
)
"""Why a partition changes, strongest first; reason codes index into it."""


@dataclass(frozen=True, slots=True)
class Move:
    """The change of one partition: replica lists before and after, and why."""

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Moves(Sequence[Move]):
    """The changed partitions in canonical order; a :class:`Move` is made only when it is asked for.

    Attributes:
        topics: sorted topic names of the layout.
        row: int64, shape ``(M,)``: place of each partition in the layout.
        topic_index: int32, shape ``(M,)``: index into ``topics``.
        partition: int32, shape ``(M,)``.
        before, after: int32 broker ids, shapes ``(M, R1)`` and ``(M, R2)``, padded with ``NO_BROKER``.
        reason: uint8, shape ``(M,)``: index into ``REASONS``.

    Raises:
        InvalidAssignmentError: a column is none, has another length than the others, or holds what is no id.
    """

    topics: tuple[str, ...]
    row: Int64Array
    topic_index: Int32Array
    partition: Int32Array
    before: Int32Array
    after: Int32Array
    reason: NDArray[np.uint8]

    def __post_init__(self) -> None:
        """Reject columns that do not go together."""
        checks.changed(self, checks.column(self.row, "row").size)
        checks.column(self.reason, "reason", len(self.row), most=len(REASONS) - 1)

    def __len__(self) -> int:
        """The number of changed partitions."""
        return int(self.row.size)

    @overload
    def __getitem__(self, index: int) -> Move: ...
    @overload
    def __getitem__(self, index: slice) -> Moves: ...
    def __getitem__(self, index: int | slice) -> Move | Moves:
        """One move, or the moves of a slice."""
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        return Move(
            topic=self.topics[self.topic_index[index]],
            partition=int(self.partition[index]),
            before=_list(self.before[index]),
            after=_list(self.after[index]),
            reason=REASONS[self.reason[index]],
        )

    def __iter__(self) -> Iterator[Move]:
        """All moves, one at a time."""
        return (self[i] for i in range(len(self)))

    def take(self, index: Int64Array) -> Moves:
        """The moves at the given places, in that order."""
        return Moves(
            self.topics,
            self.row[index],
            self.topic_index[index],
            self.partition[index],
            self.before[index],
            self.after[index],
            self.reason[index],
        )

    def new_replicas(self) -> BoolArray:
        """Places of ``after`` that hold a broker not in ``before``, bool, shape ``(M, R2)``."""
        known = (self.after[:, :, None] == self.before[:, None, :]).any(axis=2)
        return np.asarray(~known & (self.after != NO_BROKER))


@dataclass(frozen=True, slots=True)
class Unhealed:
    """A partition that keeps a lost replica, because it needs more brokers than can take its replicas.

    Attributes:
        topic, partition: which one.
        needed: replicas that it is to have.
        brokers: brokers that can have one.
        limit: the limit that keeps others from it, in words; empty where there are no others.
    """

    topic: str
    partition: int
    needed: int
    brokers: int
    limit: str = ""

    def summary(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {name: value for name, value in asdict(self).items() if value != ""}


@dataclass(frozen=True, slots=True)
class Balance:
    """How evenly replicas or leaders lie on the usable brokers.

    Attributes:
        minimum, maximum: the fewest and the most on one broker.
        spread: largest minus smallest count per unit of capacity, where the mean capacity is 1.
        cost: sum of count^2 / capacity.
    """

    minimum: int
    maximum: int
    spread: float
    cost: float

    @classmethod
    def of(cls, count: Int64Array, capacity: Float64Array) -> Balance:
        """Measure counts, int64, shape ``(n,)``."""
        relative = count / capacity
        return cls(
            minimum=int(count.min()),
            maximum=int(count.max()),
            spread=float(relative.max() - relative.min()),
            cost=float((relative * count).sum()),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Replan:
    """A plan: the layout before and after, what changes, and the certificate.

    Attributes:
        terms: what was asked.
        before, assignment: the layout before and after.
        moves: one per changed partition, in canonical order.
        moved_replicas: replicas that data must be copied for.
        lower_bound: no plan that reaches this balance moves fewer.
        optimal: True only where it is proved that no plan balances better, and none as well with fewer moves.
        leader_changes: partitions whose preferred leader differs.
        replicas_before, replicas_after, leaders_before, leaders_after: balance over the usable brokers.
        digest: sha256 over the canonical form of the moves.
        unhealed: the partitions that keep a lost replica until there are more brokers or more room, in canonical order.
        loads: the bytes, where the plan was made by load.

    Raises:
        InvalidArgumentError: a part is of another type than it must be.
    """

    terms: Terms
    before: Assignment
    assignment: Assignment
    moves: Moves
    moved_replicas: int
    lower_bound: int
    optimal: bool
    leader_changes: int
    replicas_before: Balance
    replicas_after: Balance
    leaders_before: Balance
    leaders_after: Balance
    digest: str
    unhealed: tuple[Unhealed, ...] = ()
    loads: LoadReport | None = None

    def __post_init__(self) -> None:
        """Reject parts that could not be compared: ``verify`` takes plans that anybody made."""
        kinds = {"terms": Terms, "before": Assignment, "assignment": Assignment, "moves": Moves}
        kinds |= dict.fromkeys(("replicas_before", "replicas_after", "leaders_before", "leaders_after"), Balance)
        for name, kind in kinds.items():
            checks.instance(getattr(self, name), kind, name)
        for name in ("moved_replicas", "lower_bound", "leader_changes"):
            checks.whole(getattr(self, name), name, 0, 1 << 62)
        checks.flag(self.optimal, "optimal")
        checks.text(self.digest, "digest")
        checks.instances(self.unhealed, Unhealed, "unhealed")
        if self.loads is not None:
            checks.instance(self.loads, LoadReport, "loads")

    @property
    def gap(self) -> int:
        """Replicas moved above the lower bound."""
        return self.moved_replicas - self.lower_bound

    def summary(self) -> dict[str, object]:
        """The numbers of the plan as plain values, ready for JSON."""
        return {
            "mode": self.terms.mode,
            "changed_partitions": len(self.moves),
            "moved_replicas": self.moved_replicas,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "optimal": self.optimal,
            "leader_changes": self.leader_changes,
            "reasons": self.reason_counts(),
            "unhealed": [partition.summary() for partition in self.unhealed],
            "replicas_before": _plain(self.replicas_before),
            "replicas_after": _plain(self.replicas_after),
            "leaders_before": _plain(self.leaders_before),
            "leaders_after": _plain(self.leaders_after),
            "digest": self.digest,
            **({} if self.loads is None else {"loads": self.loads.summary()}),
        }

    def reason_counts(self) -> dict[str, int]:
        """Changed partitions by reason, strongest reason first, without those that do not occur."""
        counts = np.bincount(self.moves.reason, minlength=len(REASONS)).tolist()
        return {reason: count for reason, count in zip(REASONS, counts, strict=True) if count}


def _plain(balance: Balance) -> dict[str, float]:
    return {
        "minimum": balance.minimum,
        "maximum": balance.maximum,
        "spread": balance.spread,
        "cost": balance.cost,
    }


def _list(row: Int32Array) -> tuple[int, ...]:
    return tuple(b for b in row.tolist() if b != NO_BROKER)
