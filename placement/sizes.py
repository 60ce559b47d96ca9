"""Checks that every placer makes first, in the order in which Kafka makes them, and the limits of a layout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from placement import checks
from placement.errors import InvalidPartitionsError, InvalidReplicationFactorError
from placement.model import MAX_ID, Broker, distinct_brokers

MAX_REPLICAS: Final = 100_000_000
"""The most replicas one call lays out (partitions x replication factor): 400 MB of broker ids."""


def partition_count(value: object, most: int = MAX_ID) -> int:
    """A number of partitions, from 1.

    Raises:
        InvalidPartitionsError: it is no whole number, not positive, or above ``most``.
    """
    if not checks.is_whole(value, 1, most):
        raise InvalidPartitionsError(
            f"the number of partitions must be a whole number from 1 to {most}, not {checks.shown(value)}",
            partitions=value,
        )
    return int(value)  # type: ignore[call-overload,no-any-return]


def check_partitions(partitions: int, replication_factor: int, start_partition_id: int = 0) -> tuple[int, int, int]:
    """Check the number of partitions, then the replication factor, then the size of both together.

    Returns:
        The three as integers of Python, whose sums do not overflow.

    Raises:
        InvalidPartitionsError: partitions is no positive whole number, ids would pass 2^31-1, or the layout would
            hold more than ``MAX_REPLICAS`` replicas.
        InvalidReplicationFactorError: replication_factor is no positive whole number.
    """
    if not checks.is_whole(start_partition_id, -MAX_ID, MAX_ID):
        raise InvalidPartitionsError(
            f"start_partition_id is {checks.shown(start_partition_id)}: it must be a whole number of at most {MAX_ID}",
            partitions=partitions,
        )
    first = int(start_partition_id)
    count = partition_count(partitions)
    factor = checks.replication_factor(replication_factor, "replication_factor", most=MAX_ID)
    if max(0, first) + count - 1 > MAX_ID:
        raise InvalidPartitionsError(
            f"{count} partitions from id {first} pass the largest id, {MAX_ID}", partitions=count
        )
    return count, factor, first


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
