"""The proposal of Kafka's reassignment tool: the same text, byte for byte, and the same refusals."""

import pytest

from placement import Assignment, Broker
from placement.errors import (
    DuplicateBrokerError,
    IncompleteRackError,
    InvalidAssignmentError,
    InvalidBrokerError,
    InvalidJsonError,
    InvalidReplicationFactorError,
    PlacementError,
)
from placement.kafka.generate import generate, rollback_text
from tests.placement.golden import brokers_of, vectors

TOOLS = [("reassign_400", "adminutils"), ("reassign_411", "striped")]
VECTORS = [(strategy, vector) for name, strategy in TOOLS for vector in vectors(name)]
TOPICS = '{"topics": [{"topic": "a"}], "version": 1}'
LAYOUT = Assignment.from_topics({"a": [[0, 1], [1, 2]], "b": [[2, 0]]})
BROKERS = [Broker(0), Broker(1), Broker(2)]


def of_kind(op, *, refused):
    picked = [(s, v) for s, v in VECTORS if v["in"]["op"] == op and ("err" in v["out"]) == refused]
    return pytest.mark.parametrize(("strategy", "vector"), picked, ids=[f"{s}-{v['id']}" for s, v in picked])


def layout_of(described):
    return Assignment.from_topics(
        {t: {int(p): replicas for p, replicas in rows.items()} for t, rows in described.items()}
    )


@of_kind("generate", refused=False)
def test_prints_what_the_tool_prints_with_the_same_draws(strategy, vector):
    given_in = vector["in"]
    generated = generate(
        given_in["topics_json"],
        given_in["broker_list"],
        Assignment.from_topics(given_in["current"]),
        brokers_of(given_in["cluster"]),
        rack_aware=given_in.get("rack_aware", True),
        seed=given_in["seed"],
        strategy=strategy,
    )
    assert generated.text == vector["out"]["stdout"]


@of_kind("parse_generate", refused=True)
def test_refuses_what_the_tool_refuses(strategy, vector):
    with pytest.raises(PlacementError) as caught:
        generate(vector["in"]["json"], vector["in"]["broker_list"], LAYOUT, BROKERS, strategy=strategy)
    assert "\n" not in str(caught.value)


@of_kind("current_to_string", refused=False)
def test_the_present_layout_is_printed_for_the_way_back(strategy, vector):
    given_in = vector["in"]
    assert rollback_text(layout_of(given_in["parts"]), layout_of(given_in["proposed"])) == vector["out"]["result"]


@pytest.mark.parametrize(
    ("topics", "broker_list", "brokers", "error"),
    [
        (TOPICS, "", BROKERS, InvalidBrokerError),
        (TOPICS, "0,,1", BROKERS, InvalidBrokerError),
        (TOPICS, "0, 1", BROKERS, InvalidBrokerError),
        (TOPICS, "-1,0", BROKERS, InvalidBrokerError),
        (TOPICS, "0,9", BROKERS, InvalidBrokerError),
        (TOPICS, "0,1,0", BROKERS, DuplicateBrokerError),
        (TOPICS, "0,1", [Broker(0), Broker(1), Broker(1)], DuplicateBrokerError),
        (TOPICS, "0", BROKERS, InvalidReplicationFactorError),
        (TOPICS, "0,1", [Broker(0), Broker(1, state="draining")], InvalidReplicationFactorError),
        (TOPICS, "0,1", [Broker(0, "x"), Broker(1)], IncompleteRackError),
        (TOPICS.replace('"a"', '"c"'), "0,1", BROKERS, InvalidAssignmentError),
        ('{"version": 2, "topics": []}', "0,1", BROKERS, InvalidJsonError),
    ],
)
@pytest.mark.parametrize("strategy", ["adminutils", "striped"])
def test_refuses_with_the_kind_of_error(strategy, topics, broker_list, brokers, error):
    with pytest.raises(error):
        generate(topics, broker_list, LAYOUT, brokers, strategy=strategy)


def test_a_comma_at_the_end_is_let_pass():
    assert generate(TOPICS, "0,1,", LAYOUT, BROKERS).text == generate(TOPICS, "0,1", LAYOUT, BROKERS).text


def test_only_the_topics_asked_for_are_laid_out_with_their_own_replication_factor():
    both = '{"topics": [{"topic": "b"}, {"topic": "a"}]}'
    proposed = generate(both, "0,1,2", LAYOUT, BROKERS, seed=4).proposed
    assert [(topic, partition, len(replicas)) for topic, partition, replicas in proposed.rows()] == [
        ("a", 0, 2),
        ("a", 1, 2),
        ("b", 0, 2),
    ]
    assert generate(TOPICS, "0,1,2", LAYOUT, BROKERS).current.topics == ("a",)
    assert generate('{"topics": []}', "0", LAYOUT, BROKERS).text.count('"partitions":[]') == 2
