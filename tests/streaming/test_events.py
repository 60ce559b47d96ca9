"""Lines that are events, and lines that are not: nothing raises, nothing is lost."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.events import EVENT_TYPES, decode, encode

HEAD = {"event_id": "e1", "cluster_id": "east", "occurred_at": "2026-01-01T00:00:00Z"}

ONE_OF_EACH = [
    ({"type": "topic_created", "topic": "t", "partitions": 3, "replication_factor": 2}, "topic:t"),
    ({"type": "topic_created", "topic": "t", "replica_assignment": {"0": [1, 2], "7": [2, 1]}}, "topic:t"),
    ({"type": "topic_deleted", "topic": "t"}, "topic:t"),
    ({"type": "partitions_added", "topic": "t", "partitions": 5}, "topic:t"),
    ({"type": "replication_factor_changed", "topic": "t", "replication_factor": 3}, "topic:t"),
    ({"type": "broker_joined", "broker_id": 4, "rack": "a", "capacity": 2}, "broker:4"),
    ({"type": "broker_left", "broker_id": 4, "reason": "failed"}, "broker:4"),
    ({"type": "broker_changed", "broker_id": 4, "rack": "b"}, "broker:4"),
    ({"type": "assignment_observed", "partitions": [{"topic": "t", "partition": 0, "replicas": [1], "isr": [1]}]}, ""),
    ({"type": "rebalance_requested", "max_moves": 10}, ""),
    ({"type": "preferred_election_requested"}, ""),
    ({"type": "plan_approved", "plan_version": 3, "digest": "d"}, ""),
    ({"type": "plan_rejected", "plan_version": 3, "digest": "d"}, ""),
    ({"type": "plan_rolled_back", "plan_version": 3, "digest": "d"}, ""),
    ({"type": "plan_progress", "plan_version": 3, "state": "partition_done", "details": {"topic": "t"}}, ""),
    ({"type": "plan_claimed", "plan_version": 3, "claimant": "ann@host", "lease_seconds": 60}, ""),
    ({"type": "cluster_resumed"}, ""),
    ({"type": "cluster_identified", "kafka_cluster_id": "5L6g3nShT-eMCtK--X86sw"}, ""),
    ({"type": "load_observed", "partitions": [{"topic": "t", "partition": 0, "size": 9}]}, "loads"),
    ({"type": "load_observed", "brokers": [{"broker_id": 1, "log_dirs": [{"path": "/d", "limit": 5}]}]}, "loads"),
]


@pytest.mark.parametrize(("fields", "entity"), ONE_OF_EACH)
def test_every_type_is_decoded_and_says_the_same_when_encoded(fields: dict[str, object], entity: str) -> None:
    line = decode(json.dumps(HEAD | fields).encode())
    assert line.event is not None, line.problem
    assert line.event.type == fields["type"]
    assert line.event.entity == entity
    assert decode(encode(line.event)).event == line.event


def test_the_table_above_has_every_type() -> None:
    assert {fields["type"] for fields, _ in ONE_OF_EACH} == set(EVENT_TYPES)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"", "the line is empty"),
        (b"  ", "the line is empty"),
        (b"{", "Input data was truncated"),
        (b"\xff\xfe", "invalid"),
        (b"[1]", "Expected `object`, got `array`"),
        (b"[" * 100_000, "Expected `object`"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (json.dumps(HEAD).encode(), "missing required field `type`"),
        (json.dumps(HEAD | {"type": "topic_vanished"}).encode(), "'topic_vanished'"),
        (json.dumps(HEAD | {"type": "topic_deleted"}).encode(), "missing required field `topic`"),
        (json.dumps(HEAD | {"type": "broker_left", "broker_id": "x", "reason": "failed"}).encode(), "broker_id"),
        (json.dumps(HEAD | {"type": "broker_left", "broker_id": 1, "reason": "tired"}).encode(), "'tired'"),
        (json.dumps(HEAD | {"type": "broker_joined", "broker_id": -1}).encode(), "broker_id"),
        (json.dumps(HEAD | {"type": "broker_joined", "broker_id": 1, "capacity": 0}).encode(), "capacity"),
        (json.dumps(HEAD | {"type": "broker_joined", "broker_id": 1, "capacity": 5e-324}).encode(), "capacity"),
        (json.dumps(HEAD | {"type": "broker_changed", "broker_id": 1, "capacity": 1e308}).encode(), "capacity"),
        (
            json.dumps(
                HEAD
                | {
                    "type": "assignment_observed",
                    "partitions": [{"topic": "t", "partition": 0, "replicas": [1], "end_offsets": {"1": 2**63}}],
                }
            ).encode(),
            "<= 9223372036854775807",
        ),
        (json.dumps(HEAD | {"type": "topic_deleted", "topic": "t", "event_id": ""}).encode(), "event_id"),
        (json.dumps(HEAD | {"type": "topic_deleted", "topic": "t", "occurred_at": "now"}).encode(), "occurred_at"),
        (
            json.dumps(HEAD | {"type": "topic_deleted", "topic": "t", "occurred_at": "2026-01-01T00:00:00"}).encode(),
            "timezone",
        ),
        (
            json.dumps(HEAD | {"type": "topic_deleted", "topic": "t", "occurred_at": "9999-01-01T00:00:00Z"}).encode(),
            "1970 and 2200",
        ),
    ],
)
def test_a_line_that_is_no_event_says_why(line: bytes, problem: str) -> None:
    decoded = decode(line, "file:1")
    assert decoded.event is None
    assert problem in decoded.problem
    assert decoded.raw == line
    assert decoded.place == "file:1"


def test_what_can_be_told_of_a_malformed_line_is_kept() -> None:
    line = decode(json.dumps(HEAD | {"type": "topic_vanished"}).encode())
    assert (line.header.text("event_id"), line.header.text("cluster_id")) == ("e1", "east")
    assert decode(b'{"event_id": 5, "cluster_id": null}').header.text("event_id") is None


def test_bytes_that_are_not_text_are_kept_readable() -> None:
    assert decode(b'{"a": "\xff"}').text == '{"a": "\\xff"}'


def test_a_carriage_return_is_no_part_of_the_line() -> None:
    assert decode(json.dumps(HEAD | {"type": "topic_deleted", "topic": "t"}).encode() + b"\r").event is not None


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise(raw: bytes) -> None:
    line = decode(raw)
    assert line.event is not None or line.problem


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from([fields for fields, _ in ONE_OF_EACH]), st.data())
def test_no_value_of_a_field_makes_it_raise(fields: dict[str, object], data: st.DataObject) -> None:
    event = HEAD | fields
    event[data.draw(st.sampled_from(sorted(event)))] = data.draw(_json)
    line = decode(json.dumps(event).encode())
    assert line.event is not None or line.problem
