"""Clusters whose partitions differ in load, for tests and benchmarks."""

from __future__ import annotations

import numpy as np

from placement import Assignment, Broker, Loads
from tests.clusters import even_layout, racked

LARGEST = 0.05
"""The largest partition, as a fraction of what a broker holds."""


def lognormal_loads(brokers: int, partitions: int, factor: int, seed: int, *, sigma: float = 1.5) -> Loads:
    """Sizes, rates in and rates out, lognormal and related to each other."""
    rng = np.random.default_rng(seed)
    size = np.exp(rng.normal(0, sigma, partitions)) * 1e9
    size = np.maximum(np.minimum(size, LARGEST * size.sum() * factor / brokers), 1).astype(np.int64)
    bytes_in = np.maximum(size / 86_400 * np.exp(rng.normal(0, 0.5, partitions)), 1).astype(np.int64)
    bytes_out = np.maximum(bytes_in * np.exp(rng.normal(0.3, 0.7, partitions)), 1).astype(np.int64)
    return Loads(size, bytes_in, bytes_out)


def skewed(brokers: int, racks: int, partitions: int, seed: int = 1) -> tuple[Assignment, list[Broker], Loads]:
    """A layout that is even by count, RF 3, and not by load."""
    layout = even_layout(brokers, racks, partitions, 3)
    return layout, racked(brokers, racks), lognormal_loads(brokers, partitions, 3, seed)


def small(seed: int) -> tuple[Assignment, list[Broker], Loads]:
    """36 partitions, RF 3, at random on 6 brokers in 3 racks, one replica a rack."""
    rng = np.random.default_rng(seed)
    rows = [(f"t{p // 12}", p % 12, [int(r + 3 * rng.integers(2)) for r in rng.permutation(3)]) for p in range(36)]
    size = np.maximum(1, np.exp(rng.normal(0, 0.6, 36)) * 100).astype(np.int64)
    bytes_in = np.maximum(1, size * np.exp(rng.normal(0, 0.3, 36))).astype(np.int64)
    bytes_out = np.maximum(1, bytes_in * np.exp(rng.normal(0, 0.3, 36))).astype(np.int64)
    return Assignment.from_rows(rows), racked(6, 3), Loads(size, bytes_in, bytes_out)
