"""Whole plans: against the exact optimum, on the published comparison, through sequences of events."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from placement import Assignment, Broker, place_striped, replan, verify
from placement.errors import (
    DuplicateBrokerError,
    IncompleteRackError,
    InvalidAssignmentError,
    InvalidBrokerError,
    InvalidLimitError,
    InvalidReplicationFactorError,
)
from tests.clusters import (
    comparison_brokers,
    comparison_layout,
    even_layout,
    in_state,
    racked,
    random_case,
)
from tests.placement.oracle import balance_of, best_plan

BLOCKS = [(first, first + 50) for first in range(0, 500, 50)]


@pytest.mark.parametrize("mode", ["heal", "rebalance"])
@pytest.mark.parametrize(("first", "last"), BLOCKS)
def test_moves_and_balance_are_those_of_the_exact_optimum(first: int, last: int, mode: str) -> None:
    for seed in range(first, last):
        case = random_case(seed)
        best = best_plan(case.layout, case.brokers, mode, case.factors)
        plan = replan(case.layout, case.brokers, mode=mode, replication_factors=case.factors)  # type: ignore[arg-type]
        alive = [b for b in case.brokers if b.state == "alive"]
        loads = [(int((plan.assignment.replicas == b.id).sum()), b.capacity) for b in alive]
        assert verify(plan), f"seed {seed}: {verify(plan).violations}"
        assert (balance_of(loads), plan.moved_replicas) == (best.balance, best.moves), f"seed {seed}"
        assert plan.optimal, f"seed {seed}: not proved"
        assert plan.lower_bound == plan.moved_replicas, f"seed {seed}"


@pytest.mark.parametrize("mode", ["heal", "rebalance"])
def test_a_plan_planned_again_changes_nothing(mode: str) -> None:
    for seed in range(150):
        case = random_case(seed)
        plan = replan(case.layout, case.brokers, mode=mode, replication_factors=case.factors)  # type: ignore[arg-type]
        again = replan(plan.assignment, case.brokers, mode=mode)  # type: ignore[arg-type]
        assert len(again.moves) == 0, f"seed {seed}: {list(again.moves)}"
        assert again.assignment.replicas.tobytes() == plan.assignment.replicas.tobytes(), f"seed {seed}"


def test_capacities_that_hardly_differ_are_proved_only_where_the_balance_is_the_best() -> None:
    # Broker 1 can take a millionth more than 0, so with three replicas it should have the two.
    brokers = [Broker(0, capacity=1.0), Broker(1, capacity=1.000001)]
    plan = replan(Assignment.from_topics({"t": [[0], [0], [1]]}), brokers, mode="rebalance")
    counts = np.bincount(plan.assignment.replicas[:, 0], minlength=2).tolist()
    assert (counts, plan.optimal) in (([1, 2], True), ([2, 1], False))


def test_leaders_that_stay_where_they_are_count_for_those_who_lead_now() -> None:
    """The row of broker 0 has lost its leader and cannot be led by the held ones, which are dead."""
    layout = Assignment.from_topics({"t": [[1, 2], [1, 2], [0, 1]]})
    brokers = [Broker(0, state="dead"), Broker(1), Broker(2)]
    plan = replan(layout, brokers, mode="rebalance", exclude_brokers=[0])
    assert sorted(plan.assignment.replicas[:, 0].tolist()) in ([1, 1, 2], [1, 2, 2])
    assert verify(plan)


def test_the_published_comparison_when_a_broker_is_removed() -> None:
    brokers = [b for b in comparison_brokers() if b.id != 12]
    plan = replan(comparison_layout(), brokers, mode="rebalance")
    assert verify(plan)
    assert (plan.moved_replicas, plan.lower_bound, plan.optimal) == (253, 253, True)
    assert (plan.replicas_after.minimum, plan.replicas_after.maximum) == (250, 334)
    assert (plan.leaders_after.minimum, plan.leaders_after.maximum) == (90, 91)


def test_the_published_comparison_when_a_broker_joins() -> None:
    plan = replan(comparison_layout(), [*comparison_brokers(), Broker(13, "r000")], mode="rebalance")
    assert verify(plan)
    assert (plan.moved_replicas, plan.lower_bound, plan.optimal) == (204, 204, True)
    assert (plan.replicas_after.minimum, plan.replicas_after.maximum) == (200, 250)
    assert (plan.leaders_after.minimum, plan.leaders_after.maximum) == (76, 77)


def test_a_whole_plan_when_a_broker_dies() -> None:
    layout = Assignment.from_topics({"t": [[0, 1], [1, 2], [2, 3], [3, 0]]})
    brokers = [Broker(0, "a"), Broker(1, "b"), Broker(2, "a", state="dead"), Broker(3, "b"), Broker(4, "a")]
    plan = replan(layout, brokers)
    assert [(m.topic, m.partition, m.before, m.after, m.reason) for m in plan.moves] == [
        ("t", 1, (1, 2), (1, 4), "lost"),
        ("t", 2, (2, 3), (4, 3), "lost"),
    ]
    assert plan.leader_changes == 1
    assert (plan.moved_replicas, plan.lower_bound, plan.optimal) == (2, 2, True)


REASONS = {
    "lost": ([(0, 1)], {1: "dead"}, {}, "heal"),
    "drained": ([(0, 1)], {1: "draining"}, {}, "heal"),
    "replication factor": ([(0, 1)], {}, {"t": 3}, "heal"),
    "rack violation": ([(0, 3), (1, 2)], {}, {}, "rebalance"),
    "over its share": ([(0, 1), (0, 1), (0, 1)], {}, {}, "rebalance"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_each_move_says_why(reason: str) -> None:
    rows, states, factors, mode = REASONS[reason]
    brokers = [Broker(i, f"r{i % 3}", state=states.get(i, "alive")) for i in range(6)]  # type: ignore[arg-type]
    layout = Assignment.from_topics({"t": rows})
    plan = replan(layout, brokers, mode=mode, replication_factors=factors)  # type: ignore[arg-type]
    assert reason in plan.reason_counts(), plan.reason_counts()
    assert verify(plan)


@pytest.mark.parametrize("home", [False, True])
def test_forty_losses_and_returns_cost_the_bound_and_leave_no_trace(home: bool) -> None:
    brokers = racked(30, 5)
    start = replan(even_layout(30, 5, 600, 3, per_topic=20), brokers, mode="rebalance").assignment
    layout, first_spread = start, _topic_spread(start, 30)
    for event in range(40):
        lost = (event * 7 + 3) % 30
        at_home = start if home else None
        held = int((layout.replicas == lost).sum())
        healed = replan(layout, in_state(brokers, [lost], "dead"), home=at_home)
        returned = replan(healed.assignment, brokers, mode="rebalance", home=at_home)
        layout = returned.assignment
        for plan in (healed, returned):
            assert verify(plan), f"event {event}"
            assert plan.optimal, f"event {event}"
        assert healed.moved_replicas == held, f"event {event}"
        assert returned.moved_replicas == returned.lower_bound, f"event {event}"
        assert returned.replicas_after.maximum - returned.replicas_after.minimum <= 1
        assert returned.leaders_after.maximum - returned.leaders_after.minimum <= 1
        if home:
            assert np.array_equal(np.sort(layout.replicas, axis=1), np.sort(start.replicas, axis=1)), f"event {event}"
    assert _topic_spread(layout, 30) <= first_spread * 1.05


def _topic_spread(layout: Assignment, brokers: int) -> int:
    """Sum over topics and brokers of the squared replica count: grows when topics cluster."""
    cell = layout.topic_index[:, None].astype(np.int64) * brokers + layout.replicas
    return int(np.square(np.bincount(cell.reshape(-1))).sum())


def test_a_rack_that_is_lost_and_returns_gets_its_replicas_back() -> None:
    brokers = racked(12, 3)
    start = replan(even_layout(12, 3, 400, 3), brokers, mode="rebalance").assignment
    rack = [b.id for b in brokers if b.rack == "r001"]
    healed = replan(start, in_state(brokers, rack, "dead"), home=start)
    returned = replan(healed.assignment, brokers, mode="rebalance", home=start)
    assert healed.moved_replicas == returned.moved_replicas == 400
    assert np.array_equal(np.sort(returned.assignment.replicas, axis=1), np.sort(start.replicas, axis=1))


def test_excluded_topics_and_brokers_are_not_touched() -> None:
    for seed in range(80):
        case = random_case(seed)
        alive = [b.id for b in case.brokers if b.state == "alive"]
        if len(alive) < 6:
            continue
        held = alive[seed % len(alive)]
        plan = replan(case.layout, case.brokers, mode="rebalance", exclude_topics=["t0"], exclude_brokers=[held])
        assert verify(plan), f"seed {seed}: {verify(plan).violations}"
        assert all(move.topic != "t0" for move in plan.moves), f"seed {seed}"
        assert all((held in move.before) == (held in move.after) for move in plan.moves), f"seed {seed}"


def test_an_excluded_dead_broker_keeps_its_replicas_and_leads_nothing_where_leaders_are_evened_out() -> None:
    layout = Assignment.from_topics({"t": [[0, 1], [0, 2], [1, 2]]})
    brokers = [Broker(0, state="dead"), Broker(1), Broker(2)]
    plan = replan(layout, brokers, mode="rebalance", exclude_brokers=[0])
    assert [(m.partition, m.after) for m in plan.moves] == [(0, (1, 0)), (1, (2, 0))]
    assert verify(plan)
    assert not replan(layout, brokers, exclude_brokers=[0]).moves


# Leaders lie unevenly: broker 0 leads four partitions, 1 and 2 one each, and broker 3 is lost.
CROOKED = Assignment.from_topics({"t": [[0, 1], [0, 2], [0, 1], [0, 2], [3, 0], [1, 3], [2, 1]]})
LOST_3 = [Broker(0), Broker(1), Broker(2), Broker(3, state="dead")]
LEADERS = {
    ("heal", "even"): [4, 5],
    ("heal", "keep"): [4, 5],
    ("heal", "everywhere"): [0, 1, 4, 5],
    ("rebalance", "even"): [0, 1, 4, 5],
    ("rebalance", "keep"): [4, 5],
}


@pytest.mark.parametrize(("mode", "leaders"), LEADERS)
def test_who_may_lead_anew(mode: str, leaders: str) -> None:
    plan = replan(CROOKED, LOST_3, mode=mode, leaders=leaders)  # type: ignore[arg-type]
    assert verify(plan)
    assert [m.partition for m in plan.moves] == LEADERS[mode, leaders]


def test_a_heal_changes_only_what_lost_a_replica() -> None:
    changed = 0
    for seed in range(300):
        case = random_case(seed)
        budget = None if seed % 3 else 2
        plan = replan(case.layout, case.brokers, replication_factors=case.factors, max_moves=budget)
        alive = {b.id for b in case.brokers if b.state == "alive"}
        for move in plan.moves:
            assert not alive.issuperset(move.before) or move.topic in case.factors, f"seed {seed}: {move}"
            changed += 1
    assert changed > 300


def test_of_a_lost_broker_the_heal_leaves_all_leaders_but_its_own_partitions() -> None:
    brokers = racked(60, 5)
    drawn = {f"t{t:03d}": place_striped(brokers, 12, 3, seed=t).tolist() for t in range(100)}
    plan = replan(Assignment.from_topics(drawn), in_state(brokers, [7], "dead"))
    assert verify(plan)
    assert len(plan.moves) == plan.moved_replicas == plan.lower_bound
    assert all(7 in move.before for move in plan.moves)


def test_a_strict_spread_brings_each_topic_to_its_share() -> None:
    brokers = racked(6, 1)
    rows = [("even", p, [p % 6]) for p in range(12)]
    skewed = [("skewed", p, [p % 2]) for p in range(6)] + [("other", p, [2 + p % 4]) for p in range(12)]
    layout = Assignment.from_rows(rows + skewed)
    loose = replan(layout, brokers, mode="rebalance")
    strict = replan(layout, brokers, mode="rebalance", strict_spread=True)
    counts = [
        np.bincount(strict.assignment.replicas[strict.assignment.topic_index == t, 0], minlength=6) for t in range(3)
    ]
    assert [c.max() - c.min() for c in counts] == [0, 0, 0]
    assert "spread" in strict.reason_counts()
    assert strict.moved_replicas > loose.moved_replicas
    assert verify(strict)


def _shuffled(case_seed: int) -> tuple[Assignment, list[Broker]]:
    case = random_case(case_seed)
    rows, brokers = list(case.layout.rows()), list(case.brokers)
    random.Random(case_seed).shuffle(rows)
    random.Random(case_seed + 1).shuffle(brokers)
    return Assignment.from_rows(rows), brokers


def test_the_order_of_the_input_does_not_matter() -> None:
    for seed in range(100):
        case = random_case(seed)
        layout, brokers = _shuffled(seed)
        plans = [replan(case.layout, case.brokers, mode="rebalance"), replan(layout, brokers, mode="rebalance")]
        assert plans[0].digest == plans[1].digest, f"seed {seed}"
        assert plans[0].assignment.replicas.tobytes() == plans[1].assignment.replicas.tobytes(), f"seed {seed}"


SCRIPT = """
from placement import replan
from tests.clusters import random_case
print([replan(c.layout, c.brokers, mode="rebalance").digest for c in map(random_case, range(20))])
"""


def test_other_processes_with_other_hash_seeds_plan_the_same() -> None:
    here = [replan(c.layout, c.brokers, mode="rebalance").digest for c in map(random_case, range(20))]
    for hash_seed in ("0", "4242"):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        root = Path(__file__).parents[3]
        there = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=env, cwd=root, capture_output=True, text=True, check=True
        )
        assert there.stdout.strip() == str(here)


def test_the_input_is_not_mutated() -> None:
    layout = comparison_layout()
    before = layout.replicas.copy()
    replan(layout, comparison_brokers()[:-1], mode="rebalance")
    assert np.array_equal(layout.replicas, before)


ONE = Assignment.from_topics({"t": [[0, 1]]})
ERRORS = {
    "replication factor above the live brokers": (
        lambda: replan(ONE, [Broker(0), Broker(1)], replication_factors={"t": 3}),
        InvalidReplicationFactorError,
        "replication factor 3 is above the 2 usable brokers",
    ),
    "replication factor of zero": (
        lambda: replan(ONE, [Broker(0), Broker(1)], replication_factors={"t": 0}),
        InvalidReplicationFactorError,
        "replication_factors of topic t is 0: it must be at least 1",
    ),
    "no broker at all": (lambda: replan(ONE, []), InvalidBrokerError, "no usable broker is left"),
    "no broker alive": (
        lambda: replan(ONE, [Broker(0, state="dead")]),
        InvalidBrokerError,
        "no usable broker is left",
    ),
    "empty layout": (
        lambda: replan(Assignment.from_rows([]), [Broker(0)]),
        InvalidAssignmentError,
        "the layout is empty: there is no partition to plan for",
    ),
    "racks for some only": (
        lambda: replan(ONE, [Broker(0, "a"), Broker(1)]),
        IncompleteRackError,
        "some brokers have a rack and [1] have none",
    ),
    "a broker twice": (
        lambda: replan(ONE, [Broker(0), Broker(0)]),
        DuplicateBrokerError,
        "broker ids given more than once: [0]",
    ),
    "an unknown broker excluded": (
        lambda: replan(ONE, [Broker(0), Broker(1)], exclude_brokers=[7]),
        InvalidBrokerError,
        "excluded broker 7 is not among the brokers",
    ),
    "an unknown mode": (
        lambda: replan(ONE, [Broker(0), Broker(1)], mode="mend"),  # type: ignore[arg-type]
        InvalidLimitError,
        "mode is 'mend': it must be one of heal, rebalance",
    ),
    "an unknown word about leaders": (
        lambda: replan(ONE, [Broker(0), Broker(1)], leaders="odd"),  # type: ignore[arg-type]
        InvalidLimitError,
        "leaders is 'odd': it must be one of even, keep, everywhere",
    ),
    "a negative budget": (
        lambda: replan(ONE, [Broker(0), Broker(1)], max_moves=-1),
        InvalidLimitError,
        "max_moves is -1: it must be at least 0",
    ),
    "a weight of zero": (
        lambda: Broker(0, capacity=0.0),
        InvalidBrokerError,
        "broker 0 has capacity 0.0: it must be a number from 0.001 to 1e+12",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_bad_input_is_one_clear_error(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message
