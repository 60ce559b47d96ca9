"""Noise of rates: what it explains makes no plan."""

from __future__ import annotations

import numpy as np
import pytest

from placement import replan
from placement.arrays import Float64Array
from placement.loads.model import NOISE
from placement.replanning.by_load.noise import above, below, errors
from tests.load_clusters import noisy, skewed

NONE = np.zeros(1)


def rates(seed: int) -> tuple[Float64Array, float]:
    """What partitions of a broker are measured at, and how many errors are looked for."""
    rng = np.random.default_rng(seed)
    measured = np.exp(rng.normal(0, rng.choice([0.1, 1.0, 2.5]), int(rng.integers(1, 12)))) * 1e6
    return measured, errors(int(rng.choice([3, 12, 100, 1000])))


def furthest(measured: Float64Array, most: float, sign: int) -> float:
    """The largest (-1) or least (1) sum of true rates that errors of this length leave, climbed to from many starts."""
    rng = np.random.default_rng(measured.size)
    starts = np.abs(np.vstack([np.eye(measured.size), measured, rng.normal(size=(40, measured.size))]))
    found = []
    for way in starts:
        error = sign * most * way / np.linalg.norm(way)
        for _ in range(60):
            slope = measured / (1 + error) ** 2
            error = sign * most * slope / np.linalg.norm(slope)
            found.append(float((measured / (1 + error)).sum()))
    return max(found) if sign < 0 else min(found)


@pytest.mark.parametrize("seed", range(60))
def test_no_rates_that_are_so_near_bring_a_broker_that_acts_into_its_band(seed: int) -> None:
    measured, most = rates(seed)
    load, length, largest = measured.sum(), np.array([np.linalg.norm(measured)]), np.array([measured.max()])
    # The edges at which a broker with this load just does not act.
    lower = load + float(below(NONE, length, largest, NONE, most)[0])
    upper = load / float(above(np.array([load]), length, NONE, most)[0])
    assert furthest(measured, most, -1) <= lower * (1 + 1e-9)
    assert furthest(measured, most, 1) >= upper * (1 - 1e-9)


def test_one_partition_that_is_all_of_a_broker_may_be_exactly_so_far_off() -> None:
    one, most = np.array([1e6]), errors(12)
    assert 1e6 + below(NONE, one, one, NONE, most)[0] == pytest.approx(1e6 / (1 - most))
    assert 1e6 / above(one, one, NONE, most)[0] == pytest.approx(1e6 / (1 + most))


@pytest.mark.parametrize("partitions", [1, 2, 5, 80])
@pytest.mark.parametrize("heavier", [1.0, 3.0])
def test_errors_alone_take_a_broker_out_as_seldom_as_they_may(partitions: int, heavier: float) -> None:
    """A broker that is at an edge of its band in truth: out in less than 1 of 100 plans for all brokers and rates."""
    true = np.full(partitions, 1e6)
    true[0] *= heavier
    edge, most, draws = true.sum(), errors(12), 200_000
    error = np.random.default_rng(partitions).normal(0, NOISE, (draws, partitions)).astype(np.float32)
    measured = np.maximum(true * (1 + error), 0.0)
    load, length, largest = measured.sum(axis=1), np.linalg.norm(measured, axis=1), measured.max(axis=1)
    expected = 0.01 / (2 * 3 * 12) * draws
    assert (load > edge * above(load, length, NONE, most)).sum() <= expected + 4 * expected**0.5
    assert (load < edge - below(np.array([edge]), length, largest, NONE, most)).sum() <= expected + 4 * expected**0.5


@pytest.mark.parametrize("seed", [106, 201])
def test_normal_noise_of_a_fifth_makes_no_plans_where_brokers_live_on_a_few_partitions(seed: int) -> None:
    layout, brokers, loads = skewed(12, 3, 1_000, seed)
    layout = replan(layout, brokers, mode="rebalance", loads=loads).assignment
    found = 0
    for draw in range(50):
        plan = replan(layout, brokers, mode="rebalance", loads=noisy(loads, draw, "normal"))
        found += bool(len(plan.moves))
        layout = plan.assignment
    assert found <= 2
