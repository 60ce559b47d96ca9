"""Verify: is a plan sound? Worked out from the brokers and the replica lists alone.

Nothing here is shared with the steps that make plans: a rack window, a set of usable brokers or a count of changes is
derived anew, so that a mistake there is found here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from placement import checks
from placement.digest import digest_of
from placement.model import NO_BROKER, Broker, Int32Array
from placement.plan import Replan
from placement.terms import Leaders, Mode
from placement.verification.claims import claim_problems, keeping_lost
from placement.verification.loads import load_problems
from placement.verification.racks import Members, among, deviation

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong, about one partition or (topic None) about the plan."""

    problem: str
    topic: str | None = None
    partition: int | None = None

    def __str__(self) -> str:
        """One sentence for a person."""
        return self.problem if self.topic is None else f"partition {self.topic}-{self.partition} {self.problem}"


@dataclass(frozen=True, slots=True)
class Verification:
    """The answer: sound when there is no violation.

    Attributes:
        violations: the first of each kind of problem, in canonical order.
        checked: partitions that were looked at.
    """

    violations: tuple[Violation, ...]
    checked: int

    def __bool__(self) -> bool:
        """Whether the plan is sound."""
        return not self.violations


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """Changed partitions in columns: what is to be verified.

    Attributes:
        topics: topic names.
        topic_index, partition: int32, shape ``(M,)``.
        before: int32 broker ids, shape ``(M, R1)``, padded with -1; all padding where a partition is new.
        after: int32 broker ids, shape ``(M, R2)``, padded with -1.

    Raises:
        InvalidAssignmentError: a column is none, has another length than the others, or holds what is no id.
    """

    topics: tuple[str, ...]
    topic_index: Int32Array
    partition: Int32Array
    before: Int32Array
    after: Int32Array

    def __post_init__(self) -> None:
        """Reject columns that do not go together."""
        checks.changed(self, checks.column(self.partition, "partition").size)


def verify(plan: Replan) -> Verification:
    """Check a whole plan: what changes, what must not and what had to, its counts, bytes, claims and its digest.

    Raises:
        PlacementError: it is no plan, or its parts are not of one another.
    """
    _check_form(plan)
    moves, terms = plan.moves, plan.terms
    if not any(b.state == "alive" and b.id not in terms.exclude_brokers for b in terms.brokers):
        return Verification((Violation("there is no broker that could take a replica"),), len(moves))
    change = Change(moves.topics, moves.topic_index, moves.partition, moves.before, moves.after)
    found = list(
        verify_moves(
            change,
            terms.brokers,
            exclude_topics=terms.exclude_topics,
            exclude_brokers=terms.exclude_brokers,
            replication_factors=terms.replication_factors,
            keep_off=terms.keep_off,
            in_sync=None if terms.in_sync is None else terms.in_sync[moves.row],
            partial=_has_budget(plan),
        ).violations
    )
    found += _against_layouts(plan) + _against_terms(plan)
    found += _healed(plan)
    found += _kept_off(plan)
    found += _left_lost(plan)
    found += [Violation(problem) for problem in (*claim_problems(plan), *load_problems(plan))]
    return Verification(tuple(found), len(moves))


def _check_form(plan: Replan) -> None:
    """Whether the parts of a plan that anybody may have made can be compared at all."""
    checks.instance(plan, Replan, "plan")
    terms, rows = plan.terms, len(plan.before)
    checks.column(plan.moves.row, "row", most=rows - 1)
    checks.limit(terms.max_moves, "max_moves")
    checks.choice(terms.mode, "mode", get_args(Mode))
    checks.choice(terms.leaders, "leaders", get_args(Leaders))
    checks.instances(terms.brokers, Broker, "brokers")
    checks.broker_ids(terms.exclude_brokers, "exclude_brokers")
    if terms.in_sync is not None:
        checks.matrix(terms.in_sync, "in_sync", rows)


