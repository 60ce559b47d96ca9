"""The verifier finds each kind of damage, and nothing in plans that are sound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placement import Assignment, Broker, Change, Replan, replan, verify, verify_moves
from placement.digest import digest_of
from placement.model import NO_BROKER
from placement.plan import REASONS, Moves
from placement.verification.claims import left_lost
from tests.clusters import even_layout, in_state, racked


def _plan() -> Replan:
    brokers = in_state(racked(9, 3), [4], "dead")
    return replan(even_layout(9, 3, 60, 3, per_topic=10), brokers, exclude_topics=["topic-000005"])


def _damaged(plan: Replan, after: np.ndarray, row: int = 0) -> Replan:
    """The plan with another replica list in one move, everything else made to agree with it."""
    moves = plan.moves
    lists = moves.after.copy()
    lists[row] = after
    changed = Moves(moves.topics, moves.row, moves.topic_index, moves.partition, moves.before, lists, moves.reason)
    fresh = changed.new_replicas()
    whole = plan.assignment.replicas.copy()
    whole[moves.row[row]] = after
    layout = object.__new__(Assignment)
    layout.topics, layout.topic_index = plan.before.topics, plan.before.topic_index
    layout.partition, layout.replicas = plan.before.partition, whole
    return replace(
        plan,
        moves=changed,
        assignment=layout,
        moved_replicas=int(fresh.sum()),
        leader_changes=int((moves.before[:, 0] != lists[:, 0]).sum()),
        digest=digest_of(moves.topics, moves.topic_index, moves.partition, moves.before, lists),
    )


def _problems(plan: Replan) -> str:
    result = verify(plan)
    assert not result
    return "; ".join(map(str, result.violations))


def test_a_sound_plan_has_no_violation() -> None:
    result = verify(_plan())
    assert result
    assert result.violations == ()
    assert result.checked == len(_plan().moves)


DAMAGE = {
    "names a broker more than once": lambda old: [old[0], old[0], old[2]],
    "is placed on a broker that is not alive": lambda old: [4, old[1], old[2]],
    "has the wrong number of replicas": lambda old: [old[0], old[1], NO_BROKER],
    "has no replica or a gap": lambda old: [NO_BROKER, old[1], old[2]],
    "breaks its rack window": lambda old: [old[0], (old[0] + 3) % 9, (old[0] + 6) % 9],
}


@pytest.mark.parametrize("problem", DAMAGE)
def test_a_damaged_replica_list_is_found(problem: str) -> None:
    plan = _plan()
    row = next(i for i, move in enumerate(plan.moves) if move.after[0] % 3 != 1)
    damaged = _damaged(plan, np.array(DAMAGE[problem](plan.moves.after[row].tolist()), np.int32), row)
    assert problem in _problems(damaged)


def test_counts_and_digest_are_checked() -> None:
    plan = _plan()
    wrong = plan.moved_replicas + 1
    assert f"{wrong} replicas move and {wrong - 1} do" in _problems(replace(plan, moved_replicas=wrong))
    assert "leaders change" in _problems(replace(plan, leader_changes=plan.leader_changes + 1))
    assert _problems(replace(plan, digest="0" * 64)) == "the digest is not that of the moves"


def test_a_move_of_a_live_replica_is_no_healing() -> None:
    brokers = racked(4, 1)
    plan = replan(Assignment.from_topics({"t": [[0], [0], [1], [2]]}), brokers, mode="rebalance")
    assert plan.moved_replicas == 1
    as_heal = replace(plan, terms=replace(plan.terms, mode="heal"))
    assert "healing moves a replica from a live broker" in _problems(as_heal)


def test_a_heal_that_changes_what_lost_nothing_is_found() -> None:
    brokers = [Broker(0), Broker(1), Broker(2), Broker(3, state="dead")]
    layout = Assignment.from_topics({"t": [[0, 1], [0, 2], [0, 3]]})
    plan = replan(layout, brokers, leaders="everywhere")
    assert [move.partition for move in plan.moves] == [0, 1, 2]
    assert verify(plan)
    asked = replace(plan.terms, leaders="even")
    assert _problems(replace(plan, terms=asked)) == (
        "partition t-0 lost no replica, and healing changes it; partition t-1 lost no replica, and healing changes it"
    )


def test_exclusions_and_the_budget_are_checked() -> None:
    plan = _plan()
    topic = plan.moves[0].topic
    assert f"topic {topic} is excluded and changes" in _problems(
        replace(plan, terms=replace(plan.terms, exclude_topics=frozenset({topic})))
    )
    broker = next(iter(set(plan.moves[0].after) - set(plan.moves[0].before)))
    assert "moves a replica of an excluded broker" in _problems(
        replace(plan, terms=replace(plan.terms, exclude_brokers=frozenset({broker})))
    )
    assert "replicas move and 3 may" in _problems(replace(plan, terms=replace(plan.terms, max_moves=3)))


def test_a_change_outside_the_moves_is_found() -> None:
    plan = _plan()
    quiet = next(i for i in range(len(plan.before)) if i not in set(plan.moves.row.tolist()))
    whole = plan.assignment.replicas[quiet : quiet + 1, ::-1]
    elsewhere = replace(plan, assignment=plan.assignment.with_rows(np.array([quiet]), whole))
    assert _problems(elsewhere) == (
        "the moves are not the partitions that differ between the layouts; "
        "the balance of leaders after is not that of the layout"
    )


FORGED = {
    "the plan says that 18 replicas must move at least, and 17 do": lambda plan: {"lower_bound": 18},
    "the plan calls itself optimal, and moves 17 replicas where its bound is 16": lambda plan: {"lower_bound": 16},
    "the balance of replicas before is not that": lambda plan: {"replicas_before": plan.replicas_after},
    "the balance of replicas after is not that": lambda plan: {"replicas_after": plan.replicas_before},
    "the balance of leaders before is not that": lambda plan: {
        "leaders_before": replace(plan.leaders_before, spread=plan.leaders_before.spread + 0.1)
    },
    "the balance of leaders after is not that": lambda plan: {"leaders_after": plan.replicas_after},
    "gives the reason 'spread', and that is not so": lambda plan: {
        "moves": replace(plan.moves, reason=np.full_like(plan.moves.reason, REASONS.index("spread")))
    },
}


@pytest.mark.parametrize("problem", FORGED)
def test_what_a_plan_says_of_itself_is_checked(problem: str) -> None:
    plan = _plan()
    assert (plan.moved_replicas, plan.lower_bound, plan.optimal) == (17, 17, True)
    assert problem in _problems(replace(plan, **FORGED[problem](plan)))


def test_what_a_plan_leaves_out_is_found() -> None:
    """A move less than there could be, everything else made to agree with it; a budget may."""
    plan = _plan()
    first = plan.moves[0]
    short = _damaged(plan, np.array(first.before, np.int32))
    name = f"partition {first.topic}-{first.partition}"
    assert f"{name} keeps a lost replica that a broker could take" in _problems(short)
    unasked = replace(plan, terms=replace(plan.terms, replication_factors={"topic-000000": 4}))
    assert "partition topic-000000-0 has 3 replicas, and 4 were asked for" in _problems(unasked)


def test_what_nobody_can_hold_may_stay_lost() -> None:
    brokers = [Broker(1), Broker(2), Broker(3, state="dead")]
    plan = replan(Assignment.from_topics({"t": [[1, 2], [2, 1]]}), brokers)
    layout = Assignment.from_topics({"t": [[1, 2, 3], [2, 1]]})
    assert list(left_lost(layout, brokers)) == []
    assert list(left_lost(layout, [*brokers, Broker(4)])) == [
        "partition t-0 keeps a lost replica, and 3 brokers could hold its 3"
    ]
    assert verify(plan)
    assert verify_moves(Change((), *(np.zeros(0, np.int32),) * 2, *(np.zeros((0, 0), np.int32),) * 2), brokers)


def _creation(rows: list[list[int]]) -> Change:
    after = np.array(rows, np.int32)
    count = len(rows)
    return Change(
        ("new",),
        np.zeros(count, np.int32),
        np.arange(count, dtype=np.int32),
        np.full(after.shape, NO_BROKER, np.int32),
        after,
    )


CREATIONS = {
    "": [[0, 1, 2], [3, 4, 5]],
    "breaks its rack window": [[0, 1, 3]],
    "is placed on a broker that is not alive": [[0, 1, 8]],
}


@pytest.mark.parametrize("problem", CREATIONS)
def test_new_topics_are_checked_against_the_brokers_alone(problem: str) -> None:
    brokers = [*racked(6, 3), Broker(8, "r002", state="draining")]
    result = verify_moves(_creation(CREATIONS[problem]), brokers)
    assert bool(result) == (not problem)
    assert all(problem in str(v) and v.topic == "new" for v in result.violations)


def test_a_violation_that_was_there_before_is_tolerated_but_not_made_worse() -> None:
    brokers = racked(9, 3)
    before, same = np.array([[0, 3, 1]], np.int32), np.array([[0, 3, 4]], np.int32)
    worse = np.array([[0, 3, 6]], np.int32)
    column = np.zeros(1, np.int32)
    assert verify_moves(Change(("t",), column, column, before, same), brokers)
    assert not verify_moves(Change(("t",), column, column, before, worse), brokers)
