"""Partitions that need more brokers than there are: the others are healed, these keep what they have and are named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from placement import Assignment, Broker, Loads, PartitionLoad, Replan, Unhealed, replan, verify
from placement.model import NO_BROKER
from placement.terms import Mode
from tests.clusters import in_state, racked

Brokers = list[Broker]


def _brokers(states: str) -> Brokers:
    """Brokers 1, 2, ...: a for alive, d for draining, x for dead, - for gone."""
    names = {"a": "alive", "d": "draining", "x": "dead"}
    return [Broker(i, state=names[s]) for i, s in enumerate(states, start=1) if s != "-"]  # type: ignore[arg-type]


WAITING = {
    # name: (brokers, excluded, replicas of t-0, t-1, ..., the same after, which wait with how many brokers)
    "one topic does not hold up the others": (
        "aaaax",
        [],
        [[5, 1, 2, 3, 4], [1, 5], [5, 2]],
        [[5, 1, 2, 3, 4], [1, 3], [4, 2]],
        {0: 4},
    ),
    "what there is room for is copied": ("axxa", [], [[1, 2, 3]], [[1, 4, 2]], {0: 2}),
    "a copy that drains stays longest": ("adxa", [], [[1, 2, 3]], [[1, 4, 2]], {0: 2}),
    "no replica list names a new and a gone broker": ("a--a", [], [[1, 2, 3]], [[1, 2, 3]], {0: 2}),
    "nor does another lead where a gone broker did": ("--a--a", [], [[1, 3, 2]], [[1, 3, 2]], {0: 2}),
    "a failed broker keeps its copy": ("axxaa", [2], [[1, 2, 3]], [[1, 2, 4]], {}),
}


@pytest.mark.parametrize("mode", ["heal", "rebalance"])
@pytest.mark.parametrize("name", WAITING)
def test_what_waits_keeps_what_it_has_and_is_named(name: str, mode: Mode) -> None:
    states, excluded, before, after, waiting = WAITING[name]
    layout = Assignment.from_topics({"t": before})
    plan = replan(layout, _brokers(states), mode=mode, exclude_brokers=excluded)
    found = [set(replicas) for _, _, replicas in plan.assignment.rows()]
    assert [len(replicas) for replicas in found] == [len(row) for row in before]
    if len(before) == 1:
        assert found == [set(row) for row in after]
    assert plan.unhealed == tuple(Unhealed("t", p, len(before[p]), brokers) for p, brokers in waiting.items())
    assert plan.summary()["unhealed"] == [
        {"topic": "t", "partition": p, "needed": len(before[p]), "brokers": brokers} for p, brokers in waiting.items()
    ]
    assert verify(plan), verify(plan).violations


def test_a_whole_heal_beside_a_topic_that_waits() -> None:
    states, _, before, after, _ = WAITING["one topic does not hold up the others"]
    plan = replan(Assignment.from_topics({"t": before}), _brokers(states))
    assert [set(move.after) for move in plan.moves if move.partition] == [set(row) for row in after[1:]]
    assert plan.moved_replicas == plan.lower_bound == 2
    assert plan.optimal


def test_the_check_finds_what_could_have_been_healed_and_what_is_not_named() -> None:
    layout = Assignment.from_topics({"t": [[1, 2, 3], [1, 2]]})
    plan = replan(layout, _brokers("axa"))
    kept = replan(layout, _brokers("axa"), exclude_topics=["t"])
    unnamed = replace(plan, unhealed=())
    unhealed = replace(kept, terms=plan.terms, unhealed=plan.unhealed)
    assert [str(v) for v in verify(unnamed).violations] == [
        "the partitions that are said not to be healed are not those that are not"
    ]
    assert [str(v) for v in verify(unhealed).violations] == [
        "partition t-1 keeps a lost replica that a broker could take"
    ]


def _clusters(count: int) -> Iterator[tuple[int, np.random.Generator, Brokers, Assignment, dict[str, object]]]:
    """Small clusters with factors up to all brokers, some brokers dead, draining, gone, failed or excluded."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 7))
        brokers = racked(n, int(rng.integers(1, 4)))
        rows = [
            (f"t{t}", p, rng.choice(n, int(rng.integers(1, n + 1)), replace=False).tolist())
            for t in range(3)
            for p in range(int(rng.integers(1, 5)))
        ]
        for state in ("dead", "draining"):
            brokers = in_state(brokers, rng.choice(n, int(rng.integers(0, 2)), replace=False).tolist(), state)
        brokers = [b for b in brokers if b.state != "dead" or rng.random() < 0.7]
        brokers += [Broker(n + i, "r000") for i in range(int(rng.integers(0, 2)))]
        alive = [b.id for b in brokers if b.state == "alive"]
        if len(alive) < 2:
            continue
        held = [b for b in alive[1:] if rng.random() < 0.2]
        excluded = ["t0"] if rng.random() < 0.2 else []
        yield seed, rng, brokers, Assignment.from_rows(rows), {"exclude_brokers": held, "exclude_topics": excluded}