def verify_moves(
    change: Change,
    brokers: Iterable[Broker] | Members,
    *,
    exclude_topics: Collection[str] = (),
    exclude_brokers: Collection[int] = (),
    replication_factors: Mapping[str, int] | None = None,
    keep_off: Mapping[str, Collection[int]] | None = None,
    in_sync: Int32Array | None = None,
    partial: bool = False,
) -> Verification:
    """Check changed or new partitions against the brokers, at a cost that follows the change.

    Args:
        change: the partitions.
        brokers: all brokers, or the members that were made of them for many checks.
        exclude_topics: topics that must not be among them.
        exclude_brokers: brokers that must get no replica, and whose replicas must stay as long as they are in sync and
            their partition has others to give up; members know theirs.
        replication_factors: by topic, where it is to change; elsewhere it must stay.
        keep_off: by topic, brokers that get no replica of it; its racks are only as large as the others in them.
        in_sync: int32 broker ids, shape ``(M, S)``, padded with -1: the replicas before that are up and in the ISR;
            without it, those on brokers that are not dead.
        partial: replicas on lost brokers may stay where they are, as a budget did not reach them.

    Raises:
        PlacementError: an argument is of another type than it must be, ``in_sync`` is of other partitions, or a broker
            is given twice.
    """
    checks.instance(change, Change, "change")
    members = brokers if isinstance(brokers, Members) else Members.of(brokers, exclude_brokers)
    excluded = checks.topics(exclude_topics, "exclude_topics")
    factors = checks.by_topic(replication_factors, "replication_factors", checks.whole)
    barred = checks.by_topic(keep_off, "keep_off", checks.broker_ids)
    partial = checks.flag(partial, "partial")
    in_sync = None if in_sync is None else checks.matrix(in_sync, "in_sync", change.partition.size)
    if not change.partition.size:
        return Verification((), 0)
    one = _Checks(change, members, partial, in_sync)
    found = [
        *one.shape(),
        *one.brokers_alive(),
        *one.excluded_brokers(),
        *one.copies_kept(),
        *one.replication_factor(factors),
        *one.kept_off(barred),
        *one.racks(barred),
    ]
    if excluded:
        used = {change.topics[i] for i in np.unique(change.topic_index).tolist()}
        found += [Violation(f"topic {t} is excluded and changes") for t in sorted(used & excluded)]
    return Verification(tuple(found), int(change.partition.size))


