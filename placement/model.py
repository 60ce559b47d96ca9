"""Values that the core works on: brokers and the layout of one cluster.

Both are immutable. An :class:`Assignment` is held in columns (NumPy), because a cluster has up to
millions of partitions and a Python object for each would cost more than the planning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from placement import checks
from placement.arrays import MAX_ID, NO_BROKER, Int32Array
from placement.errors import (
    DuplicateBrokerError,
    InvalidArgumentError,
    InvalidAssignmentError,
    InvalidBrokerError,
    PlacementError,
)

__all__ = ["MAX_ID", "NO_BROKER", "Assignment", "Broker", "Int32Array"]

BrokerState = Literal["alive", "draining", "dead"]

BROKER_STATES: Final = ("alive", "draining", "dead")
CAPACITIES: Final = (0.001, 1e12)
"""The least and the greatest capacity: sums of squares over capacities further apart are not exact enough."""


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker as the planner sees it.

    ``alive`` takes replicas, ``draining`` is up but must end empty, ``dead`` is gone and so are its
    copies. ``capacity`` is a weight: a broker of capacity 2 gets twice the replicas of one of 1.

    Raises:
        InvalidBrokerError: id is no integer from 0 to 2^31-1, capacity is not from 0.001 to 10^12,
            or state is unknown.
    """

    id: int
    rack: str | None = None
    capacity: float = 1.0
    state: BrokerState = "alive"

    def __post_init__(self) -> None:
        """Reject what no plan could be made for."""
        for name in ("id", "capacity"):
            if isinstance(number := getattr(self, name), np.generic):
                object.__setattr__(self, name, number.item())
        if not checks.is_whole(self.id, 0, MAX_ID):
            raise self._error("id", self.id, f"an integer from 0 to {MAX_ID}")
        if self.rack is not None and not isinstance(self.rack, str):
            raise self._error("rack", self.rack, "a string or null")
        least, greatest = CAPACITIES
        number = isinstance(self.capacity, (int, float)) and not isinstance(self.capacity, bool)
        if not (number and least <= self.capacity <= greatest):
            raise self._error("capacity", self.capacity, f"a number from {least} to {greatest:g}")
        if not isinstance(self.state, str) or self.state not in BROKER_STATES:
            raise self._error("state", self.state, "alive, draining or dead")

    def _error(self, field: str, value: object, expected: str) -> InvalidBrokerError:
        return InvalidBrokerError(
            f"broker {checks.shown(self.id)} has {field} {checks.shown(value)}: it must be {expected}",
            broker=self.id,
            field=field,
            value=value,
        )


def only_brokers(brokers: Iterable[Broker]) -> tuple[Broker, ...]:
    """The brokers in the given order.

    Raises:
        InvalidBrokerError: something among them is no broker.
    """
    try:
        return checks.instances(brokers, Broker, "brokers")
    except InvalidArgumentError as error:
        raise InvalidBrokerError(str(error), broker=error.value, field="id", value=error.value) from error


def distinct_brokers(brokers: Iterable[Broker]) -> tuple[Broker, ...]:
    """The brokers in the given order.

    Raises:
        InvalidBrokerError: something among them is no broker.
        DuplicateBrokerError: an id appears twice.
    """
    result = only_brokers(brokers)
    if len({b.id for b in result}) == len(result):
        return result
    seen: set[int] = set()
    twice = sorted({b.id for b in result if b.id in seen or seen.add(b.id)})  # type: ignore[func-returns-value]
    if twice:
        raise DuplicateBrokerError(f"broker ids given more than once: {twice}", brokers=tuple(twice))
    return result


