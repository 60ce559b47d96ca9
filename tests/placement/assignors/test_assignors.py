"""Consumer assignment: Kafka's answers on recorded groups, and what holds for every group."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement import assign_consumers
from placement.assignors import ASSIGNORS
from placement.assignors.group import Group, Member, group_of
from placement.errors import InvalidGroupError
from tests.placement.golden import examples, vectors

VECTORS = [v for v in vectors("assignors") if v["in"]["assignor"] in ASSIGNORS]
DRAWN = vectors("assignors_drawn")
"""Groups drawn at random and given to the assignors of kafka-clients 4.0.0."""
FIXED_MEMBERS = {"c2": {"topics": ["t"]}, "c1": {"topics": ["t"]}}


def assign(given_in):
    return assign_consumers(
        given_in["assignor"],
        given_in["members"],
        given_in["partitions_per_topic"],
        partition_racks=given_in.get("partition_racks"),
    )


def as_sets(assignment):
    return {member: {tuple(tp) for tp in partitions} for member, partitions in assignment.items()}


@pytest.mark.parametrize("vector", [v for v in VECTORS + DRAWN if "assignment" in v["out"]], ids=lambda v: v["id"])
def test_assigns_as_kafka_does(vector):
    assert as_sets(assign(vector["in"])) == as_sets(vector["out"]["assignment"])


@pytest.mark.parametrize("vector", [v for v in VECTORS if "err" in v["out"]], ids=lambda v: v["id"])
def test_refuses_what_kafka_refuses(vector):
    with pytest.raises(InvalidGroupError):
        assign(vector["in"])


@pytest.mark.parametrize("example", examples("assignor"), ids=lambda e: e["name"])
def test_worked_examples_of_the_literature(example):
    assert as_sets(assign(example["in"])) == as_sets(example["out"]["assignment"])


@pytest.mark.parametrize(
    ("assignor", "wanted"),
    [
        ("range", {"c1": [("t", 0), ("t", 1), ("t", 2)], "c2": [("t", 3), ("t", 4)]}),
        ("roundrobin", {"c1": [("t", 0), ("t", 2), ("t", 4)], "c2": [("t", 1), ("t", 3)]}),
        ("sticky", {"c1": [("t", 0), ("t", 2), ("t", 4)], "c2": [("t", 1), ("t", 3)]}),
        ("cooperative-sticky", {"c1": [("t", 0), ("t", 2), ("t", 4)], "c2": [("t", 1), ("t", 3)]}),
    ],
)
def test_two_members_and_five_partitions(assignor, wanted):
    assignment = assign_consumers(assignor, FIXED_MEMBERS, {"t": 5, "unwanted": 3})
    assert assignment == wanted
    assert list(assignment) == ["c1", "c2"]


def test_static_members_come_first_and_by_instance():
    members = {
        "a": {"topics": ["t"]},
        "b": {"topics": ["t"], "instance": "z"},
        "c": {"topics": ["t"], "instance": "y"},
    }
    assert assign_consumers("range", members, {"t": 3}) == {"a": [("t", 2)], "b": [("t", 1)], "c": [("t", 0)]}


def test_a_partition_that_changes_hands_waits_under_the_cooperative_protocol():
    owned = {"c1": {"topics": ["t"], "owned": [["t", 0], ["t", 1]], "generation": 1}, "c2": {"topics": ["t"]}}
    assert assign_consumers("sticky", owned, {"t": 2}) == {"c1": [("t", 0)], "c2": [("t", 1)]}
    assert assign_consumers("cooperative-sticky", owned, {"t": 2}) == {"c1": [("t", 0)], "c2": []}


@pytest.mark.parametrize("generations", [(4, 5), (5, 4)])
def test_the_later_generation_keeps_what_two_members_claim(generations):
    members = {
        name: {"topics": ["t"], "owned": [["t", 0]], "generation": generation}
        for name, generation in zip(("c1", "c2"), generations, strict=True)
    }
    later = "c1" if generations[0] > generations[1] else "c2"
    assert assign_consumers("sticky", members, {"t": 2})[later] == [("t", 0)]


def test_members_without_subscriptions_get_nothing():
    """Kafka takes the first member's empty subscription for that of all, and would hand it partitions of t."""
    members = {
        "c1": {"topics": [], "owned": [["t", 1]], "generation": 5},
        "c2": {"topics": ["t"], "owned": [["t", 0]], "generation": 5},
    }
    assert assign_consumers("sticky", members, {"t": 2}) == {"c1": [], "c2": [("t", 0), ("t", 1)]}


def test_any_rule_can_be_plugged_in():
    class AllToTheLast:
        def assign(self, group: Group):
            return {list(group.members)[-1]: list(group.partitions_of(group.partitions))}

    assert assign_consumers(AllToTheLast(), FIXED_MEMBERS, {"t": 2}) == {"c1": [], "c2": [("t", 0), ("t", 1)]}


