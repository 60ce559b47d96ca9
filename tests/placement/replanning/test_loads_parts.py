"""The parts of planning by load, each beside a plainer way to the same."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from placement import Assignment, Band, Broker, Loads, PartitionLoad, replan, verify
from placement.loads.model import WEIGHTS
from placement.replanning.by_load.bound import Held, shed
from placement.replanning.by_load.field import Field
from placement.replanning.by_load.share import Share
from tests.load_clusters import skewed

GB = 10**9


def lightest(size: list[int], weight: list[int], need: int) -> int:
    """The fewest bytes of whole partitions that weigh enough, by trying all."""
    sets = (c for n in range(len(size) + 1) for c in combinations(range(len(size)), n))
    return min((sum(size[i] for i in c) for c in sets if sum(weight[i] for i in c) >= need), default=sum(size))


@pytest.mark.parametrize("seed", range(40))
def test_what_a_broker_must_give_up_is_what_trying_all_sets_of_replicas_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, taken = rng.integers(1, 100, (2, 9))
    follower = Loads(size, taken, taken).follower()
    load = follower.sum(axis=1)[:, None].astype(np.float64)
    high = np.full(load.shape, np.inf)
    need = int(rng.integers(1, taken.sum()))
    high[WEIGHTS.index("bytes_in")] = taken.sum() - need
    held = Held(np.arange(9), np.zeros(9, np.int64))
    assert int(shed(held, follower, load, high).sum()) == lightest(size.tolist(), taken.tolist(), need)


def test_a_broker_alone_costs_what_it_does_among_others_to_the_last_bit() -> None:
    rng = np.random.default_rng(1)
    share = rng.integers(50, 150, (6, 200)).astype(np.float64)
    band = Share(share, np.ceil(share * 0.91), np.floor(share * 1.09), np.where(share > 100, share * 1.2, np.inf))
    load = rng.integers(0, 200, (6, 200)).astype(np.float64)
    field = Field(band, load, np.array([100.0, 1, 1, 1, 7, 1]))
    cost, far = field.near(np.arange(200), load)
    alone = [field.alone(b, load[:, b].tolist()) for b in range(200)]
    assert alone == list(zip(cost.tolist(), far.tolist(), strict=True))
    assert field.cost.tolist() == cost.tolist()


def test_leaderships_are_traded_where_giving_one_away_would_upset_the_counts() -> None:
    layout = Assignment.from_topics({"t": [[1, 2], [1, 2], [2, 1], [2, 1]]})
    measured = [PartitionLoad("t", p, GB, 100, read) for p, read in enumerate([95, 95, 5, 5])]
    loads = Loads.of(layout, measured)
    plan = replan(layout, [Broker(1), Broker(2)], mode="rebalance", loads=loads, band=Band(exact_counts=True))
    assert plan.loads is not None
    assert plan.loads.before[WEIGHTS.index("bytes_out")].tolist() == [190, 10]
    assert plan.loads.after[WEIGHTS.index("bytes_out")].tolist() == [100, 100]
    assert plan.loads.after[WEIGHTS.index("leaders")].tolist() == [2, 2]
    assert plan.loads.moved_bytes == 0


@pytest.mark.parametrize("seed", [21, 23])
@pytest.mark.parametrize(("exact_counts", "at_most"), [(False, 1.06), (True, 1.10)])
def test_sixty_brokers_come_close_to_the_bound(seed: int, exact_counts: bool, at_most: float) -> None:
    layout, brokers, loads = skewed(60, 5, 10_000, seed)
    plan = replan(layout, brokers, mode="rebalance", loads=loads, band=Band(exact_counts=exact_counts))
    assert verify(plan)
    assert plan.loads is not None
    assert max(plan.loads.residuals().values()) == 0
    assert plan.loads.moved_bytes <= at_most * plan.loads.lower_bound_bytes


def test_a_partition_that_no_broker_can_lead_within_its_band_ends_the_search_soon() -> None:
    layout, brokers, loads = skewed(12, 3, 600)
    loads.bytes_out[0] = 2 * loads.bytes_out.sum() // 12
    plan = replan(layout, brokers, mode="rebalance", loads=loads)
    assert verify(plan)
    assert plan.loads is not None
    assert plan.loads.residuals()["bytes_out"] > 0
    assert plan.loads.residuals()["disk"] == 0
    assert plan.loads.moved_bytes <= 0.05 * int(loads.size.sum()) * 3
