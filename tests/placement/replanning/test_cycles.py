"""Negative cycles: found exactly where all-pairs shortest paths say that there is one."""

from __future__ import annotations

import numpy as np

from placement.replanning.replicas.cycles import LOAD_PRICE, negative_cycle, with_load


def _has_negative_cycle(cost: np.ndarray) -> bool:
    distance = cost.copy()
    for k in range(cost.shape[0]):
        distance = np.minimum(distance, distance[:, k : k + 1] + distance[k : k + 1])
    return bool((np.diag(distance) < 0).any())


def test_a_cycle_is_found_exactly_if_there_is_one() -> None:
    found = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 9))
        cost = rng.integers(-3, 8, (n, n)).astype(float)
        cost[rng.random((n, n)) < 0.4] = np.inf
        np.fill_diagonal(cost, np.inf)
        cycle = negative_cycle(cost)
        assert (cycle is not None) == _has_negative_cycle(cost), f"seed {seed}"
        if cycle is not None:
            found += 1
            assert sum(cost[a, b] for a, b in zip(cycle, cycle[1:] + cycle[:1], strict=True)) < 0, f"seed {seed}"
            assert len(set(cycle)) == len(cycle), f"seed {seed}"
    assert 100 < found < 350


def test_the_load_node_prices_one_unit_less_and_one_more() -> None:
    arcs = np.array([[np.inf, 1.0], [np.inf, np.inf]])
    cost = with_load(arcs, np.array([3, 1]), np.array([1.0, 1.0]))
    assert cost[2, 0] == -5 * LOAD_PRICE
    assert cost[1, 2] == 3 * LOAD_PRICE
    assert sorted(negative_cycle(cost) or []) == [0, 1, 2]
    # Loads one apart are even: nothing is gained.
    assert negative_cycle(with_load(arcs, np.array([2, 1]), np.array([1.0, 1.0]))) is None
