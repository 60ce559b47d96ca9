"""What others do with the same event: replicas that move, and the balance afterwards.

Run ``python -m benchmarks.comparison``. The layout: brokers 1 to 12, rack ``(b - 1) mod 3 + 1``, 100 topics of 10
partitions with replication factor 3, replica ``j`` of partition ``g`` of all on broker ``(g + j) mod 12 + 1``.

``AdminUtils`` is what ``kafka-reassign-partitions --generate`` does, ``striped`` what KRaft does with new topics: both
place every topic anew, as if it had no replicas. They draw at random; the seed is fixed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import numpy as np

from placement import Assignment, Broker, place_adminutils, place_striped, replan
from placement.replica_counts import ReplicaCounts
from tests.clusters import comparison_brokers, comparison_layout

Placer = Callable[[Sequence[Broker], str, int], np.ndarray]


def adminutils(brokers: Sequence[Broker], topic: str, partitions: int) -> np.ndarray:
    return place_adminutils(brokers, partitions, 3, seed=zlib.crc32(topic.encode()))


def striped(brokers: Sequence[Broker], topic: str, partitions: int) -> np.ndarray:
    return place_striped(brokers, partitions, 3, seed=zlib.crc32(topic.encode()))


def placed_anew(layout: Assignment, brokers: Sequence[Broker], place: Placer) -> np.ndarray:
    """Every topic of the layout as a placer puts it on these brokers."""
    counts = np.bincount(layout.topic_index)
    return np.concatenate([place(brokers, topic, int(n)) for topic, n in zip(layout.topics, counts, strict=True)])


def line(planner: str, before: np.ndarray, after: np.ndarray, brokers: Sequence[Broker]) -> str:
    """Moves are replicas on brokers that did not have the partition."""
    moved = int((~(after[:, :, None] == before[:, None, :]).any(axis=2)).sum())
    load = ReplicaCounts.empty().add(after)
    ids = np.array([broker.id for broker in brokers], np.int32)
    replicas, leaders = load.replicas_on(ids), load.leaders_on(ids)
    return f"| {planner} | {moved:,} | {replicas.min()}..{replicas.max()} | {leaders.min()}..{leaders.max()} |"


def main() -> None:
    layout, brokers = comparison_layout(), comparison_brokers()
    events = {
        "broker 12 removed": ([b if b.id != 12 else Broker(12, b.rack, state="dead") for b in brokers], "heal"),
        "broker 13 joins rack 1": ([*brokers, Broker(13, brokers[0].rack)], "rebalance"),
    }
    for event, (there, mode) in events.items():
        usable = [broker for broker in there if broker.state == "alive"]
        print(f"\n### {event}\n\n| planner | moves | replicas | leaders |\n| --- | --- | --- | --- |")
        plan = replan(layout, there, mode=mode)  # type: ignore[arg-type]
        proof = "proved least" if plan.optimal else f"bound {plan.lower_bound}"
        print(line(f"replica-planner ({proof})", layout.replicas, plan.assignment.replicas, usable))
        for name, place in (("kafka-reassign-partitions (AdminUtils)", adminutils), ("KRaft, striped", striped)):
            print(line(name, layout.replicas, placed_anew(layout, usable, place), usable))


if __name__ == "__main__":
    main()