class _Checks:
    """The single checks over one change."""

    __slots__ = ("_after", "_before", "_change", "_in_sync", "_members", "_partial")

    def __init__(self, change: Change, members: Members, partial: bool, in_sync: Int32Array | None) -> None:
        self._change = change
        self._members = members
        self._partial = partial
        self._before, self._after = change.before, change.after
        known = among(self._before, members.up) if in_sync is None else _contains(in_sync, self._before)
        self._in_sync = known & (self._before != NO_BROKER)

    def _violations(self, wrong: NDArray[np.bool_], problem: str) -> list[Violation]:
        if not wrong.any():
            return []
        change = self._change
        rows = np.flatnonzero(wrong)[:_SHOWN].tolist()
        return [
            Violation(
                f"{problem}: {_listed(self._before[row])} -> {_listed(self._after[row])}",
                change.topics[change.topic_index[row]],
                int(change.partition[row]),
            )
            for row in rows
        ]

    def shape(self) -> list[Violation]:
        """Rows are filled from the front, no broker twice, no partition twice."""
        present = self._after != NO_BROKER
        gaps = np.asarray(~present[:, :1].any(axis=1) | (present[:, 1:] & ~present[:, :-1]).any(axis=1))
        ordered = np.sort(self._after, axis=1)
        twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NO_BROKER)).any(axis=1)
        key = self._change.topic_index.astype(np.int64) << 32 | self._change.partition
        repeated = np.zeros(key.size, np.bool_)
        if not (key[1:] > key[:-1]).all():
            repeated[:] = True
            repeated[np.unique(key, return_index=True)[1]] = False
        return (
            self._violations(gaps, "has no replica or a gap")
            + self._violations(twice, "names a broker more than once")
            + self._violations(repeated, "is changed more than once")
        )

    def brokers_alive(self) -> list[Violation]:
        """Replicas are on live brokers; others may stay that a budget left behind, or that no broker is left for."""
        stayed = _contains(self._before, self._after)
        wrong = (self._after != NO_BROKER) & ~among(self._after, self._members.alive)
        tolerated = among(self._after, self._members.excluded) & stayed
        takers = self._members.alive[~among(self._members.alive, self._members.excluded)]
        full = among(self._after, takers).sum(axis=1) == takers.size
        tolerated |= stayed & (full[:, None] | self._partial)
        return self._violations(np.asarray((wrong & ~tolerated).any(axis=1)), "is placed on a broker that is not alive")

    def excluded_brokers(self) -> list[Violation]:
        """Excluded brokers get no replica, and lose those in sync only where a partition has none but theirs."""
        if not self._members.excluded.size:
            return []
        gained = among(self._after, self._members.excluded) & ~_contains(self._before, self._after)
        lost = among(self._before, self._members.excluded) & ~_contains(self._after, self._before)
        fewer = (self._after != NO_BROKER).sum(axis=1) < (self._before != NO_BROKER).sum(axis=1)
        others = (~among(self._after, self._members.excluded) & (self._after != NO_BROKER)).any(axis=1)
        wrong = np.where(fewer[:, None], lost & self._in_sync & others[:, None], lost)
        moved = np.asarray(gained.any(axis=1) | wrong.any(axis=1))
        return self._violations(moved, "moves a replica of an excluded broker")

    def copies_kept(self) -> list[Violation]:
        """As many replicas end with the data as can: those in sync, and new ones, which are copied before others go.

        So the last one in sync never goes, and none goes while one stays that is not in sync.
        """
        stays = _contains(self._before, self._after)
        room = among(self._after, self._members.alive) & ~among(self._after, self._members.excluded)
        good = (self._in_sync & _contains(self._after, self._before)).sum(axis=1) + (room & ~stays).sum(axis=1)
        needed = np.minimum(self._in_sync.sum(axis=1), (self._after != NO_BROKER).sum(axis=1))
        fewer = good < needed
        return self._violations(fewer, "gives up a replica that is in sync and keeps one that is not")

    def replication_factor(self, wanted: dict[str, int]) -> list[Violation]:
        """The number of replicas is the one asked for, or the one before."""
        asked = np.array([wanted.get(t, 0) for t in self._change.topics], np.int64)[self._change.topic_index]
        before = (self._before != NO_BROKER).sum(axis=1)
        after = (self._after != NO_BROKER).sum(axis=1)
        expected = np.where(asked > 0, asked, before)
        wrong = (after != expected) & (expected > 0)
        if self._partial:
            wrong &= after != before
        return self._violations(wrong, "has the wrong number of replicas")

    def _deviations(self, replicas: Int32Array, groups: list[tuple[NDArray[np.intp], Members]]) -> NDArray[np.int64]:
        """How far each row is outside its racks' spread; some rows go by racks of their own."""
        found = deviation(replicas, self._members)
        for rows, members in groups:
            found[rows] = deviation(replicas[rows], members)
        return found

    def kept_off(self, keep_off: dict[str, Collection[int]]) -> list[Violation]:
        """No topic gets a replica on a broker that it is kept off."""
        found = []
        for topics, brokers in self._by_brokers(keep_off):
            barred = np.array(sorted(brokers), np.int32)
            wrong = among(self._after, barred) & ~_contains(self._before, self._after)
            of_these = np.isin(self._change.topic_index, topics)
            found += self._violations(wrong.any(axis=1) & of_these, "gets a replica on a broker that it is kept off")
        return found

    def _by_brokers(self, keep_off: dict[str, Collection[int]]) -> list[tuple[list[int], frozenset[int]]]:
        """Topics of the change with the brokers that they are kept off, those of the same brokers together."""
        groups: dict[frozenset[int], list[int]] = {}
        for index, name in enumerate(self._change.topics if keep_off else ()):
            if keep_off.get(name):
                groups.setdefault(frozenset(keep_off[name]), []).append(index)
        return [(topics, brokers) for brokers, topics in groups.items()]

    def racks(self, keep_off: dict[str, Collection[int]]) -> list[Violation]:
        """Racks hold as many replicas as they should, or deviate no further than before."""
        groups = [
            (np.flatnonzero(np.isin(self._change.topic_index, topics)), self._members.without(brokers))
            for topics, brokers in self._by_brokers(keep_off)
        ]
        worst = self._deviations(self._after, groups)
        self._measure_by_copies(worst)
        if not worst.any():
            return []
        earlier = self._deviations(self._before, groups)
        grown = (self._after != NO_BROKER).sum(axis=1) != (self._before != NO_BROKER).sum(axis=1)
        return self._violations((worst > 0) & ((worst > earlier) | (grown & (earlier == 0))), "breaks its rack window")

    def _measure_by_copies(self, worst: NDArray[np.int64]) -> None:
        """What only gives replicas up can be spread no better than those that it may keep: the ones in sync."""
        fewer = (self._after != NO_BROKER).sum(axis=1) < (self._before != NO_BROKER).sum(axis=1)
        rows = np.flatnonzero(
            (worst > 0) & fewer & (_contains(self._before, self._after) | (self._after < 0)).all(axis=1)
        )
        kept = self._in_sync[rows] | _contains(self._after[rows], self._before[rows])
        hosts = np.sort(np.where(kept, self._before[rows], NO_BROKER), axis=1)
        for own in np.unique(hosts, axis=0):
            same = rows[(hosts == own).all(axis=1)]
            others = set(self._members.ids.tolist()) - set(own.tolist())
            worst[same] = deviation(self._after[same], self._members.without(others))


