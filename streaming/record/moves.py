"""Moves in columns: what the planner decides, what the journal stores, what the state is folded from.

A plan can hold a million moves, so they are kept per topic in NumPy arrays and cross into Arrow without
a Python object for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from placement import Replan, ReplicaCounts
from placement.digest import digest_of
from placement.model import NO_BROKER, Int32Array
from placement.plan import REASONS
from placement.verification.verify import Change

NO_OFFSET: Final = -1

ANY_LOG_DIR: Final = "any"
"""Kafka's word for a directory of the broker's choice."""

MOVE_TYPE: Final = pa.struct(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("before", pa.list_(pa.int32())),
        pa.field("after", pa.list_(pa.int32())),
        pa.field("reason", pa.string()),
        pa.field("wave", pa.int32()),
        pa.field("leader", pa.int32()),
        pa.field("isr", pa.list_(pa.int32())),
        pa.field("end_offsets", pa.list_(pa.int64())),
        pa.field("log_dirs", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True, slots=True)
class Roles:
    """What was observed of the replicas of some partitions: who leads, who is in sync, how far each log reaches.

    Attributes:
        leader: int32, shape ``(n,)``, ``NO_BROKER`` where there is none or it is not known.
        isr: int32 broker ids, shape ``(n, r)``, padded with ``NO_BROKER``; all padding where it is not known.
        end_offsets: int64, shape ``(n, r)``: the log end offset of each replica, in the order of the replica list;
            ``NO_OFFSET`` where it is not known.
    """

    leader: Int32Array
    isr: Int32Array
    end_offsets: NDArray[np.int64]

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_] | slice) -> Roles:
        """The roles of some of the partitions."""
        return Roles(self.leader[rows], self.isr[rows], self.end_offsets[rows])


def unknown_roles(n: int) -> Roles:
    """Roles of ``n`` partitions of which nothing was observed."""
    return Roles(np.full(n, NO_BROKER, np.int32), no_replicas(n), np.full((n, 0), NO_OFFSET, np.int64))


@dataclass(frozen=True, slots=True)
class TopicMoves:
    """The changed partitions of one topic, by partition id.

    Attributes:
        topic: the topic's name.
        partitions: int32, shape ``(n,)``.
        before: int32 broker ids, shape ``(n, r)``, padded with ``NO_BROKER``; all padding where the partition is new.
        after: the same, all padding where the partition is gone.
        reasons: why each one changes, ``n`` texts.
        waves: int32, shape ``(n,)``, from 1; ``None`` where nothing is to be executed in waves.
        roles: what was observed of the partitions; ``None`` where nothing was.
        log_dirs: for each partition the directory of each replica after, ``any`` where it may be any; ``None`` where no
            replica is put into one by name.
    """

    topic: str
    partitions: Int32Array
    before: Int32Array
    after: Int32Array
    reasons: Sequence[str]
    waves: Int32Array | None = None
    roles: Roles | None = None
    log_dirs: Sequence[Sequence[str]] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether this is a topic as it is placed: partitions in order, equally long lists, nothing observed."""
        return (
            self.roles is None
            and self.after.size > 0
            and bool((self.after != NO_BROKER).all())
            and bool((self.partitions[1:] > self.partitions[:-1]).all())
        )

    def inverse(self, reason: str) -> TopicMoves:
        """The moves that undo these."""
        return TopicMoves(self.topic, self.partitions, self.after, self.before, [reason] * self.partitions.size)

    def take(self, rows: NDArray[np.bool_]) -> TopicMoves:
        """The moves of some of the partitions."""
        chosen = np.flatnonzero(rows)
        return TopicMoves(
            self.topic,
            self.partitions[chosen],
            self.before[chosen],
            self.after[chosen],
            [self.reasons[row] for row in chosen.tolist()],
            None if self.waves is None else self.waves[chosen],
            self.roles and self.roles.take(chosen),
            self.log_dirs and [self.log_dirs[row] for row in chosen.tolist()],
        )

    def rows(self) -> Iterator[tuple[int, list[int], list[int], str]]:
        """``(partition, before, after, reason)`` of each change."""
        pairs = zip(self.partitions.tolist(), self.before.tolist(), self.after.tolist(), self.reasons, strict=True)
        for partition, before, after, reason in pairs:
            yield partition, unpadded(before), unpadded(after), reason


