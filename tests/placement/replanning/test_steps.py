"""Each step of replanning alone: what it promises, on random clusters and in small examples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from placement import Assignment, Broker, Terms
from placement.arrays import Int64Array
from placement.fleet import fleet_of
from placement.model import NO_BROKER
from placement.replanning.pose import pose
from placement.replanning.replicas.drop import drop
from placement.replanning.replicas.fill import fill
from placement.replanning.replicas.homing import go_home
from placement.replanning.replicas.improve import improve
from placement.replanning.replicas.lift import lift
from placement.replanning.replicas.release import release
from placement.replanning.replicas.seats import interleaved_rank, pair_any, pair_within, rank_in_group, seats
from placement.replanning.replicas.spread_evenly import spread_topics
from placement.replanning.state import State
from placement.replanning.targets import balance, targets
from tests.clusters import Case, even_layout, racked, random_case
from tests.placement.oracle import balance_of, best_plan


def _state(layout: Assignment, brokers: list[Broker], mode: str = "rebalance", **terms: object) -> State:
    home = terms.pop("home", None)
    asked = Terms(brokers=tuple(brokers), mode=mode, **terms)  # type: ignore[arg-type]
    fleet = fleet_of(brokers, seen=layout.replicas)
    return State(pose(layout, fleet, asked, home))  # type: ignore[arg-type]


def _target(state: State) -> Int64Array:
    n = state.problem.fleet.usable
    return targets(state.problem.room(), state.usable_load, np.arange(n))


def _random_states(count: int, mode: str = "rebalance") -> Iterator[tuple[Case, State]]:
    for seed in range(count):
        case = random_case(seed)
        yield case, _state(case.layout, case.brokers, mode, replication_factors=case.factors)


def _counts_by_rack(state: State) -> np.ndarray:
    fleet = state.problem.fleet
    result = np.zeros((state.problem.row.size, fleet.rack_size.size), np.int64)
    row, slot = np.nonzero(state.current != NO_BROKER)
    np.add.at(result, (row, fleet.rack[state.current[row, slot]]), 1)
    return result


def _assert_sound(state: State, hint: str) -> None:
    """No broker twice in a row, and the load counted along is the load there is."""
    ordered = np.sort(state.current, axis=1)
    assert not ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NO_BROKER)).any(), hint
    placed = state.current[state.current != NO_BROKER]
    counted = state.problem.closed + np.bincount(placed, minlength=state.load.size)
    assert counted.tolist() == state.load.tolist(), hint


def test_lift_leaves_no_rack_above_its_window_and_room_for_those_below() -> None:
    lifted = 0
    for case, state in _random_states(200):
        before = int(state.missing().sum())
        lift(state, _target(state))
        lifted += int(state.missing().sum()) - before
        rows = np.arange(state.problem.row.size)
        for rack in range(state.problem.fleet.rack_size.size):
            most = state.problem.highest(rows, np.full(rows.size, rack, np.int32))
            assert (_counts_by_rack(state)[:, rack] <= most).all(), f"seed {case.seed}"
        assert (state.shortfall(rows) <= state.missing()).all(), f"seed {case.seed}"
        _assert_sound(state, f"seed {case.seed}")
    assert lifted > 50


def test_lift_stops_at_its_limit() -> None:
    brokers = racked(6, 3)
    layout = Assignment.from_topics({"t": [[0, 3], [1, 4], [2, 5], [0, 1]]})
    state = _state(layout, brokers)
    lift(state, _target(state), 2)
    assert int(state.missing().sum()) == 2


@pytest.mark.parametrize("mode", ["heal", "rebalance"])
def test_fill_leaves_no_vacancy_and_keeps_all_windows(mode: str) -> None:
    for case, state in _random_states(200, mode):
        target = _target(state)
        lift(state, target)
        fill(state, target, interleaved_rank(state.problem.fleet, 0))
        assert not state.missing().any(), f"seed {case.seed}"
        rows = np.arange(state.problem.row.size)
        for rack in range(state.problem.fleet.rack_size.size):
            column = np.full(rows.size, rack, np.int32)
            inside = _counts_by_rack(state)[:, rack]
            assert (inside <= state.problem.highest(rows, column)).all(), f"seed {case.seed}"
            assert (inside >= state.problem.lowest(rows, column)).all(), f"seed {case.seed}"
        _assert_sound(state, f"seed {case.seed}")


def test_fill_spreads_a_topic_over_the_brokers_that_have_room() -> None:
    brokers = [*racked(5, 1), Broker(9, "r000", state="dead")]
    layout = Assignment.from_topics({"a": [[9]] * 5, "b": [[9]] * 5})
    state = _state(layout, brokers, "heal")
    fill(state, _target(state), interleaved_rank(state.problem.fleet, 0))
    for topic in (0, 1):
        assert sorted(state.current[state.problem.topic == topic, 0].tolist()) == [0, 1, 2, 3, 4]


def test_release_never_makes_the_balance_worse_and_pays_for_each_unit() -> None:
    for case, state in _random_states(200):
        target = _target(state)
        lift(state, target)
        fill(state, target, interleaved_rank(state.problem.fleet, 0))
        capacity = state.problem.fleet.capacity[: state.problem.fleet.usable]
        before, moved, load = balance(state.usable_load, capacity), state.moved(), state.usable_load.copy()
        release(state, target, interleaved_rank(state.problem.fleet, 0))
        shifted = int(np.maximum(state.usable_load - load, 0).sum())
        assert balance(state.usable_load, capacity) <= before + 1e-9, f"seed {case.seed}"
        assert state.moved() - moved <= shifted, f"seed {case.seed}"
        _assert_sound(state, f"seed {case.seed}")


def test_release_reaches_the_targets_of_a_large_cluster_with_one_move_a_unit() -> None:
    brokers = [*racked(30, 3), Broker(99, "r001")]
    state = _state(even_layout(30, 3, 3000, 3), brokers)
    target = _target(state)
    release(state, target, interleaved_rank(state.problem.fleet, 0))
    assert state.usable_load.tolist() == target.tolist()
    assert state.moved() == int(target[state.problem.fleet.ids[: state.problem.fleet.usable].tolist().index(99)])


def test_improve_alone_finds_the_optimum_from_any_start() -> None:
    for seed in range(80):
        case = random_case(seed)
        state = _state(case.layout, case.brokers, replication_factors=case.factors)
        lift(state, np.zeros(state.problem.fleet.usable, np.int64))
        # Targets that make no sense send everything to wrong places first.
        nonsense = np.random.default_rng(seed).integers(0, 9, state.problem.fleet.usable)
        fill(state, nonsense, np.arange(state.problem.fleet.usable))
        assert improve(state, np.arange(state.problem.fleet.usable, dtype=np.int32), 10_000), f"seed {seed}"
        best = best_plan(case.layout, case.brokers, "rebalance", case.factors)
        capacity = {b.id: b.capacity for b in case.brokers}
        ids = state.problem.fleet.ids[: state.problem.fleet.usable].tolist()
        loads = [(int(load), capacity[b]) for b, load in zip(ids, state.usable_load, strict=True)]
        assert (balance_of(loads), state.moved()) == (best.balance, best.moves), f"seed {seed}"
        _assert_sound(state, f"seed {seed}")


def test_improve_stops_at_its_limit_without_a_claim() -> None:
    state = _state(Assignment.from_topics({"t": [[0]] * 9}), racked(3, 1))
    assert not improve(state, np.arange(3, dtype=np.int32), 2)


def test_what_must_move_goes_home() -> None:
    brokers = racked(4, 1)
    home = Assignment.from_topics({"t": [[0], [1], [2], [3]]})
    state = _state(Assignment.from_topics({"t": [[0], [1], [2], [2]]}), brokers, home=home)
    go_home(state, np.array([1, 1, 1, 1]))
    assert state.current[:, 0].tolist() == [0, 1, 2, 3]


def test_what_need_not_move_does_not_go_home() -> None:
    home = Assignment.from_topics({"t": [[1], [0]]})
    state = _state(Assignment.from_topics({"t": [[0], [1]]}), racked(2, 1), home=home)
    go_home(state, np.array([1, 1]))
    assert state.current[:, 0].tolist() == [0, 1]


def test_spreading_brings_a_topic_to_its_share() -> None:
    state = _state(Assignment.from_topics({"a": [[0]] * 4, "b": [[1], [2], [3], [1]]}), racked(4, 1))
    spread_topics(state, np.array([2, 2, 2, 2]))
    for topic in (0, 1):
        assert sorted(state.current[state.problem.topic == topic, 0].tolist()) == [0, 1, 2, 3]
    assert state.spread.any()


def test_dropping_one_of_three_replicas_leaves_even_loads() -> None:
    layout = even_layout(30, 3, 900, 3)
    fleet = fleet_of(racked(30, 3))
    replicas = fleet.index_of(layout.replicas)
    left = drop(fleet, replicas, np.full(900, 2), np.bincount(replicas.reshape(-1)))
    assert ((left != NO_BROKER).sum(axis=1) == 2).all()
    assert set(np.bincount(left[left != NO_BROKER]).tolist()) == {60}


def test_the_crowded_rack_loses_the_replica() -> None:
    fleet = fleet_of(racked(6, 3))
    replicas = fleet.index_of(np.array([[0, 3, 1], [1, 2, 5]], np.int32))
    left = drop(fleet, replicas, np.array([2, 2]), np.bincount(replicas.reshape(-1), minlength=6))
    racks = np.sort(np.where(left == NO_BROKER, 99, fleet.rack[left]), axis=1)[:, :2]
    assert racks.tolist() == [[0, 1], [1, 2]]


def test_neighbouring_seats_are_on_different_brokers_and_racks() -> None:
    fleet = fleet_of(racked(6, 3))
    order = seats(fleet, np.array([2, 2, 2, 2, 2, 2]), interleaved_rank(fleet, 0))
    racks = fleet.rack[order]
    assert (racks[1:] != racks[:-1]).all()
    assert sorted(order[:6].tolist()) == sorted(order[6:].tolist()) == list(range(6))


def test_ranks_and_pairs_by_hand() -> None:
    assert rank_in_group(np.array([5, 3, 5, 5, 3])).tolist() == [0, 0, 1, 2, 1]
    assert pair_within(np.array([1, 1, 2], np.int32), np.array([2, 1, 7], np.int32), 0).tolist() == [1, -1, 0]
    assert pair_any(3, 2, 1).tolist() == [1, 0, -1]