def _against_layouts(plan: Replan) -> list[Violation]:
    """The moves lead from the one layout to the other and touch nothing else."""
    before, after, moves = plan.before, plan.assignment, plan.moves
    width = max(before.replicas.shape[1], after.replicas.shape[1])
    old, new = _padded(before.replicas, width), _padded(after.replicas, width)
    differs = (old != new).any(axis=1)
    rows = moves.row
    problems = []
    if not np.array_equal(np.flatnonzero(differs), rows):
        problems.append(Violation("the moves are not the partitions that differ between the layouts"))
    elif not np.array_equal(_padded(moves.before, width), old[rows]) or not np.array_equal(
        _padded(moves.after, width), new[rows]
    ):
        problems.append(Violation("the moves do not lead from the one layout to the other"))
    return problems


def _against_terms(plan: Replan) -> list[Violation]:
    """The counts and the digest are right, and the budget and the mode are kept."""
    moves, terms = plan.moves, plan.terms
    fresh = ~_contains(moves.before, moves.after) & (moves.after != NO_BROKER)
    moved = int(fresh.sum())
    led = int((moves.before[:, 0] != moves.after[:, 0]).sum())
    digest = digest_of(moves.topics, moves.topic_index, moves.partition, moves.before, moves.after)
    alive = np.array([b.id for b in terms.brokers if b.state == "alive"], np.int32)
    kept = _contains(moves.after, moves.before) | (moves.before == NO_BROKER) | ~np.isin(moves.before, alive)
    asked = np.array([t in terms.replication_factors for t in moves.topics], np.bool_)
    gone = ~kept.all(axis=1) & ~asked[moves.topic_index] if len(moves) else np.zeros(0, np.bool_)
    said = {
        f"the plan says {plan.moved_replicas} replicas move and {moved} do": moved == plan.moved_replicas,
        f"the plan says {plan.leader_changes} leaders change and {led} do": led == plan.leader_changes,
        f"{moved} replicas move and {terms.max_moves} may": terms.max_moves is None or moved <= terms.max_moves,
        "healing moves a replica from a live broker": terms.mode != "heal" or not gone.any(),
        "the digest is not that of the moves": digest == plan.digest,
    }
    return [Violation(problem) for problem, holds in said.items() if not holds]


