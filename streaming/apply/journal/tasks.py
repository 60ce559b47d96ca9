"""Which versions are to be carried out, and what each of them asks for; pure.

A version may be carried out if it takes effect. Where several wait, a partition is taken straight to where the newest
of them wants it, so that nothing is copied twice and no version is tried that the cluster has left behind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

import numpy as np

from streaming.errors import ApplyError
from streaming.record.version import PlanVersion, fate_of_proposal

Replicas = tuple[int, ...]
Place = tuple[str, int]
"""A topic and a partition id."""


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """What a version asks for one partition.

    Attributes:
        topic, partition: which one.
        before: the replicas that the plan starts from; empty where the partition is to be created.
        after: the replicas that it ends with, the preferred leader first; empty where it is to be deleted.
        wave: the part of the plan that it belongs to, from 1; 0 where the plan has none for it.
        starts: the replica lists with which the cluster may have it now, ``before`` among them.
        log_dirs: the directory of each replica of ``after``, ``any`` where it may be any; empty where none is named.
        foreign: those of ``starts`` that somebody else has chosen, so that a move there is not ours.
    """

    topic: str
    partition: int
    before: Replicas
    after: Replicas
    wave: int
    starts: frozenset[Replicas]
    log_dirs: tuple[str, ...] = ()
    foreign: frozenset[Replicas] = frozenset()

    @property
    def place(self) -> Place:
        """Topic and partition id."""
        return self.topic, self.partition

    @property
    def is_election(self) -> bool:
        """Whether nothing but its leader is to change."""
        return self.before == self.after


@dataclass(frozen=True, slots=True)
class Task:
    """What one version asks for.

    Attributes:
        version: the plan version.
        partitions: what it asks for each of its partitions, by topic and partition id.
        left_to_later: how many partitions a later version takes care of, or was told of.
    """

    version: PlanVersion
    partitions: tuple[PartitionTask, ...]
    left_to_later: int = 0

    @property
    def name(self) -> str:
        """The version, for a sentence."""
        return f"version {self.version.plan_version} of {self.version.cluster_id}"


def waiting(versions: Sequence[PlanVersion], completed: Collection[int]) -> list[int]:
    """The versions that take effect, ask for something, and were not reported as carried out; oldest first."""
    return [v.plan_version for v in versions if v.effective and v.means.asks and v.plan_version not in completed]


def check_not_stopped(versions: Sequence[PlanVersion]) -> None:
    """Refuse a cluster whose planning is stopped: what was planned last may not be what is wanted.

    Raises:
        ApplyError: it is.
    """
    last = next((v for v in reversed(versions) if v.means.stopped is not None), None)
    if last is not None and last.means.stopped:
        raise ApplyError(
            f"{last.cluster_id} is stopped, and no plan of it is carried out: {last.cause}; "
            f"once that is fixed: replica-planner resume {last.cluster_id}",
            cluster_id=last.cluster_id,
            plan_version=last.plan_version,
        )


def check_may_start(versions: Sequence[PlanVersion], wanted: int) -> None:
    """Refuse a version that must not be carried out.

    Args:
        versions: all versions of the cluster, oldest first, without their moves.
        wanted: the version.

    Raises:
        ApplyError: there is no such version, it does not take effect, or it asks for nothing.
    """
    by_number = {v.plan_version: v for v in versions}
    version = by_number.get(wanted)
    if version is None:
        name = versions[-1].cluster_id
        raise ApplyError(f"{name} has no version {wanted}: it has versions 1 to {versions[-1].plan_version}")
    reason = _why_not(version, versions)
    if reason:
        raise ApplyError(
            f"version {wanted} of {version.cluster_id} is not carried out: {reason}",
            cluster_id=version.cluster_id,
            plan_version=wanted,
        )


def _why_not(version: PlanVersion, versions: Sequence[PlanVersion]) -> str:
    number = version.plan_version
    if version.waits_for_approval:
        return fate_of_proposal(version, versions)
    if version.approval == "rejected":
        return f"it records that version {version.base_version} was rejected"
    if not version.means.asks or not version.effective:
        return f"it is of kind {version.kind} and asks for nothing on the cluster"
    undone = next((v for v in versions if v.means.undoes and v.base_version == number), None)
    return f"it is rolled back by version {undone.plan_version}; carry that out" if undone else ""


def tasks_of(versions: Sequence[PlanVersion], wanted: Collection[int]) -> list[Task]:
    """What several waiting versions ask for, oldest first.

    Args:
        versions: the versions from the first wanted one on, with their moves, oldest first.
        wanted: their numbers.
    """
    newest = _newest(versions)
    chosen = [v for v in versions if v.plan_version in wanted]
    starts: dict[Place, set[Replicas]] = {}
    for version in chosen:
        for place, change in _changes(version).items():
            starts.setdefault(place, set()).update((change.before, change.after))
    drifted = _drifted(chosen)
    return [_task(version, newest, starts, drifted) for version in chosen]


def task_of(versions: Sequence[PlanVersion]) -> Task:
    """What the first of these versions asks for, by itself.

    Args:
        versions: the version and all later ones, with their moves, oldest first.

    Raises:
        ApplyError: a later plan changes one of its partitions again.
    """
    version, newest = versions[0], _newest(versions)
    starts: dict[Place, set[Replicas]] = {}
    for (topic, partition), change in _changes(version).items():
        last = newest.get((topic, partition))
        if last and last.plan_version > version.plan_version and last.is_planned:
            raise ApplyError(
                f"version {version.plan_version} of {version.cluster_id} is not carried out: it is superseded by "
                f"version {last.plan_version}, which changes {topic}-{partition} again; name that one, or none",
                cluster_id=version.cluster_id,
                plan_version=version.plan_version,
            )
        starts[topic, partition] = {change.before, change.after}
    return _task(version, newest, starts, _drifted([version]))


def _drifted(versions: Iterable[PlanVersion]) -> dict[Place, set[Replicas]]:
    """Where partitions were seen that these versions restore."""
    found: dict[Place, set[Replicas]] = {}
    for version in versions:
        for place, change in _changes(version).items() if version.means.restores else ():
            found.setdefault(place, set()).add(change.before)
    return found


class _Change(NamedTuple):
    before: Replicas
    after: Replicas
    wave: int
    log_dirs: tuple[str, ...]


class _Last(NamedTuple):
    """The last version that changes a partition's replicas, whether it plans that or was told, and the change."""

    plan_version: int
    is_planned: bool
    change: _Change


