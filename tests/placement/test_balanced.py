"""Placement by load: even, rack-safe, and nothing to move afterwards."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from placement import Assignment, Broker, Change, ReplicaCounts, place_balanced, replan, verify_moves
from placement.errors import InvalidBrokerError, InvalidPartitionsError, InvalidReplicationFactorError
from tests.clusters import racked


def _created(topic: str, rows: np.ndarray) -> Change:
    count = rows.shape[0]
    before = np.full(rows.shape, -1, np.int32)
    return Change((topic,), np.zeros(count, np.int32), np.arange(count, dtype=np.int32), before, rows)


def test_a_worked_example() -> None:
    brokers = [Broker(1, "a"), Broker(2, "a"), Broker(3, "b")]
    rows = place_balanced(brokers, 4, 2, topic="t")
    assert sorted(map(tuple, np.sort(rows, axis=1).tolist())) == [(1, 3), (1, 3), (2, 3), (2, 3)]


def test_after_any_creations_a_rebalance_has_nothing_to_move() -> None:
    for seed in range(100):
        rng = np.random.default_rng(seed)
        count, racks = int(rng.integers(3, 12)), int(rng.integers(1, 5))
        brokers = [Broker(i, f"r{rng.integers(0, racks)}") for i in range(count)]
        factor = int(rng.integers(1, min(4, count) + 1))
        load, rows = ReplicaCounts.empty(), []
        for t in range(6):
            placed = place_balanced(brokers, int(rng.integers(1, 15)), factor, current=load, topic=f"t{t}")
            assert verify_moves(_created(f"t{t}", placed), brokers), f"seed {seed}"
            load = load.add(placed)
            rows += [(f"t{t}", p, replicas.tolist()) for p, replicas in enumerate(placed)]
        plan = replan(Assignment.from_rows(rows), brokers, mode="rebalance")
        assert plan.moved_replicas == 0 and plan.optimal, f"seed {seed}"


def test_with_weights_no_placement_can_leave_a_rebalance_nothing_to_move_after_every_creation() -> None:
    """Three unequal brokers, and the one layout of the first topic that is best; then none of the second one's fits."""
    brokers = [Broker(0, capacity=1.9), Broker(1), Broker(2)]
    settled = [
        layout
        for layout in combinations_with_replacement(range(3), 3)
        if not replan(Assignment.from_topics({"a": [[b] for b in layout]}), brokers, mode="rebalance").moved_replicas
    ]
    assert settled == [(0, 1, 2)]
    for second in ([0, 1], [0, 2], [1, 2]):
        grown = Assignment.from_topics({"a": [[0], [1], [2]], "b": [second]})
        assert replan(grown, brokers, mode="rebalance").moved_replicas > 0


