"""Is a version that was derived again the recorded one? If not, in what do they differ first?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, Final

from placement.model import NO_BROKER
from streaming.record.loads import listed
from streaming.record.moves import TopicMoves, canonical, unpadded
from streaming.record.version import EventRecord, PlanVersion

_FIELDS: Final = (
    "base_version",
    "supersedes",
    "kind",
    "cause",
    "approval",
    "broker_changes",
    "topic_changes",
    "limit_changes",
    "load_deadline",
    "numbers",
    "digest",
)


class NotTheSame(Exception):  # noqa: N818 - the answer of a comparison
    """Something is not as it must be; carries what is recorded and what was expected.

    ``certain`` says that any release of this software would find it.
    """

    def __init__(self, what: str, recorded: Any = None, derived: Any = None, *, certain: bool = False) -> None:
        super().__init__(what)
        self.recorded, self.derived, self.certain = recorded, derived, certain


def compare_versions(recorded: PlanVersion, derived: PlanVersion) -> None:
    """Compare all that the planner decides.

    Raises:
        NotTheSame: with the first difference; moves come first, because they say most.
    """
    _compare_moves(recorded, derived)
    _compare_loads(recorded, derived)
    for name in _FIELDS:
        old, new = _plain(getattr(recorded, name)), _plain(getattr(derived, name))
        if old != new:
            raise NotTheSame(f"its {name.replace('_', ' ')} comes out differently", old, new)
    if recorded.fold.brokers and recorded.fold != derived.fold:  # earlier releases recorded none
        raise NotTheSame("the state after it comes out differently", recorded.fold, derived.fold)
    old, new = (_outcomes(version.events) for version in (recorded, derived))
    if old != new:
        raise NotTheSame("its events come out differently", old, new)


def compare_refused(recorded: Sequence[EventRecord], derived: Sequence[EventRecord]) -> None:
    """Compare the outcomes of events that no version records, whatever their order.

    Raises:
        NotTheSame: they are not the same.
    """
    old, new = (sorted(_outcomes(events)) for events in (recorded, derived))
    if old != new:
        raise NotTheSame("the events that its batch refused come out differently", old, new)


def _outcomes(events: Sequence[EventRecord]) -> list[tuple[str, str, str]]:
    """Without repeats: what they repeat may be far back."""
    return [(e.event_id or "", e.outcome, e.reason) for e in events if e.outcome != "duplicate"]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, list | tuple) else value


def _compare_moves(recorded: PlanVersion, derived: PlanVersion) -> None:
    same = recorded.digest == derived.digest and _notes(recorded.moves) == _notes(derived.moves)
    aside = [(_dirs(version.moves), _roles(version.moves)) for version in (recorded, derived)]
    if same and aside[0] == aside[1]:
        return
    new = {(topic, partition): (before, after, reason) for topic, partition, before, after, reason in _moves(derived)}
    for topic, partition, before, after, reason in _moves(recorded):
        other = new.pop((topic, partition), None)
        if other != (before, after, reason):
            what = f"partition {topic}-{partition} comes out differently"
            raise NotTheSame(what, (before, after, reason), other)
    if new:
        (topic, partition), other = next(iter(new.items()))
        raise NotTheSame(f"partition {topic}-{partition} is missing", None, other)
    old_dirs, new_dirs = (_dirs(version.moves) for version in (recorded, derived))
    if old_dirs != new_dirs:
        raise NotTheSame("its log directories come out differently", old_dirs, new_dirs)
    old_roles, new_roles = (_roles(version.moves) for version in (recorded, derived))
    if old_roles and old_roles != new_roles:
        raise NotTheSame("what was observed of its partitions comes out differently", old_roles, new_roles)
    old_waves, new_waves = (_notes(version.moves)[1] for version in (recorded, derived))
    if old_waves != new_waves:
        raise NotTheSame("its waves come out differently", old_waves, new_waves)


def _compare_loads(recorded: PlanVersion, derived: PlanVersion) -> None:
    old, new = listed(recorded.load_changes), listed(derived.load_changes)
    if old != new:
        one, other = next(pair for pair in zip_longest(old, new) if pair[0] != pair[1])
        topic, partition, *_ = one or other
        raise NotTheSame(f"the load of partition {topic}-{partition} comes out differently", one, other)


def _moves(version: PlanVersion) -> list[tuple[str, int, list[int], list[int], Any]]:
    return list(canonical(version.moves))


def _notes(moves: Sequence[TopicMoves]) -> tuple[list[str], list[int]]:
    """Reasons and waves, which the digest does not cover."""
    blocks = sorted(moves, key=lambda block: block.topic)
    reasons = [reason for block in blocks for reason in block.reasons]
    waves = [[0] * b.partitions.size if b.waves is None else b.waves.tolist() for b in blocks]
    return reasons, [wave for block in waves for wave in block]


def _dirs(moves: Sequence[TopicMoves]) -> list[tuple[str, list[list[str]]]]:
    """The log directories that are named, by topic."""
    return [(b.topic, [list(paths) for paths in b.log_dirs]) for b in moves if b.log_dirs is not None]


def _roles(moves: Sequence[TopicMoves]) -> list[tuple[str, int, int, list[int], list[int]]]:
    """Leader, ISR and end offsets of the partitions of which they were observed."""
    found = []
    for block in sorted(moves, key=lambda block: block.topic):
        if block.roles is not None:
            columns = (block.partitions, block.roles.leader, block.roles.isr, block.roles.end_offsets)
            for partition, leader, isr, ends in zip(*(column.tolist() for column in columns), strict=True):
                found.append((block.topic, partition, leader, unpadded(isr), unpadded(ends)))
    return [row for row in found if row[2:] != (NO_BROKER, [], [])]
