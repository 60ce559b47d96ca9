"""What lies ahead: the steps of tasks on the real cluster as it is now."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import Final

from placement import WaveLimits
from streaming.apply.cluster import Cluster
from streaming.apply.planning import steps_of
from streaming.apply.seen import Seen
from streaming.apply.steps import Refuse, Step, Unthrottle, outcome
from streaming.apply.tasks import Task
from streaming.apply.throttles import with_throttles

_SECOND_LOOK: Final = 1.0
"""Seconds after which a cluster that does not fit is looked at again: a broker hears of the newest move a bit late."""


def look(cluster: Cluster) -> Seen:
    """The whole cluster, throttles and all.

    Raises:
        ClusterError: it cannot be asked.
    """
    return with_throttles(cluster, cluster.see())


def steps_on(cluster: Cluster, task: Task, seen: Seen, rate: int | None = None) -> tuple[Step, ...]:
    """The steps of a task, looking again before they refuse.

    Raises:
        ClusterError: the cluster cannot be asked.
    """
    steps = _steps(task, seen, rate)
    if any(isinstance(step, Refuse) for step in steps):
        time.sleep(_SECOND_LOOK)
        steps = _steps(task, look(cluster), rate)
    return steps


def steps_ahead(
    cluster: Cluster, tasks: Iterable[Task], rate: int | None = None
) -> Iterator[tuple[Task, tuple[Step, ...]]]:
    """The steps of tasks that are done one after the other.

    Raises:
        ClusterError: the cluster cannot be asked.
    """
    seen = look(cluster)
    for task in tasks:
        steps = _steps(task, seen, rate)
        yield task, steps
        seen = outcome(steps, seen)


def leftovers(seen: Seen) -> tuple[Step, ...]:
    """The step that removes throttles which nobody needs, where nothing is to be done."""
    needed = any(partition.is_reassigned for partition in seen.partitions.values())
    return (Unthrottle(seen.throttled_brokers, seen.throttled_topics),) if seen.is_throttled and not needed else ()


def _steps(task: Task, seen: Seen, rate: int | None) -> tuple[Step, ...]:
    limit = json.loads(task.version.policy).get("wave_moves", WaveLimits().moves_in)
    return steps_of(task, seen, rate=rate, limits=WaveLimits(limit, limit))
