"""Checks that every placer makes first, in the order in which Kafka makes them, and the limits of a layout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from placement.errors import InvalidPartitionsError, InvalidReplicationFactorError
from placement.model import Broker, distinct_brokers

MAX_REPLICAS: Final = 100_000_000
"""The most replicas one call lays out (partitions x replication factor): 400 MB of broker ids."""

MAX_PARTITION_ID: Final = 2**31 - 1


def check_partitions(partitions: int, replication_factor: int, start_partition_id: int = 0) -> None:
    """Check the number of partitions, then the replication factor, then the size of both together.

    Raises:
        InvalidPartitionsError: partitions is not positive, ids would pass 2^31-1, or the layout would
            hold more than ``MAX_REPLICAS`` replicas.
        InvalidReplicationFactorError: replication_factor is not positive.
    """
    if partitions <= 0:
        raise InvalidPartitionsError(
            f"the number of partitions must be larger than 0, not {partitions}", partitions=partitions
        )
    if replication_factor <= 0:
        raise InvalidReplicationFactorError(
            f"the replication factor must be larger than 0, not {replication_factor}",
            replication_factor=replication_factor,
        )
    if max(0, start_partition_id) + partitions - 1 > MAX_PARTITION_ID:
        raise InvalidPartitionsError(
            f"{partitions} partitions from id {start_partition_id} pass the largest id, {MAX_PARTITION_ID}",
            partitions=partitions,
        )


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
