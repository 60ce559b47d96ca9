"""Which partition a record goes to: by its key, by the partition it names, or in turn.

Source of the method: ``org.apache.kafka.clients.producer.internals.DefaultPartitioner`` and
``KafkaProducer.partition``. The page ``docs/algorithms/partitioner.md`` explains it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from placement.errors import InvalidPartitionError
from placement.kafka.keys import Keys, key_bytes, key_column
from placement.kafka.murmur2 import KeyColumn, murmur2, positive_hashes, to_positive
from placement.model import Int32Array
from placement.sizes import partition_count

NO_PARTITION: Final = -1
"""Stands for the partition of a null key in a column: such records go in turn, not by key."""


def partition_for_key(key: bytes | str, partitions: int) -> int:
    """The partition of a key: ``toPositive(murmur2(key)) % partitions``.

    Raises:
        InvalidPartitionsError: partitions is not positive, or above 2^31-1.
        InvalidKeyError: the key is neither bytes nor text.
    """
    count = partition_count(partitions)
    return to_positive(murmur2(key_bytes(key))) % count


def partitions_for_keys(keys: Keys, partitions: int) -> Int32Array:
    """The partitions of a column of keys, int32, shape ``(K,)``; ``NO_PARTITION`` where a key is null.

    Args:
        keys: as ``placement.kafka.keys.key_column`` reads them.
        partitions: as in :func:`partition_for_key`.

    Raises:
        InvalidPartitionsError: partitions is not positive, or above 2^31-1.
        InvalidKeyError: a key is neither bytes nor text nor null.
    """
    count = partition_count(partitions)
    column = key_column(keys)
    result = positive_hashes(column, count)
    if isinstance(column, KeyColumn) and column.null is not None:
        result[column.null] = NO_PARTITION
    return result


class Partitioner(Protocol):
    """Chooses the partition of each record; write one with this method to use your own rule."""

    def partition(self, key: bytes | None, partitions: int, available: Sequence[int]) -> int:
        """A partition from 0 to ``partitions - 1``; ``available`` are those that have a leader now."""


class DefaultPartitioner:
    """Kafka's rule: by the key's hash over all partitions, without a key in turn.

    In turn means over the available partitions, and over all where none is available. The count starts
    where it is told to; Kafka starts it at random.
    """

    __slots__ = ("_count",)

    def __init__(self, start: int = 0) -> None:
        self._count = start

    def partition(self, key: bytes | None, partitions: int, available: Sequence[int]) -> int:
        """As :class:`Partitioner` says."""
        if key is not None:
            return partition_for_key(key, partitions)
        partition_count(partitions)
        turn = to_positive(self._count)
        self._count += 1
        return available[turn % len(available)] if available else turn % partitions


def partition_for_record(
    partitioner: Partitioner,
    key: bytes | str | None,
    partitions: int,
    *,
    partition: int | None = None,
    available: Sequence[int] = (),
) -> int:
    """The partition of one record: the one it names, or else the partitioner's choice.

    Args:
        partitioner: asked where the record names no partition.
        key: of the record, or None.
        partitions: of the topic.
        partition: that the record names, or None.
        available: the partitions that have a leader now.

    Raises:
        InvalidPartitionError: the partition is not one of the topic, whoever chose it.
        InvalidPartitionsError: partitions is not positive, or above 2^31-1.
    """
    partition_count(partitions)
    chosen = partition
    if chosen is None:
        chosen = partitioner.partition(None if key is None else key_bytes(key), partitions, available)
    if not 0 <= chosen < partitions:
        raise InvalidPartitionError(
            f"invalid partition given with record: {chosen} is not in the range [0...{partitions - 1}]",
            partition=chosen,
            partitions=partitions,
        )
    return chosen
