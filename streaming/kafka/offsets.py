"""Log offsets, asked of the brokers that hold the replicas: the client asks leaders only, and all of them or none."""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby
from typing import Final

from kafka import KafkaAdminClient
from kafka.errors import NoError
from kafka.protocol.consumer import ListOffsetsRequest

Place = tuple[str, int]
"""A topic and a partition id."""

LATEST: Final = -1
EARLIEST: Final = -2

_CONSUMER: Final = -1
_DEBUGGING_CONSUMER: Final = -2
_TIMEOUT_MS: Final = 1000


def read_offsets(
    admin: KafkaAdminClient, broker: int, places: Collection[Place], which: int = LATEST, *, of_followers: bool = False
) -> dict[Place, int]:
    """Offsets of a broker's replicas; those of which it cannot say are left out.

    Args:
        admin: the client.
        broker: who is asked.
        places: partitions that it leads, or of which it has a replica.
        which: :data:`LATEST`, of a leader the high watermark, or :data:`EARLIEST`, where the log begins.
        of_followers: ask as Kafka's own debugging consumer, which followers answer as well, with the log's end.

    Raises:
        KafkaError: the broker does not answer.
    """
    topic, partition = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
    request = ListOffsetsRequest(
        replica_id=_DEBUGGING_CONSUMER if of_followers else _CONSUMER,
        isolation_level=0,
        timeout_ms=_TIMEOUT_MS,
        topics=[
            topic(name, [partition(partition_index=p, current_leader_epoch=-1, timestamp=which) for _, p in group])
            for name, group in groupby(sorted(places), key=lambda place: place[0])
        ],
    )
    answer = admin._manager.run(admin._manager.send, request, broker)
    return {
        (topic.name, partition.partition_index): partition.offset
        for topic in answer.topics
        for partition in topic.partitions
        if partition.error_code == NoError.errno
    }
