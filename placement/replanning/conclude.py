"""Conclude: elect leaders, find what changed and why, and put the answer together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placement.arrays import BoolArray, Int64Array, any_in_row
from placement.digest import digest_of
from placement.fleet import count_in_rack
from placement.model import NO_BROKER, Assignment, Int32Array
from placement.plan import REASONS, Balance, Moves, Replan, Unhealed
from placement.replanning.leaders.elect import FRESH, KEEP, NEVER, SURVIVOR, elect
from placement.replanning.problem import Problem
from placement.replanning.state import State
from placement.replanning.steps import Certificate
from placement.terms import Terms


def conclude(
    terms: Terms, before: Assignment, state: State, certificate: Certificate, *, leader: Int32Array | None = None
) -> Replan:
    """The plan that the state stands for.

    ``leader``, broker indices of shape ``(P,)``, -1 for whoever is first, says who leads; without it leaders are
    elected.
    """
    problem = state.problem
    fleet, n = problem.fleet, problem.fleet.usable
    index = _all_rows(state)
    if leader is None:
        fixed = leaders_stay(terms, before, state) | ~any_in_row(fleet.leads[index] & (index != NO_BROKER))
        index = _elected(problem, index, fixed)
    else:
        leading = (index == leader[:, None]) & (leader != NO_BROKER)[:, None]
        index = _first(index, leading.argmax(axis=1))
    row = np.flatnonzero(_differs(problem.layout, index))
    ids = np.append(fleet.ids, np.int32(NO_BROKER))
    after = ids[index[row]]
    moves = Moves(
        topics=before.topics,
        row=row,
        topic_index=before.topic_index[row],
        partition=before.partition[row],
        before=before.replicas[row],
        after=after,
        reason=_reasons(state, index, row),
    )
    capacity = fleet.capacity[:n]
    return Replan(
        terms=terms,
        before=before,
        assignment=before.with_rows(row, after),
        moves=moves,
        moved_replicas=state.moved(),
        lower_bound=certificate.lower_bound,
        optimal=certificate.optimal,
        leader_changes=int((problem.layout[row, 0] != index[row, 0]).sum()),
        replicas_before=Balance.of(_count(problem.layout, n), capacity),
        replicas_after=Balance.of(state.usable_load, capacity),
        leaders_before=Balance.of(_count(problem.layout[:, :1], n), capacity),
        leaders_after=Balance.of(_count(index[:, :1], n), capacity),
        digest=digest_of(before.topics, moves.topic_index, moves.partition, moves.before, moves.after),
        unhealed=_unhealed(before, problem),
    )


def _count(index: Int32Array, n: int) -> Int64Array:
    return np.bincount(index[(index >= 0) & (index < n)], minlength=n)


def _all_rows(state: State) -> Int32Array:
    """Every row after the plan, before leaders are elected: broker indices, padding at the end."""
    problem = state.problem
    layout = problem.layout
    width = max(layout.shape[1], state.current.shape[1])
    result = np.full((layout.shape[0], width), NO_BROKER, np.int32)
    result[:, : layout.shape[1]] = layout
    result[problem.row] = NO_BROKER
    replicas = np.concatenate([state.current, problem.stranded], axis=1)
    order = np.argsort(replicas == NO_BROKER, axis=1, kind="stable")[:, : state.current.shape[1]]
    result[problem.row, : state.current.shape[1]] = np.take_along_axis(replicas, order, axis=1)
    return result


def _unhealed(before: Assignment, problem: Problem) -> tuple[Unhealed, ...]:
    """The partitions that are short of brokers."""
    rows = np.flatnonzero(problem.short)
    factors = before.replication_factor[rows]
    columns = before.topic_index[rows], before.partition[rows], factors, factors - problem.short[rows]
    return tuple(
        Unhealed(before.topics[topic], *rest) for topic, *rest in zip(*(c.tolist() for c in columns), strict=True)
    )


def leaders_stay(terms: Terms, before: Assignment, state: State) -> BoolArray:
    """Rows whose leader is not to change: of excluded topics, short of brokers, or unchanged so far; shape ``(P,)``."""
    if not terms.lead_all_anew:
        result = np.ones(len(before), np.bool_)
        result[state.problem.row] = ~state.changed()
        return result
    excluded = np.array([t in terms.exclude_topics for t in before.topics], np.bool_)
    stuck = state.problem.short > 0
    stuck[state.problem.row] = False
    return np.asarray(excluded[before.topic_index] | stuck)


def _elected(problem: Problem, index: Int32Array, fixed: BoolArray) -> Int32Array:
    """The rows with the elected leader first: survivors where they can balance the load, new replicas where not."""
    fleet, layout = problem.fleet, problem.layout
    free = np.flatnonzero(~fixed)
    replicas = index[free]
    stay = index[fixed, 0]
    base = np.bincount(stay[stay < fleet.present], minlength=fleet.present)
    able = np.where(fleet.leads[replicas], replicas, NO_BROKER).astype(np.int32)
    leading = elect(able, _leading_cost(able, layout[free]), base, fleet.capacity)
    result = index.copy()
    result[free] = _first(replicas, leading)
    return result


def _leading_cost(replicas: Int32Array, before: Int32Array) -> Int64Array:
    """What each place costs as a leader, int64, shape of ``replicas``."""
    cost = np.full(replicas.shape, FRESH, np.int64)
    for column in range(before.shape[1]):
        cost[replicas == before[:, column : column + 1]] = SURVIVOR if column else KEEP
    cost[replicas == NO_BROKER] = NEVER
    return cost


def _first(replicas: Int32Array, leading: Int64Array) -> Int32Array:
    """The rows with the leading place moved to the front, the others in their order."""
    result = replicas.copy()
    rows = np.flatnonzero(leading > 0)
    key = np.tile(np.arange(replicas.shape[1]), (rows.size, 1))
    key[np.arange(rows.size), leading[rows]] = -1
    result[rows] = np.take_along_axis(replicas[rows], np.argsort(key, axis=1, kind="stable"), axis=1)
    return result


def _differs(before: Int32Array, after: Int32Array) -> BoolArray:
    width = before.shape[1]
    return any_in_row(before != after[:, :width]) | any_in_row(after[:, width:] != NO_BROKER)


def _reasons(state: State, index: Int32Array, row: Int64Array) -> NDArray[np.uint8]:
    """The strongest reason of each changed row, as an index into ``REASONS``."""
    problem = state.problem
    fleet = problem.fleet
    result = np.full(row.size, REASONS.index("preferred leader"), np.uint8)
    at = np.minimum(np.searchsorted(problem.row, row), max(problem.row.size - 1, 0))
    touched = np.flatnonzero(problem.row[at] == row) if problem.row.size else np.zeros(0, np.int64)
    rows = at[touched]
    origin = problem.origin[rows]
    fresh = state.new_places()[rows]
    lost = origin >= fleet.present
    home = (state.current[rows][:, :, None] == problem.home[rows][:, None, :]) & fresh[:, :, None]
    causes = {
        "over its share": fresh.any(axis=1),
        "spread": state.spread[rows] & fresh.any(axis=1),
        "returned home": home.any(axis=(1, 2)),
        "rack violation": fresh.any(axis=1) & _violating(problem, rows),
        "replication factor": (origin != NO_BROKER).sum(axis=1) != problem.factor[rows],
        "drained": (lost & fleet.draining[origin]).any(axis=1),
        "lost": (lost & ~fleet.draining[origin]).any(axis=1),
    }
    for reason, holds in causes.items():
        result[touched[holds]] = REASONS.index(reason)
    return result


def _violating(problem: Problem, rows: Int64Array) -> BoolArray:
    """Rows that had more replicas in a rack than their window allows."""
    fleet = problem.fleet
    origin = np.where(problem.origin[rows] < fleet.present, problem.origin[rows], NO_BROKER)
    result = np.zeros(rows.size, np.bool_)
    for slot in range(origin.shape[1]):
        at = np.flatnonzero(origin[:, slot] != NO_BROKER)
        rack = fleet.rack[origin[at, slot]]
        result[at] |= count_in_rack(fleet, origin[at], rack) > problem.highest(rows[at], rack)
    return result
