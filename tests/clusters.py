"""Clusters for tests and benchmarks: broker lists and whole layouts, built from a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from placement import Assignment, Broker
from placement.model import Int32Array


def racked(brokers: int, racks: int, *, first: int = 0, capacity: float = 1.0) -> list[Broker]:
    """Brokers ``first, first + 1, ...``, racks taking turns."""
    return [Broker(first + i, f"r{i % racks:03d}", capacity) for i in range(brokers)]


def in_state(brokers: Iterable[Broker], ids: Iterable[int], state: str) -> list[Broker]:
    """The brokers, with the named ones in another state."""
    chosen = set(ids)
    return [replace(b, state=state) if b.id in chosen else b for b in brokers]  # type: ignore[arg-type]


def even_layout(
    brokers: int, racks: int, partitions: int, factor: int, *, first: int = 0, per_topic: int = 100
) -> Assignment:
    """A layout in balance on ``racked(brokers, racks)``: leaders and followers even, racks distinct.

    From one replica of a partition to the next it is 1 to ``racks // factor`` racks, and some way along the rack; both
    change with every round of the brokers, so that the replicas of a broker's partitions are all over the cluster.
    """
    position = np.arange(partitions, dtype=np.int64)
    lap = position // brokers
    step = 1 + lap % max(1, (racks - 1) // max(1, factor - 1))
    along = [(lap * (2 * j + 1) * 7919) % max(1, brokers // racks) for j in range(factor)]
    columns = [(position + j * step + racks * along[j]) % brokers for j in range(factor)]
    topics = -(-partitions // per_topic)
    names = [f"topic-{t:06d}" for t in range(topics)]
    matrix: Int32Array = (np.stack(columns, axis=1) + first).astype(np.int32)
    return Assignment(names, (position // per_topic).astype(np.int32), (position % per_topic).astype(np.int32), matrix)


def drawn_layout(brokers: list[Broker], partitions: int, place: Callable[..., Int32Array]) -> Assignment:
    """Topics of 12 partitions, RF 3, each drawn with a seed of its own as Kafka's placers draw them."""
    topics = -(-partitions // 12)
    matrix = np.concatenate([place(brokers, 12, 3, seed=t) for t in range(topics)])
    position = np.arange(topics * 12)
    names = [f"topic-{t:06d}" for t in range(topics)]
    return Assignment(names, (position // 12).astype(np.int32), (position % 12).astype(np.int32), matrix)


def comparison_layout() -> Assignment:
    """100 topics of 10 partitions on brokers 1 to 12: replica j of partition g on broker ``(g + j) mod 12 + 1``."""
    return Assignment.from_rows((f"t{g // 10:03d}", g % 10, [(g + j) % 12 + 1 for j in range(3)]) for g in range(1000))


def comparison_brokers() -> list[Broker]:
    """Brokers 1 to 12 in three racks taking turns."""
    return racked(12, 3, first=1)


@dataclass(frozen=True)
class Case:
    """A small random cluster, given by its seed: brokers, layout, and replication factors to change to."""

    seed: int
    brokers: list[Broker]
    layout: Assignment
    factors: dict[str, int]


def random_case(seed: int) -> Case:
    """3 to 9 brokers in 1 to 4 racks, at times weighted, some dead, draining or empty; up to 24 partitions."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 10))
    racks = rng.integers(0, rng.integers(1, 5), count)
    weights = [1.0, 1.0, 1.5, 2.0] if rng.random() < 0.3 else [1.0]
    states = ["alive" if rng.random() < 0.8 else str(rng.choice(["dead", "draining"])) for _ in range(count)]
    if states.count("alive") < 2:
        states = ["alive"] * count
    brokers = [Broker(i, f"r{racks[i]}", float(rng.choice(weights)), states[i]) for i in range(count)]  # type: ignore[arg-type]
    alive, mixed = states.count("alive"), rng.random() < 0.3
    # A broker that nothing is on has just joined; one that no broker list knows has been unregistered.
    hosts = count - 1 if rng.random() < 0.3 else count + (rng.random() < 0.1)
    factor = int(rng.integers(1, min(4, alive, hosts) + 1))
    rows: list[tuple[str, int, list[int]]] = []
    factors: dict[str, int] = {}
    for t in range(int(rng.integers(1, 4))):
        if mixed:
            factor = int(rng.integers(1, min(4, alive, hosts) + 1))
        if rng.random() < 0.2:
            factors[f"t{t}"] = int(rng.integers(1, min(4, alive) + 1))
        partitions = range(int(rng.integers(1, 9)))
        rows += [(f"t{t}", p, rng.choice(hosts, factor, replace=False).tolist()) for p in partitions]
    return Case(seed, brokers, Assignment.from_rows(rows), factors)
