"""What partitions weigh and what brokers can take: integers, so that sums are the same on every machine.

The loads are those of Cruise Control's model: every replica holds the partition's bytes and takes its writes in, the
leader alone serves consumers, and CPU is 0.7 in + 0.15 out on a leader and 0.15 in on a follower.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np

from placement import checks
from placement.arrays import MAX_ID, BoolArray, Float64Array, Int64Array
from placement.errors import InvalidLimitError, InvalidLoadError
from placement.model import Assignment

RESOURCES: Final = ("disk", "bytes_in", "bytes_out", "cpu")
"""What brokers have limits of; CPU in hundredths of a byte a second."""
COUNTS: Final = ("replicas", "leaders")
WEIGHTS: Final = RESOURCES + COUNTS
"""The rows of every load matrix."""

LED: Final = tuple(WEIGHTS.index(name) for name in ("bytes_out", "cpu", "leaders"))
"""The rows that a leadership changes, free of data; the others only a copy does."""

NOISY: Final = tuple(WEIGHTS.index(name) for name in ("bytes_in", "bytes_out", "cpu"))
"""The rows that come from rates, which differ from one look to the next; what is on disk is counted."""

NOISE: Final = 0.2
"""The standard deviation of a partition's rates that is taken for noise, as a fraction of them."""

_LARGEST: Final = 1 << 50
_CPU_IN_LEADER, _CPU_OUT_LEADER, _CPU_IN_FOLLOWER = 70, 15, 15


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """What was measured of one partition; None where it is not known.

    Attributes:
        size: bytes of one replica.
        bytes_in: bytes a second that producers write.
        bytes_out: bytes a second that consumers read.

    Raises:
        InvalidLoadError: a number is no integer from 0 to 2^50.
    """

    topic: str
    partition: int
    size: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None

    def __post_init__(self) -> None:
        """Reject what cannot have been measured."""
        checks.text(self.topic, "topic", InvalidLoadError)
        checks.whole(self.partition, "partition", 0, MAX_ID, InvalidLoadError)
        for name in ("size", "bytes_in", "bytes_out"):
            _check(getattr(self, name), name, f"partition {self.topic}-{self.partition}")