def _check(seed: int, plan: Replan) -> None:
    """Everything that can be healed is healed, and what waits is what too few brokers can take."""
    terms = plan.terms
    takers = {b.id for b in terms.brokers if b.state == "alive"} - terms.exclude_brokers
    waiting = {(one.topic, one.partition): one for one in plan.unhealed}
    assert verify(plan), f"seed {seed}: {verify(plan).violations}"
    for (topic, partition, before), (_, _, after) in zip(plan.before.rows(), plan.assignment.rows(), strict=True):
        place = f"seed {seed}: {topic}-{partition} {before} -> {after}"
        lost = set(after) - takers - terms.exclude_brokers
        room = len(takers) + len(set(before) & terms.exclude_brokers)
        assert len(after) == len(before), place
        if topic in terms.exclude_topics:
            assert after == before, place
            continue
        assert lost <= set(before), place
        assert ((topic, partition) in waiting) == bool(lost) == (len(before) > room), place
        if lost:
            assert waiting[topic, partition] == Unhealed(topic, partition, len(before), room), place
            known = {b.id for b in terms.brokers}
            assert takers <= set(after) or (after == before and not lost <= known), place


@pytest.mark.parametrize("mode", ["heal", "rebalance"])
def test_all_that_can_be_healed_is_healed(mode: Mode) -> None:
    waited = 0
    for seed, _, brokers, layout, terms in _clusters(100):
        plan = replan(layout, brokers, mode=mode, **terms)  # type: ignore[arg-type]
        _check(seed, plan)
        waited += bool(plan.unhealed) and bool(plan.moved_replicas)
        again = replan(plan.assignment, brokers, mode=mode, **terms)  # type: ignore[arg-type]
        assert again.moved_replicas == 0, f"seed {seed}"
        assert again.unhealed == plan.unhealed, f"seed {seed}"
        more = [*brokers, *(Broker(100 + i, "r000") for i in range(6))]
        healed = replan(plan.assignment, more, mode=mode, **terms)  # type: ignore[arg-type]
        _check(seed, healed)
        assert not healed.unhealed, f"seed {seed}"
    assert waited > 10


@pytest.mark.parametrize("mode", ["heal", "rebalance"])
def test_by_load_as_well(mode: Mode) -> None:
    for seed, rng, brokers, layout, terms in _clusters(25):
        sizes = [PartitionLoad(t, p, int(rng.integers(1, 1000)), 1, 1) for t, p, _ in layout.rows()]
        loads = Loads.of(layout, sizes)
        plan = replan(layout, brokers, mode=mode, loads=loads, **terms)  # type: ignore[arg-type]
        _check(seed, plan)
        assert all(b != NO_BROKER for move in plan.moves for b in move.after)


@pytest.mark.parametrize("mode", ["heal", "rebalance"])
def test_a_budget_names_what_waits_all_the_same(mode: Mode) -> None:
    for seed, rng, brokers, layout, terms in _clusters(50):
        budget = int(rng.integers(0, 6))
        plan = replan(layout, brokers, mode=mode, max_moves=budget, **terms)  # type: ignore[arg-type]
        assert verify(plan), f"seed {seed}: {verify(plan).violations}"
        assert plan.unhealed == replan(layout, brokers, mode=mode, **terms).unhealed  # type: ignore[arg-type]
