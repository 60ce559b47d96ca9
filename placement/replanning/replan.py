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
from placement.replanning.by_load.steps import LoadTerms, lasting, over_limits, place_alike, plan_by_load
from placement.replanning.conclude import conclude
from placement.replanning.pose import pose
from placement.replanning.state import State
from placement.replanning.steps import Certificate, place, place_spread, place_within
from placement.terms import Leaders, Mode, Terms


def replan(  # noqa: PLR0913 - one keyword per option of the command
    assignment: Assignment,
    brokers: Iterable[Broker] | Terms,
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
        brokers: all brokers, in any order, and with them keywords, which :class:`~placement.Terms` explains; or terms,
            which say all.

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
    given = {name: value for name, value in locals().items() if name not in ("assignment", "brokers")}
    if not isinstance(brokers, Terms):
        return _replan(assignment, Terms(brokers, **given))  # type: ignore[arg-type]
    defaults = replan.__kwdefaults__ or {}
    for name, value in given.items():
        if value is not defaults[name]:
            raise InvalidLimitError(f"{name} is given beside terms: say it in the terms", name=name, value=value)
    return _replan(assignment, brokers)


def _replan(assignment: Assignment, asked: Terms) -> Replan:
    terms = _checked(assignment, asked)
    fleet = fleet_of(terms.brokers, held=terms.exclude_brokers, seen=assignment.replicas)
    if terms.loads is not None:
        checks.instance(terms.loads, Loads, "loads")
        asked_by_load = LoadTerms(terms.loads, terms.band or Band(), terms.max_bytes, terms.move_cost)
        return _by_load(assignment, fleet, terms, asked_by_load)
    kept_off = len(terms.keep_off) or None
    by_load = {"max_bytes": terms.max_bytes, "keep_off": kept_off, "move_cost": terms.move_cost or None}
    for name, value in by_load.items():
        if value is not None:
            raise InvalidLimitError(f"{name} needs loads to plan by", name=name, value=value)
    return _by_count(assignment, fleet, terms)


def _checked(assignment: Assignment, asked: Terms) -> Terms:
    """The terms with every value checked, in the form that the steps read."""
    checks.instance(assignment, Assignment, "assignment")
    checks.instance(assignment if asked.home is None else asked.home, Assignment, "home")
    if not len(assignment):
        raise InvalidAssignmentError("the layout is empty: there is no partition to plan for")
    checks.choice(asked.mode, "mode", get_args(Mode))
    checks.choice(asked.leaders, "leaders", get_args(Leaders))
    in_sync = None if asked.in_sync is None else checks.matrix(asked.in_sync, "in_sync")
    if in_sync is not None and in_sync.shape[0] != len(assignment):
        raise InvalidAssignmentError(
            f"in_sync is of {in_sync.shape[0]} partitions and the layout has {len(assignment)}"
        )
    known = only_brokers(asked.brokers)
    factor = partial(checks.replication_factor, most=len(known) + assignment.replicas.shape[1])
    return replace(
        asked,
        brokers=tuple(sorted(known, key=lambda b: b.id)),
        max_moves=checks.limit(asked.max_moves, "max_moves"),
        exclude_topics=checks.topics(asked.exclude_topics, "exclude_topics"),
        exclude_brokers=checks.broker_ids(asked.exclude_brokers, "exclude_brokers"),
        replication_factors=checks.by_topic(asked.replication_factors, "replication_factors", factor),
        strict_spread=checks.flag(asked.strict_spread, "strict_spread"),
        keep_off={t: ids for t, ids in checks.by_topic(asked.keep_off, "keep_off", checks.broker_ids).items() if ids},
        in_sync=in_sync,
        max_bytes=checks.limit(asked.max_bytes, "max_bytes"),
        move_cost=checks.whole(asked.move_cost, "move_cost", 0, error=InvalidLimitError),
        band=Band() if asked.band is None else checks.instance(asked.band, Band, "band"),
    )


def _by_count(assignment: Assignment, fleet: Fleet, terms: Terms) -> Replan:
    state, certificate = _solve(assignment, fleet, terms)
    return conclude(terms, assignment, state, certificate)


def _by_load(assignment: Assignment, fleet: Fleet, terms: Terms, asked: LoadTerms) -> Replan:
    """The plan by counts where all partitions weigh the same and it keeps every limit, else the one by load."""
    loads, max_bytes = asked.loads, asked.max_bytes
    loads.check(assignment)
    if max_bytes is not None and terms.max_moves is not None:
        raise InvalidLimitError(
            f"max_bytes is {max_bytes}: it cannot be given together with max_moves", name="max_bytes", value=max_bytes
        )
    plan = _alike(assignment, fleet, terms, asked)
    if plan is not None:
        return plan
    if terms.strict_spread:
        raise InvalidLimitError("strict_spread counts replicas: leave it out with loads", name="strict_spread", value=1)
    plan = plan_by_load(assignment, fleet, terms, asked)
    if max_bytes is not None or terms.max_moves is not None:
        return plan

    def again(layout: Assignment) -> Replan:
        known = fleet_of(terms.brokers, held=terms.exclude_brokers, seen=layout.replicas)
        return _alike(layout, known, terms, asked) or plan_by_load(layout, known, terms, asked)

    return lasting(plan, again, fleet, asked)


def _alike(assignment: Assignment, fleet: Fleet, terms: Terms, asked: LoadTerms) -> Replan | None:
    """The plan by counts where all partitions weigh the same and it keeps every limit, else None."""
    if not asked.loads.alike() or asked.max_bytes is not None or terms.keep_off:
        return None
    plan = place_alike(_by_count(assignment, fleet, terms), fleet, asked)
    return None if over_limits(plan) else plan


def _solve(assignment: Assignment, fleet: Fleet, terms: Terms) -> tuple[State, Certificate]:
    """The best plan, or the best within the budget where that is too small for it."""
    state = State(pose(assignment, fleet, terms, terms.home))
    certificate = place_spread(state) if terms.strict_spread and terms.mode == "rebalance" else place(state)
    if terms.max_moves is None or state.moved() <= terms.max_moves:
        return state, certificate
    everything = state.problem.row.size
    state = State(pose(assignment, fleet, terms, terms.home, budget=terms.max_moves))
    certificate = place_within(state, terms.max_moves)
    covers = state.problem.row.size == everything
    return state, certificate if covers else replace(certificate, optimal=False)
