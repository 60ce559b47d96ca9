"""The order of the steps of planning by load, and the report that they end with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from placement.arrays import BoolArray, Float64Array, Int64Array, by_group
from placement.errors import InvalidLimitError
from placement.fleet import Fleet, count_in_rack
from placement.loads.model import WEIGHTS, Band, Loads
from placement.loads.report import LoadReport
from placement.model import NO_BROKER, Assignment, Int32Array
from placement.plan import Moves, Replan, Unhealed
from placement.replanning.by_load.bound import Held, fewest_bytes, received, shed
from placement.replanning.by_load.disks import Disks
from placement.replanning.by_load.fill import NoBrokerError, NoRoomError, fill
from placement.replanning.by_load.layout import Layout
from placement.replanning.by_load.noise import beyond_noise
from placement.replanning.by_load.polish import search
from placement.replanning.by_load.share import Share, banded, distance, outside, shares
from placement.replanning.by_load.stages import Stages, ease, stages
from placement.replanning.conclude import conclude, leaders_stay
from placement.replanning.pose import pose
from placement.replanning.replicas.lift import lift
from placement.replanning.state import State
from placement.replanning.steps import Certificate
from placement.replanning.targets import targets
from placement.terms import Terms

_EASE: Final = 2 / 3


@dataclass(frozen=True, slots=True)
class LoadTerms:
    """What a plan by load is asked to do besides its terms."""

    loads: Loads
    band: Band
    max_bytes: int | None
    move_cost: int = 0


def plan_by_load(assignment: Assignment, fleet: Fleet, terms: Terms, asked: LoadTerms) -> Replan:
    """The plan by load; a heal that would break a limit heals what can be healed within limits, and names the rest."""
    plan = place_by_load(assignment, fleet, terms, asked)
    if terms.mode != "heal" or not over_limits(plan):
        return plan
    crowded: dict[int, str] = {}
    while True:
        try:
            return place_by_load(assignment, fleet, terms, asked, crowded=crowded)
        except NoRoomError as error:
            crowded |= error.rows


def place_by_load(
    assignment: Assignment,
    fleet: Fleet,
    terms: Terms,
    asked: LoadTerms,
    *,
    goal: Replan | None = None,
    crowded: Mapping[int, str] | None = None,
) -> Replan:
    """The plan that brings brokers into their bands with the fewest bytes that the search finds.

    With a ``goal``, which plans that follow each other have led to, the plan that goes there at once. With ``crowded``,
    what is lost is placed within limits; these rows stay as they are for what is said of them.

    Raises:
        NoRoomError: with ``crowded``, more rows find no room.
    """
    within_limits = crowded is not None
    if goal is not None:
        crowded = _crowded(goal)
    budget, charge = _budget(terms, asked)
    state = State(pose(assignment, fleet, terms, None, budget=budget, weight=charge, closed=list(crowded or ())))
    lost = int((state.missing() * asked.loads.size[state.problem.row]).sum())
    fixed = leaders_stay(terms, assignment, state)
    forced = _lift(state, terms, budget, charge)
    disks = Disks(fleet.ids[: fleet.present].tolist(), asked.loads.limits)
    layout = Layout(state, asked.loads, fixed, charge, disks)
    layout.spare = np.inf if budget is None else float(budget)
    layout.toll = asked.move_cost
    try:
        stay = partial(leaders_stay, terms, assignment, state)
        if goal is None:
            band = _run(layout, asked, lost, stay, within_limits=within_limits)
        else:
            band = _go(layout, asked, fleet.index_of(goal.assignment.replicas))
        layout.lead_as_before(stay())
    except NoBrokerError as error:
        topic, partition = assignment.topics[assignment.topic_index[error.row]], int(assignment.partition[error.row])
        raise InvalidLimitError(
            f"partition {topic}-{partition} finds no broker: every one that its racks allow is one that topic "
            f"{topic} is kept off",
            name="keep_off",
            value=len(terms.keep_off.get(topic, ())),
        ) from error
    plan = conclude(terms, assignment, state, Certificate(forced, optimal=False), leader=layout.lead)
    plan = _naming(plan, crowded or {})
    return replace(plan, loads=_report(layout, plan, asked, band, _bound(layout, asked, band, lost)))


def _naming(plan: Replan, crowded: Mapping[int, str]) -> Replan:
    """The plan with the rows that found no room among those that are not healed."""
    if not crowded:
        return plan
    layout, brokers = plan.before, plan.terms.brokers
    gone = {b.id for b in brokers if b.state != "alive"} - plan.terms.exclude_brokers
    known = {b.id for b in brokers} - gone
    found = []
    for row, limit in crowded.items():
        replicas = layout.replicas_of(row)
        name, partition = layout.topics[layout.topic_index[row]], int(layout.partition[row])
        found.append(Unhealed(name, partition, len(replicas), len(known.intersection(replicas)), limit))
    return replace(plan, unhealed=tuple(sorted([*plan.unhealed, *found], key=lambda one: (one.topic, one.partition))))


def _crowded(plan: Replan) -> dict[int, str]:
    """The rows of a plan that found no room."""
    layout = plan.before
    limits = {(one.topic, one.partition): one.limit for one in plan.unhealed if one.limit}
    keys = zip(layout.topic_index.tolist(), layout.partition.tolist(), strict=True) if limits else ()
    places = ((row, (layout.topics[topic], partition)) for row, (topic, partition) in enumerate(keys))
    return {row: limits[place] for row, place in places if place in limits}


def lasting(plan: Replan, again: Callable[[Assignment], Replan], fleet: Fleet, asked: LoadTerms) -> Replan:
    """The plan whose own output ``again`` leaves as it is: what it would still move, the plan moves at once.

    Each round ends closer to the bands than the one before. Only where no disk has room for all of it at once, or rules
    contradict each other so that it goes round in circles, the plan is left as it is.
    """
    known = {plan.digest}
    while len(plan.moves) and len((more := again(plan.assignment)).moves):
        longer = place_by_load(plan.before, fleet, plan.terms, asked, goal=more)
        if longer.digest in known or (over_limits(longer) and not over_limits(plan)):
            break
        known.add(longer.digest)
        plan = longer
    return plan


def place_alike(plan: Replan, fleet: Fleet, asked: LoadTerms) -> Replan:
    """A plan that was made by counts, as all partitions weigh the same, with what it means in bytes."""
    state = State(pose(plan.assignment, fleet, replace(plan.terms, mode="heal"), None))
    none = np.zeros(len(plan.assignment), np.bool_)
    disks = Disks(fleet.ids[: fleet.present].tolist(), asked.loads.limits)
    layout = Layout(state, asked.loads, none, asked.loads.size, disks)
    fresh = plan.moves.new_replicas()
    after = fleet.index_of(plan.moves.after)
    for at, slot in zip(*np.nonzero(fresh), strict=True):
        row = int(plan.moves.row[at])
        layout.choose_dir(row, int(slot), int(after[at, slot]))
    size = int(asked.loads.size[0])
    share = _shares(fleet, layout.replicas, layout.lead, (layout.replicas != NO_BROKER).sum(axis=1), asked.loads)
    limit = asked.loads.limit_matrix(fleet.ids[: fleet.present].tolist())
    band = banded(share, limit, asked.band.settle, exact_counts=True, present=fleet.present)
    return replace(plan, loads=_report(layout, plan, asked, band, plan.lower_bound * size))


def over_limits(plan: Replan) -> bool:
    """Whether a plan leaves a broker above a limit, further than it was, or a log directory that it copies to."""
    report = plan.loads
    if report is None:
        return False
    limit = report.given.limit_matrix(report.brokers.tolist())
    if ((report.after > limit) & (report.after > report.before)).any():
        return True
    copied: dict[tuple[int, str], int] = defaultdict(int)
    for row, brokers, paths in zip(plan.moves.row.tolist(), plan.moves.after.tolist(), report.log_dirs, strict=True):
        for broker, path in zip(brokers, paths, strict=False):
            copied[broker, path] += int(report.given.size[row])
    dirs = ((broker, one) for broker, limits in report.given.limits.items() for one in limits.log_dirs)
    return any(
        one.used + copied[broker, one.path] > one.limit for broker, one in dirs if copied.get((broker, one.path))
    )


def _budget(terms: Terms, asked: LoadTerms) -> tuple[int | None, Int64Array]:
    """What may be copied at most, and what a copy of each row takes of it: bytes, or one replica."""
    if asked.max_bytes is not None:
        return asked.max_bytes, asked.loads.size
    return terms.max_moves, np.ones_like(asked.loads.size)


def _lift(state: State, terms: Terms, budget: int | None, charge: Int64Array) -> int:
    """Take out what racks forbid, as far as the budget goes; the replicas that must be copied then."""
    limit = 0 if terms.mode == "heal" else None
    row = state.problem.row
    if budget is not None and limit is None:
        left = budget - int((state.missing() * charge[row]).sum())
        limit = max(left, 0) // max(int(charge[row].max(initial=1)), 1)
    room = state.problem.room()
    target = targets(room, state.usable_load, np.arange(room.capacity.size))
    return lift(state, target, limit).forced


def _measured(layout: Layout, asked: LoadTerms) -> tuple[Stages, Share, Share]:
    """Begin to keep loads; the stages, and the bands of the trigger and of easing."""
    problem, band = layout.state.problem, asked.band
    fleet = problem.fleet
    factor = (layout.replicas != NO_BROKER).sum(axis=1)
    factor[problem.row] = problem.factor
    share = _shares(fleet, layout.replicas, layout.lead, factor, asked.loads)
    limit = asked.loads.limit_matrix(fleet.ids[: fleet.present].tolist())
    staged = stages(share, limit, band.settle, exact_counts=band.exact_counts, present=fleet.present)
    layout.measure(staged.band)
    outer, narrow = (
        banded(share, limit, width, exact_counts=False, present=fleet.present)
        for width in (band.trigger, band.settle * _EASE)
    )
    return staged, outer, narrow


def _run(layout: Layout, asked: LoadTerms, lost: int, stay: Callable[[], BoolArray], *, within_limits: bool) -> Share:
    """Fill, and if a broker is outside the trigger's band after that, search; ``stay`` says whose leaders stay."""
    staged, outer, narrow = _measured(layout, asked)
    inner, exact_counts = staged.band, asked.band.exact_counts
    fill(layout, within_limits=within_limits)
    layout.lead_as_before(stay())
    start, load, cost = layout.snapshot(), layout.field.load.copy(), layout.field.total()
    acts = outside(load, beyond_noise(layout, inner, outer))
    if acts[:, : layout.state.problem.fleet.usable].any():
        pays = partial(_pays, inner=inner, outer=outer, exact_counts=exact_counts)
        search(
            layout,
            staged,
            lambda: _bound(layout, asked, inner, lost),
            lambda before, after: pays(before, after, outside(before, outer)),
        )
        if not exact_counts:
            ease(layout, inner, narrow)
        layout.lead_as_before(stay())
        after = layout.field.load
        # One broker's limit may have been given up for another's, which costs less and is no heal within limits.
        broken = within_limits and ((after > inner.limit) & (after > load)).any()
        if layout.field.total() >= cost or not pays(load, after, acts) or broken:
            layout.restore(start)
    return inner