def _task(
    version: PlanVersion,
    newest: Mapping[Place, _Last],
    starts: Mapping[Place, set[Replicas]],
    drifted: Mapping[Place, set[Replicas]],
) -> Task:
    """``drifted`` are the replicas that somebody else has chosen for partitions, by what is to be restored."""
    kept: list[PartitionTask] = []
    changes = sorted(_changes(version).items())
    for place, planned in changes:
        last = newest.get(place)
        overtaken = last is not None and last.plan_version > version.plan_version
        wanted = last.change if last and overtaken else planned
        if planned.before == planned.after:
            # Whatever was seen of its replicas since, a leader was asked for; a later plan elects its leaders itself.
            if wanted.after and not (last and overtaken and last.is_planned):
                kept.append(PartitionTask(*place, wanted.after, wanted.after, 0, frozenset({wanted.after})))
        elif not overtaken or (not planned.before and wanted.after):
            begins = frozenset(starts[place])
            foreign = frozenset(drifted.get(place, ()))
            dirs = wanted.log_dirs
            kept.append(PartitionTask(*place, planned.before, wanted.after, planned.wave, begins, dirs, foreign))
    return Task(version, tuple(kept), len(changes) - len(kept))


def _newest(versions: Iterable[PlanVersion]) -> dict[Place, _Last]:
    """By partition the last version that changes its replicas."""
    return {
        place: _Last(version.plan_version, version.means.moves_replicas, change)
        for version in versions
        if version.effective
        for place, change in _changes(version).items()
        if change.before != change.after
    }


def _changes(version: PlanVersion) -> dict[Place, _Change]:
    """The change of each partition, from the first to the last one where there are several."""
    found: dict[Place, _Change] = {}
    for block in version.moves:
        waves = np.zeros(block.partitions.size, np.int32) if block.waves is None else block.waves
        dirs = repeat(()) if block.log_dirs is None else block.log_dirs
        for (partition, before, after, _), wave, paths in zip(block.rows(), waves.tolist(), dirs, strict=False):
            place = (block.topic, partition)
            first = found[place].before if place in found else tuple(before)
            found[place] = _Change(first, tuple(after), wave, tuple(paths))
    return {place: change for place, change in found.items() if change.before or change.after}
