"""Every public name given every kind of wrong value: one sentence that names what is wrong, or a right answer."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import placement
from placement import (
    Assignment,
    Broker,
    Change,
    Limits,
    PlacementError,
    ReplicaCounts,
    in_waves,
    place_adminutils,
    place_striped,
    replan,
    verify_moves,
)
from tests.placement.public_names import (
    ANSWERS,
    BROKERS,
    CASES,
    CHANGED,
    IDS_OF_CASES,
    LAYOUT,
    MOVES,
    PLAN,
    ROWS,
    Row,
    hostile,
    sound,
)


def test_every_public_name_and_every_parameter_has_a_row() -> None:
    assert placement.Load is ReplicaCounts, "another name of it"
    for name in placement.__all__:
        thing = getattr(placement, name)
        if (
            name in ANSWERS
            or name in ("Assignor", "Load")
            or (isinstance(thing, type) and issubclass(thing, PlacementError))
        ):
            continue
        thing = ROWS[name][0].of or ROWS[name][0].call
        expected = (
            [f.name for f in fields(thing) if f.init] if is_dataclass(thing) else inspect.signature(thing).parameters
        )
        assert set(ROWS[name][0].right) == set(expected), name
    assert set(ROWS) | ANSWERS <= set(placement.__all__)
    assert all(set(row.right) == set(row.may) for row, _ in CASES)


@pytest.mark.parametrize(("row", "name"), CASES, ids=IDS_OF_CASES)
def test_wrong_values_are_refused_in_one_sentence(row: Row, name: str) -> None:
    row_call = partial(row.call, *row.right.values()) if _is_positional(row) else row.call
    right = {} if _is_positional(row) else row.right
    row_call(**right)
    for label, value in hostile().items():
        call = partial(row.call, value) if _is_positional(row) else partial(row.call, **{**row.right, name: value})
        try:
            call()
        except PlacementError as error:
            sentence = str(error)
            assert 0 < len(sentence) <= 250, label
            assert "\n" not in sentence, label
        else:
            assert label in row.may[name], f"{name} took {label}"


def _is_positional(row: Row) -> bool:
    return row.call.__name__ in ("add", "subtract")


@pytest.mark.parametrize(
    "name", ["partitions", "replication_factor", "start_partition_id", "fixed_start_index", "seed"]
)
def test_numbers_of_numpy_are_numbers(name: str) -> None:
    numbers = {"partitions": 100, "replication_factor": 3, "start_partition_id": 100, "fixed_start_index": 7, "seed": 5}
    numbers = {"partitions": 100, "replication_factor": 3, name: numbers[name]}
    expected = place_adminutils(BROKERS, **numbers)  # type: ignore[arg-type]
    narrow = place_adminutils(BROKERS, **{**numbers, name: np.int8(numbers[name])})  # type: ignore[arg-type]
    np.testing.assert_array_equal(narrow, expected)
    assert Broker(np.int16(7), capacity=np.float32(2)) == Broker(7, capacity=2.0)  # type: ignore[arg-type]


def test_what_is_wrong_inside_is_named() -> None:
    id_of = "it must be an integer from 0 to 2147483647"
    for call, sentence in (
        (lambda: replan([[1]], BROKERS), "assignment is [[1]]: it must be of type Assignment"),  # type: ignore[arg-type]
        (lambda: LAYOUT.with_rows(np.array([2, 1]), LAYOUT.replicas[1:3]), "rows are array([2, 1]): they must ascend"),
        (lambda: Assignment.from_topics({"t": [[True, 2]]}), f"a broker id is True: {id_of}"),
        (lambda: Assignment.from_topics({"t": [[1, -1]]}), f"a broker id is -1: {id_of}"),
        (lambda: place_striped(BROKERS, 2, 2, draw=lambda n: n), "what draw gave for 1 is 1: it must be at most 0"),
        (lambda: Limits(log_dirs=["/a"]), "log_dirs has '/a' in it: each must be a LogDir"),  # type: ignore[arg-type]
        (
            lambda: in_waves(MOVES, LAYOUT.replicas[:1]),
            "in_sync has 1 rows: it must have 2, one for each partition",
        ),
        (lambda: verify_moves(Change(**CHANGED), [*BROKERS, BROKERS[0]]), "broker ids given more than once: [1]"),
    ):
        with pytest.raises(PlacementError) as refused:
            call()
        assert str(refused.value) == sentence


@pytest.mark.parametrize(
    "part",
    [
        {"moves": replace(MOVES, row=MOVES.row + 1000)},
        {"moves": replace(MOVES, row=MOVES.row[::-1].copy())},
        {"assignment": Assignment.from_topics({"z": [[1]]})},
        {"before": Assignment.from_rows([])},
        {"terms": replace(PLAN.terms, brokers=())},
        {"terms": replace(PLAN.terms, brokers=BROKERS[3:])},
        {"terms": replace(PLAN.terms, in_sync=LAYOUT.replicas[:1])},
        {"terms": replace(PLAN.terms, max_moves="1")},
        {"terms": replace(PLAN.terms, mode=[])},
        {"terms": replace(PLAN.terms, leaders=None)},
        {"terms": replace(PLAN.terms, exclude_brokers=[1.5])},
        {"terms": replace(PLAN.terms, replication_factors={"t": "2"})},
    ],
    ids=str,
)
def test_parts_that_are_not_of_one_another_are_no_sound_plan(part: dict[str, Any]) -> None:
    with pytest.raises(PlacementError):
        sound(**{field.name: getattr(PLAN, field.name) for field in fields(PLAN)} | part)