def _go(layout: Layout, asked: LoadTerms, goal: Int32Array) -> Share:
    """Give every row the replicas and the leader that it has in ``goal``, broker indices of shape ``(P, R)``."""
    staged, _, _ = _measured(layout, asked)
    fleet = layout.state.problem.fleet
    for row in layout.state.problem.row[np.argsort(-layout.size[layout.state.problem.row], kind="stable")].tolist():
        wanted = [b for b in goal[row].tolist() if 0 <= b < fleet.present]
        held = layout.replicas[row].tolist()
        slots = sorted((s for s, b in enumerate(held) if b not in wanted), key=lambda s: held[s] == NO_BROKER)
        for slot, broker in zip(slots, (b for b in wanted if b not in held), strict=False):
            layout.move(row, slot, broker)
    first = goal[:, 0]
    for row in np.flatnonzero((layout.lead != first) & fleet.leads[first]).tolist():
        layout.set_leader(row, int(first[row]))
    return staged.band


def _pays(
    before: Float64Array, after: Float64Array, acts: BoolArray, *, inner: Share, outer: Share, exact_counts: bool
) -> bool:
    """Whether one of the brokers that act comes closer to its band by more than the trigger's is apart from it.

    Where counts are to be exact, whatever brings them closer pays.
    """
    with np.errstate(invalid="ignore"):  # of what has no bound nothing is outside
        apart = np.where(before > outer.high, outer.high - inner.high, inner.low - outer.low)
    closer = distance(before, inner) - distance(after, inner)
    counts = closer[WEIGHTS.index("replicas") :]
    return bool((acts & (closer > apart)).any() or (exact_counts and counts.sum() > 0))