def test_single_steps_and_array_steps_are_equally_good(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(150):
        rng = np.random.default_rng(seed)
        count, racks = int(rng.integers(1, 14)), int(rng.integers(1, 6))
        capacities = [1.0, 1.0, 2.0, 0.5] if seed % 2 else [1.0]
        brokers = [Broker(i, f"r{rng.integers(0, racks)}", float(rng.choice(capacities))) for i in range(count)]
        load = ReplicaCounts.empty()
        for t in range(5):
            new = int(rng.integers(1, 25)), int(rng.integers(1, min(4, count) + 1))
            rows = []
            for few in (0, 1_000):
                monkeypatch.setattr("placement.balanced.place._FEW", few)
                rows.append(place_balanced(brokers, *new, current=load, topic=f"t{t}"))
                assert verify_moves(_created(f"t{t}", rows[-1]), brokers), f"seed {seed}"
            after = [_cost(load.add(placed), brokers) for placed in rows]
            assert after[0] == pytest.approx(after[1]), f"seed {seed}, topic {t}"
            load = load.add(rows[1])


def _cost(load: ReplicaCounts, brokers: list[Broker]) -> float:
    ids = np.array([b.id for b in brokers], np.int32)
    return float((np.square(load.replicas_on(ids)) / np.array([b.capacity for b in brokers])).sum())


def test_leaders_of_a_small_topic_are_as_even_as_its_replicas_allow() -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        brokers = [Broker(i, f"r{i % int(rng.integers(1, 4))}") for i in range(int(rng.integers(2, 7)))]
        led = np.array([int(n) for n in rng.integers(0, 4, len(brokers))])
        base = ReplicaCounts(np.arange(len(brokers), dtype=np.int32), led + 2, led)
        rows = place_balanced(brokers, int(rng.integers(1, 5)), 2, current=base, topic=f"t{seed}")
        chosen = np.square(base.add(rows).leaders).sum()
        best = min(np.square(led + np.bincount(choice, minlength=led.size)).sum() for choice in product(*rows.tolist()))
        assert chosen == best, f"seed {seed}"


def test_weights_decide_the_share() -> None:
    brokers = [Broker(0, capacity=2.0), Broker(1), Broker(2)]
    rows = place_balanced(brokers, 20, 2)
    assert np.bincount(rows.reshape(-1)).tolist() == [20, 10, 10]
    assert np.bincount(rows[:, 0]).tolist() == [10, 5, 5]


def test_partitions_added_go_where_the_load_is_lightest() -> None:
    brokers = racked(4, 2)
    current = Assignment.from_topics({"t": [[0, 1], [0, 1], [2, 1]]})
    rows = place_balanced(brokers, 2, 2, current=current, topic="t", start_partition_id=3)
    load = ReplicaCounts.of(current).add(rows)
    assert (load.replicas_on(np.array([1, 3], np.int32))).tolist() == [3, 2]
    assert sorted(load.replicas_on(np.array([0, 2], np.int32)).tolist()) == [2, 3]


def test_the_load_can_be_given_as_a_layout_or_counted_along() -> None:
    brokers = racked(6, 3)
    current = Assignment.from_topics({"t": [[0, 1, 2], [1, 2, 3], [0, 4, 5]]})
    by_layout = place_balanced(brokers, 7, 3, current=current, topic="new")
    assert np.array_equal(by_layout, place_balanced(brokers, 7, 3, current=ReplicaCounts.of(current), topic="new"))


def test_only_live_brokers_get_replicas_and_their_order_does_not_matter() -> None:
    brokers = [*racked(6, 3), Broker(6, "r000", state="dead"), Broker(7, "r001", state="draining")]
    rows = place_balanced(brokers, 30, 3, topic="x")
    assert set(rows.reshape(-1).tolist()) == set(range(6))
    assert np.array_equal(rows, place_balanced(brokers[::-1], 30, 3, topic="x"))


def test_the_topic_rotates_the_choice_among_equal_brokers() -> None:
    firsts = {int(place_balanced(racked(10, 1), 1, 1, topic=f"t{t}")[0, 0]) for t in range(50)}
    assert len(firsts) > 5


def test_load_follows_additions_and_removals() -> None:
    rows = np.array([[3, 1], [1, -1]], np.int32)
    load = ReplicaCounts.empty().add(rows)
    assert (load.ids.tolist(), load.replicas.tolist(), load.leaders.tolist()) == ([1, 3], [2, 1], [1, 1])
    assert load.replicas_on(np.array([0, 1, 3, 9], np.int32)).tolist() == [0, 2, 1, 0]
    less = load.subtract(rows[:1])
    assert less.replicas.tolist() == [1, 0]
    assert load.replicas.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("partitions", "factor", "brokers", "error"),
    [
        (0, 1, racked(3, 1), InvalidPartitionsError),
        (1, 0, racked(3, 1), InvalidReplicationFactorError),
        (1, 4, racked(3, 1), InvalidReplicationFactorError),
        (10**9, 3, racked(3, 1), InvalidPartitionsError),
        (1, 1, [Broker(0, state="dead")], InvalidBrokerError),
    ],
)
def test_bad_input_never_yields_a_layout(
    partitions: int, factor: int, brokers: list[Broker], error: type[Exception]
) -> None:
    with pytest.raises(error):
        place_balanced(brokers, partitions, factor)