@dataclass(frozen=True, slots=True)
class LogDir:
    """A disk of a broker.

    Attributes:
        path: as in ``log.dirs``.
        limit: bytes that it may hold at most.
        used: bytes that it holds now.

    Raises:
        InvalidLoadError: the path is empty, or a number is no integer from 0 to 2^50.
    """

    path: str
    limit: int
    used: int = 0

    def __post_init__(self) -> None:
        """Reject a disk that no replica could be put on by name."""
        if not checks.text(self.path, "path", InvalidLoadError):
            raise InvalidLoadError("a log_dir has an empty path: it must be as in log.dirs", name="path", value="")
        for name in ("limit", "used"):
            if getattr(self, name) is None:
                raise InvalidLoadError(f"log_dir {self.path} has no {name}", name=name, value=None)
            _check(getattr(self, name), name, f"log_dir {self.path}")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one broker may carry at most; None where there is no limit.

    Attributes:
        disk: bytes.
        bytes_in, bytes_out: bytes a second.
        cpu: the model's unit, hundredths of a byte a second.
        log_dirs: its disks; where there are any, new replicas are put on them by name.

    Raises:
        InvalidLoadError: a number is no integer from 0 to 2^50, or a path is given twice.
    """

    disk: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    cpu: int | None = None
    log_dirs: tuple[LogDir, ...] = ()

    def __post_init__(self) -> None:
        """Reject limits that mean nothing."""
        for name in RESOURCES:
            _check(getattr(self, name), name, "a broker's limits")
        paths = [d.path for d in checks.instances(self.log_dirs, LogDir, "log_dirs")]
        if len(set(paths)) < len(paths):
            raise InvalidLoadError(f"log_dirs {paths} repeat a path", name="log_dirs", value=paths)


@dataclass(frozen=True, slots=True)
class Band:
    """How far from its share a broker may be.

    Attributes:
        settle: a plan brings brokers this close, as a fraction of their share.
        trigger: rebalancing begins only where a broker is further away than this.
        exact_counts: replicas and leaders too are brought to their share, rounded down or up.

    Raises:
        InvalidLimitError: not 0 < settle <= trigger < 1.
    """

    settle: float = 0.09
    trigger: float = 0.15
    exact_counts: bool = False

    def __post_init__(self) -> None:
        """Reject bands that no broker could be in, or that would replan for ever."""
        for name in ("settle", "trigger"):
            checks.fraction(getattr(self, name), name, InvalidLimitError)
        checks.flag(self.exact_counts, "exact_counts")
        if not 0 < self.settle < 1:
            raise InvalidLimitError(
                f"settle is {checks.shown(self.settle)}: it must be above 0 and below 1",
                name="settle",
                value=self.settle,
            )
        if not self.settle <= self.trigger < 1:
            raise InvalidLimitError(
                f"trigger is {checks.shown(self.trigger)}: it must be from settle, {self.settle}, to below 1",
                name="trigger",
                value=self.trigger,
            )


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """The load of every partition of one layout, in its row order, and the limits of its brokers.

    Attributes:
        size, bytes_in, bytes_out: int64, shape ``(P,)``.
        limits: by broker id.
    """

    size: Int64Array
    bytes_in: Int64Array
    bytes_out: Int64Array
    limits: Mapping[int, Limits] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(
        cls,
        assignment: Assignment,
        measured: Iterable[PartitionLoad],
        *,
        limits: Mapping[int, Limits] | None = None,
        out_per_in: float = 1.0,
    ) -> Loads:
        """Line measurements up with a layout; those of other partitions are left out.

        Args:
            assignment: the layout.
            measured: in any order. What is missing gets the median of its topic, else of all.
            limits: by broker id.
            out_per_in: bytes out for each byte in, where bytes out are not known.

        Raises:
            InvalidLoadError: a partition is given twice, or ``out_per_in`` is not from 0 to 1,000.
        """
        checks.instance(assignment, Assignment, "assignment")
        if not 0 <= checks.fraction(out_per_in, "out_per_in", InvalidLoadError) <= 1000:
            raise InvalidLoadError(
                f"out_per_in is {checks.shown(out_per_in)}: it must be from 0 to 1000",
                name="out_per_in",
                value=out_per_in,
            )
        known = np.full((3, len(assignment)), -1, np.int64)
        for load, row in _aligned(assignment, checks.instances(measured, PartitionLoad, "measured")):
            known[:, row] = [-1 if v is None else v for v in (load.size, load.bytes_in, load.bytes_out)]
        size, bytes_in = (_with_medians(column, assignment) for column in known[:2])
        estimated = np.minimum(np.floor(bytes_in * out_per_in), _LARGEST).astype(np.int64)
        given = MappingProxyType(_limits({} if limits is None else limits))
        return cls(size, bytes_in, np.where(known[2] < 0, estimated, known[2]), given)

    def alike(self) -> bool:
        """Whether all partitions weigh the same, so that counts say it all."""
        return all(int(c.min()) == int(c.max()) for c in (self.size, self.bytes_in, self.bytes_out) if c.size)

    def check(self, assignment: Assignment) -> None:
        """Refuse loads of another layout, and loads that could not be added.

        Raises:
            InvalidLoadError: there is not one of each for each row of the layout, from 0 to 2^50, or all replicas
                together carry 2^62 or more of something.
        """
        _limits(self.limits)
        for name in ("size", "bytes_in", "bytes_out"):
            column = getattr(self, name)
            if not isinstance(column, np.ndarray) or column.dtype != np.int64 or column.ndim != 1:
                raise InvalidLoadError(
                    f"{name} is {checks.shown(column)}: it must be a column of int64", name=name, value=column
                )
            if column.size != len(assignment):
                raise InvalidLoadError(
                    f"the loads are of {column.size} partitions and the layout has {len(assignment)}",
                    name="loads",
                    value=column.size,
                )
            if column.size and not 0 <= int(column.min()) <= int(column.max()) <= _LARGEST:
                wrong = int(column.min()) if column.min() < 0 else int(column.max())
                raise InvalidLoadError(f"{name} is {wrong}: it must be from 0 to {_LARGEST}", name=name, value=wrong)
        copies = assignment.replication_factor - 1
        total = (self.leader().astype(np.float64) + self.follower().astype(np.float64) * copies).sum(axis=1)
        for name, amount in zip(WEIGHTS, total.tolist(), strict=True):
            if amount >= 1 << 62:
                raise InvalidLoadError(
                    f"all replicas together carry {amount:g} of {name}, which is too much to be added exactly",
                    name=name,
                    value=amount,
                )

    def leader(self) -> Int64Array:
        """What a leader carries, int64, shape ``(weights, P)``."""
        one = np.ones_like(self.size)
        cpu = _CPU_IN_LEADER * self.bytes_in + _CPU_OUT_LEADER * self.bytes_out
        return np.stack([self.size, self.bytes_in, self.bytes_out, cpu, one, one])

    def follower(self) -> Int64Array:
        """What a follower carries, int64, shape ``(weights, P)``."""
        none = np.zeros_like(self.size)
        return np.stack([self.size, self.bytes_in, none, _CPU_IN_FOLLOWER * self.bytes_in, none + 1, none])

    def limit_matrix(self, ids: Iterable[int]) -> Float64Array:
        """The limits of brokers, float64, shape ``(weights, brokers)``; infinite where there is none."""
        listed = [self.limits.get(broker, Limits()) for broker in ids]
        rows = [[np.inf if (v := getattr(one, name)) is None else float(v) for one in listed] for name in RESOURCES]
        return np.array(rows + [[np.inf] * len(listed)] * len(COUNTS), np.float64)


def _check(value: object, name: str, where: str) -> None:
    if value is not None and not checks.is_whole(value, 0, _LARGEST):
        raise InvalidLoadError(
            f"{where}: {name} is {checks.shown(value)}: it must be an integer from 0 to {_LARGEST}",
            name=name,
            value=value,
        )


def _limits(limits: Mapping[int, Limits]) -> dict[int, Limits]:
    given = dict(checks.mapping(limits, "limits"))
    checks.broker_ids(list(given), "limits")
    checks.instances(given.values(), Limits, "limits")
    return given


def _aligned(assignment: Assignment, measured: Iterable[PartitionLoad]) -> Iterable[tuple[PartitionLoad, int]]:
    rank = {name: i for i, name in enumerate(assignment.topics)}
    keys = zip(assignment.topic_index.tolist(), assignment.partition.tolist(), strict=True)
    row_of = {key: row for row, key in enumerate(keys)}
    seen: set[tuple[str, int]] = set()
    for load in measured:
        key = (load.topic, load.partition)
        if key in seen:
            raise InvalidLoadError(
                f"partition {load.topic}-{load.partition} has more than one load", name="partition", value=key
            )
        seen.add(key)
        row = row_of.get((rank.get(load.topic, -1), load.partition))
        if row is not None:
            yield load, row


def _with_medians(column: Int64Array, assignment: Assignment) -> Int64Array:
    """The column with the median of the topic, else of all, where it is below zero."""
    missing = column < 0
    if not missing.any():
        return column
    result = column.copy()
    overall = _median(column[~missing])
    for topic in np.unique(assignment.topic_index[missing]).tolist():
        first, last = np.searchsorted(assignment.topic_index, [topic, topic + 1])
        absent: BoolArray = missing[first:last]
        given = column[first:last][~absent]
        result[first:last][absent] = _median(given) if given.size else overall
    return result


def _median(values: Int64Array) -> int:
    return int(np.sort(values)[values.size // 2]) if values.size else 0
