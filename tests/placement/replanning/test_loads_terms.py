"""Terms of planning by load: topics that are kept off brokers, and what a copy costs besides its bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from placement import Assignment, Band, Broker, Loads, PartitionLoad, replan, verify
from placement.errors import InvalidLimitError
from tests.load_clusters import skewed, small

GB = 10**9


def on_brokers(layout: Assignment, topic: str) -> set[int]:
    rows = layout.topic_index == layout.topics.index(topic)
    return set(layout.replicas[rows].ravel().tolist()) - {-1}


def test_a_rebalance_takes_a_topic_off_the_brokers_that_it_is_kept_off() -> None:
    layout = Assignment.from_topics({"logs": [[1, 3], [2, 4], [1, 4]], "orders": [[2, 3], [1, 3], [2, 4]]})
    brokers = [Broker(b, "a" if b in (1, 2, 5) else "b") for b in (1, 2, 3, 4, 5)]
    loads = Loads.of(layout, [PartitionLoad("logs", p, GB, 10, 10) for p in range(3)])
    plan = replan(layout, brokers, mode="rebalance", loads=loads, keep_off={"logs": [1, 4]})
    assert on_brokers(plan.assignment, "logs") <= {2, 3, 5}
    assert plan.loads is not None
    assert plan.loads.lower_bound_bytes >= 4 * GB
    assert verify(plan)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("mode", ["heal", "rebalance"])
def test_on_random_clusters_nothing_new_is_where_it_is_kept_off_and_the_racks_hold(seed: int, mode: Any) -> None:
    layout, brokers, loads = small(seed)
    there = [replace(b, state="dead") if b.id == 3 and mode == "heal" else b for b in brokers]
    options: dict[str, Any] = {"mode": mode, "loads": loads, "band": Band(0.3, 0.4)}
    kept = {"t0": [0], "t1": [1, 5]}
    plan = replan(layout, there, keep_off=kept, **options)
    assert verify(plan), verify(plan).violations
    for topic, barred in kept.items():
        rows = plan.assignment.topic_index == layout.topics.index(topic)
        after, before = plan.assignment.replicas[rows], layout.replicas[rows]
        stayed = (after[:, :, None] == before[:, None, :]).any(axis=2) & (mode == "heal")
        assert not (np.isin(after, barred) & ~stayed).any()
    again, other_order = (replan(plan.assignment, b, keep_off=kept, **options) for b in (there, there[::-1]))
    assert again.moved_replicas == 0
    assert again.digest == other_order.digest


def test_a_budget_leaves_behind_what_it_does_not_reach() -> None:
    layout = Assignment.from_topics({"logs": [[1, 2], [1, 2], [1, 2]], "orders": [[2, 3], [1, 3], [2, 3]]})
    loads = Loads.of(layout, [PartitionLoad(t, p, GB, 10, 10) for t in ("logs", "orders") for p in range(3)])
    plan = replan(
        layout, [Broker(b) for b in (1, 2, 3)], mode="rebalance", loads=loads, max_bytes=2 * GB, keep_off={"logs": [1]}
    )
    assert verify(plan)
    assert plan.loads is not None
    assert plan.loads.moved_bytes == 2 * GB
    assert int((plan.assignment.replicas[plan.assignment.topic_index == 0] == 1).sum()) == 1


@pytest.mark.parametrize(("most", "moved", "bound"), [(0, 0, 0), (1000, 1000, 1000), (3000, 3000, 3000)])
def test_a_budget_that_leaves_rows_outside_their_racks_owes_the_racks_nothing(
    most: int, moved: int, bound: int
) -> None:
    """Every row is on two brokers of rack b, and one of them belongs into rack a."""
    layout = Assignment.from_topics({"t": [[2, 3], [3, 2], [2, 3]]})
    loads = Loads.of(layout, [PartitionLoad("t", p, 1000, 10 + p, 10) for p in range(3)])
    brokers = [Broker(1, "a"), Broker(2, "b"), Broker(3, "b")]
    plan = replan(layout, brokers, mode="rebalance", loads=loads, max_bytes=most)
    assert verify(plan), verify(plan).violations
    assert plan.loads is not None
    assert (plan.loads.moved_bytes, plan.loads.lower_bound_bytes) == (moved, bound)


def test_the_check_finds_what_is_where_it_is_kept_off() -> None:
    layout, brokers, loads = small(1)
    plan = replan(layout, brokers, mode="rebalance", loads=loads, keep_off={"t0": [0]})
    holder = min(on_brokers(plan.assignment, "t1"))
    forged = replace(plan, terms=replace(plan.terms, keep_off={"t1": frozenset({holder})}))
    assert f"keeps its replica on broker {holder}, which it is kept off" in str(verify(forged).violations[-1])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"keep_off": {"t": [2, 3]}},
            "kept off",
        ),
        ({"keep_off": {"t": [3]}, "loads": None}, "keep_off needs loads to plan by"),
        ({"move_cost": 5, "loads": None}, "move_cost needs loads to plan by"),
        ({"move_cost": -1}, "move_cost is -1: it must be at least 0"),
    ],
)
def test_terms_that_cannot_be_kept_are_refused(options: dict[str, Any], problem: str) -> None:
    layout = Assignment.from_topics({"t": [[1, 2], [1, 3]]})
    loads = Loads.of(layout, [PartitionLoad("t", 0, GB, 10, 10), PartitionLoad("t", 1, 2 * GB, 10, 10)])
    with pytest.raises(InvalidLimitError, match=problem):
        replan(layout, [Broker(1), Broker(2), Broker(3)], mode="rebalance", **({"loads": loads} | options))


def test_the_dearer_a_copy_the_fewer_there_are() -> None:
    layout, brokers, loads = skewed(12, 3, 1_000, seed=4)
    plans = [replan(layout, brokers, mode="rebalance", loads=loads, move_cost=cost) for cost in (0, 10**11)]
    assert plans[1].moved_replicas < plans[0].moved_replicas
    assert all(verify(plan) for plan in plans)


def test_brokers_and_topics_that_are_not_there_bar_nothing() -> None:
    layout, brokers, loads = small(2)
    plain = replan(layout, brokers, mode="rebalance", loads=loads)
    assert (
        replan(layout, brokers, mode="rebalance", loads=loads, keep_off={"t0": [99], "x": [1]}).digest == plain.digest
    )


def test_one_usable_broker_that_a_budget_leaves_below_its_share_has_nobody_to_take_from() -> None:
    layout = Assignment.from_topics({"t": [[5]] * 5})
    loads = Loads.of(layout, [PartitionLoad("t", p, 100, 1, 1) for p in range(4)] + [PartitionLoad("t", 4, 900, 9, 9)])
    plan = replan(layout, [Broker(2)], mode="rebalance", max_moves=3, loads=loads)
    assert plan.moved_replicas == 3
    assert verify(plan)
