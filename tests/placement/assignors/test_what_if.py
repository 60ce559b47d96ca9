"""What changes hands when members of a group come and go."""

import pytest

from placement import Assignment, Broker
from placement.assignors.what_if import Handover, topics_of, what_if
from placement.errors import InvalidAssignmentError, InvalidGroupError

TWO = {"c1": {"topics": ["t"]}, "c2": {"topics": ["t"]}}


@pytest.mark.parametrize(
    ("assignor", "rebalances", "moved"),
    [
        ("range", 1, [(2, "c1", "c2"), (4, "c2", "c3"), (5, "c2", "c3")]),
        ("roundrobin", 1, [(2, "c1", "c3"), (3, "c2", "c1"), (4, "c1", "c2"), (5, "c2", "c3")]),
        ("sticky", 1, [(4, "c1", "c3"), (5, "c2", "c3")]),
        ("cooperative-sticky", 2, [(4, "c1", "c3"), (5, "c2", "c3")]),
    ],
)
def test_a_third_member_joins_two_with_six_partitions(assignor, rebalances, moved):
    result = what_if(assignor, TWO, {"t": 6}, joining={"c3": {"topics": ["t"]}})
    assert result.handovers == tuple(Handover(("t", p), before, after) for p, before, after in moved)
    assert sorted(len(partitions) for partitions in result.after.values()) == [2, 2, 2]
    assert result.rebalances == rebalances
    assert set(result.before) == {"c1", "c2"}


def test_a_member_leaves():
    result = what_if("sticky", TWO, {"t": 3}, leaving=["c1"])
    assert result.handovers == (Handover(("t", 0), "c1", "c2"), Handover(("t", 2), "c1", "c2"))
    assert result.after == {"c2": [("t", 0), ("t", 1), ("t", 2)]}


def test_everybody_leaves():
    result = what_if("range", TWO, {"t": 1}, leaving=["c1", "c2"])
    assert result.handovers == (Handover(("t", 0), "c1", None),)


def test_the_racks_of_a_plan_decide_who_is_near():
    brokers = [Broker(1, "a"), Broker(2, "b"), Broker(3)]
    partitions, racks = topics_of(Assignment.from_topics({"t": [[1], [2], [2], [1, 3]]}), brokers)
    assert (partitions, racks) == ({"t": 4}, {"t": [["a"], ["b"], ["b"], ["a", None]]})
    members = {"c1": {"topics": ["t"], "rack": "b"}, "c2": {"topics": ["t"], "rack": "a"}}
    near = what_if("range", members, partitions, partition_racks=racks)
    assert near.before == near.after == {"c1": [("t", 1), ("t", 2)], "c2": [("t", 0), ("t", 3)]}
    assert near.handovers == ()


def test_consumers_see_no_gaps():
    with pytest.raises(InvalidAssignmentError) as caught:
        topics_of(Assignment.from_topics({"t": {10: [1], 21: [1]}}), [Broker(1)])
    assert (caught.value.topic, caught.value.partition) == ("t", 10)


@pytest.mark.parametrize(
    ("change", "where"), [({"joining": {"c1": {"topics": ["t"]}}}, "c1"), ({"leaving": ["c9"]}, "c9")]
)
def test_refuses_who_cannot_come_or_go(change, where):
    with pytest.raises(InvalidGroupError) as caught:
        what_if("range", TWO, {"t": 1}, **change)
    assert caught.value.where == where


def test_a_rule_that_never_settles_is_cut_off():
    class Restless:
        def assign(self, group):
            owner = next((m.id for m in group.members.values() if m.owned), "c1")
            return {"c2" if owner == "c1" else "c1": [("t", 0)]}

    assert what_if(Restless(), TWO, {"t": 1}).rebalances == 8
