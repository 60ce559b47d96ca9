"""Checks that every placer makes first, in the order in which Kafka makes them, and the limits of a layout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from placement.errors import InvalidPartitionsError, InvalidReplicationFactorError
from placement.model import MAX_ID, Broker, distinct_brokers

MAX_REPLICAS: Final = 100_000_000
"""The most replicas one call lays out (partitions x replication factor): 400 MB of broker ids."""


def check_partitions(partitions: int, replication_factor: int, start_partition_id: int = 0) -> None:
    """Check the number of partitions, then the replication factor, then the size of both together.

    Raises:
        InvalidPartitionsError: partitions is no positive whole number, ids would pass 2^31-1, or the layout would
            hold more than ``MAX_REPLICAS`` replicas.
        InvalidReplicationFactorError: replication_factor is no positive whole number.
    """
    for name, value in (("number of partitions", partitions), ("first partition id", start_partition_id)):
        if not _is_number(value):
            raise InvalidPartitionsError(f"the {name} must be a whole number, not {value!r}", partitions=value)
    if not _is_number(replication_factor):
        raise InvalidReplicationFactorError(
            f"the replication factor must be a whole number, not {replication_factor!r}",
            replication_factor=replication_factor,
        )
    if partitions <= 0:
        raise InvalidPartitionsError(
            f"the number of partitions must be larger than 0, not {partitions}", partitions=partitions
        )
    if replication_factor <= 0:
        raise InvalidReplicationFactorError(
            f"the replication factor must be larger than 0, not {replication_factor}",
            replication_factor=replication_factor,
        )
    if max(0, start_partition_id) + partitions - 1 > MAX_ID:
        raise InvalidPartitionsError(
            f"{partitions} partitions from id {start_partition_id} pass the largest id, {MAX_ID}",
            partitions=partitions,
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_replicas(partitions: int, replication_factor: int, brokers: int) -> None:
    """Check the replication factor against the brokers, then the size of the layout.

    Raises:
        InvalidReplicationFactorError: replication_factor is larger than brokers.
        InvalidPartitionsError: the layout would hold more than ``MAX_REPLICAS`` replicas.
    """
    if replication_factor > brokers:
        raise InvalidReplicationFactorError(
            f"the replication factor {replication_factor} is larger than the number of available brokers, {brokers}",
            replication_factor=replication_factor,
            brokers=brokers,
        )
    if partitions * replication_factor > MAX_REPLICAS:
        raise InvalidPartitionsError(
            f"{partitions} partitions of {replication_factor} replicas are more than {MAX_REPLICAS} replicas",
            partitions=partitions,
        )


def alive_brokers(brokers: Iterable[Broker]) -> tuple[Broker, ...]:
    """The brokers that take replicas, in the given order.

    Raises:
        DuplicateBrokerError: an id appears twice, whatever its state.
    """
    return tuple(b for b in distinct_brokers(brokers) if b.state == "alive")
