"""One look at the loads of a cluster: what is on the disks of its brokers, and how far its logs have come."""

from __future__ import annotations

from collections.abc import Mapping

from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from msgspec import Struct, field

from streaming.kafka.connection import reason_of
from streaming.kafka.log_dirs import LogDirs, read_log_dirs
from streaming.kafka.offsets import EARLIEST, LATEST, Place, read_offsets
from streaming.kafka.snapshot import Partition, Snapshot


class PartitionMeasure(Struct, frozen=True, array_like=True):
    """A partition; ``None`` where nobody could say.

    Attributes:
        partition: its id.
        size: bytes in the largest log of its in-sync replicas.
        held: bytes in the log of its leader.
        start, end: offsets at which the log of its leader begins and ends.
    """

    partition: int
    size: int | None = None
    held: int | None = None
    start: int | None = None
    end: int | None = None


class TopicMeasure(Struct, frozen=True, array_like=True):
    """A topic; one that was created again has another ``id``. Its partitions are by number."""

    name: str
    id: str
    partitions: tuple[PartitionMeasure, ...]


class Look(Struct, frozen=True):
    """The loads of a cluster at one moment.

    Attributes:
        topics: by name.
        log_dirs: of the brokers that said, by id.
        problems: who does not say what, each with the reason.
    """

    topics: tuple[TopicMeasure, ...]
    log_dirs: dict[int, LogDirs]
    problems: dict[str, str] = field(default_factory=dict)


class _Offsets(Struct):
    start: dict[Place, int]
    end: dict[Place, int]


def look_at_loads(admin: KafkaAdminClient, snapshot: Snapshot) -> Look:
    """Ask every broker that is up. One that does not answer, and a disk that does not work, are left out."""
    led: dict[int, list[Place]] = {broker: [] for broker in sorted(snapshot.alive)}
    for topic in snapshot.topics:
        for partition in topic.partitions:
            if partition.leader in led:
                led[partition.leader].append((topic.name, partition.partition))
    log_dirs: dict[int, LogDirs] = {}
    offsets = _Offsets({}, {})
    problems: dict[str, str] = {}
    for broker, places in led.items():
        try:
            log_dirs[broker] = read_log_dirs(admin, broker)
            if places:
                offsets.start |= read_offsets(admin, broker, places, EARLIEST)
                offsets.end |= read_offsets(admin, broker, places, LATEST)
        except (KafkaError, OSError) as error:
            problems[f"broker {broker} does not say all that it holds"] = reason_of(error)
        else:
            problems |= _disk_problems(broker, log_dirs[broker])
    topics = tuple(
        TopicMeasure(topic.name, topic.id, tuple(_measured(topic.name, p, log_dirs, offsets) for p in topic.partitions))
        for topic in snapshot.topics
    )
    return Look(topics, log_dirs, problems)


def _disk_problems(broker: int, found: LogDirs) -> dict[str, str]:
    if not found.there and not found.failed:
        return {f"broker {broker} shows no log directory": "that needs the right to describe the cluster"}
    return {f"log directory {path} of broker {broker} is left out": reason for path, reason in found.failed.items()}


def _measured(topic: str, partition: Partition, log_dirs: Mapping[int, LogDirs], offsets: _Offsets) -> PartitionMeasure:
    place = topic, partition.partition
    sizes = {broker: log_dirs[broker].sizes.get(place) for broker in partition.isr if broker in log_dirs}
    known = [size for size in sizes.values() if size is not None]
    return PartitionMeasure(
        partition.partition,
        max(known, default=None),
        sizes.get(partition.leader),
        offsets.start.get(place),
        offsets.end.get(place),
    )
