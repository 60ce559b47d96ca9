"""Clusters whose partitions differ in load, for tests and benchmarks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from placement import Assignment, Band, Broker, Limits, Loads, LogDir
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


def noisy(loads: Loads, seed: int, kind: Literal["uniform", "normal"]) -> Loads:
    """Every number at most a fifth off, each as likely, or a fifth off by standard deviation."""
    rng, shape = np.random.default_rng(seed), (3, loads.size.size)
    factor = rng.uniform(0.8, 1.2, shape) if kind == "uniform" else np.maximum(rng.normal(1.0, 0.2, shape), 0.05)
    columns = (loads.size, loads.bytes_in, loads.bytes_out)
    return Loads(*((c * f).astype(np.int64) for c, f in zip(columns, factor, strict=True)))


@dataclass(frozen=True)
class LoadCase:
    """A small random cluster with loads, given by its seed, and what else ``replan`` is asked."""

    layout: Assignment
    brokers: list[Broker]
    loads: Loads
    options: dict[str, Any]


def wild(seed: int) -> LoadCase:
    """Unequal and missing brokers, odd racks, limits and disks, hot leaders; many bands are out of reach."""
    rng = np.random.default_rng(seed)
    n, racks = int(rng.integers(3, 9)), int(rng.integers(1, 5))
    capacity = rng.choice([1.0, 1.5, 2.0], n) if rng.random() < 0.4 else np.ones(n)
    brokers = [Broker(b, f"r{b % racks}", float(capacity[b])) for b in range(n)]
    if rng.random() < 0.3:
        lost = int(rng.integers(n))
        brokers[lost] = replace(brokers[lost], state="draining" if rng.random() < 0.5 else "dead")
    hosts = n - 1 if rng.random() < 0.3 else n
    factor, partitions = int(rng.integers(1, min(3, hosts) + 1)), int(rng.integers(6, 40))
    rows = [(f"t{p % 4}", p // 4, rng.choice(hosts, factor, replace=False).tolist()) for p in range(partitions)]
    size = np.maximum(np.exp(rng.normal(0, rng.choice([0.3, 1.0, 2.0]), partitions)) * 1e6, 1).astype(np.int64)
    bytes_in = np.maximum(size * np.exp(rng.normal(0, 0.5, partitions)), 1).astype(np.int64)
    bytes_out = (bytes_in * np.exp(rng.normal(0, 1, partitions))).astype(np.int64)
    if rng.random() < 0.3:
        bytes_out[0] = int(rng.integers(1, 4)) * bytes_out.sum() // n
    settle = float(rng.choice([0.02, 0.09, 0.2]))
    options: dict[str, Any] = {
        "mode": "heal" if rng.random() < 0.2 else "rebalance",
        "band": Band(settle, max(settle, 0.15), exact_counts=bool(rng.random() < 0.3)),
        "leaders": "keep" if rng.random() < 0.2 else "even",
    }
    if rng.random() < 0.3:
        options["exclude_brokers"] = [int(rng.integers(n))]
    if rng.random() < 0.3:
        options["exclude_topics"] = ["t3"]
    if rng.random() < 0.3:
        options["keep_off"] = {"t0": [int(rng.integers(n))]}
    disk = int(size.sum()) * factor // n
    limits = {b: Limits(disk=int(disk * rng.uniform(1.0, 2.0))) for b in range(n) if rng.random() < 0.3}
    if rng.random() < 0.3:
        limits[0] = Limits(log_dirs=(LogDir("/a", 4 * disk), LogDir("/b", 4 * disk, disk)))
    return LoadCase(Assignment.from_rows(rows), brokers, Loads(size, bytes_in, bytes_out, limits), options)
