"""Moves and versions go into Arrow and come back the same; the state is their fold."""

from __future__ import annotations

import random
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import Assignment, Broker, ReplicaCounts, replan
from streaming.planning.state import ClusterState
from streaming.record.moves import (
    MOVE_TYPE,
    TopicMoves,
    digest,
    from_arrow,
    moved_replicas,
    moves_of,
    no_replicas,
    to_arrow,
)
from streaming.record.rows import versions_from_arrow, versions_to_arrow
from streaming.record.schemas import PLANS, TABLES, columns_ddl, sql_type
from streaming.record.version import PlanVersion
from tests.histories import random_history
from tests.streaming.driving import Driver

replica_lists = st.lists(st.integers(0, 9), max_size=4, unique=True)
rows = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 5)), st.tuples(replica_lists, replica_lists)
)


def blocks(changes: dict[tuple[str, int], tuple[list[int], list[int]]]) -> list[TopicMoves]:
    found = []
    for topic in sorted({topic for topic, _ in changes}):
        ids = sorted(p for t, p in changes if t == topic)
        matrices = []
        for side in (0, 1):
            lists = [changes[topic, p][side] for p in ids]
            width = max(map(len, lists))
            padded = [[*replicas, *[-1] * (width - len(replicas))] for replicas in lists]
            matrices.append(np.array(padded, np.int32).reshape(len(ids), width))
        found.append(TopicMoves(topic, np.array(ids, np.int32), *matrices, [f"why {p}" for p in ids]))
    return found


@given(rows)
def test_moves_come_back_from_arrow(changes: dict[tuple[str, int], tuple[list[int], list[int]]]) -> None:
    moves = blocks(changes)
    array = to_arrow(moves)
    assert array.type == MOVE_TYPE
    assert [(m.topic, list(m.rows())) for m in from_arrow(array)] == [(m.topic, list(m.rows())) for m in moves]
    assert array.to_pylist() == [
        {"topic": m.topic, "partition": p, "before": old, "after": new, "reason": reason}
        | {"wave": None, "leader": None, "isr": None, "end_offsets": None, "log_dirs": None}
        for m in moves
        for p, old, new, reason in m.rows()
    ]


@given(rows, st.randoms(use_true_random=False))
def test_the_digest_is_of_the_change_and_not_of_its_order(
    changes: dict[tuple[str, int], tuple[list[int], list[int]]], shuffle: random.Random
) -> None:
    moves = blocks(changes)
    mixed = list(moves)
    shuffle.shuffle(mixed)
    assert digest(mixed) == digest(moves)
    assert digest(from_arrow(to_arrow(moves))) == digest(moves)


def test_the_digest_is_the_one_of_the_core() -> None:
    layout = Assignment.from_topics({"t": [[1, 2], [2, 3], [3, 1]], "u": [[3, 2]]})
    plan = replan(layout, [Broker(1), Broker(2), Broker(3, state="dead"), Broker(4)])
    moves = moves_of(plan)
    assert digest(moves) == plan.digest
    assert moved_replicas(moves) == plan.moved_replicas == 3
    assert [(m.topic, list(m.rows())) for m in moves] == [
        (topic, [(m.partition, list(m.before), list(m.after), m.reason) for m in plan.moves if m.topic == topic])
        for topic in ("t", "u")
    ]


@pytest.fixture
def journal() -> list[PlanVersion]:
    driver = Driver('[policy]\napproval = ["rebalance"]\n')
    driver.racks({"a": [1, 2], "b": [3, 4], "c": [5, 6]})
    driver.batch(
        driver.event("topic_created", topic="t", partitions=6, replication_factor=3),
        driver.event("topic_created", topic="m", replica_assignment={"4": [1, 3], "9": [5, 2]}),
        driver.event("topic_created", topic="gone"),
    )
    driver.batch(driver.event("broker_left", broker_id=3, reason="failed", minute=1))
    driver.batch(driver.event("topic_deleted", topic="gone", minute=2), minute=2)
    driver.batch(minute=60)
    driver.batch(driver.event("broker_joined", broker_id=7, rack="b", minute=61))
    driver.batch(driver.event("replication_factor_changed", topic="t", replication_factor=2, minute=62))
    driver.batch(driver.event("rebalance_requested", minute=63))
    return driver.journal


