"""What the disks of a broker hold, as its log directories show it at one moment."""

from __future__ import annotations

from kafka import KafkaAdminClient
from kafka.errors import for_code
from kafka.protocol.admin import DescribeLogDirsRequest
from msgspec import Struct

from streaming.kafka.connection import reason_of
from streaming.kafka.offsets import Place


class LogDir(Struct, frozen=True):
    """A log directory: bytes of the volume that it is in, and how many of them are free; ``None`` if not told.

    Brokers tell both since Kafka 3.3 (KIP-827).
    """

    path: str
    total: int | None
    usable: int | None


class LogDirs(Struct, frozen=True):
    """The log directories of a broker.

    Attributes:
        there: those that work, by path.
        sizes: bytes in the log of each of its replicas; copies on their way to another directory do not count.
        failed: those that do not work, and why.
    """

    there: tuple[LogDir, ...]
    sizes: dict[Place, int]
    failed: dict[str, str]


def read_log_dirs(admin: KafkaAdminClient, broker: int) -> LogDirs:
    """Ask a broker. The client's own call would describe all topics first, again for each broker.

    Raises:
        KafkaError: it does not answer, or refuses.
    """
    answer = admin._manager.run(admin._manager.send, DescribeLogDirsRequest(topics=None), broker)
    if answer.error_code:
        raise for_code(answer.error_code)()
    working = sorted((one for one in answer.results if not one.error_code), key=lambda one: one.log_dir)
    return LogDirs(
        there=tuple(_log_dir(one.log_dir, one.total_bytes, one.usable_bytes) for one in working),
        sizes={
            (topic.name, partition.partition_index): partition.partition_size
            for one in working
            for topic in one.topics
            for partition in topic.partitions
            if not partition.is_future_key
        },
        failed={one.log_dir: reason_of(for_code(one.error_code)()) for one in answer.results if one.error_code},
    )


def _log_dir(path: str, total: int | None, usable: int | None) -> LogDir:
    known = total is not None and usable is not None and total > 0 and usable >= 0
    return LogDir(path, total if known else None, usable if known else None)
