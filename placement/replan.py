"""Replanning: the new layout with the best balance that the least movement reaches.

The steps, each a module of its own: pose the problem, set targets, lift what racks forbid, fill vacancies, release
surplus, improve, elect leaders. See ``docs/algorithms/replanning.md``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from placement.arrays import Int64Array
from placement.errors import InvalidAssignmentError
from placement.fill import fill
from placement.fleet import fleet_of
from placement.improve import improve
from placement.model import Assignment, Broker, Int32Array
from placement.plan import Replan, Terms
from placement.problem import Mode, pose
from placement.racks import lift
from placement.release import release
from placement.result import Certificate, conclude
from placement.seats import interleaved_rank
from placement.state import State
from placement.targets import balance, targets

_ALL_TAKE_PART = 400
_SOME_TAKE_PART = 200
_CYCLES = 2_000


def replan(  # noqa: PLR0913 - one keyword per option of the command
    assignment: Assignment,
    brokers: Iterable[Broker],
    *,
    mode: Mode = "heal",
    max_moves: int | None = None,
    exclude_topics: Collection[str] = (),
    exclude_brokers: Collection[int] = (),
    replication_factors: Mapping[str, int] | None = None,
    strict_spread: bool = False,
    home: Assignment | None = None,
) -> Replan:
    """Plan the least movement to the best balance: first the sum of load^2 / capacity, then the replicas moved.

    Args:
        assignment: the layout now. A broker that it names and that is not among ``brokers`` counts as dead.
        brokers: all brokers, in any order.
        mode: ``heal`` moves only replicas on dead and draining brokers; ``rebalance`` may move all.
        max_moves: replicas that may be copied at most; lost ones come first.
        exclude_topics: topics in which nothing changes.
        exclude_brokers: brokers that get no new replica and keep those that they have.
        replication_factors: the replication factor that topics must end with, where it changes.
        strict_spread: every topic evenly over the brokers, even at the cost of more moves.
        home: a layout that partitions return to where that costs nothing.

    Raises:
        InvalidAssignmentError: the layout is empty.
        InvalidBrokerError: no broker is usable, or an excluded one is unknown.
        InvalidReplicationFactorError: a partition must end with more replicas than there are usable brokers.
        DuplicateBrokerError, IncompleteRackError: the brokers contradict each other.
    """
    if not len(assignment):
        raise InvalidAssignmentError("the layout is empty: there is no partition to plan for")
    terms = Terms(
        brokers=tuple(sorted(brokers, key=lambda b: b.id)),
        mode=mode,
        max_moves=max_moves,
        exclude_topics=frozenset(exclude_topics),
        exclude_brokers=frozenset(exclude_brokers),
        replication_factors=dict(replication_factors or {}),
        strict_spread=strict_spread,
    )
    fleet = fleet_of(terms.brokers, held=terms.exclude_brokers, seen=assignment.replicas)
    problem = pose(
        assignment,
        fleet,
        mode,
        replication_factors=terms.replication_factors,
        exclude_topics=terms.exclude_topics,
        home=home,
    )
    state = State(problem)
    certificate = _place(state)
    return conclude(terms, assignment, state, certificate)


def _place(state: State) -> Certificate:
    """Bring the state to its final replicas."""
    problem = state.problem
    n = problem.fleet.usable
    room = problem.room()
    stay = np.bincount(problem.layout[(problem.layout >= 0) & (problem.layout < n)], minlength=n)
    rank = interleaved_rank(problem.fleet, 0)
    target = targets(room, stay, rank)
    forced = lift(state, target)
    fill(state, target, rank)
    release(state, target, rank)
    bound = max(forced, int(np.maximum(target - stay, 0).sum()))
    best = balance(target, room.capacity)
    if _balanced(state, best) and state.moved() == bound:
        return Certificate(bound, optimal=True)
    if improve(state, _participants(state, target, rank), _CYCLES) and n <= _ALL_TAKE_PART:
        return Certificate(state.moved(), optimal=True)
    if _balanced(state, best) and state.moved() == bound:
        return Certificate(bound, optimal=True)
    return Certificate(bound if _balanced(state, best) else forced, optimal=False)


def _participants(state: State, target: Int64Array, rank: Int64Array) -> Int32Array:
    """The brokers that exchange replicas in the last step: all, or those out of target and some more."""
    n = state.problem.fleet.usable
    if n <= _ALL_TAKE_PART:
        return np.arange(n, dtype=np.int32)
    wrong = state.usable_load != target
    first = np.lexsort((rank, ~wrong))[: max(_SOME_TAKE_PART, min(int(wrong.sum()), _ALL_TAKE_PART))]
    return np.sort(first).astype(np.int32)


def _balanced(state: State, best: float) -> bool:
    capacity = state.problem.fleet.capacity[: state.problem.fleet.usable]
    return math.isclose(balance(state.usable_load, capacity), best, rel_tol=1e-12)