def _shares(fleet: Fleet, replicas: Int32Array, lead: Int32Array, factor: Int64Array, loads: Loads) -> Float64Array:
    """Shares of the usable brokers in what held ones do not carry."""
    elsewhere = (replicas >= fleet.usable).sum(axis=1)
    leads = lead < fleet.usable
    return shares(fleet, leads, factor - elsewhere - leads, (loads.leader(), loads.follower()))


def _bound(layout: Layout, asked: LoadTerms, band: Share, lost: int) -> int:
    """The certified lower bound for the band that was reached."""
    problem, n = layout.state.problem, layout.state.problem.fleet.usable
    if problem.dropped().any():
        return lost
    kept = layout.origin.copy()
    kept[problem.row] = NO_BROKER
    kept[problem.row, : problem.start.shape[1]] = problem.start
    before = layout.loads(kept, np.full(kept.shape[0], NO_BROKER, np.int32))[:, :n]
    after = layout.field.load[:, :n]
    row, slot = np.nonzero((problem.start >= 0) & (problem.start < n) & ~problem.pinned)
    broker = problem.start[row, slot].astype(np.int64)
    order = by_group(broker)
    held = Held(problem.row[row[order]], broker[order])
    able = np.zeros(layout.size.size, np.bool_)
    able[problem.row] = True
    follower = asked.loads.follower()
    gives = shed(held, follower, before, np.maximum(band.high[:, :n], after))
    gets = received(able, follower, before, np.minimum(band.low[:, :n], after))
    together = fewest_bytes(gives, gets, np.array([lost]), np.zeros(n, np.int64))
    owed = _owed(layout)
    return together if owed is None else max(together, fewest_bytes(gives, gets, owed, problem.fleet.rack[:n]))


