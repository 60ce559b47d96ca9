"""Budgets: the waterline against all choices of moves, and whole plans that never pass theirs."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from placement import Assignment, Broker, replan, verify
from placement.replanning.budget import waterline
from placement.replanning.targets import balance
from tests.clusters import comparison_brokers, comparison_layout, random_case
from tests.placement.oracle import balance_of, best_within


def _best_with(load: list[int], capacity: np.ndarray, budget: int) -> float:
    n = len(load)
    pairs = [(a, b) for a, b in product(range(n), repeat=2) if a != b]
    found = [balance(np.array(load), capacity)]
    for moves in combinations_with_replacement(pairs, budget):
        after = np.array(load)
        for a, b in moves:
            after[a] -= 1
            after[b] += 1
        if (after >= 0).all():
            found.append(balance(after, capacity))
    return min(found)


def test_no_choice_of_as_many_moves_gains_more() -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        load, capacity = rng.integers(0, 9, 3), rng.choice([1.0, 2.0], 3)
        spread = [np.array(t) for t in product(range(int(load.sum()) + 1), repeat=3) if sum(t) == load.sum()]
        target = min(spread, key=lambda t: balance(t, capacity))
        for budget in range(4):
            result = waterline(load, target, capacity, np.zeros(3, np.int32), budget)
            assert result.sum() == load.sum(), f"seed {seed}"
            assert int(np.maximum(result - load, 0).sum()) <= budget, f"seed {seed}"
            assert abs(balance(result, capacity) - _best_with(load.tolist(), capacity, budget)) < 1e-9, f"seed {seed}"


def test_groups_keep_their_moves_to_themselves() -> None:
    load, target = np.array([8, 2, 6, 4]), np.array([5, 5, 5, 5])
    result = waterline(load, target, np.ones(4), np.array([0, 0, 1, 1], np.int32), 2)
    assert result.tolist() == [6, 4, 6, 4]


def test_a_budget_is_kept_and_more_of_it_never_balances_worse() -> None:
    for seed in range(60):
        case = random_case(seed)
        costs = []
        for budget in (0, 1, 3, 6):
            plan = replan(case.layout, case.brokers, mode="rebalance", max_moves=budget)
            assert verify(plan), f"seed {seed}, budget {budget}: {verify(plan).violations}"
            assert plan.moved_replicas <= budget, f"seed {seed}"
            known = {b.id for b in case.brokers if b.state == "alive"}
            if known.issuperset(plan.before.replicas.reshape(-1).tolist()):
                costs.append(plan.replicas_after.cost)
        # Repairing racks may cost balance, so only clusters without racks promise that it never gets worse.
        if len({b.rack for b in case.brokers}) == 1:
            assert costs == sorted(costs, reverse=True), f"seed {seed}: {costs}"


def test_a_budget_reaches_the_waterline_of_the_published_comparison() -> None:
    brokers = [*comparison_brokers(), Broker(13, "r000")]
    full = replan(comparison_layout(), brokers, mode="rebalance")
    for percent in (5, 10, 20, 40, 60, 80, 100):
        budget = full.moved_replicas * percent // 100
        plan = replan(comparison_layout(), brokers, mode="rebalance", max_moves=budget)
        assert verify(plan)
        assert plan.moved_replicas == budget
        assert plan.optimal, f"{percent}%"


def _crooked(seed: int) -> tuple[Assignment, list[Broker], int]:
    """3 to 7 brokers in 1 to 3 racks, some of them empty, replicas drawn unevenly and across racks; and a budget."""
    rng = np.random.default_rng(10_000 + seed)
    count, racks = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    weights = [1.0, 1.0, 2.0] if seed % 4 == 0 else [1.0]
    brokers = [Broker(i, f"r{rng.integers(racks)}", float(rng.choice(weights))) for i in range(count)]
    factor = int(rng.integers(1, min(3, count) + 1))
    partitions = int(rng.integers(3, 14))
    hosts = max(factor, count - int(rng.integers(0, 3)))
    likely = rng.random(hosts) + 0.05
    likely /= likely.sum()
    rows = [("t", p, rng.choice(hosts, factor, replace=False, p=likely).tolist()) for p in range(partitions)]
    return Assignment.from_rows(rows), brokers, int(rng.integers(1, 7))


@pytest.mark.parametrize("first", range(0, 150, 50))
def test_small_clusters_get_the_best_that_their_budget_allows(first: int) -> None:
    for seed in range(first, first + 50):
        layout, brokers, budget = _crooked(seed)
        plan = replan(layout, brokers, mode="rebalance", max_moves=budget)
        assert verify(plan), f"seed {seed}: {verify(plan).violations}"
        assert plan.moved_replicas <= budget
        loads = [(int((plan.assignment.replicas == b.id).sum()), b.capacity) for b in brokers]
        assert balance_of(loads) == best_within(layout, brokers, budget)[1], f"seed {seed}"


def test_of_what_racks_forbid_that_goes_first_that_balances_most() -> None:
    brokers = [Broker(0, "r0"), Broker(1, "r1"), Broker(2, "r0")]
    layout = Assignment.from_topics({"t": [[2, 0], [1, 0], [2, 0]]})
    plan = replan(layout, brokers, mode="rebalance", max_moves=1)
    assert plan.replicas_after.cost == 12
    assert [sorted(move.after) for move in plan.moves if set(move.before) != set(move.after)] == [[1, 2]]


def test_lost_replicas_come_first_the_most_endangered_before_the_others() -> None:
    brokers = [Broker(0), Broker(1), Broker(2), Broker(3, state="dead"), Broker(4, state="dead")]
    layout = Assignment.from_topics({"t": [[0, 1, 3], [0, 3, 4], [1, 2, 4], [0, 1, 2]]})
    plan = replan(layout, brokers, mode="rebalance", max_moves=2)
    assert [(m.partition, m.reason) for m in plan.moves if m.reason == "lost"] == [(1, "lost")]
    assert plan.moved_replicas == 2
    assert not plan.optimal


def test_no_moves_still_orders_leaders() -> None:
    layout = Assignment.from_topics({"t": [[0, 1]] * 4})
    plan = replan(layout, [Broker(0), Broker(1), Broker(2)], mode="rebalance", max_moves=0)
    assert plan.moved_replicas == 0
    assert (plan.leader_changes, plan.reason_counts()) == (2, {"preferred leader": 2})
