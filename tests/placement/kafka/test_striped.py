"""KRaft's striped placement: Kafka's answers given its draws, and properties of every layout."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement import Broker, place_striped
from placement.errors import DuplicateBrokerError, InvalidPartitionsError, InvalidReplicationFactorError
from tests.placement.golden import brokers_of, vectors

VECTORS = vectors("striped")
DUPLICATES = {v["id"] for v in VECTORS if len({b["id"] for b in v["in"]["brokers"]}) < len(v["in"]["brokers"])}
LAID_OUT = [v for v in VECTORS if "replicas" in v["out"] and v["id"] not in DUPLICATES]
ERRORS = {
    "InvalidReplicationFactorException": InvalidReplicationFactorError,
    "IllegalArgumentException": InvalidPartitionsError,
}


class Tape:
    """Plays back recorded draws, and fails when another bound is asked for."""

    def __init__(self, draws):
        self.left = [tuple(draw) for draw in draws]

    def __call__(self, bound):
        recorded, value = self.left.pop(0)
        assert recorded == bound
        return value


@pytest.mark.parametrize("vector", LAID_OUT, ids=lambda v: v["id"])
def test_lays_out_as_kafka_does_with_the_same_draws(vector):
    tape = Tape(vector["out"]["draws"])
    given_in = vector["in"]
    layout = place_striped(brokers_of(given_in["brokers"]), given_in["n_partitions"], given_in["rf"], draw=tape)
    assert layout.tolist() == vector["out"]["replicas"]
    assert tape.left == []


@pytest.mark.parametrize("vector", [v for v in VECTORS if "err" in v["out"]], ids=lambda v: v["id"])
def test_refuses_what_kafka_refuses(vector):
    given_in = vector["in"]
    with pytest.raises(ERRORS[vector["out"]["err"]["class"].rsplit(".", 1)[1]]):
        place_striped(brokers_of(given_in["brokers"]), given_in["n_partitions"], given_in["rf"])


def test_seed_is_that_of_java():
    """The seeds recorded with the vectors, on racks that do not share a bucket of Kafka's hash table."""
    seeded = [v for v in LAID_OUT if v["in"]["random"]["kind"] == "java" and len(v["out"]["rack_hash_order"]) == 1]
    assert seeded
    for vector in seeded:
        given_in = vector["in"]
        layout = place_striped(
            brokers_of(given_in["brokers"]),
            given_in["n_partitions"],
            given_in["rf"],
            seed=given_in["random"]["seed"],
        )
        assert layout.tolist() == vector["out"]["replicas"], vector["id"]


def test_refuses_duplicates():
    with pytest.raises(DuplicateBrokerError) as caught:
        place_striped([Broker(1), Broker(2), Broker(1)], 1, 1)
    assert caught.value.brokers == (1,)


def test_fenced_brokers_follow_and_draining_ones_take_nothing():
    brokers = [Broker(0), Broker(1, state="dead"), Broker(2), Broker(3, state="draining")]
    layout = place_striped(brokers, 20, 3, draw=lambda bound: 0).tolist()
    assert {tuple(row) for row in layout} == {(0, 2, 1), (2, 0, 1)}
    with pytest.raises(InvalidReplicationFactorError) as caught:
        place_striped(brokers, 1, 4)
    assert (caught.value.replication_factor, caught.value.brokers) == (4, 3)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=12), st.integers(0, 99), st.randoms())
@settings(deadline=None, max_examples=100)
def test_every_layout_is_valid_led_by_unfenced_brokers_and_independent_of_order(described, seed, random):
    brokers = [Broker(i, f"r{rack}", state="dead" if fenced else "alive") for i, (rack, fenced) in enumerate(described)]
    unfenced = {b.id for b in brokers if b.state == "alive"}
    if not unfenced:
        brokers, unfenced = [Broker(b.id, b.rack) for b in brokers], {b.id for b in brokers}
    replication_factor = min(3, len(brokers))
    layout = place_striped(brokers, 3 * len(brokers), replication_factor, seed=seed)
    shuffled = place_striped(random.sample(brokers, len(brokers)), len(layout), replication_factor, seed=seed)
    assert layout.tobytes() == shuffled.tobytes()
    assert all(len(set(row)) == replication_factor for row in layout.tolist())
    assert {row[0] for row in layout.tolist()} <= unfenced
    racks = Counter(b.rack for b in brokers)
    spread = {len({brokers[i].rack for i in row}) for row in layout.tolist()}
    assert min(spread) >= min(replication_factor, len(racks)) - (len(unfenced) < len(brokers))