class Assignment:
    """The layout of one cluster, in canonical order: by topic (code points), then by partition id.

    Attributes:
        topics: the topic names, sorted, each once.
        topic_index: int32, shape ``(P,)``: the topic of each row, an index into ``topics``.
        partition: int32, shape ``(P,)``: the partition id of each row.
        replicas: int32 broker ids, shape ``(P, R)``, R the largest replication factor. Column 0 is the
            preferred leader; shorter rows are padded at the end with ``NO_BROKER``.

    The arrays are read-only. Build one with :meth:`from_rows`, :meth:`from_topics` or :meth:`from_json`.
    """

    __slots__ = ("partition", "replicas", "topic_index", "topics")

    topics: tuple[str, ...]
    topic_index: Int32Array
    partition: Int32Array
    replicas: Int32Array

    def __init__(
        self, topics: Sequence[str], topic_index: Int32Array, partition: Int32Array, replicas: Int32Array
    ) -> None:
        """Take columns in any row order; they are copied into canonical order and checked.

        Raises:
            InvalidAssignmentError: a column is none or has another length than the others, or a row repeats a partition
                or a broker, is empty, or is padded in the middle.
        """
        if not isinstance(topics, Sequence):
            raise InvalidAssignmentError(f"topics is {checks.shown(topics)}: it must be a list of topic names")
        names = sorted(checks.topics(topics, "topics"))
        rank = {name: i for i, name in enumerate(names)}
        recode = np.fromiter((rank[name] for name in topics), np.int32, len(topics))
        matrix = checks.matrix(replicas, "replicas")
        ids = checks.column(partition, "partition", matrix.shape[0])
        places = checks.column(topic_index, "topic_index", matrix.shape[0], most=len(topics) - 1)
        index = recode[places]
        key = index.astype(np.int64) << 32 | ids.astype(np.int64)
        if key.size > 1 and not (key[1:] > key[:-1]).all():
            order = np.argsort(key, kind="stable")
            index, ids, matrix, key = index[order], ids[order], matrix[order], key[order]
        self.topics = tuple(names)
        self.topic_index = _read_only(index)
        self.partition = _read_only(ids)
        self.replicas = _read_only(matrix)
        self._check(key)

    def _check(self, key: NDArray[np.int64]) -> None:
        repeated = np.flatnonzero(key[1:] == key[:-1])
        if repeated.size:
            raise self._error(int(repeated[0]), "is given more than once")
        if not self.replicas.shape[1] and len(self):
            raise self._error(0, "has no replicas")
        present = self.replicas != NO_BROKER
        if not present[:, :1].all():
            raise self._error(int(np.argmin(present[:, 0])), "has no replicas")
        if (present[:, 1:] & ~present[:, :-1]).any():
            bad = (present[:, 1:] & ~present[:, :-1]).any(axis=1)
            raise self._error(int(np.argmax(bad)), "has an invalid broker id")
        ordered = np.sort(self.replicas, axis=1)
        same = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NO_BROKER)
        if same.any():
            raise self._error(int(np.argmax(same.any(axis=1))), "names a broker more than once")

    def _error(self, row: int, problem: str) -> InvalidAssignmentError:
        topic, partition = self.topics[self.topic_index[row]], int(self.partition[row])
        replicas = self.replicas_of(row)
        return InvalidAssignmentError(
            f"partition {topic}-{partition} {problem}: {list(replicas)}",
            topic=topic,
            partition=partition,
            replicas=replicas,
        )

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, int, Sequence[int]]]) -> Assignment:
        """Build from ``(topic, partition, replicas)`` rows in any order.

        Raises:
            InvalidAssignmentError: a row is none, an id is no integer from 0 to 2^31-1, or what the class refuses.
        """
        try:
            listed = [(topic, partition, list(replicas)) for topic, partition, replicas in rows]
        except PlacementError:
            raise
        except (TypeError, ValueError) as error:
            raise InvalidAssignmentError(
                f"a layout is made of rows of topic, partition id and replica list: {error}"
            ) from error
        names = sorted(checks.topics([topic for topic, _, _ in listed], "a row"))
        rank = {name: i for i, name in enumerate(names)}
        width = max((len(replicas) for _, _, replicas in listed), default=0)
        matrix = np.full((len(listed), width), NO_BROKER, np.int32)
        lengths = np.fromiter((len(r) for _, _, r in listed), np.int64, len(listed))
        if listed:
            mask = np.arange(width) < lengths[:, None]
            matrix[mask] = _ids(list(chain.from_iterable(r for _, _, r in listed)), "broker")
        index = np.fromiter((rank[topic] for topic, _, _ in listed), np.int32, len(listed))
        ids = _ids([p for _, p, _ in listed], "partition")
        return cls(names, index, ids, matrix)

    @classmethod
    def from_topics(cls, topics: Mapping[str, Sequence[Sequence[int]] | Mapping[int, Sequence[int]]]) -> Assignment:
        """Build from ``{topic: [replicas of partition 0, ...]}`` or ``{topic: {partition: replicas}}``.

        Raises:
            InvalidAssignmentError: it is no such mapping, or what :meth:`from_rows` refuses.
        """
        if not isinstance(topics, Mapping):
            raise InvalidAssignmentError(f"a layout is a mapping from topic names, not {checks.shown(topics)}")
        return cls.from_rows(
            (topic, partition, replicas)
            for topic, layout in topics.items()
            for partition, replicas in (layout.items() if isinstance(layout, Mapping) else enumerate(layout))
        )

    @classmethod
    def from_json(cls, text: str, *, topic: str = "topic") -> Assignment:
        """Read Kafka's reassignment JSON, or the old topic form, whose rows get the name ``topic``.

        Raises:
            InvalidJsonError: not that form; says where.
            InvalidAssignmentError: a replica list that no cluster can have.
        """
        from placement.kafka.reassignment_json import assignment_from_json

        return assignment_from_json(text, topic=topic)

    def to_json(self) -> str:
        """Kafka's reassignment JSON of the whole layout."""
        from placement.kafka.reassignment_json import assignment_to_json

        return assignment_to_json(self)

    def with_rows(self, rows: NDArray[np.int64], replicas: Int32Array) -> Assignment:
        """The layout with the given rows replaced; only these are checked.

        Args:
            rows: ascending places, shape ``(M,)``.
            replicas: int32 broker ids, shape ``(M, R)``, padded with ``NO_BROKER``.

        Raises:
            InvalidAssignmentError: the places do not ascend or are not there, or a new row is empty, repeats a broker,
                or is padded in the middle.
        """
        places = checks.column(rows, "rows", most=len(self) - 1)
        if (places[1:] <= places[:-1]).any():
            raise InvalidAssignmentError(f"rows are {checks.shown(rows)}: they must ascend")
        changed = Assignment(self.topics, self.topic_index[places], self.partition[places], replicas)
        width = max(self.replicas.shape[1], changed.replicas.shape[1])
        matrix = np.full((len(self), width), NO_BROKER, np.int32)
        matrix[:, : self.replicas.shape[1]] = self.replicas
        matrix[places] = NO_BROKER
        matrix[places, : changed.replicas.shape[1]] = changed.replicas
        matrix.flags.writeable = False
        result = object.__new__(Assignment)
        result.topics, result.topic_index, result.partition = self.topics, self.topic_index, self.partition
        result.replicas = _unpadded(matrix)
        return result

    def replicas_of(self, row: int) -> tuple[int, ...]:
        """The replica list of one row, without padding.

        Raises:
            InvalidArgumentError: there is no such row.
        """
        row = checks.whole(row, "row", 0, len(self) - 1)
        return tuple(b for b in self.replicas[row].tolist() if b != NO_BROKER)

    @property
    def replication_factor(self) -> Int32Array:
        """The number of replicas of each row, shape ``(P,)``."""
        # Column by column: reducing over a short inner axis costs several times as much.
        result = np.zeros(len(self), np.int32)
        for column in range(self.replicas.shape[1]):
            result += self.replicas[:, column] != NO_BROKER
        return result

    def rows(self) -> Iterable[tuple[str, int, tuple[int, ...]]]:
        """``(topic, partition, replicas)`` in canonical order."""
        columns = self.topic_index.tolist(), self.partition.tolist(), self.replicas.tolist()
        for topic, partition, padded in zip(*columns, strict=True):
            replicas = padded if padded[-1] != NO_BROKER else (b for b in padded if b != NO_BROKER)
            yield self.topics[topic], partition, tuple(replicas)

    def __len__(self) -> int:
        """The number of partitions."""
        return int(self.partition.size)

    def __eq__(self, other: object) -> bool:
        """Equal when every partition has the same replicas in the same order."""
        if not isinstance(other, Assignment):
            return NotImplemented
        return (
            self.topics == other.topics
            and np.array_equal(self.topic_index, other.topic_index)
            and np.array_equal(self.partition, other.partition)
            and np.array_equal(_unpadded(self.replicas), _unpadded(other.replicas))
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Sizes only; use :meth:`rows` or :meth:`to_json` for the content."""
        return f"Assignment({len(self.topics)} topics, {len(self)} partitions)"


def _ids(values: list[int], what: str) -> Int32Array:
    """Ids as they are: cut to 32 bits or to whole numbers they would be those of others."""
    plain = set(map(type, values)) <= {int}
    wrong = [] if plain else [value for value in values if not checks.is_whole(value, 0, MAX_ID)]
    if plain and values and not 0 <= min(values) <= max(values) <= MAX_ID:
        wrong = [min(values) if min(values) < 0 else max(values)]
    if wrong:
        raise InvalidAssignmentError(
            f"a {what} id is {checks.shown(wrong[0])}: it must be an integer from 0 to {MAX_ID}"
        )
    return np.array(values, np.int32)


def _unpadded(matrix: Int32Array) -> Int32Array:
    """Drop columns at the end that hold nothing but padding."""
    used = (matrix != NO_BROKER).any(axis=0)
    return matrix[:, : int(used.sum())]


def _read_only(array: Int32Array) -> Int32Array:
    """An own, contiguous copy that nobody can write to."""
    result = np.array(array, np.int32, order="C", copy=True)
    result.flags.writeable = False
    return result