def moves_of(plan: Replan, waves: Int32Array | None = None) -> list[TopicMoves]:
    """The moves of a replan, topic by topic, with the wave of each if they are divided."""
    moves = plan.moves
    changes = np.flatnonzero(moves.topic_index[1:] != moves.topic_index[:-1]) + 1
    starts = [0, *changes.tolist()] if len(moves) else []
    ends = [*starts[1:], len(moves)]
    reasons = np.array(REASONS, object)[moves.reason].tolist()
    return [
        TopicMoves(
            moves.topics[int(moves.topic_index[lo])],
            moves.partition[lo:hi],
            moves.before[lo:hi],
            moves.after[lo:hi],
            reasons[lo:hi],
            None if waves is None else waves[lo:hi],
            log_dirs=_named_dirs(plan, lo, hi),
        )
        for lo, hi in zip(starts, ends, strict=False)
    ]


def _named_dirs(plan: Replan, lo: int, hi: int) -> Sequence[Sequence[str]] | None:
    """The directories of the moves from ``lo`` to ``hi``, if any of them names one."""
    dirs = plan.loads.log_dirs[lo:hi] if plan.loads else ()
    return dirs if any(path != ANY_LOG_DIR for paths in dirs for path in paths) else None


def no_replicas(n: int) -> Int32Array:
    """``n`` empty replica lists."""
    return np.full((n, 0), NO_BROKER, np.int32)


def unpadded(replicas: list[int]) -> list[int]:
    """A replica list without the padding at its end."""
    return [b for b in replicas if b != NO_BROKER]


def to_arrow(moves: Sequence[TopicMoves]) -> pa.StructArray:
    """One struct a changed partition, in the order given."""
    counts = [m.partitions.size for m in moves]
    topic = pa.DictionaryArray.from_arrays(
        np.repeat(np.arange(len(moves), dtype=np.int32), counts), pa.array([m.topic for m in moves], pa.string())
    )
    wave = _concatenated([np.zeros(m.partitions.size, np.int32) if m.waves is None else m.waves for m in moves])
    columns = [
        topic.cast(pa.string()),
        pa.array(_concatenated([m.partitions for m in moves]), pa.int32()),
        _lists([m.before for m in moves]),
        _lists([m.after for m in moves]),
        pa.array([reason for m in moves for reason in m.reasons], pa.string()),
        pa.array(wave, pa.int32(), mask=wave == 0),
        *_role_columns(moves, sum(counts)),
        _dir_column(moves, sum(counts)),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(MOVE_TYPE))


_ROLE_FIELDS: Final = ("leader", "isr", "end_offsets")


def _role_columns(moves: Sequence[TopicMoves], n: int) -> list[pa.Array]:
    """Leader, ISR and end offsets, null where they were not observed."""
    if not any(m.roles for m in moves):
        return [pa.nulls(n, MOVE_TYPE.field(name).type) for name in _ROLE_FIELDS]
    roles = [m.roles or unknown_roles(m.partitions.size) for m in moves]
    leader = _concatenated([r.leader for r in roles])
    return [
        pa.array(leader, pa.int32(), mask=leader == NO_BROKER),
        _lists([r.isr for r in roles], null_where_empty=True),
        _lists([r.end_offsets for r in roles], null_where_empty=True, kind=pa.int64()),
    ]


def _dir_column(moves: Sequence[TopicMoves], n: int) -> pa.Array:
    """The directories of each move, null where none is named."""
    kind = MOVE_TYPE.field("log_dirs").type
    if not any(m.log_dirs for m in moves):
        return pa.nulls(n, kind)
    named = (repeat(None, m.partitions.size) if m.log_dirs is None else m.log_dirs for m in moves)
    return pa.array(list(chain.from_iterable(named)), kind)


