"""Steps in words: what ``--dry-run`` prints, and what is said while they are done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from streaming.amounts import bytes_text
from streaming.apply.journal.tasks import Place, Replicas
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

_NAMED: Final = 5


def headline(step: Step) -> str:  # noqa: PLR0911 - one line a kind of step
    """A step in one line."""
    match step:
        case CreateTopic():
            return f"create topic {step.topic} with {counted(len(step.replicas), 'partition')}"
        case AddPartitions():
            return f"add {counted(len(step.replicas), 'partition')} to topic {step.topic}, from {step.first} on"
        case KeepTopic():
            return f"keep topic {step.topic}, which the plan has given up: deleting data is left to you"
        case Cancel():
            names = places_text([move.place for move in step.moves])
            return f"cancel the reassignment of {names}: it waits for a broker that is down"
        case Throttle():
            least = f": takes at least {step.seconds:.0f} s" if step.seconds >= 1 else ""
            theirs = "; throttles of somebody else stay as they are" if step.theirs else ""
            return f"throttle copies to {bytes_text(step.rate)}/s on brokers {_ids(step.brokers)}{least}{theirs}"
        case MoveWave():
            copies = sum(len(move.incoming) for move in step.moves)
            partitions = counted(len(step.moves), "partition")
            size = sum(move.bytes for move in step.moves)
            amount = f" of {bytes_text(size)} in all" if size else ""
            return f"wave {step.number}: move {partitions}, copying {counted(copies, 'replica')}{amount}"
        case LeaveOut():
            return f"leave out {places_text(step.places)}: {step.reason}"
        case Elect():
            return f"elect the preferred leaders of {places_text(step.places)}"
        case Unthrottle():
            brokers, topics = _ids(step.brokers) or "none", ", ".join(step.topics) or "none"
            return f"remove throttles: of brokers {brokers}; of topics {topics}"
        case Refuse():
            return f"stop: {step.reason}"
        case _:
            assert_never(step)


def explain(step: Step) -> list[str]:
    """A step in full: its headline, then a line for each partition."""
    match step:
        case CreateTopic():
            details = [_line(step.topic, p, (), replicas) for p, replicas in enumerate(step.replicas)]
        case AddPartitions():
            details = [_line(step.topic, p, (), replicas) for p, replicas in enumerate(step.replicas, step.first)]
        case MoveWave():
            details = [_line(m.topic, m.partition, m.now, m.after) + _more(m) for m in step.moves]
        case _:
            details = []
    return [headline(step), *(f"  {line}" for line in details)]


def _line(topic: str, partition: int, now: Replicas, after: Replicas) -> str:
    start = f"{_ids(now)} → " if now else ""
    return f"{topic}-{partition}: {start}{_ids(after)}"


def _more(move: Move) -> str:
    dirs = "".join(f", on {broker} into {path}" for broker, path in move.log_dirs)
    return f"{dirs}{' (under way)' if move.under_way else ''}"


def not_moved(lost: Mapping[Place, str]) -> list[str]:
    """Partitions that are not moved, a line for those with the same reason."""
    return [
        f"{places_text(places)} {'is' if len(places) == 1 else 'are'} not moved: {reason}"
        for reason in dict.fromkeys(lost.values())
        if (places := [place for place in sorted(lost) if lost[place] == reason])
    ]


def counted(n: int, noun: str) -> str:
    """A number and its noun."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def places_text(places: Sequence[Place]) -> str:
    """Partitions for a sentence: their names where they are few, else how many."""
    if len(places) > _NAMED:
        return f"{len(places)} partitions"
    return ", ".join(f"{topic}-{partition}" for topic, partition in places)


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))
