"""The lower bound in bytes is never above what an exact solver attains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placement import Assignment, Band, Broker, Loads, replan
from tests.clusters import racked
from tests.placement.load_oracle import fewest_bytes


def few(seed: int) -> tuple[Assignment, list[Broker], Loads]:
    """Some 14 partitions on two brokers in each of two or three racks, of sizes that differ much, unequal brokers."""
    rng = np.random.default_rng(seed)
    racks, count = int(rng.integers(2, 4)), int(rng.integers(8, 20))
    brokers = [replace(b, capacity=float(rng.choice([1.0, 1.0, 2.0]))) for b in racked(2 * racks, racks)]
    rows = [("t", p, [int(r + racks * rng.integers(2)) for r in rng.permutation(racks)]) for p in range(count)]
    size = np.maximum(np.exp(rng.normal(0, rng.choice([0.5, 1.5]), count)) * 100, 1).astype(np.int64)
    rates = (np.maximum(np.exp(rng.normal(0, 1, count)) * 50, 1).astype(np.int64) for _ in range(2))
    return Assignment.from_rows(rows), brokers, Loads(size, *rates)


@pytest.mark.parametrize("seed", range(24))
def test_no_bound_is_above_an_attainable_plan(seed: int) -> None:
    """Whole replicas are counted, so a linear relaxation of the problem may well be below it."""
    layout, brokers, loads = few(seed)
    width = (0.05, 0.15, 0.3)[seed % 3]
    plan = replan(layout, brokers, mode="rebalance", loads=loads, band=Band(width, width))
    assert plan.loads is not None
    assert plan.loads.lower_bound_bytes <= fewest_bytes(plan) <= plan.loads.moved_bytes