def _healed(plan: Replan) -> list[Violation]:
    """Healing changes only partitions that lost a replica or get another replication factor, in no respect others."""
    moves, terms = plan.moves, plan.terms
    if terms.mode != "heal" or terms.leaders == "everywhere":
        return []
    stay = sorted({b.id for b in terms.brokers if b.state == "alive"} | terms.exclude_brokers)
    lost = ~among(moves.before, np.array(stay, np.int32)) & (moves.before != NO_BROKER)
    asked = np.array([t in terms.replication_factors for t in moves.topics], np.bool_)[moves.topic_index]
    rows = np.flatnonzero(~lost.any(axis=1) & ~asked)[:_SHOWN].tolist()
    names = [(moves.topics[moves.topic_index[row]], int(moves.partition[row])) for row in rows]
    return [Violation("lost no replica, and healing changes it", topic, partition) for topic, partition in names]


def _has_budget(plan: Replan) -> bool:
    return plan.terms.max_moves is not None or (plan.loads is not None and plan.loads.max_bytes is not None)


def _kept_off(plan: Replan) -> list[Violation]:
    """A rebalance without a budget leaves no replica on a broker that its topic is kept off."""
    terms = plan.terms
    if not terms.keep_off or terms.mode == "heal" or _has_budget(plan):
        return []
    usable = {b.id for b in terms.brokers if b.state == "alive"} - terms.exclude_brokers
    layout, found = plan.assignment, []
    for row, (topic, partition) in enumerate(zip(layout.topic_index.tolist(), layout.partition.tolist(), strict=True)):
        name = layout.topics[topic]
        wrong = (terms.keep_off.get(name, frozenset()) & usable).intersection(layout.replicas[row].tolist())
        if wrong and name not in terms.exclude_topics:
            found.append(Violation(f"keeps its replica on broker {min(wrong)}, which it is kept off", name, partition))
    return found[:_SHOWN]


def _left_lost(plan: Replan) -> list[Violation]:
    """Only partitions that need more brokers than can take them keep a lost replica, and the plan names those."""
    layout, terms = plan.assignment, plan.terms
    frozen = np.array([t in terms.exclude_topics for t in layout.topics], np.bool_)[layout.topic_index]
    rows, needed, room = keeping_lost(layout, terms.brokers, terms.exclude_brokers)
    # A heal by load leaves what would break a limit, and says which.
    limited = {(one.topic, one.partition) for one in plan.unhealed if one.limit and _may_lack_room(plan)}
    named = ((layout.topics[layout.topic_index[row]], int(layout.partition[row])) for row in rows.tolist())
    places = [
        (place, short or place in limited)
        for row, place, short in zip(rows.tolist(), named, (needed > room).tolist(), strict=True)
        if not frozen[row]
    ]
    found = []
    if not _has_budget(plan):
        wrong = [place for place, short in places if not short][:_SHOWN]
        found += [Violation("keeps a lost replica that a broker could take", *place) for place in wrong]
    if [place for place, short in places if short] != [(one.topic, one.partition) for one in plan.unhealed]:
        found.append(Violation("the partitions that are said not to be healed are not those that are not"))
    return found


def _may_lack_room(plan: Replan) -> bool:
    return plan.loads is not None and bool(plan.loads.given.limits) and plan.terms.mode == "heal"


def _contains(rows: Int32Array, values: Int32Array) -> NDArray[np.bool_]:
    """Which of the values are in the row, shape of ``values``."""
    return np.asarray((values[:, :, None] == rows[:, None, :]).any(axis=2))


def _padded(matrix: Int32Array, width: int) -> Int32Array:
    result = np.full((matrix.shape[0], width), NO_BROKER, np.int32)
    result[:, : matrix.shape[1]] = matrix[:, :width]
    return result


def _listed(row: Int32Array) -> list[int]:
    return [b for b in row.tolist() if b != NO_BROKER]
