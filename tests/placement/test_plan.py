"""The answer's values: moves made on demand, numbers, and a digest that only the change decides."""

from __future__ import annotations

import numpy as np
import pytest

from placement import Assignment, Balance, Broker, Move, replan
from placement.digest import digest_of

LAYOUT = Assignment.from_topics({"a": [[0, 1], [1, 2]], "b": {5: [2, 0], 7: [0, 1]}})
BROKERS = [Broker(0), Broker(1), Broker(2, state="dead"), Broker(3)]


def test_moves_are_a_sequence() -> None:
    moves = replan(LAYOUT, BROKERS).moves
    assert list(moves) == [moves[0], moves[1]]
    assert moves[0] == Move("a", 1, (1, 2), (1, 3), "lost")
    assert moves[-1] == Move("b", 5, (2, 0), (3, 0), "lost")
    assert list(moves[1:]) == [moves[1]]
    with pytest.raises(IndexError):
        moves[2]


def test_columns_say_the_same_as_the_moves() -> None:
    plan = replan(LAYOUT, BROKERS)
    moves = plan.moves
    assert [moves.topics[t] for t in moves.topic_index.tolist()] == [m.topic for m in moves]
    assert moves.after.tolist() == [list(m.after) for m in moves]
    assert np.array_equal(plan.assignment.replicas[moves.row], moves.after)


def test_the_summary_has_plain_numbers() -> None:
    summary = replan(LAYOUT, BROKERS).summary()
    assert summary["moved_replicas"] == summary["lower_bound"] == 2
    assert (summary["gap"], summary["optimal"], summary["reasons"]) == (0, True, {"lost": 2})


def test_balance_is_relative_to_capacity() -> None:
    assert Balance.of(np.array([4, 2]), np.array([2.0, 1.0])) == Balance(2, 4, 0.0, 12.0)


def _digest(topics: list[str], before: list[list[int]], after: list[list[int]]) -> str:
    count = len(before)
    topic, column = np.full(count, len(topics) - 1, np.int32), np.arange(count, dtype=np.int32)
    lists = [np.array(rows, np.int32).reshape(count, -1 if count else 2) for rows in (before, after)]
    return digest_of(topics, topic, column, *lists)


KNOWN = "b1ffa433d11120afd0fffb01823bb39392d765308c6ff2c2a1e673849fed685e"


def test_the_digest_is_that_of_the_change_alone() -> None:
    assert _digest(["t"], [[1, 2]], [[2, 3]]) == KNOWN
    assert _digest(["other", "t"], [[1, 2]], [[2, 3]]) == KNOWN
    assert _digest(["t"], [[1, 2, -1]], [[2, 3, -1]]) == KNOWN


@pytest.mark.parametrize(
    ("topic", "before", "after"),
    [("u", [[1, 2]], [[2, 3]]), ("t", [[2, 1]], [[2, 3]]), ("t", [[1, 2]], [[3, 2]]), ("t", [], [])],
)
def test_any_other_change_has_another_digest(topic: str, before: list[list[int]], after: list[list[int]]) -> None:
    assert _digest([topic], before, after) != KNOWN
