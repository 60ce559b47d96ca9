"""Replanning: the new layout with the best balance that the least movement reaches.

The steps, each a module of its own: pose the problem, set targets, lift what racks forbid, fill vacancies, release
surplus, improve, elect leaders. See ``docs/algorithms/replanning.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import get_args

from placement import checks
from placement.errors import InvalidAssignmentError, InvalidLimitError
from placement.fleet import Fleet, fleet_of
from placement.loads.model import Band, Loads
from placement.model import Assignment, Broker, Int32Array, only_brokers
from placement.plan import Replan
from placement.replanning.by_load.steps import LoadTerms, lasting, over_limits, place_alike, place_by_load
from placement.replanning.conclude import conclude
from placement.replanning.pose import pose
from placement.replanning.state import State
from placement.replanning.steps import Certificate, place, place_spread, place_within
from placement.terms import Leaders, Mode, Terms


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
    loads: Loads | None = None,
    band: Band | None = None,
    max_bytes: int | None = None,
    keep_off: Mapping[str, Collection[int]] | None = None,
    move_cost: int = 0,
    in_sync: Int32Array | None = None,
    leaders: Leaders = "even",
) -> Replan:
    """Plan the least movement to the best balance: first the sum of load^2 / capacity, then the replicas moved.

    With loads, balance is a band around each broker's share of every resource, and movement is bytes; see
    ``docs/algorithms/load_aware.md``.

    Args:
        assignment: the layout now. A broker that it names and that is not among ``brokers`` counts as dead.
        brokers: all brokers, in any order.
        mode: ``heal`` moves only replicas on dead and draining brokers; ``rebalance`` may move all.
        max_moves: replicas that may be copied at most; lost ones come first.
        exclude_topics: topics in which nothing changes.
        exclude_brokers: brokers that get no new replica and keep those that they have, unless a lower replication
            factor leaves no other to give up.
        replication_factors: the replication factor that topics must end with, where it changes.
        strict_spread: when rebalancing, every topic evenly over the brokers, even at the cost of more moves; a
            budget that is too small for it goes to the balance of the brokers instead.
        home: a layout that partitions return to where that costs nothing; not regarded with loads that differ.
        loads: what each partition of ``assignment`` weighs, and what brokers can take.
        band: how close to their shares brokers are brought; only with loads.
        max_bytes: bytes that may be copied at most, lost replicas first; only with loads.
        keep_off: by topic, brokers that get no replica of it, and that a rebalance takes those away from that they
            have; only with loads. Its racks are only as large as the brokers that are left for it.
        move_cost: bytes that the search counts for a copy besides its own; only with loads.
        in_sync: int32 broker ids, shape ``(P, S)``, padded with -1: the replicas of each partition that are up and in
            the ISR. Without it, those on brokers that are not dead. Where a replication factor is lowered, no other
            is kept in the place of one of them.
        leaders: who may lead anew to even leaders out. Healing, only partitions that lost a replica; rebalancing,
            ``even``: all, ``keep``: those whose replicas change. ``everywhere``: all, even when healing.

    Raises:
        InvalidAssignmentError: the layout is empty, or ``in_sync`` is of another one.
        InvalidLimitError: mode or leaders is none of those above, max_moves, max_bytes or move_cost is no whole number
            from 0 on, max_moves and max_bytes are both given, one of the terms of loads comes without them,
            strict_spread with loads that differ, or a partition finds no broker that its topic is not kept off.
        PlacementError: an argument is of another type than it must be.
        InvalidLoadError: the loads are of another layout.
        InvalidBrokerError: no broker is usable, or an excluded one is unknown.
        InvalidReplicationFactorError: a partition must end with more replicas than there are usable brokers, or with
            fewer and no replica can be given up without giving up data.
        DuplicateBrokerError, IncompleteRackError: the brokers contradict each other.
    """
    checks.instance(assignment, Assignment, "assignment")
    checks.instance(assignment if home is None else home, Assignment, "home")
    if not len(assignment):
        raise InvalidAssignmentError("the layout is empty: there is no partition to plan for")
    checks.choice(mode, "mode", get_args(Mode))
    checks.choice(leaders, "leaders", get_args(Leaders))
    in_sync = None if in_sync is None else checks.matrix(in_sync, "in_sync")
    if in_sync is not None and in_sync.shape[0] != len(assignment):
        raise InvalidAssignmentError(
            f"in_sync is of {in_sync.shape[0]} partitions and the layout has {len(assignment)}"
        )
    known = only_brokers(brokers)
    factor = partial(checks.replication_factor, most=len(known) + assignment.replicas.shape[1])
    terms = Terms(
        brokers=tuple(sorted(known, key=lambda b: b.id)),
        mode=mode,
        max_moves=checks.limit(max_moves, "max_moves"),
        exclude_topics=checks.topics(exclude_topics, "exclude_topics"),
        exclude_brokers=checks.broker_ids(exclude_brokers, "exclude_brokers"),
        replication_factors=checks.by_topic(replication_factors, "replication_factors", factor),
        strict_spread=checks.flag(strict_spread, "strict_spread"),
        keep_off={topic: ids for topic, ids in checks.by_topic(keep_off, "keep_off", checks.broker_ids).items() if ids},
        in_sync=in_sync,
        leaders=leaders,
    )
    max_bytes = checks.limit(max_bytes, "max_bytes")
    move_cost = checks.whole(move_cost, "move_cost", 0, error=InvalidLimitError)
    band = Band() if band is None else checks.instance(band, Band, "band")
    fleet = fleet_of(terms.brokers, held=terms.exclude_brokers, seen=assignment.replicas)
    if loads is not None:
        checks.instance(loads, Loads, "loads")
        return _by_load(assignment, fleet, terms, home, LoadTerms(loads, band, max_bytes, move_cost))
    by_load = {"max_bytes": max_bytes, "keep_off": len(terms.keep_off) or None, "move_cost": move_cost or None}
    for name, value in by_load.items():
        if value is not None:
            raise InvalidLimitError(f"{name} needs loads to plan by", name=name, value=value)
    return _by_count(assignment, fleet, terms, home)


def _by_count(assignment: Assignment, fleet: Fleet, terms: Terms, home: Assignment | None) -> Replan:
    state, certificate = _solve(assignment, fleet, terms, home)
    return conclude(terms, assignment, state, certificate)


def _by_load(assignment: Assignment, fleet: Fleet, terms: Terms, home: Assignment | None, asked: LoadTerms) -> Replan:
    """The plan by counts where all partitions weigh the same and it keeps every limit, else the one by load."""
    loads, max_bytes = asked.loads, asked.max_bytes
    loads.check(assignment)
    if max_bytes is not None and terms.max_moves is not None:
        raise InvalidLimitError(
            f"max_bytes is {max_bytes}: it cannot be given together with max_moves", name="max_bytes", value=max_bytes
        )
    plan = _alike(assignment, fleet, terms, home, asked)
    if plan is not None:
        return plan
    if terms.strict_spread:
        raise InvalidLimitError("strict_spread counts replicas: leave it out with loads", name="strict_spread", value=1)
    plan = place_by_load(assignment, fleet, terms, asked)
    if max_bytes is not None or terms.max_moves is not None:
        return plan

    def again(layout: Assignment) -> Replan:
        known = fleet_of(terms.brokers, held=terms.exclude_brokers, seen=layout.replicas)
        return _alike(layout, known, terms, home, asked) or place_by_load(layout, known, terms, asked)

    return lasting(plan, again, fleet, asked)


def _alike(
    assignment: Assignment, fleet: Fleet, terms: Terms, home: Assignment | None, asked: LoadTerms
) -> Replan | None:
    """The plan by counts where all partitions weigh the same and it keeps every limit, else None."""
    if not asked.loads.alike() or asked.max_bytes is not None or terms.keep_off:
        return None
    plan = place_alike(_by_count(assignment, fleet, terms, home), fleet, asked)
    return None if over_limits(plan) else plan


def _solve(assignment: Assignment, fleet: Fleet, terms: Terms, home: Assignment | None) -> tuple[State, Certificate]:
    """The best plan, or the best within the budget where that is too small for it."""
    state = State(pose(assignment, fleet, terms, home))
    certificate = place_spread(state) if terms.strict_spread and terms.mode == "rebalance" else place(state)
    if terms.max_moves is None or state.moved() <= terms.max_moves:
        return state, certificate
    everything = state.problem.row.size
    state = State(pose(assignment, fleet, terms, home, budget=terms.max_moves))
    certificate = place_within(state, terms.max_moves)
    covers = state.problem.row.size == everything
    return state, certificate if covers else replace(certificate, optimal=False)
