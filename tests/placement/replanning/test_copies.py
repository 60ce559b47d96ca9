"""No plan gives up data: what stays where a replication factor is lowered, and that the check sees it by itself."""

from __future__ import annotations

import numpy as np
import pytest

from placement import Assignment, Broker, Change, InvalidReplicationFactorError, replan, verify, verify_moves
from placement.model import NO_BROKER, Int32Array
from tests.clusters import Case, random_case


def _brokers(states: str) -> list[Broker]:
    """Brokers 1, 2, ...: a for alive, d for draining, x for dead."""
    return [Broker(i, state={"a": "alive", "d": "draining", "x": "dead"}[s]) for i, s in enumerate(states, start=1)]  # type: ignore[arg-type]


LOWERED = {
    # name: (states, excluded, replicas, in sync where it is known, factor, replicas after)
    "the copy on a failed broker goes first": ("ax", [2], [1, 2], None, 1, [1]),
    "also where it leads": ("ax", [2], [2, 1], None, 1, [1]),
    "more failed brokers than the new factor": ("axxa", [2, 3], [1, 2, 3], None, 1, [1]),
    "a replica outside the ISR goes before one in it": ("aaa", [], [1, 2, 3], [2, 3], 2, [2, 3]),
    "a failed one goes before one that lags": ("axa", [2], [1, 2, 3], [1], 2, [1, 3]),
    "an excluded broker keeps its own": ("aaa", [1], [1, 2, 3], None, 1, [1]),
    "an excluded broker that lags does not": ("aa", [1], [1, 2], [2], 1, [2]),
    "excluded brokers give up where there are no others": ("aaaa", [1, 2, 3], [1, 2, 3], None, 2, 2),
    "what drains is copied, not what has failed kept": ("daxa", [3], [1, 2, 3], None, 2, [2, 4]),
}


@pytest.mark.parametrize("name", LOWERED)
def test_what_stays_where_a_factor_is_lowered(name: str) -> None:
    states, excluded, replicas, in_sync, factor, expected = LOWERED[name]
    plan = replan(
        Assignment.from_topics({"t": [replicas]}),
        _brokers(states),
        exclude_brokers=excluded,
        replication_factors={"t": factor},
        in_sync=None if in_sync is None else np.array([in_sync], np.int32),
    )
    after = plan.assignment.replicas_of(0)
    assert len(after) == expected if isinstance(expected, int) else list(after) == expected
    assert plan.optimal
    assert verify(plan)


REFUSED = {
    "no copy is up": ("xxa", [1, 2], [1, 2], None, "partition t-0 has no replica in sync"),
    "no copy is in sync": ("aaa", [], [1, 2], [NO_BROKER], "partition t-0 has no replica in sync"),
    "the one in sync drains": (
        "daa",
        [],
        [1, 2],
        [1],
        "partition t-0 would lose a replica that is in sync and keep one that is not",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_factor_is_not_lowered_where_that_costs_data(name: str) -> None:
    states, excluded, replicas, in_sync, problem = REFUSED[name]
    with pytest.raises(InvalidReplicationFactorError) as caught:
        replan(
            Assignment.from_topics({"t": [replicas]}),
            _brokers(states),
            exclude_brokers=excluded,
            replication_factors={"t": 1},
            in_sync=None if in_sync is None else np.array([in_sync], np.int32),
        )
    assert str(caught.value) == (
        f"{problem}: its replication factor of 2 cannot be lowered until its replicas have caught up"
    )


UNSAFE = {
    # name: (states, excluded, before, after, in sync where it is known)
    "the last live replica goes": ("ax", [2], [1, 2], [2], None),
    "the last one in sync goes": ("aaa", [], [1, 2, 3], [2, 3], [1]),
    "one in sync goes and one that lags stays": ("aaa", [], [1, 2, 3], [1, 3], [1, 2]),
}


@pytest.mark.parametrize("name", UNSAFE)
def test_the_check_refuses_by_itself_what_gives_up_data(name: str) -> None:
    states, excluded, before, after, in_sync = UNSAFE[name]
    column = np.zeros(1, np.int32)
    change = Change(("t",), column, column, np.array([before], np.int32), np.array([after], np.int32))
    known = None if in_sync is None else np.array([in_sync], np.int32)
    result = verify_moves(
        change,
        _brokers(states),
        exclude_brokers=excluded,
        replication_factors={"t": len(after)},
        in_sync=known,
    )
    assert "gives up a replica that is in sync and keeps one that is not" in "; ".join(map(str, result.violations))


def test_the_check_counts_new_replicas_as_copies() -> None:
    column = np.zeros(1, np.int32)
    change = Change(("t",), column, column, np.array([[1, 2]], np.int32), np.array([[2, 3]], np.int32))
    assert verify_moves(change, _brokers("daa"), in_sync=np.array([[1]], np.int32))


def test_the_check_answers_where_no_broker_is_left() -> None:
    column = np.zeros(1, np.int32)
    change = Change(("t",), column, column, np.array([[1, 2]], np.int32), np.array([[2, 3]], np.int32))
    assert "is placed on a broker that is not alive" in str(verify_moves(change, []).violations[0])


def _in_sync(case: Case, held: list[int], rng: np.random.Generator) -> Int32Array:
    """An ISR for every partition: some of its replicas on brokers that are up, at times none."""
    down = {b.id for b in case.brokers if b.state == "dead"} | set(held)
    known = {b.id for b in case.brokers}
    replicas = case.layout.replicas
    up = np.isin(replicas, sorted(known - down))
    return np.where(up & (rng.random(replicas.shape) < 0.7), replicas, NO_BROKER).astype(np.int32)


@pytest.mark.parametrize("mode", ["heal", "rebalance"])
def test_random_clusters_never_give_up_data(mode: str) -> None:
    planned = refused = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        case = random_case(seed)
        alive = [b.id for b in case.brokers if b.state == "alive"]
        held = rng.choice(alive, int(rng.integers(0, max(1, len(alive) - 1))), replace=False).tolist()
        failed = [b for b in held if rng.random() < 0.6]
        in_sync = _in_sync(case, failed, rng)
        factors = {t: int(rng.integers(1, 4)) for t in case.layout.topics}
        try:
            plan = replan(
                case.layout,
                case.brokers,
                mode=mode,  # type: ignore[arg-type]
                exclude_brokers=held,
                replication_factors=factors,
                in_sync=in_sync,
            )
        except InvalidReplicationFactorError:
            refused += 1
            continue
        planned += 1
        assert verify(plan), f"seed {seed}: {verify(plan).violations}"
        for row, (topic, partition, after) in enumerate(plan.assignment.rows()):
            before, safe = set(case.layout.replicas_of(row)), set(in_sync[row].tolist()) - {NO_BROKER}
            place = f"seed {seed}: {topic}-{partition} {sorted(before)} {sorted(safe)} -> {after}"
            assert len(after) == factors[topic], place
            if safe and set(after) <= before:
                assert safe & set(after), place
            if set(after) <= before and safe - set(after):
                assert set(after) <= safe, place
    assert min(planned, refused) > 25
