"""Kafka's reassignment JSON: byte for byte out, and in with the place of every error."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement import Assignment
from placement.errors import InvalidAssignmentError, InvalidJsonError, PlacementError
from placement.kafka.reassignment_columns import assignment_as_printed
from placement.kafka.reassignment_json import topics_to_move
from tests.placement.golden import vectors

VECTORS = {vector["id"]: vector for name in ("reassign_400", "reassign_411") for vector in vectors(name)}
STRICTER = {
    "r045": "$.partitions[0].replicas[0]",  # a negative broker id
    "r043": "$.partitions[0].partition",  # a negative partition id
    "r047": "line 1, column 73",  # text after the document
}
"""What the tool lets pass and this refuses, with the place of the error."""


def parsed(*, refused):
    for vector in VECTORS.values():
        kafka_refuses = "err" in vector["out"] and vector["id"] != "r031"
        if vector["in"]["op"] == "parse_execute" and (kafka_refuses or vector["id"] in STRICTER) == refused:
            yield pytest.param(vector, id=vector["id"])


@pytest.mark.parametrize("vector", list(parsed(refused=False)))
def test_reads_what_the_tool_reads(vector):
    layout = Assignment.from_json(vector["in"]["json"])
    partitions = json.loads(vector["in"]["json"].removesuffix(" trailing"))["partitions"]
    assert list(layout.rows()) == [(p["topic"], p["partition"], tuple(p["replicas"])) for p in partitions]


@pytest.mark.parametrize("vector", list(parsed(refused=True)))
def test_refuses_what_the_tool_refuses(vector):
    with pytest.raises(PlacementError) as caught:
        Assignment.from_json(vector["in"]["json"])
    if vector["id"] in STRICTER:
        assert isinstance(caught.value, InvalidJsonError)
        assert caught.value.place == STRICTER[vector["id"]]


def test_prints_what_the_tool_prints():
    vector = VECTORS["r050"]
    layout = Assignment.from_topics(
        {topic: {int(p): replicas for p, replicas in rows.items()} for topic, rows in vector["in"]["parts"].items()}
    )
    assert layout.to_json() == vector["out"]["result"].replace("/data/d1", "any")


def test_topics_beyond_the_basic_plane_are_in_java_order():
    layout = Assignment.from_topics({"\uff5e": [[1]], "\U0001f600": [[2]]})
    assert layout.topics == ("\uff5e", "\U0001f600")
    assert layout.to_json().index("\U0001f600") < layout.to_json().index("\uff5e")
    assert Assignment.from_json(layout.to_json()) == layout


def test_the_old_form_of_one_topic_has_gaps():
    text = '{"version":1,"partitions":{"40":[2,0],"10":[1,2],"33":[2,1],"21":[0,1]}}'
    rows = [("t", 10, (1, 2)), ("t", 21, (0, 1)), ("t", 33, (2, 1)), ("t", 40, (2, 0))]
    assert list(Assignment.from_json(text, topic="t").rows()) == rows
    unnamed = Assignment.from_json(text)
    assert unnamed.topics == ("topic",)
    assert Assignment.from_json(unnamed.to_json()) == unnamed


def entry(**fields):
    return json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]} | fields]})


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "line 1, column 1"),
        ("{", "line 1, column 2"),
        ('{\n "version": 1,\n oops}', "line 3, column 2"),
        ("[" * 100_000, "$"),
        ("9" * 5000, "$"),
        ("NaN", "$"),
        ("[]", "$"),
        ("null", "$"),
        ('{"version": 2}', "$.version"),
        ('{"version": true}', "$.version"),
        ('{"version": "1"}', "$.version"),
        ('{"version": 1, "version": 1}', "version"),
        ("{}", "$.partitions"),
        ('{"partitions": 3}', "$.partitions"),
        ('{"partitions": [3]}', "$.partitions[0]"),
        ('{"partitions": {"x": [1]}}', '$.partitions["x"]'),
        ('{"partitions": {"01": [1]}}', '$.partitions["01"]'),
        ('{"partitions": {"-1": [1]}}', '$.partitions["-1"]'),
        ('{"partitions": {"²": [1]}}', '$.partitions["\\u00b2"]'),
        ('{"partitions": {"2147483648": [1]}}', '$.partitions["2147483648"]'),
        ('{"partitions": {"1": 1}}', '$.partitions["1"]'),
        ('{"partitions": {"1": [1], "1": [2]}}', "1"),
        (entry(topic=5), "$.partitions[0].topic"),
        (entry(topic=""), "$.partitions[0].topic"),
        (entry(topic="\ud800"), "$.partitions[0].topic"),
        (entry(partition=None), "$.partitions[0].partition"),
        (entry(partition=0.0), "$.partitions[0].partition"),
        (entry(partition=True), "$.partitions[0].partition"),
        (entry(partition=2**31), "$.partitions[0].partition"),
        (entry(replicas="12"), "$.partitions[0].replicas"),
        (entry(replicas=[1, True]), "$.partitions[0].replicas[1]"),
        (entry(replicas=[2**31]), "$.partitions[0].replicas[0]"),
        (entry(log_dirs=["any"]), "$.partitions[0].log_dirs"),
        (entry(log_dirs=["any", None]), "$.partitions[0].log_dirs"),
    ],
)
def test_errors_say_where(text, place):
    with pytest.raises(InvalidJsonError) as caught:
        Assignment.from_json(text)
    assert caught.value.place == place
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("replicas", [[], [1, 2, 1]])
def test_replica_lists_that_no_cluster_has(replicas):
    with pytest.raises(InvalidAssignmentError) as caught:
        Assignment.from_json(entry(replicas=replicas))
    assert (caught.value.topic, caught.value.partition, caught.value.replicas) == ("t", 0, tuple(replicas))


def test_a_partition_given_twice():
    rows = [{"topic": "t", "partition": 3, "replicas": [broker]} for broker in (1, 2)]
    with pytest.raises(InvalidAssignmentError) as caught:
        Assignment.from_json(json.dumps({"version": 1, "partitions": rows}))
    assert (caught.value.topic, caught.value.partition) == ("t", 3)


def test_topics_to_move_keep_their_order():
    assert topics_to_move('{"topics": [{"topic": "b"}, {"topic": "a"}], "version": 1}') == ("b", "a")
    with pytest.raises(InvalidJsonError, match=r"duplicate entries: \[a,b\]") as caught:
        topics_to_move('{"topics": [{"topic": "a"}, {"topic": "b"}, {"topic": "b"}, {"topic": "a"}]}')
    assert caught.value.value == ("a", "b")


LAYOUTS = st.dictionaries(
    st.text(min_size=1, alphabet=st.characters(codec="utf-8")),
    st.dictionaries(
        st.integers(0, 2**31 - 1), st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4, unique=True), min_size=1
    ),
    max_size=4,
)


@given(LAYOUTS.filter(bool))
@settings(deadline=None, max_examples=100)
def test_what_is_printed_is_read_in_columns_as_it_is_in_any_other_form(topics):
    text = Assignment.from_topics(topics).to_json()
    printed = assignment_as_printed(text)
    assert printed is None if "\\" in text else printed == Assignment.from_json(json.dumps(json.loads(text), indent=1))


PRINTED = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[1,2]", "[1,02]"),
        ("[1,2]", "[1, 2]"),
        ("[1,2]", "[1,2147483648]"),
        ("[1,2]", "[1]"),
        ("[1,2]", "[]"),
        (':0,"', ':2147483648,"'),
        ('"any","any"', '"any","/d"'),
        ("}]}", "}],}"),
        ("}]}", "},]}"),
        ("}]}", "}]}]}"),
        ('"t"', '"\\u0041"'),
        (":[{", ":[7,{"),
        ("1,", "2,"),
    ],
)
def test_columns_are_read_only_where_the_form_is_exact(old, new):
    assert assignment_as_printed(PRINTED) == Assignment.from_topics({"t": [[1, 2]]})
    assert assignment_as_printed(PRINTED.replace(old, new, 1)) is None


@given(LAYOUTS)
@settings(deadline=None, max_examples=100)
def test_reading_gives_back_what_was_printed(topics):
    layout = Assignment.from_topics(topics)
    text = layout.to_json()
    assert Assignment.from_json(text) == layout
    assert Assignment.from_json(text).to_json() == text
    assert {p["topic"]: p["log_dirs"] == ["any"] * len(p["replicas"]) for p in json.loads(text)["partitions"]} == (
        dict.fromkeys(topics, True)
    )
