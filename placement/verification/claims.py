"""Verify what a plan says of itself, and what it leaves out: bound, balances, reasons, and replicas that stay lost.

Nothing here is shared with the steps that make plans. That a bound below the moves is the best possible, nobody can
check without planning; that it is none, is seen here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from placement.model import NO_BROKER, Assignment, Broker, Int32Array
from placement.plan import REASONS, Balance, Replan
from placement.verification.racks import among

_SHOWN: Final = 20
_EXACTLY: Final = 1e-9
"""Relative: sums of the same numbers in another order."""


def claim_problems(plan: Replan) -> Iterator[str]:
    """What is wrong with what the plan says of itself or with what it leaves undone, one sentence each."""
    yield from _bound(plan)
    yield from _balances(plan)
    yield from _reasons(plan)
    yield from _unmet(plan)


def _bound(plan: Replan) -> Iterator[str]:
    bound, moved = plan.lower_bound, plan.moved_replicas
    if not 0 <= bound <= moved:
        yield f"the plan says that {bound} replicas must move at least, and {moved} do"
    elif plan.optimal and bound != moved:
        yield f"the plan calls itself optimal, and moves {moved} replicas where its bound is {bound}"


def _balances(plan: Replan) -> Iterator[str]:
    terms = plan.terms
    alive = [b for b in terms.brokers if b.state == "alive" and b.id not in terms.exclude_brokers]
    usable = sorted(alive, key=lambda b: b.id)
    present = usable + [b for b in terms.brokers if b.id in terms.exclude_brokers]
    ids = np.array([b.id for b in usable], np.int32)
    capacity = np.array([b.capacity for b in usable]) / np.mean([b.capacity for b in present])
    for said, name, layout, columns in (
        (plan.replicas_before, "replicas before", plan.before, None),
        (plan.replicas_after, "replicas after", plan.assignment, None),
        (plan.leaders_before, "leaders before", plan.before, 1),
        (plan.leaders_after, "leaders after", plan.assignment, 1),
    ):
        found = Balance.of(_counts(ids, layout.replicas[:, :columns]), capacity)
        same = (said.minimum, said.maximum) == (found.minimum, found.maximum)
        if not same or not np.allclose((said.spread, said.cost), (found.spread, found.cost), _EXACTLY, _EXACTLY):
            yield f"the balance of {name} is not that of the layout"


def _counts(ids: Int32Array, replicas: Int32Array) -> NDArray[np.int64]:
    """Replicas on each broker, int64, shape of ``ids``."""
    held, count = np.unique(replicas, return_counts=True)
    found = np.zeros(ids.size, np.int64)
    place = np.minimum(ids.searchsorted(held), ids.size - 1)
    there = ids[place] == held
    found[place[there]] = count[there]
    return found


def _reasons(plan: Replan) -> Iterator[str]:
    """A reason says what is so: that a broker was lost or drained, the factor another, or only the leader changes."""
    moves, terms = plan.moves, plan.terms
    if not len(moves):
        return
    stay = [b.id for b in terms.brokers if b.state == "alive" or b.id in terms.exclude_brokers]
    draining = [b.id for b in terms.brokers if b.state == "draining"]
    there = moves.before != NO_BROKER
    away = there & ~np.isin(moves.before, np.array(stay, np.int32))
    drained = away & np.isin(moves.before, np.array(draining, np.int32))
    lost = (away & ~drained).any(axis=1)
    resized = there.sum(axis=1) != (moves.after != NO_BROKER).sum(axis=1)
    moved = moves.new_replicas().any(axis=1)
    given = np.array(REASONS)[moves.reason]
    causes = {"lost": lost, "drained": drained.any(axis=1), "replication factor": resized, "move": moved}
    expected = np.select(list(causes.values()), list(causes), "preferred leader")
    said = np.where(np.isin(given, ("rack violation", "returned home", "spread", "over its share")), "move", given)
    stays = ~moved & ~resized & (said == "preferred leader")  # a budget may leave what was lost, and elect a leader
    for row in np.flatnonzero((said != expected) & ~stays)[:_SHOWN].tolist():
        name = f"{moves.topics[moves.topic_index[row]]}-{moves.partition[row]}"
        yield f"partition {name} gives the reason {str(given[row])!r}, and that is not so"


def _unmet(plan: Replan) -> Iterator[str]:
    """A plan without a budget leaves no topic with another factor than was asked for."""
    terms, layout = plan.terms, plan.assignment
    if terms.max_moves is not None or plan.loads is not None:
        return  # a budget ends before all is done, and so may limits
    factors = {topic: n for topic, n in terms.replication_factors.items() if topic not in terms.exclude_topics}
    asked = np.array([factors.get(topic, 0) for topic in layout.topics], np.int64)[layout.topic_index]
    size = (layout.replicas != NO_BROKER).sum(axis=1)
    for row in np.flatnonzero((asked > 0) & (size != asked))[:_SHOWN].tolist():
        yield f"partition {_name(layout, row)} has {size[row]} replicas, and {asked[row]} were asked for"


def keeping_lost(
    layout: Assignment, brokers: Iterable[Broker], exclude_brokers: Collection[int] = ()
) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int64]]:
    """The rows of a layout that keep a lost replica, the brokers that each needs, and those that can hold its replicas.

    A replica is lost where its broker is neither alive nor excluded. Excluded ones keep what they have, take nothing.
    """
    excluded = np.array(sorted(exclude_brokers), np.int32)
    takers = np.array(sorted({b.id for b in brokers if b.state == "alive"}.difference(exclude_brokers)), np.int32)
    there = layout.replicas != NO_BROKER
    lost = there & ~among(layout.replicas, np.sort(np.concatenate([takers, excluded])))
    rows = np.flatnonzero(lost.any(axis=1))
    room = takers.size + among(layout.replicas[rows], excluded).sum(axis=1)
    return rows, there[rows].sum(axis=1), room


def left_lost(layout: Assignment, brokers: Iterable[Broker]) -> Iterator[str]:
    """Partitions of a layout that keep a lost replica, though there are brokers enough for all of theirs."""
    rows, needed, room = keeping_lost(layout, brokers)
    healable = needed <= room
    for row, size, usable in list(zip(rows[healable], needed[healable], room[healable], strict=True))[:_SHOWN]:
        yield f"partition {_name(layout, row)} keeps a lost replica, and {usable} brokers could hold its {size}"


def _name(layout: Assignment, row: int | np.intp) -> str:
    return f"{layout.topics[layout.topic_index[row]]}-{layout.partition[row]}"