@pytest.mark.parametrize(
    ("assignor", "members", "partitions", "where"),
    [
        ("best", {"c": {"topics": ["t"]}}, {"t": 1}, "best"),
        ("range", {"c": ["t"]}, {"t": 1}, "c"),
        ("range", {"c": {}}, {"t": 1}, "c"),
        ("range", {"c": {"topics": "t"}}, {"t": 1}, "c"),
        ("range", {"c": {"topics": [1]}}, {"t": 1}, "c"),
        ("range", {"c": {"topics": ["t"], "colour": "red"}}, {"t": 1}, "c"),
        ("sticky", {"c": {"topics": ["t"], "owned": [["t"]]}}, {"t": 1}, "c"),
        ("sticky", {"c": {"topics": ["t"], "owned": [["t", -1]]}}, {"t": 1}, "c"),
        ("sticky", {"c": {"topics": ["t"], "generation": "1"}}, {"t": 1}, "c"),
        ("range", {"c": {"topics": ["t"], "rack": 1}}, {"t": 1}, "c"),
        ("range", {"c": {"topics": ["t"]}}, {"t": -1}, "t"),
        ("range", {"c": {"topics": ["t"]}}, {"t": True}, "t"),
        ("range", {"c": {"topics": ["t", "u"]}}, {"t": 9_999_999, "u": 2}, "t"),
    ],
)
def test_refuses_groups_that_are_described_wrongly(assignor, members, partitions, where):
    with pytest.raises(InvalidGroupError) as caught:
        assign_consumers(assignor, members, partitions)
    assert caught.value.where == where


TOPICS = ["t0", "t1", "t2", "t3"]


@st.composite
def groups(draw):
    partitions = {topic: draw(st.integers(0, 7)) for topic in TOPICS}
    racks = draw(st.booleans())
    everybody = draw(st.none() | st.lists(st.sampled_from(TOPICS), min_size=1, unique=True))
    members = {}
    for i in draw(st.lists(st.integers(0, 20), min_size=1, max_size=7, unique=True)):
        topics = everybody or draw(st.lists(st.sampled_from(TOPICS), min_size=1, unique=True))
        rack = draw(st.sampled_from([None, "r0", "r1"])) if racks else None
        members[f"c{i}"] = Member(f"c{i}", tuple(topics), rack=rack)
    replicas = (
        {
            t: [draw(st.sets(st.sampled_from(["r0", "r1", "r2"]), min_size=1)) for _ in range(n)]
            for t, n in partitions.items()
        }
        if racks
        else None
    )
    return members, partitions, replicas


@given(groups(), st.sampled_from(list(ASSIGNORS)), st.randoms())
@settings(deadline=None, max_examples=200)
def test_every_subscribed_partition_goes_to_one_subscriber_whatever_the_order(drawn, assignor, random):
    members, partitions, racks = drawn
    assignment = assign_consumers(assignor, members, partitions, partition_racks=racks)
    shuffled = {name: members[name] for name in random.sample(sorted(members), len(members))}
    mixed = dict(random.sample(sorted(partitions.items()), len(partitions)))
    assert assign_consumers(assignor, shuffled, mixed, partition_racks=racks) == assignment
    handed_out = Counter(tp for given_out in assignment.values() for tp in given_out)
    wanted = {topic for member in members.values() for topic in member.topics}
    assert handed_out == Counter((topic, p) for topic in wanted for p in range(partitions[topic]))
    assert all(topic in members[name].topics for name, given_out in assignment.items() for topic, _ in given_out)
    if len({frozenset(member.topics) for member in members.values()}) == 1 and assignor != "range":
        sizes = [len(given_out) for given_out in assignment.values()]
        assert max(sizes) - min(sizes) <= 1


@given(groups(), st.sampled_from(["sticky", "cooperative-sticky"]))
@settings(deadline=None, max_examples=100)
def test_nothing_moves_when_nothing_changed(drawn, assignor):
    """Without racks: near members are served first, and may be others once partitions have owners."""
    drawn_members, partitions, _ = drawn
    members = {name: Member(name, member.topics) for name, member in drawn_members.items()}
    first = assign_consumers(assignor, members, partitions)
    settled = {name: Member(name, m.topics, owned=tuple(first[name]), generation=1) for name, m in members.items()}
    assert assign_consumers(assignor, settled, partitions) == first


@given(groups(), st.integers(0, 6))
@settings(deadline=None, max_examples=100)
def test_who_stays_keeps_what_it_has_when_a_member_leaves(drawn, leaver):
    members, partitions, _ = drawn
    everybody = {name: Member(name, ("t0", "t1")) for name in members}
    first = assign_consumers("sticky", everybody, partitions)
    gone = sorted(everybody)[leaver % len(everybody)]
    left = {name: Member(name, ("t0", "t1"), owned=tuple(first[name]), generation=1) for name in first if name != gone}
    second = assign_consumers("sticky", left, partitions)
    assert all(set(first[name]) <= set(second[name]) for name in left)


def test_a_group_is_put_into_canonical_order():
    group = group_of({"b": {"topics": ["t", "x"]}, "a": {"topics": ["t"]}}, {"x": 0, "t": 1, "y": 2})
    assert (list(group.members), dict(group.partitions)) == (["a", "b"], {"t": 1})
