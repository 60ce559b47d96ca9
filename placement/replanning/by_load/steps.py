"""The order of the steps of planning by load, and the report that they end with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from placement.arrays import Float64Array, Int64Array, by_group
from placement.errors import InvalidLimitError
from placement.fleet import Fleet
from placement.loads.model import Band, Loads
from placement.loads.report import LoadReport
from placement.model import NO_BROKER, Assignment, Int32Array
from placement.plan import Moves, Replan
from placement.replanning.by_load.bound import Held, received, shed
from placement.replanning.by_load.disks import Disks
from placement.replanning.by_load.fill import NoBrokerError, fill
from placement.replanning.by_load.layout import Layout
from placement.replanning.by_load.polish import search
from placement.replanning.by_load.share import Share, banded, shares
from placement.replanning.by_load.stages import ease, stages
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


def place_by_load(assignment: Assignment, fleet: Fleet, terms: Terms, asked: LoadTerms) -> Replan:
    """The plan that brings brokers into their bands with the fewest bytes that the search finds."""
    budget, charge = _budget(terms, asked)
    state = State(pose(assignment, fleet, terms, None, budget=budget, weight=charge))
    lost = int((state.missing() * asked.loads.size[state.problem.row]).sum())
    fixed = leaders_stay(terms, assignment, state)
    forced = _lift(state, terms, budget, charge)
    disks = Disks(fleet.ids[: fleet.present].tolist(), asked.loads.limits)
    layout = Layout(state, asked.loads, fixed, charge, disks)
    layout.spare = np.inf if budget is None else float(budget)
    layout.toll = asked.move_cost
    try:
        band = _run(layout, asked, lost)
    except NoBrokerError as error:
        topic, partition = assignment.topics[assignment.topic_index[error.row]], int(assignment.partition[error.row])
        raise InvalidLimitError(
            f"partition {topic}-{partition} finds no broker: every one that its racks allow is one that topic "
            f"{topic} is kept off",
            name="keep_off",
            value=len(terms.keep_off.get(topic, ())),
        ) from error
    # A leadership may have travelled with a replica and ended on another broker when the search came back to the row.
    lead = np.where(leaders_stay(terms, assignment, state), layout.origin[:, 0], layout.lead).astype(np.int32)
    plan = conclude(terms, assignment, state, Certificate(forced, optimal=False), leader=lead)
    return replace(plan, loads=_report(layout, plan, asked, band, _bound(layout, asked, band, lost)))


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
    """Whether a plan leaves a broker above a limit, further than it was."""
    report = plan.loads
    if report is None:
        return False
    limit = report.given.limit_matrix(report.brokers.tolist())
    return bool(((report.after > limit) & (report.after > report.before)).any())


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


def _run(layout: Layout, asked: LoadTerms, lost: int) -> Share:
    """Fill, and if a broker is outside the trigger's band after that, settle and trim until nothing changes."""
    problem, band = layout.state.problem, asked.band
    fleet = problem.fleet
    factor = (layout.replicas != NO_BROKER).sum(axis=1)
    factor[problem.row] = problem.factor
    share = _shares(fleet, layout.replicas, layout.lead, factor, asked.loads)
    limit = asked.loads.limit_matrix(fleet.ids[: fleet.present].tolist())
    staged = stages(share, limit, band.settle, exact_counts=band.exact_counts, present=fleet.present)
    inner = staged[-1].band
    outer = banded(share, limit, band.trigger, exact_counts=False, present=fleet.present)
    layout.measure(inner)
    fill(layout)
    load = layout.field.load
    if ((load < outer.low) | (load > outer.high))[:, : fleet.usable].any():
        search(layout, staged, lambda: _bound(layout, asked, inner, lost))
        if not band.exact_counts:
            narrow = banded(share, limit, band.settle * _EASE, exact_counts=False, present=fleet.present)
            ease(layout, inner, narrow)
    return inner


def _shares(fleet: Fleet, replicas: Int32Array, lead: Int32Array, factor: Int64Array, loads: Loads) -> Float64Array:
    """Shares of the usable brokers in what held ones do not carry."""
    elsewhere = (replicas >= fleet.usable).sum(axis=1)
    leads = lead < fleet.usable
    return shares(fleet, leads, factor - elsewhere - leads, (loads.leader(), loads.follower()))


def _bound(layout: Layout, asked: LoadTerms, band: Share, lost: int) -> int:
    """The certified lower bound for the band that was reached."""
    problem, n = layout.state.problem, layout.state.problem.fleet.usable
    follower = asked.loads.follower()
    before = _loads(layout.origin, layout.origin[:, 0], asked.loads, n).astype(np.float64)
    after = layout.field.load[:, :n]
    low, high = np.minimum(band.low[:, :n], after), np.maximum(band.high[:, :n], after)
    if problem.dropped().any():
        return lost
    row, slot = np.nonzero((problem.origin >= 0) & (problem.origin < n) & ~problem.pinned)
    broker = problem.origin[row, slot].astype(np.int64)
    order = by_group(broker)
    held = Held(problem.row[row[order]], broker[order])
    able = np.zeros(layout.size.size, np.bool_)
    able[problem.row] = True
    return max(lost + shed(held, follower, before, high), received(able, follower, before, low))


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
