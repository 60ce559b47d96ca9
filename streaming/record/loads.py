"""Loads and limits as the journal records them: only what changed, and integers throughout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from placement import LogDir
from placement.model import Int32Array

MEASURED: Final = ("size", "bytes_in", "bytes_out")
"""What is measured of a partition: bytes of one replica, and bytes a second."""

LIMITED: Final = ("disk", "bytes_in", "bytes_out", "cpu")
"""What a broker has limits of."""

UNKNOWN: Final = -1

Int64Array = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TopicLoads:
    """The loads of some partitions of one topic.

    Attributes:
        topic: the topic's name.
        partitions: int32 partition ids, ascending, shape ``(n,)``.
        values: int64, shape ``(n, 3)``, in the order of ``MEASURED``; ``UNKNOWN`` where it is not known. Of a partition
            of which nothing is known any more the row is all ``UNKNOWN``.
    """

    topic: str
    partitions: Int32Array
    values: Int64Array

    def rows(self) -> Iterator[tuple[str, int, int, int, int]]:
        """Topic, partition and values of each partition."""
        for partition, values in zip(self.partitions.tolist(), self.values.tolist(), strict=True):
            yield (self.topic, partition, *values)


@dataclass(frozen=True, slots=True)
class BrokerLimits:
    """What a broker can take, as it was observed; one of which nothing is known has no limit and no directory.

    Attributes:
        disk: bytes.
        bytes_in, bytes_out: bytes a second.
        cpu: hundredths of a byte a second.
        log_dirs: its disks, by path.
    """

    broker_id: int
    disk: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    cpu: int | None = None
    log_dirs: tuple[LogDir, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether anything is known."""
        return bool(self.log_dirs) or any(getattr(self, name) is not None for name in LIMITED)


def nothing_of(topic: str, partitions: Int32Array) -> TopicLoads:
    """Says that of these partitions nothing is known any more."""
    return TopicLoads(topic, partitions, np.full((partitions.size, len(MEASURED)), UNKNOWN, np.int64))


def listed(changes: Iterable[TopicLoads]) -> list[tuple[str, int, int, int, int]]:
    """All rows, in the order given."""
    return [row for block in changes for row in block.rows()]


def count(changes: Sequence[TopicLoads]) -> int:
    """How many partitions the changes concern."""
    return sum(block.partitions.size for block in changes)