def facts(state: ClusterState) -> dict[str, object]:
    return {
        "version": state.version,
        "brokers": state.brokers,
        "topics": {
            name: (topic.partitions.tolist(), topic.replicas.tolist(), topic.strategy)
            for name, topic in sorted(state.topics.items())
        },
        "seen": state.seen,
        "clocks": state.clocks,
        "load": [state.counts.ids.tolist(), state.counts.replicas.tolist(), state.counts.leaders.tolist()],
        "proposal": state.proposal and (state.proposal.plan_version, state.proposal.digest),
    }


def fold(versions: list[PlanVersion]) -> ClusterState:
    state = ClusterState("c")
    for version in versions:
        state.fold(version)
    return state


def test_versions_come_back_from_arrow(journal: list[PlanVersion]) -> None:
    table = versions_to_arrow(journal, "app", 7)
    assert table.schema == PLANS.schema
    back = list(versions_from_arrow(table))
    for old, new in zip(journal, back, strict=True):
        for field in fields(PlanVersion):
            if field.name != "moves":
                assert getattr(new, field.name) == getattr(old, field.name), field.name
        assert digest(new.moves) == digest(old.moves)


def test_the_state_after_a_reload_is_the_state_that_planned(journal: list[PlanVersion]) -> None:
    kinds = [version.kind for version in journal]
    assert kinds == [
        "membership",
        "topics",
        "membership",
        "topics",
        "heal",
        "membership",
        "replication_factor",
        "rebalance",
    ]
    direct = fold(journal)
    reloaded = fold(list(versions_from_arrow(versions_to_arrow(journal, "app", 1))))
    assert facts(reloaded) == facts(direct)
    assert direct.proposal is not None


def test_folding_again_from_any_version_changes_nothing(journal: list[PlanVersion]) -> None:
    """A projection may be ahead of the version that it is believed to have."""
    whole = facts(fold(journal))
    for start in range(len(journal)):
        state = fold(journal)
        for version in journal[start:]:
            state.fold(version)
        assert facts(state) == whole


def test_every_column_has_a_sql_type() -> None:
    for table in TABLES:
        assert columns_ddl(table).count("`") == 2 * len(table.schema)
    moves = sql_type(PLANS.schema.field("moves").type)
    assert moves.startswith("array<struct<topic: string, partition: int, before: array<int>, after: array<int>,")


def test_a_move_without_partitions_has_columns_all_the_same() -> None:
    empty = TopicMoves("t", np.zeros(0, np.int32), no_replicas(0), no_replicas(0), [])
    assert to_arrow([empty]).to_pylist() == []
    assert to_arrow([]).to_pylist() == []
    assert isinstance(to_arrow([]), pa.StructArray)


def test_a_topic_created_deleted_and_created_again_in_one_version_counts_once() -> None:
    driver = Driver()
    driver.batch(*(driver.event("broker_joined", broker_id=b) for b in range(3)))
    created = {"topic": "t", "partitions": 4, "replication_factor": 2}
    driver.batch(
        driver.event("topic_created", **created),
        driver.event("topic_deleted", topic="t", minute=1),
        driver.event("topic_created", **created, minute=2),
    )
    (_, version) = versions_from_arrow(versions_to_arrow(driver.journal, "app", 1))
    assert [block.partitions.tolist() for block in version.moves] == [[0, 1, 2, 3]] * 3
    assert fold([driver.journal[0], version]).counts.replicas.sum() == 8


@pytest.mark.parametrize("seed", range(100, 150))
def test_what_is_read_from_the_journal_is_what_memory_holds(seed: int) -> None:
    driver = Driver("[policy]\napproval = []\n")
    for lines in random_history(seed):
        driver.batch(*lines)
    read = Driver()
    read.journal = list(versions_from_arrow(versions_to_arrow(driver.journal, "app", 1)))
    read.quarantine = driver.quarantine
    for name, state in driver.memory.clusters.items():
        again = read.memory.cluster(name)
        assert facts(again) == facts(state)
        assert loads_of(again.counts) == loads_of(ReplicaCounts.of(again.assignment()))


def loads_of(load: ReplicaCounts) -> dict[int, tuple[int, int]]:
    rows = zip(load.ids.tolist(), load.replicas.tolist(), load.leaders.tolist(), strict=True)
    return {broker: (replicas, leaders) for broker, replicas, leaders in rows if replicas}
