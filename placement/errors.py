"""Errors of the placement core: one base, each carrying what it is about.

Names and conditions follow Kafka where Kafka has them (``InvalidPartitionsException``,
``InvalidReplicationFactorException``, ``AdminOperationException`` for incomplete racks).
"""

from __future__ import annotations


class PlacementError(ValueError):
    """Base of every error of the core. ``str(error)`` is one sentence for a person."""


class InvalidArgumentError(PlacementError):
    """An argument is of another type, shape or size than it must be."""

    def __init__(self, message: str, *, name: str, value: object) -> None:
        super().__init__(message)
        self.name = name
        self.value = value


class InvalidPartitionsError(PlacementError):
    """The number of partitions is not positive, or absurdly large."""

    def __init__(self, message: str, *, partitions: object) -> None:
        super().__init__(message)
        self.partitions = partitions


class InvalidPartitionError(PlacementError):
    """A record names, or a partitioner chose, a partition that the topic does not have."""

    def __init__(self, message: str, *, partition: int, partitions: int) -> None:
        super().__init__(message)
        self.partition = partition
        self.partitions = partitions


class InvalidKeyError(PlacementError):
    """A record's key is neither bytes nor text."""

    def __init__(self, message: str, *, key: object) -> None:
        super().__init__(message)
        self.key = key


class InvalidReplicationFactorError(PlacementError):
    """The replication factor is not positive, or larger than the number of usable brokers."""

    def __init__(self, message: str, *, replication_factor: int, brokers: int | None = None) -> None:
        super().__init__(message)
        self.replication_factor = replication_factor
        self.brokers = brokers


class IncompleteRackError(PlacementError):
    """Some brokers have a rack and some have none (Kafka's AdminOperationException)."""

    def __init__(self, message: str, *, without_rack: tuple[int, ...]) -> None:
        super().__init__(message)
        self.without_rack = without_rack


class InvalidStartIndexError(PlacementError):
    """A start so large that the sums which Kafka makes in 32 bits turn negative there."""

    def __init__(self, message: str, *, start_index: int, partition: int) -> None:
        super().__init__(message)
        self.start_index = start_index
        self.partition = partition


class InvalidBrokerError(PlacementError):
    """A broker's id, rack, capacity or state is not one the planner can use."""

    def __init__(self, message: str, *, broker: object, field: str, value: object) -> None:
        super().__init__(message)
        self.broker = broker
        self.field = field
        self.value = value


class DuplicateBrokerError(PlacementError):
    """The same broker id was given more than once."""

    def __init__(self, message: str, *, brokers: tuple[int, ...]) -> None:
        super().__init__(message)
        self.brokers = brokers


class InvalidAssignmentError(PlacementError):
    """A replica list is empty, repeats a broker, names an unknown one, or has the wrong length."""

    def __init__(
        self,
        message: str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        replicas: tuple[int, ...] = (),
    ) -> None:
        super().__init__(message)
        self.topic = topic
        self.partition = partition
        self.replicas = replicas


class InvalidGroupError(PlacementError):
    """A consumer group is described wrongly, or cannot be assigned; ``where`` names the member or topic."""

    def __init__(self, message: str, *, where: str) -> None:
        super().__init__(message)
        self.where = where


class InvalidLimitError(InvalidArgumentError):
    """A limit on moves or bytes, or another term, is one with which nothing can be planned."""


class InvalidLoadError(InvalidArgumentError):
    """A load or a broker's limit is not one that can be measured, or is given twice."""


class InvalidJsonError(PlacementError):
    """A JSON document is not what was expected; ``place`` says where, as in ``$.partitions[3].replicas``."""

    def __init__(self, message: str, *, place: str = "$", value: object = None) -> None:
        super().__init__(message)
        self.place = place
        self.value = value
