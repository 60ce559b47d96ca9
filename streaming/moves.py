"""Moves in columns: what the planner decides, what the journal stores, what the state is folded from.

A plan can hold a million moves, so they are kept per topic in NumPy arrays and cross into Arrow without
a Python object for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from placement import Replan
from placement.digest import digest_of
from placement.model import NO_BROKER, Int32Array
from placement.plan import REASONS
from placement.verify import Change

MOVE_TYPE: Final = pa.struct(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("before", pa.list_(pa.int32())),
        pa.field("after", pa.list_(pa.int32())),
        pa.field("reason", pa.string()),
        pa.field("wave", pa.int32()),
    ]
)


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
    """

    topic: str
    partitions: Int32Array
    before: Int32Array
    after: Int32Array
    reasons: Sequence[str]
    waves: Int32Array | None = None

    def inverse(self, reason: str) -> TopicMoves:
        """The moves that undo these."""
        return TopicMoves(self.topic, self.partitions, self.after, self.before, [reason] * self.partitions.size)

    def rows(self) -> Iterator[tuple[int, list[int], list[int], str]]:
        """``(partition, before, after, reason)`` of each change."""
        pairs = zip(self.partitions.tolist(), self.before.tolist(), self.after.tolist(), self.reasons, strict=True)
        for partition, before, after, reason in pairs:
            yield partition, _unpad(before), _unpad(after), reason


def moves_of(plan: Replan) -> list[TopicMoves]:
    """The moves of a replan, topic by topic."""
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
        )
        for lo, hi in zip(starts, ends, strict=False)
    ]


def no_replicas(n: int) -> Int32Array:
    """``n`` empty replica lists."""
    return np.full((n, 0), NO_BROKER, np.int32)


def _unpad(replicas: list[int]) -> list[int]:
    return [b for b in replicas if b != NO_BROKER]


def to_arrow(moves: Sequence[TopicMoves]) -> pa.StructArray:
    """One struct a changed partition, in the order given."""
    counts = [m.partitions.size for m in moves]
    topic = pa.DictionaryArray.from_arrays(
        np.repeat(np.arange(len(moves), dtype=np.int32), counts), pa.array([m.topic for m in moves], pa.string())
    )
    waves = [np.zeros(m.partitions.size, np.int32) if m.waves is None else m.waves for m in moves]
    wave = _concatenated(waves)
    columns = [
        topic.cast(pa.string()),
        pa.array(_concatenated([m.partitions for m in moves]), pa.int32()),
        _lists([m.before for m in moves]),
        _lists([m.after for m in moves]),
        pa.array([reason for m in moves for reason in m.reasons], pa.string()),
        pa.array(wave, pa.int32(), mask=wave == 0),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(MOVE_TYPE))


def from_arrow(array: pa.StructArray) -> list[TopicMoves]:
    """The inverse of :func:`to_arrow`; moves of one topic that stand together come back as one."""
    if not len(array):
        return []
    topic, partition, before, after, reason, wave = array.flatten()
    names = topic.dictionary_encode()
    codes = np.asarray(names.indices)
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    ends = np.r_[starts[1:], codes.size]
    ids = np.asarray(partition).astype(np.int32)
    wave_ids = np.asarray(wave.fill_null(0)).astype(np.int32)
    reasons = reason.to_pylist()
    olds, news = _Matrices(before), _Matrices(after)
    return [
        TopicMoves(
            names.dictionary[int(codes[lo])].as_py(),
            ids[lo:hi],
            olds.rows(lo, hi),
            news.rows(lo, hi),
            reasons[lo:hi],
            wave_ids[lo:hi] if wave_ids[lo:hi].any() else None,
        )
        for lo, hi in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def matrices(array: pa.ListArray) -> Int32Array:
    """Lists of broker ids as one padded matrix."""
    return _Matrices(array).rows(0, len(array))


class _Matrices:
    """Slices of an Arrow list column as padded NumPy matrices."""

    def __init__(self, array: pa.ListArray) -> None:
        self._values = np.asarray(array.flatten()).astype(np.int32)
        lengths = np.asarray(array.value_lengths()).astype(np.int64)
        self._lengths = lengths
        self._offsets = np.r_[0, np.cumsum(lengths)]

    def rows(self, lo: int, hi: int) -> Int32Array:
        lengths = self._lengths[lo:hi]
        width = int(lengths.max(initial=0))
        result = np.full((hi - lo, width), NO_BROKER, np.int32)
        result[np.arange(width) < lengths[:, None]] = self._values[self._offsets[lo] : self._offsets[hi]]
        return result


def _concatenated(arrays: Sequence[Int32Array]) -> Int32Array:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int32)


def _lists(padded: Sequence[Int32Array]) -> pa.ListArray:
    lengths = _concatenated([(m != NO_BROKER).sum(axis=1).astype(np.int32) for m in padded])
    values = _concatenated([m[m != NO_BROKER] for m in padded])
    offsets = np.r_[np.int32(0), np.cumsum(lengths, dtype=np.int32)]
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, pa.int32()))


def canonical(moves: Sequence[TopicMoves]) -> Iterator[tuple[str, int, list[int], list[int], Any]]:
    """``(topic, partition, before, after, reason)`` by topic and partition."""
    for block in sorted(moves, key=lambda m: m.topic):
        for partition, before, after, reason in block.rows():
            yield block.topic, partition, before, after, reason


def moved_replicas(moves: Sequence[TopicMoves]) -> int:
    """How many replicas have to be copied: brokers that are in ``after`` and were not in ``before``."""
    copied = 0
    for block in moves:
        kept = (block.after[:, :, None] == block.before[:, None, :]).any(axis=2)
        copied += int((~kept & (block.after != NO_BROKER)).sum())
    return copied


def change_of(moves: Sequence[TopicMoves]) -> Change:
    """The same moves in the core's columns, in canonical order."""
    if not moves:
        nothing = np.zeros(0, np.int32)
        return Change((), nothing, nothing, no_replicas(0), no_replicas(0))
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
    width = max(m.shape[1] for m in matrices)
    return np.concatenate([np.pad(m, ((0, 0), (0, width - m.shape[1])), constant_values=NO_BROKER) for m in matrices])
