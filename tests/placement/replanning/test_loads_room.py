"""Heals by load for which brokers have not enough room: what fits is healed, the rest is named with a limit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placement import Assignment, Broker, Limits, Loads, LogDir, Replan, Unhealed, replan, verify
from placement.errors import PlacementError
from tests.clusters import in_state, racked


def tight(seed: int) -> tuple[Assignment, list[Broker], Loads]:
    """A broker lost, and disks, directories or CPU of some others nearly used up."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    brokers, factor = racked(n, int(rng.integers(1, 4))), int(rng.integers(1, min(3, n - 1) + 1))
    rows = [
        (f"t{p % 3}", p // 3, rng.choice(n, factor, replace=False).tolist()) for p in range(int(rng.integers(3, 30)))
    ]
    size = (np.exp(rng.normal(0, 1, len(rows))) * 1e4).astype(np.int64) + 1
    mean = int(size.sum()) * factor // n
    limits = {}
    for broker in brokers:
        kind = rng.random()
        if kind < 0.4:
            limits[broker.id] = Limits(disk=int(mean * rng.uniform(0.5, 1.6)))
        elif kind < 0.7:
            dirs = LogDir("/a", int(mean * rng.uniform(0.02, 0.6))), LogDir("/b", mean // 5, int(mean * 0.1))
            limits[broker.id] = Limits(log_dirs=dirs)
        elif kind < 0.9:
            limits[broker.id] = Limits(cpu=int(mean * 85 * rng.uniform(0.1, 1.5)))
    lost = in_state(brokers, [int(rng.integers(n))], "dead" if rng.random() < 0.5 else "draining")
    return Assignment.from_rows(rows), lost, Loads(size, size, size * 2, limits)


def test_what_fits_is_healed_and_what_does_not_is_named() -> None:
    """Broker 2 has room for the partition of 40 bytes, not for the one of 70 beside it."""
    layout = Assignment.from_topics({"t": [[1, 3], [1, 3], [2, 3]]})
    brokers = in_state(racked(4, 1)[1:], [1], "dead")
    size = np.array([40, 70, 10], np.int64)
    loads = Loads(size, size, size, {2: Limits(disk=60)})
    plan = replan(layout, brokers, loads=loads)
    assert [replicas for _, _, replicas in plan.assignment.rows()] == [(3, 2), (1, 3), (2, 3)]
    limit = "broker 2 would end with disk 80, above its limit of 60"
    assert plan.unhealed == (Unhealed("t", 1, 2, 1, limit),)
    assert plan.summary()["unhealed"] == [{"topic": "t", "partition": 1, "needed": 2, "brokers": 1, "limit": limit}]
    assert verify(plan), verify(plan).violations
    assert replan(plan.assignment, brokers, loads=loads).unhealed[0].partition == 1


def test_the_check_finds_what_is_not_named() -> None:
    layout = Assignment.from_topics({"t": [[1, 3], [2, 3]]})
    brokers = in_state(racked(4, 1)[1:], [1], "dead")
    size = np.array([70, 10], np.int64)
    plan = replan(layout, brokers, loads=Loads(size, size, size, {2: Limits(disk=60)}))
    assert verify(plan)
    for unhealed in ((), (replace(plan.unhealed[0], limit=""),)):
        assert not verify(replace(plan, unhealed=unhealed))


def left_lost(plan: Replan) -> set[tuple[str, int]]:
    alive = {b.id for b in plan.terms.brokers if b.state == "alive"}
    return {(topic, partition) for topic, partition, replicas in plan.assignment.rows() if set(replicas) - alive}


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_no_heal_breaks_a_limit_and_each_partition_is_healed_or_named(first: int) -> None:
    some = 0
    for seed in range(first, first + 30):
        layout, brokers, loads = tight(seed)
        try:
            plan = replan(layout, brokers, loads=loads)
        except PlacementError:  # too few brokers are left
            continue
        assert verify(plan), f"seed {seed}: {verify(plan).violations}"
        assert {(one.topic, one.partition) for one in plan.unhealed} == left_lost(plan), f"seed {seed}"
        some += bool(plan.unhealed) and bool(len(plan.moves))
    assert some > 3
