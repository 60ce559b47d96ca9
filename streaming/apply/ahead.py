"""What lies ahead: the steps of tasks on the real cluster as it is now."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from placement import WaveLimits
from streaming.apply.journal.tasks import Place, Task
from streaming.apply.kafka.cluster import Cluster
from streaming.apply.kafka.seen import Seen
from streaming.apply.kafka.throttles import with_throttles
from streaming.apply.planning import steps_of
from streaming.apply.steps import Refuse, Step, Unthrottle, outcome

_SECOND_LOOK: Final = 1.0
"""Seconds after which a cluster that does not fit is looked at again: a broker hears of the newest move a bit late."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a person allows a run to do at once; ``None`` is no bound.

    Attributes:
        rate: bytes a second that a broker copies.
        wave_bytes: bytes that a broker receives, and sends, in one wave.
        cancel_others: whether to take back what somebody else is moving.
    """

    rate: int | None = None
    wave_bytes: int | None = None
    cancel_others: bool = False


def look(cluster: Cluster, tasks: Iterable[Task] = ()) -> Seen:
    """The whole cluster, with its throttles, and with the sizes of what these tasks copy.

    Raises:
        ClusterError: it cannot be asked.
    """
    seen = with_throttles(cluster, cluster.see())
    wanted = {part.topic for task in tasks for part in task.partitions}
    cluster.see(wanted.difference(topic for topic, _ in seen.partitions))  # who may not describe a topic is told so
    sizes: dict[Place, int] = {}
    for (_, place), size in cluster.sizes(_holders(tasks, seen)).items():
        sizes[place] = max(size, sizes.get(place, 0))
    return replace(seen, sizes=sizes)


def _holders(tasks: Iterable[Task], seen: Seen) -> dict[int, set[Place]]:
    """The brokers that hold what these tasks copy, and what of it."""
    holders: dict[int, set[Place]] = {}
    for part in (part for task in tasks for part in task.partitions if part.before):
        there = seen.partitions.get(part.place)
        if there and set(part.after) - set(part.before):
            for broker in seen.alive.intersection(there.replicas):
                holders.setdefault(broker, set()).add(part.place)
    return holders


def steps_on(cluster: Cluster, task: Task, seen: Seen, bounds: Bounds) -> tuple[Step, ...]:
    """The steps of a task, looking again before they refuse.

    Raises:
        ClusterError: the cluster cannot be asked.
    """
    steps = _steps(task, seen, bounds)
    if any(isinstance(step, Refuse) for step in steps):
        time.sleep(_SECOND_LOOK)
        steps = _steps(task, look(cluster, [task]), bounds)
    return steps


def steps_ahead(cluster: Cluster, tasks: Sequence[Task], bounds: Bounds) -> Iterator[tuple[Task, tuple[Step, ...]]]:
    """The steps of tasks that are done one after the other.

    Raises:
        ClusterError: the cluster cannot be asked.
    """
    seen = look(cluster, tasks)
    for task in tasks:
        steps = _steps(task, seen, bounds)
        yield task, steps
        seen = outcome(steps, seen)


def leftovers(seen: Seen) -> tuple[Step, ...]:
    """The step that removes throttles which nobody needs, where nothing is to be done."""
    needed = any(partition.is_reassigned for partition in seen.partitions.values())
    return (Unthrottle(seen.throttled_brokers, seen.throttled_topics),) if seen.is_throttled and not needed else ()


def _steps(task: Task, seen: Seen, bounds: Bounds) -> tuple[Step, ...]:
    moves = json.loads(task.version.policy).get("wave_moves", WaveLimits().moves_in)
    limits = WaveLimits(moves, moves, bounds.wave_bytes, bounds.wave_bytes)
    return steps_of(task, seen, rate=bounds.rate, limits=limits, cancel_others=bounds.cancel_others)