def from_arrow(array: pa.StructArray) -> list[TopicMoves]:
    """The inverse of :func:`to_arrow`; moves of one topic that stand together, ids ascending, come back as one."""
    if not len(array):
        return []
    columns = dict(zip([field.name for field in array.type], array.flatten(), strict=True))
    ids, topics, bounds = topic_blocks(columns["topic"], columns["partition"])
    waves = np.asarray(columns["wave"].fill_null(0)).astype(np.int32)
    divided = np.logical_or.reduceat(waves > 0, bounds[:-1]).tolist()
    distinct, reason_of = encoded(columns["reason"])
    reasons = [distinct[code] for code in reason_of.tolist()]
    olds, news = Matrices(columns["before"]), Matrices(columns["after"])
    roles = _roles_from(columns, len(array))
    dirs = columns.get("log_dirs")
    dirs = None if dirs is None or dirs.null_count == len(dirs) else dirs
    return [
        TopicMoves(
            topic,
            ids[lo:hi],
            olds.rows(lo, hi),
            news.rows(lo, hi),
            reasons[lo:hi],
            waves[lo:hi] if in_waves else None,
            roles(lo, hi),
            None if dirs is None else _dirs_of(dirs.slice(lo, hi - lo)),
        )
        for topic, (lo, hi), in_waves in zip(topics, pairwise(bounds), divided, strict=True)
    ]


def topic_blocks(topic: pa.StringArray, partition: pa.Int32Array) -> tuple[Int32Array, list[str], list[int]]:
    """Where rows of one topic stand together, ids ascending: the ids, the topic of each block, and their bounds.

    A topic that is created and deleted in one version has two blocks: as one, its rows would count twice.
    """
    names, codes = encoded(topic)
    ids = np.asarray(partition).astype(np.int32)
    starts = np.flatnonzero(np.r_[True, (codes[1:] != codes[:-1]) | (ids[1:] <= ids[:-1])])
    return ids, [names[code] for code in codes[starts].tolist()], [*starts.tolist(), ids.size]


def encoded(texts: pa.StringArray) -> tuple[list[str], NDArray[np.int32]]:
    """The distinct texts, and for each row which of them it has: a text that stands in many rows is made once."""
    encoded = texts.dictionary_encode()
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices)


def _dirs_of(column: pa.ListArray) -> list[tuple[str, ...]] | None:
    return None if column.null_count == len(column) else [tuple(paths or ()) for paths in column.to_pylist()]


def _roles_from(columns: dict[str, pa.Array], n: int) -> Callable[[int, int], Roles | None]:
    """Looks up the roles of a range of rows; tables of before 0.2 have none."""
    if "leader" not in columns or all(columns[name].null_count == n for name in _ROLE_FIELDS):
        return lambda lo, hi: None
    return roles_lookup(*(columns[name] for name in _ROLE_FIELDS))


def roles_lookup(leader: pa.Array, isr: pa.ListArray, end_offsets: pa.ListArray) -> Callable[[int, int], Roles | None]:
    """Roles of ranges of rows, from the columns that tables have."""
    leaders = np.asarray(leader.fill_null(NO_BROKER)).astype(np.int32)
    known = np.asarray(leader.is_valid()) | np.asarray(isr.is_valid()) | np.asarray(end_offsets.is_valid())
    in_sync, ends = Matrices(isr), Matrices(end_offsets, np.int64)

    def between(lo: int, hi: int) -> Roles | None:
        return Roles(leaders[lo:hi], in_sync.rows(lo, hi), ends.rows(lo, hi)) if known[lo:hi].any() else None

    return between


def matrices(array: pa.ListArray) -> Int32Array:
    """Lists of broker ids as one padded matrix."""
    return Matrices(array).rows(0, len(array))


class Matrices:
    """Slices of an Arrow list column as padded NumPy matrices."""

    def __init__(self, array: pa.ListArray, dtype: type[np.int32] | type[np.int64] = np.int32) -> None:
        self._values = np.asarray(array.flatten()).astype(dtype)
        lengths = np.asarray(array.value_lengths().fill_null(0)).astype(np.int64)
        self._lengths = lengths
        self._offsets = np.r_[0, np.cumsum(lengths)]
        width = int(lengths.max(initial=0))
        # Most columns have lists of one length only, and many topics a few rows each.
        self._even = self._values.reshape(lengths.size, width) if self._values.size == lengths.size * width else None

    def rows(self, lo: int, hi: int) -> NDArray[Any]:
        """The lists of a range of rows as a padded matrix, one line each, as wide as the longest of them."""
        if self._even is not None:
            return self._even[lo:hi]
        lengths = self._lengths[lo:hi]
        width = int(lengths.max(initial=0))
        result = np.full((hi - lo, width), -1, self._values.dtype)
        result[np.arange(width) < lengths[:, None]] = self._values[self._offsets[lo] : self._offsets[hi]]
        return result


