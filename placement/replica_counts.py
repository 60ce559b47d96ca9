"""How many replicas, and how many preferred leaders, each broker holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placement import checks
from placement.arrays import Int64Array
from placement.errors import InvalidAssignmentError
from placement.model import NO_BROKER, Assignment, Int32Array

_DENSE_IDS = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class ReplicaCounts:
    """Replica and leader counts per broker id; a value that is updated by the change, not by the cluster.

    Attributes:
        ids: int32 broker ids, shape ``(B,)``, ascending.
        replicas: int64, shape ``(B,)``: the replicas that each of them holds.
        leaders: int64, shape ``(B,)``: the partitions of which each of them is the preferred leader.

    Raises:
        InvalidAssignmentError: a column is none, has another length than the others, or the ids do not ascend.
    """

    ids: Int32Array
    replicas: Int64Array
    leaders: Int64Array

    def __post_init__(self) -> None:
        """Reject columns that do not go together."""
        ids = checks.column(self.ids, "ids")
        if (ids[1:] <= ids[:-1]).any():
            raise InvalidAssignmentError(f"ids are {checks.shown(ids)}: they must ascend")
        object.__setattr__(self, "ids", ids)
        for name in ("replicas", "leaders"):
            object.__setattr__(self, name, checks.amounts(getattr(self, name), name, ids.size))

    @classmethod
    def empty(cls) -> ReplicaCounts:
        """No broker holds anything."""
        return cls(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))

    @classmethod
    def of(cls, assignment: Assignment) -> ReplicaCounts:
        """Count a whole layout once.

        Raises:
            InvalidArgumentError: it is none.
        """
        return cls.empty().add(checks.instance(assignment, Assignment, "assignment").replicas)

    def add(self, *replicas: Int32Array) -> ReplicaCounts:
        """The counts after these rows were added: int32 broker ids, shapes ``(rows, R)``, padded with ``NO_BROKER``."""
        return self._changed(replicas, 1)

    def subtract(self, *replicas: Int32Array) -> ReplicaCounts:
        """The counts after these rows were taken away."""
        return self._changed(replicas, -1)

    def replicas_on(self, ids: Int32Array) -> Int64Array:
        """Replica counts of the given brokers, 0 for those that hold nothing."""
        return self.on(ids)[0]

    def leaders_on(self, ids: Int32Array) -> Int64Array:
        """Leader counts of the given brokers, 0 for those that lead nothing."""
        return self.on(ids)[1]

    def on(self, ids: Int32Array) -> tuple[Int64Array, Int64Array]:
        """Both counts of the given brokers."""
        ids = checks.column(ids, "ids")
        if not self.ids.size:
            return np.zeros(ids.size, np.int64), np.zeros(ids.size, np.int64)
        if ids.size == self.ids.size and (ids == self.ids).all():
            return self.replicas, self.leaders
        place = np.minimum(self.ids.searchsorted(ids), self.ids.size - 1)
        held = self.ids[place] == ids
        return np.where(held, self.replicas[place], 0), np.where(held, self.leaders[place], 0)

    def _changed(self, replicas: Sequence[Int32Array], sign: int) -> ReplicaCounts:
        rows = [matrix for given in replicas if (matrix := checks.matrix(given, "replicas")).size]
        if not rows:
            return self
        held = _joined([matrix.reshape(-1) for matrix in rows])
        led = _joined([matrix[:, 0] for matrix in rows])
        return self._changed_by_known(held, led, sign) or self._changed_by_any(held, led, sign)

    def _changed_by_known(self, held: Int32Array, led: Int32Array, sign: int) -> ReplicaCounts | None:
        """The same in few steps where every cell names a broker that is counted already, as most changes do."""
        if not self.ids.size:
            return None
        place = self.ids.searchsorted(held)
        if int(place.max()) == self.ids.size or not (self.ids[place] == held).all():
            return None
        replicas = np.bincount(place, minlength=self.ids.size)
        leaders = np.bincount(self.ids.searchsorted(led), minlength=self.ids.size)
        return _counted(self.ids, self.replicas + sign * replicas, self.leaders + sign * leaders)

    def _changed_by_any(self, held: Int32Array, led: Int32Array, sign: int) -> ReplicaCounts:
        ids = np.union1d(self.ids, distinct_ids(held)).astype(np.int32)
        replicas, leaders = (_counts(ids, values[values != NO_BROKER]) for values in (held, led))
        return _counted(ids, self.replicas_on(ids) + sign * replicas, self.leaders_on(ids) + sign * leaders)


def _counted(ids: Int32Array, replicas: Int64Array, leaders: Int64Array) -> ReplicaCounts:
    """Counts of columns that were made here, which need no check: it is changed at every event."""
    counts = object.__new__(ReplicaCounts)
    for name, column in zip(ReplicaCounts.__slots__, (ids, replicas, leaders), strict=True):
        object.__setattr__(counts, name, column)
    return counts


def _joined(arrays: Sequence[Int32Array]) -> Int32Array:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def distinct_ids(replicas: Int32Array) -> Int32Array:
    """The broker ids in a replica matrix, ascending, each once, without padding."""
    largest = int(replicas.max(initial=NO_BROKER))
    if largest >= _DENSE_IDS:
        ids = np.unique(replicas)
        return np.asarray(ids[ids != NO_BROKER], np.int32)
    # One flag per id: sorting millions of cells for a few thousand ids would dominate a small change.
    seen = np.zeros(largest + 2, np.bool_)
    seen[replicas.reshape(-1)] = True
    return np.flatnonzero(seen[: largest + 1]).astype(np.int32)


def _counts(ids: Int32Array, values: Int32Array) -> Int64Array:
    """How often each of the ascending ids occurs among the values."""
    return np.bincount(np.searchsorted(ids, values), minlength=ids.size)
