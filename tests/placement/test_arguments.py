"""Arguments of wrong types, sizes and shapes: one sentence, never another error, and no array made of them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from placement import Assignment, Band, Broker, Loads, PlacementError, Terms, place_adminutils, place_balanced, replan

BROKERS = [Broker(1), Broker(2), Broker(3)]
LAYOUT = Assignment.from_topics({"topic": [[1, 2], [2, 3], [3, 1]]})
NOTHING = np.zeros(3, np.int64)

_REPLAN: list[dict[str, Any]] = [
    {"mode": "rebalanse"}, {"mode": None}, {"mode": []}, {"max_moves": 1.5}, {"max_moves": "1"}, {"max_moves": True},
    {"max_moves": -1}, {"exclude_topics": "topic"}, {"exclude_topics": None}, {"exclude_topics": [1]},
    {"exclude_brokers": 1}, {"exclude_brokers": "1"}, {"exclude_brokers": [1.5]}, {"exclude_brokers": [2**31]},
    {"replication_factors": ["topic"]}, {"replication_factors": {"topic": 1.5}},
    {"replication_factors": {"topic": 2**62}}, {"leaders": "none"}, {"in_sync": [[1]]}, {"in_sync": [[1.5]] * 3},
    {"replication_factors": {"topic": 10**8}}, {"replication_factors": {"topic": 0}}, {"replication_factors": {1: 1}},
    {"replication_factors": {"topic": None}}, {"strict_spread": "yes"}, {"home": [[1]]}, {"loads": [1]},
    {"loads": Loads(NOTHING, NOTHING, NOTHING), "band": 0.1}, {"loads": Loads(NOTHING[:1], NOTHING, NOTHING)},
    {"loads": Loads(NOTHING - 1, NOTHING, NOTHING)}, {"loads": Loads(NOTHING + 0.5, NOTHING, NOTHING)},
    {"loads": Loads(NOTHING + 2**60, NOTHING, NOTHING)}, {"loads": Loads([1, 2, 3], NOTHING, NOTHING)},
    {"loads": Loads(NOTHING, NOTHING, NOTHING), "max_bytes": 1.5}, {"max_bytes": 1}, {"move_cost": -1},
    {"loads": Loads(NOTHING, NOTHING, NOTHING), "keep_off": {"topic": 1}}, {"keep_off": {"topic": [1]}},
]  # fmt: skip


@pytest.mark.parametrize("options", _REPLAN, ids=str)
def test_replan_refuses_them(options: dict[str, Any]) -> None:
    with pytest.raises(PlacementError):
        replan(LAYOUT, BROKERS, **options)


@pytest.mark.parametrize("brokers", [None, 3, [1, 2], ["1"], [{"id": 1}], "12", [None]], ids=str)
def test_what_is_no_broker_is_refused(brokers: Any) -> None:
    for call in (
        lambda: replan(LAYOUT, brokers),
        lambda: place_balanced(brokers, 1, 1),
        lambda: place_adminutils(brokers, 1, 1),
    ):
        with pytest.raises(PlacementError):
            call()


@pytest.mark.parametrize("layout", [None, [[1, 2]], {"t": [[1]]}, "x"], ids=str)
def test_what_is_no_layout_is_refused(layout: Any) -> None:
    with pytest.raises(PlacementError):
        replan(layout, BROKERS)


@pytest.mark.parametrize("capacity", [5e-324, 1e308, float("nan"), float("inf"), 0, -1, "1", None, True, 10**400])
def test_a_capacity_is_refused_with_which_no_balance_can_be_computed(capacity: Any) -> None:
    with pytest.raises(PlacementError):
        Broker(1, capacity=capacity)


@pytest.mark.parametrize(("least", "greatest"), [(0.001, 1e12), (0.001, 1.0), (1.0, 1e12)])
def test_capacities_as_far_apart_as_they_may_be_are_planned_for(least: float, greatest: float) -> None:
    brokers = [Broker(1, capacity=least), Broker(2, capacity=greatest), Broker(3, capacity=greatest), Broker(4)]
    plan = replan(LAYOUT, brokers, mode="rebalance")
    assert plan.optimal
    assert not replan(plan.assignment, brokers, mode="rebalance").moved_replicas


@pytest.mark.parametrize(
    "sizes", [(1.5, 1), (1, 1.5), ("1", 1), (None, 1), (True, 1), (10**30, 1), (1, 10**30), (0, 1)]
)
def test_counts_that_are_none_are_refused(sizes: tuple[Any, Any]) -> None:
    for place in (place_balanced, place_adminutils):
        with pytest.raises(PlacementError):
            place(BROKERS, *sizes)


def test_a_wide_band_is_no_number() -> None:
    for settle in ("x", None, float("nan"), [0.1]):
        with pytest.raises(PlacementError):
            Band(settle=settle)  # type: ignore[arg-type]


_LAYOUTS: list[Any] = [
    {"t": [[1.5, 2]]}, {"t": [[2**31]]}, {"t": [[2**64]]}, {"t": [[-2]]}, {"t": [["1"]]}, {"t": [[None]]},
    {"t": [[True, False]]}, {"t": [1, 2]}, {"t": 1}, {"t": {"0": [1]}}, {"t": {1.5: [1]}}, {"t": {2**31: [1]}},
    {1: [[1]]}, [[1]], None, {"t": [[[1]]]}, {"t": ["12"]}, {"t": [[float("nan")]]},
]  # fmt: skip


@pytest.mark.parametrize("topics", _LAYOUTS, ids=str)
def test_layouts_that_no_cluster_has_are_refused(topics: Any) -> None:
    with pytest.raises(PlacementError):
        Assignment.from_topics(topics)


def test_terms_say_the_same_as_keywords() -> None:
    keywords: dict[str, Any] = {"mode": "rebalance", "max_moves": 1, "exclude_topics": {"other"}, "leaders": "keep"}
    said, asked = replan(LAYOUT, BROKERS, **keywords), replan(LAYOUT, Terms(tuple(BROKERS), **keywords))
    assert said.digest == asked.digest
    assert said.terms == asked.terms
    assert replan(LAYOUT, asked.terms).terms == asked.terms


@pytest.mark.parametrize("options", _REPLAN, ids=str)
def test_terms_that_are_none_are_refused_alike(options: dict[str, Any]) -> None:
    with pytest.raises(PlacementError) as said:
        replan(LAYOUT, BROKERS, **options)
    with pytest.raises(PlacementError, match=re.escape(str(said.value))) as asked:
        replan(LAYOUT, Terms(tuple(BROKERS), **options))
    assert type(asked.value) is type(said.value)


def test_terms_and_keywords_do_not_mix() -> None:
    with pytest.raises(PlacementError, match="max_moves is given beside terms"):
        replan(LAYOUT, Terms(tuple(BROKERS)), max_moves=0)