def _concatenated(arrays: Sequence[Int32Array]) -> Int32Array:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int32)


def _lists(
    padded: Sequence[NDArray[Any]], *, null_where_empty: bool = False, kind: pa.DataType | None = None
) -> pa.ListArray:
    lengths = _concatenated([(m != -1).sum(axis=1).astype(np.int32) for m in padded])
    values = np.concatenate([m[m != -1] for m in padded]) if padded else np.zeros(0, np.int32)
    offsets = np.r_[np.int32(0), np.cumsum(lengths, dtype=np.int32)]
    mask = pa.array(lengths == 0) if null_where_empty else None
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, kind or pa.int32()), mask=mask)


def canonical(moves: Sequence[TopicMoves]) -> Iterator[tuple[str, int, list[int], list[int], Any]]:
    """``(topic, partition, before, after, reason)`` by topic and partition."""
    for block in sorted(moves, key=lambda m: m.topic):
        for partition, before, after, reason in block.rows():
            yield block.topic, partition, before, after, reason


def rows_with_dirs(moves: Sequence[TopicMoves]) -> Iterator[tuple[str, int, list[int], list[str]]]:
    """``(topic, partition, after, log directories)`` of partitions that do not go away, by topic and partition."""
    for block in sorted(moves, key=lambda m: m.topic):
        for at, (partition, _, after, _) in enumerate(block.rows()):
            if after:
                paths = [ANY_LOG_DIR] * len(after) if block.log_dirs is None else block.log_dirs[at]
                yield block.topic, partition, after, list(paths) or [ANY_LOG_DIR] * len(after)


def moved_replicas(moves: Sequence[TopicMoves]) -> int:
    """How many replicas have to be copied: brokers that are in ``after`` and were not in ``before``."""
    return sum(int(moved_rows(block).sum()) for block in moves)


def moved_rows(block: TopicMoves) -> NDArray[np.int64]:
    """The same for each partition, int64, shape ``(n,)``."""
    kept = (block.after[:, :, None] == block.before[:, None, :]).any(axis=2)
    return np.asarray((~kept & (block.after != NO_BROKER)).sum(axis=1))


def counts_after(counts: ReplicaCounts, moves: Sequence[TopicMoves]) -> ReplicaCounts:
    """What brokers hold once these moves are made."""
    return counts.subtract(*(block.before for block in moves)).add(*(block.after for block in moves))


def change_of(moves: Sequence[TopicMoves]) -> Change:
    """The same moves in the core's columns, in canonical order."""
    if not moves:
        nothing = np.zeros(0, np.int32)
        return Change((), nothing, nothing, no_replicas(0), no_replicas(0))
    if len(moves) == 1 and (moves[0].partitions[1:] > moves[0].partitions[:-1]).all():
        only = moves[0]
        return Change((only.topic,), np.zeros(only.partitions.size, np.int32), only.partitions, only.before, only.after)
    names = sorted({m.topic for m in moves})
    place = {name: i for i, name in enumerate(names)}
    index = np.repeat([place[m.topic] for m in moves], [m.partitions.size for m in moves]).astype(np.int32)
    partition = _concatenated([m.partitions for m in moves])
    rows = np.lexsort((partition, index))
    before, after = (_stacked([getattr(m, side) for m in moves])[rows] for side in ("before", "after"))
    return Change(tuple(names), index[rows], partition[rows], before, after)


def digest(moves: Sequence[TopicMoves]) -> str:
    """The digest that the core gives the same changes: hexadecimal sha256."""
    change = change_of(moves)
    return digest_of(change.topics, change.topic_index, change.partition, change.before, change.after)


def _stacked(matrices: Sequence[Int32Array]) -> Int32Array:
    widths = {m.shape[1] for m in matrices}
    if len(widths) == 1:
        return np.concatenate(matrices)
    result = np.full((sum(m.shape[0] for m in matrices), max(widths)), NO_BROKER, np.int32)
    row = 0
    for m in matrices:
        result[row : row + m.shape[0], : m.shape[1]] = m
        row += m.shape[0]
    return result
