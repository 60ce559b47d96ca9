"""Leaders against the exact optimum, on a worked example, and on the limits of what brokers can lead."""

from __future__ import annotations

import numpy as np
import pytest

from placement.replanning.leaders import chains
from placement.replanning.leaders.elect import FRESH, NEVER, elect, led
from tests.placement.oracle import balance_of, best_leaders

BLOCKS = [(first, first + 250) for first in range(0, 1500, 250)]


def _random_places(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    brokers, rows = int(rng.integers(2, 9)), int(rng.integers(1, 25))
    width = int(rng.integers(1, min(4, brokers) + 1))
    replicas = np.array([rng.permutation(brokers)[:width] for _ in range(rows)], np.int32)
    cost = rng.choice([0, 1, FRESH], (rows, width)).astype(np.int64)
    cost[np.arange(width) > rng.integers(0, width, rows)[:, None]] = NEVER
    replicas[cost == NEVER] = -1
    base = rng.integers(0, 6, brokers) * int(rng.random() < 0.5)
    weights = [1.0, 1.5, 2.0] if rng.random() < 0.3 else [1.0]
    return replicas, cost, base.astype(np.int64), rng.choice(weights, brokers)


@pytest.mark.parametrize(("first", "last"), BLOCKS)
def test_balance_and_cost_are_those_of_the_exact_optimum(first: int, last: int) -> None:
    for seed in range(first, last):
        replicas, cost, base, capacity = _random_places(seed)
        leading = elect(replicas, cost, base, capacity)
        rows = [
            {int(b): int(c) for b, c in zip(r, k, strict=True) if c < NEVER}
            for r, k in zip(replicas, cost, strict=True)
        ]
        best = best_leaders(rows, dict(enumerate(base.tolist())), dict(enumerate(capacity.tolist())))
        load = led(replicas, leading, base)
        paid = int(cost[np.arange(leading.size), leading].sum())
        assert (balance_of(list(zip(load.tolist(), capacity.tolist(), strict=True))), paid) == best, f"seed {seed}"


def test_leaderships_travel_along_a_chain() -> None:
    # Broker 0 leads three, and only broker 1 shares partitions with 2, which leads none.
    replicas = np.array([[0, 1], [0, 1], [0, 1], [1, 2]], np.int32)
    cost = np.array([[0, 1]] * 4, np.int64)
    leading = elect(replicas, cost, np.zeros(3, np.int64), np.ones(3))
    assert led(replicas, leading, np.zeros(3, np.int64)).tolist() == [2, 1, 1]
    assert int((leading != 0).sum()) == 2


def test_nothing_changes_where_leaders_are_in_balance() -> None:
    replicas = np.array([[b, (b + 1) % 5] for b in range(5)] * 4, np.int32)
    cost = np.array([[0, 1]] * 20, np.int64)
    assert not elect(replicas, cost, np.zeros(5, np.int64), np.ones(5)).any()


def test_a_new_replica_leads_only_where_balance_needs_it() -> None:
    replicas = np.array([[0, 1, 2]] * 6, np.int32)
    cost = np.array([[0, 1, FRESH]] * 6, np.int64)
    load = led(replicas, elect(replicas, cost, np.zeros(3, np.int64), np.ones(3)), np.zeros(3, np.int64))
    assert load.tolist() == [2, 2, 2]
    # Broker 2 leads enough elsewhere: the other two share these.
    base = np.array([0, 0, 3])
    assert led(replicas, elect(replicas, cost, base, np.ones(3)), base).tolist() == [3, 3, 3]


def test_single_replicas_have_no_choice() -> None:
    replicas = np.array([[0], [0], [1]], np.int32)
    assert elect(replicas, np.zeros((3, 1), np.int64), np.zeros(2, np.int64), np.ones(2)).tolist() == [0, 0, 0]


def test_long_chains_end_after_a_number_of_steps_and_nobody_is_worse_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ring of 60 brokers, two of which lead what a third did: leaderships have to travel half of the way around."""
    place = np.arange(600) % 60
    replicas = np.stack([place, (place + 1) % 60, (place + 2) % 60], axis=1).astype(np.int32)
    cost = np.tile(np.array([0, 1, 1], np.int64), (600, 1))
    cost[place == 7, 0] = NEVER
    base, capacity = np.zeros(60, np.int64), np.ones(60)
    capacity[7] = 0.001
    even = led(replicas, elect(replicas, cost, base, capacity), base)
    monkeypatch.setattr(chains, "_STEPS", 100)
    leading = elect(replicas, cost, base, capacity)
    cut_short = led(replicas, leading, base)
    assert (even.max(), led(replicas, np.where(place == 7, 1, 0), base).max()) == (11, 20)
    assert 11 < cut_short.max() < 20
    assert (cost[np.arange(600), leading] < NEVER).all()
    # Whoever plans again goes on where this ended.
    again = np.where(np.arange(3) == leading[:, None], 0, np.where(cost < NEVER, 1, NEVER))
    assert led(replicas, elect(replicas, again, base, capacity), base).max() < cut_short.max()
