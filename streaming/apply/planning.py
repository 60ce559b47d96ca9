"""From a task and the cluster as it is to steps; pure.

Goal: from wherever the cluster is, also in the middle of the task, to where the task wants it.
Constraints: a replica is put only on a broker that is alive, because Kafka waits for a fenced one for ever; a partition
is touched only if it is as the task expects it; nothing is deleted.
Method: partitions that are there already drop out; those under way are waited for; the rest is begun wave by wave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

import numpy as np

from placement import Moves, WaveLimits, in_waves
from placement.model import NO_BROKER, Int32Array
from streaming.apply.journal.tasks import PartitionTask, Place, Replicas, Task
from streaming.apply.kafka.seen import Seen, settled
from streaming.apply.steps import (
    AddPartitions,
    Cancel,
    CreateTopic,
    Elect,
    KeepTopic,
    LeaveOut,
    Move,
    MoveWave,
    Refuse,
    Step,
    Throttle,
    Unthrottle,
)
from streaming.kafka.snapshot import Partition
from streaming.record.moves import ANY_LOG_DIR

_NO_SOURCE: Final = "no in-sync replica is alive to copy from"


def steps_of(
    task: Task,
    seen: Seen,
    *,
    rate: int | None = None,
    limits: WaveLimits | None = None,
    cancel_others: bool = False,
) -> tuple[Step, ...]:
    """The steps from the cluster as it is to where the task wants it; none where it is there.

    Args:
        task: what is to be done.
        seen: the cluster.
        rate: bytes a second for the throttles; ``None`` sets none.
        limits: for the waves of moves that the plan has not put into waves, and of all where they limit bytes: a plan
            knows the sizes that were, the brokers know those that are.
        cancel_others: whether what somebody else is moving is taken back as well, instead of being left to them.
    """
    created, kept, open_moves = _sorted_out(task, seen)
    theirs = {} if cancel_others else _left_to_others(task.partitions, seen)
    left_to_others = {part.place: theirs[part.place] for part in open_moves if part.place in theirs}
    gone = _gone(task, seen)
    open_moves = [part for part in open_moves if part.place not in theirs and part.place not in gone]
    problem = next(_misfits(task, seen, gone), "")
    problem = problem or _uncreatable(created, seen) or _on_dead_broker(task, [*created, *open_moves], seen)
    leftover, spared = _leftover(task, seen, theirs)
    if problem:
        return (*_cancels(open_moves, seen), *([leftover] if leftover else []), Refuse(problem))
    steps: list[Step] = [*_creations(created, seen), *(KeepTopic(t) for t in kept)]
    moving, left_out = _moves(open_moves, seen, limits)
    left_out |= _unelectable(task, seen) | left_to_others | gone
    steps += _left_out(left_out)
    if leftover and not (rate and moving):
        steps.append(leftover)
        leftover = None
    waves = [(number, tuple(move for _, move in group)) for number, group in groupby(moving, key=lambda m: m[0])]
    for number, moves in waves:
        if rate and any(move.incoming for move in moves):
            steps.append(Throttle(rate, moves, spared))
        steps.append(MoveWave(number, moves))
    if elected := _to_be_elected(task, moving, left_out, seen):
        steps.append(Elect(tuple(elected)))
    return (*steps, *_closing(steps, leftover))


def _sorted_out(task: Task, seen: Seen) -> tuple[list[PartitionTask], list[str], list[PartitionTask]]:
    """What is to be created, which topics stay although they are to go, and what is not yet where it belongs."""
    created, kept, moved = [], set(), []
    for part in task.partitions:
        there = seen.partitions.get(part.place)
        if part.is_election:
            continue
        if not part.after:
            kept.update([part.topic] if there else [])
        elif not part.before:
            created.extend([part] if there is None else [])
        elif there is None or there.replicas != part.after or there.is_reassigned:
            moved.append(part)
    return created, sorted(kept), moved


def _gone(task: Task, seen: Seen) -> dict[Place, str]:
    """Partitions of topics that were deleted, with the reason; nothing where all are: that is another cluster."""
    there = {topic for topic, _ in seen.partitions}
    moved = [part for part in task.partitions if part.before and part.after and not part.is_election]
    if there.isdisjoint(part.topic for part in moved):
        return {}
    return {part.place: "the topic is no longer on the cluster" for part in moved if part.topic not in there}


def _misfits(task: Task, seen: Seen, gone: Collection[Place]) -> Iterator[str]:
    """Why partitions cannot be taken from where they are."""
    for part in task.partitions:
        if part.place in gone:
            continue
        name, there = f"partition {part.topic}-{part.partition}", seen.partitions.get(part.place)
        if part.is_election:
            continue
        if there is None:
            if part.before and part.after:
                yield f"{name} is not on the cluster"
        elif part.after and set(there.target) not in map(set, (*part.starts, part.after)):
            verb = "is being moved to" if there.is_reassigned else "is on"
            expected = f"starts from {list(part.before)}" if part.before else f"creates it on {list(part.after)}"
            yield f"{name} {verb} {list(there.target)}, and the plan {expected}; somebody else has moved it"


def _uncreatable(created: Sequence[PartitionTask], seen: Seen) -> str:
    """Kafka numbers the partitions of a topic from 0 without gaps."""
    counts = Counter(topic for topic, _ in seen.partitions)
    for topic, parts in groupby(created, key=lambda part: part.topic):
        first = counts[topic]
        ids = [part.partition for part in parts]
        if ids != list(range(first, first + len(ids))):
            return f"topic {topic} is to have partitions {_named(ids)}, and Kafka can only go on from {first}"
    return ""


def _on_dead_broker(task: Task, parts: Iterable[PartitionTask], seen: Seen) -> str:
    counts: dict[int, int] = {}
    for part in parts:
        there = seen.partitions.get(part.place)
        for broker in part.after:
            if broker not in seen.alive and (there is None or broker not in settled(there)):
                counts[broker] = counts.get(broker, 0) + 1
    if not counts:
        return ""
    broker = min(counts)
    return (
        f"broker {broker}, which is to get {counts[broker]} replicas, is not alive; start it, or report it as gone "
        "so that a new plan is made"
    )


def _left_to_others(parts: Iterable[PartitionTask], seen: Seen) -> dict[Place, str]:
    """Partitions that somebody else is moving away from where they are wanted, with the reason why they wait."""
    found = {}
    for part in parts:
        there = seen.partitions.get(part.place)
        if there and there.is_reassigned and set(there.target) in map(set, part.foreign):
            found[part.place] = (
                f"somebody else moves it to {list(there.target)}; apply again once that has ended, "
                "or with --cancel-others"
            )
    return found


def _leftover(task: Task, seen: Seen, theirs: Collection[Place]) -> tuple[Unthrottle | None, frozenset[int | str]]:
    """The removal of throttles that are there; while somebody else moves partitions under them, those to be spared."""
    ours = {part.place for part in task.partitions}.difference(theirs)
    if any(partition.is_reassigned and place not in ours for place, partition in seen.partitions.items()):
        return None, frozenset([*seen.throttled_brokers, *seen.throttled_topics])
    return Unthrottle(seen.throttled_brokers, seen.throttled_topics) if seen.is_throttled else None, frozenset()


def _cancels(parts: Iterable[PartitionTask], seen: Seen) -> list[Step]:
    there = [(part, seen.partitions[part.place]) for part in parts if part.place in seen.partitions]
    moves = tuple(
        _move(part, partition)
        for part, partition in there
        if not seen.alive.issuperset(partition.adding) and set(partition.target) in map(set, (*part.starts, part.after))
    )
    return [Cancel(moves)] if moves else []


def _creations(created: Sequence[PartitionTask], seen: Seen) -> Iterable[Step]:
    for topic, group in groupby(created, key=lambda part: part.topic):
        parts = list(group)
        replicas = tuple(part.after for part in parts)
        first = parts[0].partition
        yield AddPartitions(topic, first, replicas) if first else CreateTopic(topic, replicas)


def _moves(
    parts: Sequence[PartitionTask], seen: Seen, limits: WaveLimits | None
) -> tuple[list[tuple[int, Move]], dict[Place, str]]:
    """Moves with their waves, in order, and what cannot be moved, with the reason."""
    able = [p for p in parts if seen.can_be_copied(seen.partitions[p.place])]
    stuck = [p.place for p in parts if not seen.can_be_copied(seen.partitions[p.place])]
    by_bytes = limits is not None and limits.bytes_in is not None
    unplanned = able if by_bytes else [p for p in able if not p.wave]
    waves = {} if by_bytes else {p.place: p.wave for p in able if p.wave}
    last = max(waves.values(), default=0)
    waves |= {p.place: last + n for p, n in zip(unplanned, _new_waves(unplanned, seen, limits), strict=True)}
    moves = [(waves[p.place], _move(p, seen.partitions[p.place], seen.sizes.get(p.place, 0))) for p in able]
    return sorted(moves, key=lambda m: (m[0], m[1].topic, m[1].partition)), dict.fromkeys(stuck, _NO_SOURCE)


def _move(part: PartitionTask, there: Partition, size: int = 0) -> Move:
    """The move of a partition; Kafka forgets the order of replicas while it moves them, the plan does not."""
    has = settled(there)
    now = next((start for start in sorted(part.starts) if set(start) == set(has)), has) if there.is_reassigned else has
    under_way = there.is_reassigned and there.target == part.after
    dirs = tuple(
        (broker, path)
        for broker, path in zip(part.after, part.log_dirs, strict=False)
        if broker not in has and path != ANY_LOG_DIR
    )
    replaces = there.target if there.is_reassigned and not under_way else ()
    return Move(part.topic, part.partition, now, part.after, under_way, dirs, size, replaces)


def _new_waves(parts: Sequence[PartitionTask], seen: Seen, limits: WaveLimits | None) -> list[int]:
    if not parts:
        return []
    there = [seen.partitions[p.place] for p in parts]
    rows = np.arange(len(parts))
    moves = Moves(
        tuple(sorted({p.topic for p in parts})),
        rows,
        np.unique([p.topic for p in parts], return_inverse=True)[1].astype(np.int32),
        np.array([p.partition for p in parts], np.int32),
        _matrix([settled(t) for t in there]),
        _matrix([p.after for p in parts]),
        np.zeros(len(parts), np.uint8),
    )
    in_sync = _matrix([tuple(b for b in t.isr if b in seen.alive) for t in there])
    sizes = np.array([seen.sizes.get(p.place, 0) for p in parts], np.int64)
    waves: list[int] = in_waves(moves, in_sync, limits, sizes=sizes).wave.tolist()
    return waves


def _matrix(rows: Sequence[Replicas]) -> Int32Array:
    width = max(len(row) for row in rows)
    return np.array([[*row, *[NO_BROKER] * (width - len(row))] for row in rows], np.int32)


def _unelectable(task: Task, seen: Seen) -> dict[Place, str]:
    """Partitions whose leader alone is to change, and cannot, with the reason."""
    found = {}
    for part in (part for part in task.partitions if part.is_election):
        there = seen.partitions.get(part.place)
        if there is None:
            found[part.place] = "it is not on the cluster"
        elif there.target != part.after:
            found[part.place] = f"it is on {list(there.target)}, and the election is about {list(part.after)}"
        elif there.leader != part.after[0] and part.after[0] not in seen.alive:
            found[part.place] = f"broker {part.after[0]}, which is to lead it, is not alive"
    return found


def _left_out(reasons: Mapping[Place, str]) -> list[Step]:
    """One step for each reason, in their order."""
    return [LeaveOut(tuple(p for p in reasons if reasons[p] == why), why) for why in dict.fromkeys(reasons.values())]


def _to_be_elected(
    task: Task, moving: Iterable[tuple[int, Move]], left_out: Collection[Place], seen: Seen
) -> list[Place]:
    """Partitions that are moved, by this or an earlier run, and that another than the preferred leader may lead."""
    on_the_way = {move.place for _, move in moving}
    return [
        part.place
        for part in task.partitions
        if part.before
        and part.after
        and part.after[0] in seen.alive
        and part.place not in left_out
        and (part.place in on_the_way or seen.partitions[part.place].leader != part.after[0])
    ]


def _closing(steps: Sequence[Step], leftover: Unthrottle | None) -> list[Step]:
    """The removal of every throttle that was set, or was there before."""
    throttles = [step for step in steps if isinstance(step, Throttle)]
    brokers = {b for step in throttles for b in step.brokers}
    topics = {topic for step in throttles for topic in step.topics}
    if leftover:
        brokers.update(leftover.brokers)
        topics.update(leftover.topics)
    return [Unthrottle(tuple(sorted(brokers)), tuple(sorted(topics)))] if brokers or topics else []


def _named(ids: Sequence[int]) -> str:
    shown = ", ".join(map(str, ids[:3]))
    return shown if len(ids) <= 3 else f"{shown}, ..."
