"""The strategies by name: each places as its algorithm does, and everybody takes their names from one table."""

from __future__ import annotations

from typing import get_args, get_type_hints
from zlib import crc32

import numpy as np
import pytest

from placement import (
    Assignment,
    Broker,
    PlacementError,
    extend_adminutils,
    place_adminutils,
    place_balanced,
    place_striped,
)
from placement.model import Int32Array
from placement.strategies import STRATEGIES, Request
from streaming.cli.offline.offline import place
from streaming.config import Policy
from streaming.events import TopicCreated

BROKERS = [Broker(b, f"r{b % 3}") for b in range(1, 7)]
THERE = Assignment.from_topics({"there": [[1, 2], [2, 3], [1, 3]]})
SEED = crc32(b"t")

EXPECTED: dict[str, tuple[Int32Array, Int32Array]] = {
    "balanced": (
        place_balanced(BROKERS, 5, 2, current=THERE, topic="t"),
        place_balanced(BROKERS, 3, 2, current=THERE, topic="t"),
    ),
    "adminutils": (
        place_adminutils(BROKERS, 5, 2, seed=SEED),
        extend_adminutils(BROKERS, place_adminutils(BROKERS, 5, 2, seed=SEED), 3),
    ),
    "striped": (place_striped(BROKERS, 5, 2, seed=SEED), place_striped(BROKERS, 3, 2, seed=crc32(b"t-5"))),
}


def request(partitions: int, brokers: list[Broker] = BROKERS, start: int = 0) -> Request:
    return Request(
        brokers=brokers,
        partitions=partitions,
        replication_factor=2,
        topic="t",
        current=THERE,
        start_partition_id=start,
    )


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_places_and_extends_as_its_algorithm(name: str) -> None:
    placed, added = EXPECTED[name]
    assert np.array_equal(STRATEGIES[name].place(request(5)), placed)
    assert np.array_equal(STRATEGIES[name].extend(request(3, start=5), placed), added)


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_cannot_be_placed_is_refused(name: str) -> None:
    with pytest.raises(PlacementError):
        STRATEGIES[name].place(request(5, BROKERS[:1]))


def test_events_conf_and_commands_know_the_same_names() -> None:
    names = list(STRATEGIES)
    created = get_args(get_type_hints(TopicCreated)["strategy"])
    assert list(get_args(get_type_hints(Policy)["strategy"])) == names
    assert [name for each in created for name in get_args(each)] == names
    (option,) = (each for each in place.params if each.name == "strategy")
    assert list(option.type.choices) == names  # type: ignore[attr-defined]
