"""Why ``replica j of partition i on broker (i + j) mod n`` is not used: it piles small topics on the first brokers.

Run ``python -m benchmarks.naive_placement``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from placement import Broker, place_adminutils, place_balanced
from placement.replica_counts import ReplicaCounts

BROKERS = [Broker(i) for i in range(12)]
TOPICS = 1_000


def naive(topic: str, partitions: int, current: ReplicaCounts) -> np.ndarray:
    return (np.arange(partitions)[:, None] + np.arange(3)) % len(BROKERS)


def adminutils(topic: str, partitions: int, current: ReplicaCounts) -> np.ndarray:
    return place_adminutils(BROKERS, partitions, 3, seed=zlib.crc32(topic.encode()))


def balanced(topic: str, partitions: int, current: ReplicaCounts) -> np.ndarray:
    return place_balanced(BROKERS, partitions, 3, current=current, topic=topic)


def spread(place: Callable[[str, int, ReplicaCounts], np.ndarray], partitions: int) -> str:
    """Create the topics one after the other; fewest and most leaders and replicas of a broker."""
    load = ReplicaCounts.empty()
    for number in range(TOPICS):
        load = load.add(place(f"topic-{number}", partitions, load))
    ids = np.arange(len(BROKERS), dtype=np.int32)
    leaders, replicas = load.leaders_on(ids), load.replicas_on(ids)
    return f"{leaders.min():,} to {leaders.max():,} | {replicas.min():,} to {replicas.max():,}"


def main() -> None:
    print(
        "| partitions of each topic | placer | leaders of a broker | replicas of a broker |\n| --- | --- | --- | --- |"
    )
    for partitions in (1, 4, 10):
        for place in (naive, adminutils, balanced):
            print(f"| {partitions} | {place.__name__} | {spread(place, partitions)} |")


if __name__ == "__main__":
    main()