def _owed(layout: Layout) -> Int64Array | None:
    """Bytes that each rack ends with more than it begins with; None where that is not the same in every plan.

    Nor is it where this one leaves rows outside their racks, as those are for which the budget is too small.
    """
    problem = layout.state.problem
    q, racks = problem.row.size, problem.fleet.rack_size.size
    if racks > problem.factor.max(initial=0):
        return None
    row, rack = np.repeat(np.arange(q), racks), np.tile(np.arange(racks, dtype=np.int32), q)
    most = problem.highest(row, rack).reshape(q, racks)
    if (most.sum(axis=1) != problem.factor).any():
        return None
    before, after = (
        count_in_rack(problem.fleet, held[row], rack).reshape(q, racks)
        for held in (problem.start, layout.replicas[problem.row])
    )
    if (after != most).any():
        return None
    return np.asarray((layout.size[problem.row][:, None] * (most - before)).sum(axis=0))


def _loads(replicas: Int32Array, lead: Int32Array, loads: Loads, n: int) -> Int64Array:
    """Loads of brokers by index, int64, shape ``(weights, n)``."""
    leader, follower = loads.leader(), loads.follower()
    result = np.zeros((leader.shape[0], n), np.int64)
    for column in range(replicas.shape[1]):
        on = np.flatnonzero((replicas[:, column] >= 0) & (replicas[:, column] < n))
        broker = replicas[on, column]
        for k in range(leader.shape[0]):
            np.add.at(result[k], broker, np.where(broker == lead[on], leader[k, on], follower[k, on]))
    return result


def _report(layout: Layout, plan: Replan, asked: LoadTerms, band: Share, bound: int) -> LoadReport:
    moves = plan.moves
    fleet = layout.state.problem.fleet
    n = fleet.usable
    order = np.argsort(fleet.ids[:n])
    before, after = (fleet.index_of(a.replicas) for a in (plan.before, plan.assignment))
    return LoadReport(
        given=asked.loads,
        band=asked.band,
        max_bytes=asked.max_bytes,
        moved_bytes=int((moves.new_replicas().sum(axis=1) * asked.loads.size[moves.row]).sum()),
        lower_bound_bytes=bound,
        brokers=fleet.ids[:n][order],
        share=band.share[:, :n][:, order],
        low=band.low[:, :n][:, order],
        high=band.high[:, :n][:, order],
        before=_loads(before, before[:, 0], asked.loads, n)[:, order],
        after=_loads(after, after[:, 0], asked.loads, n)[:, order],
        log_dirs=_log_dirs(layout, moves, fleet.index_of(moves.after)),
    )


def _log_dirs(layout: Layout, moves: Moves, after: Int32Array) -> tuple[tuple[str, ...], ...]:
    """The directory of each replica of each move."""
    result = []
    for row, brokers in zip(moves.row.tolist(), after.tolist(), strict=True):
        slots = {b: s for s, b in enumerate(layout.replicas[row].tolist())}
        result.append(
            tuple((layout.path(row, slots[b]) if b in slots else None) or "any" for b in brokers if b != NO_BROKER)
        )
    return tuple(result)
