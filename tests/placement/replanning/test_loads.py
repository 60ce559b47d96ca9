"""Planning by load: against an exact solver, on random clusters, again and again, in any order."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from placement import Assignment, Band, Broker, Limits, Loads, LogDir, PartitionLoad, Replan, replan, verify
from tests.clusters import in_state, random_case
from tests.load_clusters import skewed, small
from tests.placement.load_oracle import fewest_bytes


def by_load(layout: Assignment, brokers: list[Broker], loads: Loads, **options: object) -> Replan:
    plan = replan(layout, brokers, loads=loads, **options)  # type: ignore[arg-type]
    assert not verify(plan).violations
    return plan


def moved(plan: Replan) -> int:
    assert plan.loads is not None
    return plan.loads.moved_bytes


SMALL = range(20)
WORST = 1.25


@pytest.fixture(scope="module")
def beside_exact() -> dict[int, float]:
    """Bytes moved, as a multiple of the fewest, by seed."""
    ratios = {}
    for seed in SMALL:
        plan = by_load(*small(seed), mode="rebalance", band=Band(0.15, 0.15))
        assert plan.loads is not None
        fewest = fewest_bytes(plan)
        assert plan.loads.lower_bound_bytes <= fewest <= moved(plan), seed
        ratios[seed] = moved(plan) / fewest if fewest else 1.0 + moved(plan)
    return ratios


def test_bytes_are_close_to_those_of_an_exact_solver_and_never_below_the_bound(beside_exact: dict[int, float]) -> None:
    assert sum(beside_exact.values()) / len(beside_exact) <= 1.05, beside_exact


@pytest.mark.parametrize("seed", SMALL)
def test_no_small_plan_moves_a_quarter_more_than_it_must(beside_exact: dict[int, float], seed: int) -> None:
    assert beside_exact[seed] <= WORST


def test_loads_that_are_all_alike_give_the_plan_by_count() -> None:
    for seed in range(20):
        case = random_case(seed)
        one = np.full(len(case.layout), 7, np.int64)
        for mode in ("heal", "rebalance"):
            options = {"mode": mode, "replication_factors": case.factors}
            by_count = replan(case.layout, case.brokers, **options)  # type: ignore[arg-type]
            plan = by_load(case.layout, case.brokers, Loads(one, one, one), **options)
            assert plan.digest == by_count.digest, (seed, mode)
            assert moved(plan) == 7 * by_count.moved_replicas


def test_random_clusters_get_sound_plans_and_heals_copy_what_was_lost() -> None:
    for seed in range(12):
        case = random_case(seed)
        rng = np.random.default_rng(seed)
        size, taken, given = rng.integers(1, 1000, (3, len(case.layout)))
        loads = Loads(size, taken, given)
        by_load(case.layout, case.brokers, loads, mode="rebalance", replication_factors=case.factors)
        healed = by_load(case.layout, case.brokers, loads)
        alive = {b.id for b in case.brokers if b.state == "alive"}
        lost = sum(
            int(size[row]) * len(set(replicas) - alive) for row, (_, _, replicas) in enumerate(case.layout.rows())
        )
        assert healed.loads is not None
        assert moved(healed) == lost == healed.loads.lower_bound_bytes, seed


def test_a_plan_planned_again_moves_nothing() -> None:
    layout, brokers, loads = skewed(12, 3, 600)
    plan = by_load(layout, brokers, loads, mode="rebalance")
    assert moved(plan) > 0
    again = by_load(plan.assignment, brokers, loads, mode="rebalance")
    assert (len(again.moves), moved(again)) == (0, 0)


def test_every_broker_ends_within_its_band_close_to_the_bound() -> None:
    layout, brokers, loads = skewed(12, 3, 1000)
    for event in (brokers, [*brokers, Broker(50, "r000")]):
        plan = by_load(layout, event, loads, mode="rebalance")
        assert plan.loads is not None
        assert max(plan.loads.residuals().values()) == 0
        assert moved(plan) <= 1.06 * plan.loads.lower_bound_bytes


def test_the_order_of_brokers_and_partitions_does_not_matter() -> None:
    layout, brokers, loads = skewed(12, 3, 300)
    rows = list(layout.rows())
    columns = zip(loads.size.tolist(), loads.bytes_in.tolist(), loads.bytes_out.tolist(), strict=True)
    measured = [PartitionLoad(t, p, *load) for (t, p, _), load in zip(rows, columns, strict=True)]
    expected = by_load(layout, brokers, loads, mode="rebalance").digest
    for seed in range(3):
        shuffle = random.Random(seed).shuffle
        for one in (rows, brokers, measured):
            shuffle(one)
        again = Assignment.from_rows(rows)
        assert by_load(again, brokers, Loads.of(again, measured), mode="rebalance").digest == expected


def test_noise_of_a_fifth_up_or_down_does_not_make_plans() -> None:
    layout, brokers, loads = skewed(12, 3, 1000)
    layout = by_load(layout, brokers, loads, mode="rebalance").assignment
    acted = 0
    for seed in range(50):
        noise = np.random.default_rng(seed).uniform(0.8, 1.2, (3, loads.size.size))
        columns = (loads.size, loads.bytes_in, loads.bytes_out)
        noisy = Loads(*((c * n).astype(np.int64) for c, n in zip(columns, noise, strict=True)))
        plan = by_load(layout, brokers, noisy, mode="rebalance")
        acted += bool(len(plan.moves))
        layout = plan.assignment
    assert acted <= 2


def test_budgets_are_kept() -> None:
    layout, brokers, loads = skewed(12, 3, 300)
    broken = in_state(brokers, [3], "dead")
    for budget in (0, 10**10, 10**12):
        plan = by_load(layout, broken, loads, mode="rebalance", max_bytes=budget)
        assert moved(plan) <= budget
    assert by_load(layout, broken, loads, mode="rebalance", max_moves=9).moved_replicas <= 9


def with_disks(limit: int) -> Replan:
    layout, brokers, loads = skewed(6, 3, 60)
    limits = {4: Limits(log_dirs=(LogDir("/a", limit), LogDir("/b", limit)))}
    return replan(layout, in_state(brokers, [1], "dead"), loads=replace(loads, limits=limits))


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"moved_bytes": 1}, "the plan says 1 bytes move"),
        ({"max_bytes": 5}, "bytes move and 5 may"),
        ({"lower_bound_bytes": 10**15}, "fewer than the certified lower bound"),
        ({"log_dirs": ()}, "names disks for 0"),
    ],
)
def test_a_plan_whose_bytes_were_tampered_with_is_found(changed: dict[str, object], found: str) -> None:
    plan = with_disks(10**15)
    assert plan.loads is not None
    assert verify(plan)
    violations = verify(replace(plan, loads=replace(plan.loads, **changed))).violations  # type: ignore[arg-type]
    assert any(found in str(v) for v in violations), violations


def test_a_disk_that_overflows_and_a_limit_that_is_passed_are_found() -> None:
    """The planner heals within limits; a plan that was made for others does not."""
    full = {4: Limits(log_dirs=(LogDir("/a", 1), LogDir("/b", 1)))}
    assert any("/a of broker 4 ends with" in str(v) for v in verify(made_for(with_disks(10**15), full)).violations)
    tight = {broker: Limits(disk=1) for broker in range(6)}
    crowded = made_for(with_disks(10**15), tight)
    assert any("above its limit of 1" in str(v) for v in verify(crowded).violations)


def made_for(plan: Replan, limits: dict[int, Limits]) -> Replan:
    """The same plan, said to be made for these limits."""
    assert plan.loads is not None
    return replace(plan, loads=replace(plan.loads, given=replace(plan.loads.given, limits=limits)))


def test_a_named_disk_must_be_one_of_the_brokers() -> None:
    plan = with_disks(10**15)
    assert plan.loads is not None
    named = tuple(tuple("/other" if p != "any" else p for p in paths) for paths in plan.loads.log_dirs)
    violations = verify(replace(plan, loads=replace(plan.loads, log_dirs=named))).violations
    assert any("names the disk '/other' of broker 4" in str(v) for v in violations)
