"""The layout that many plan versions leave, worked out on whole columns at once.

What :class:`~streaming.planning.state.ClusterState` does version by version while it plans, this does for readers: of
all the moves of a partition the last one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from placement.model import Int32Array
from streaming.record.load_columns import loads_from_arrow
from streaming.record.loads import TopicLoads
from streaming.record.moves import Matrices, Roles, TopicMoves, encoded, no_replicas, roles_lookup

_SPARSE = 4
"""A table with a place for every partition id is used while it has at most so many places a move."""


@dataclass(frozen=True, slots=True)
class FlatMoves:
    """The moves of several plan versions as one column of structs, in the order of the versions.

    Attributes:
        moves: the structs.
        version: int64, the plan version of each.
        topics: the names of the topics, in the order in which they first appear.
        topic: int32, index into ``topics`` of each.
        partition: int32, the partition id of each.
    """

    moves: pa.StructArray
    version: NDArray[np.int64]
    topics: Sequence[str]
    topic: Int32Array
    partition: Int32Array

    def take(self, rows: NDArray[np.int64]) -> FlatMoves:
        """Some of the moves, in the order given."""
        return FlatMoves(
            self.moves.take(pa.array(rows)), self.version[rows], self.topics, self.topic[rows], self.partition[rows]
        )


def flat_moves(table: pa.Table, column: str = "moves") -> FlatMoves:
    """The column ``moves``, or ``load_changes``, of rows of ``plans`` that stand in the order of their versions."""
    lists = _whole(table[column])
    moves = lists.flatten()
    lengths = np.asarray(lists.value_lengths().fill_null(0)).astype(np.int64)
    topics, codes = encoded(moves.field("topic"))
    return FlatMoves(
        moves,
        np.repeat(np.asarray(_whole(table["plan_version"])), lengths),
        topics,
        codes.astype(np.int32),
        np.asarray(moves.field("partition")).astype(np.int32),
    )


def _whole(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def places(moves: FlatMoves) -> NDArray[np.int64]:
    """A number for the partition of each move, ascending by topic and partition id; gaps are possible."""
    if not moves.partition.size:
        return np.zeros(0, np.int64)
    sizes = np.zeros(len(moves.topics), np.int64)
    np.maximum.at(sizes, moves.topic, moves.partition.astype(np.int64) + 1)
    place: NDArray[np.int64] = (np.cumsum(sizes) - sizes)[moves.topic] + moves.partition
    if sizes.sum() > _SPARSE * moves.partition.size:
        place = np.unique(place, return_inverse=True)[1].astype(np.int64)
    return place


def last_rows(place: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of the last move of each partition, by place."""
    last = np.full(int(place.max(initial=-1)) + 1, -1, np.int64)
    last[place] = np.arange(place.size)
    found: NDArray[np.int64] = last[last >= 0]
    return found


def first_rows(place: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of the first move of each partition, by place."""
    return place.size - 1 - last_rows(place[::-1])


def layout_after(table: pa.Table) -> list[TopicMoves]:
    """The partitions that there are after the versions in the table, one block a topic.

    The table needs topic, partition and ``after`` of the moves; roles where they are to be known.
    """
    moves = flat_moves(table)
    return layout_of(moves.take(last_rows(places(moves))))


def layout_of(moves: FlatMoves, side: str = "after") -> list[TopicMoves]:
    """Partitions as these moves leave them, or found them (``before``), one block a topic.

    Each partition is moved once, and moves stand by topic and partition id.
    """
    kept = moves.take(np.flatnonzero(sizes(moves, side) > 0))
    if not kept.topic.size:
        return []
    replicas = Matrices(kept.moves.field(side))
    roles = _roles(kept.moves)
    starts = np.flatnonzero(np.r_[True, kept.topic[1:] != kept.topic[:-1]])
    bounds = zip(starts.tolist(), [*starts[1:].tolist(), kept.topic.size], strict=True)
    return [
        TopicMoves(
            kept.topics[kept.topic[lo]],
            kept.partition[lo:hi],
            no_replicas(hi - lo),
            replicas.rows(lo, hi),
            [],
            roles=roles(lo, hi),
        )
        for lo, hi in bounds
    ]


def last_loads(table: pa.Table) -> list[TopicLoads]:
    """The last loads of each partition that the versions in the table changed, one block a topic."""
    changes = flat_moves(table, "load_changes")
    return loads_from_arrow(changes.take(last_rows(places(changes))).moves)


def sizes(moves: FlatMoves, side: str) -> NDArray[np.int64]:
    """How many replicas each move has ``before`` or ``after``."""
    return np.asarray(pc.list_value_length(moves.moves.field(side)).fill_null(0)).astype(np.int64)


def _roles(moves: pa.StructArray) -> Callable[[int, int], Roles | None]:
    names = ("leader", "isr", "end_offsets")
    present = {field.name for field in moves.type}
    if not present.issuperset(names) or all(moves.field(name).null_count == len(moves) for name in names):
        return lambda lo, hi: None
    return roles_lookup(*(moves.field(name) for name in names))
