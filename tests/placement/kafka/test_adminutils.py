"""AdminUtils: Kafka's answers on recorded vectors, published tables, and properties of every layout."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement import Broker, extend_adminutils, infer_start, place_adminutils
from placement.errors import (
    DuplicateBrokerError,
    IncompleteRackError,
    InvalidAssignmentError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidStartIndexError,
)
from placement.kafka.adminutils.place import Start, draw_start
from placement.kafka.adminutils.ring import ring_of
from placement.kafka.adminutils.wrapping import place_wrapping
from placement.kafka.java_random import JavaRandom
from tests.placement.golden import brokers_of, examples, vectors

ERRORS = {
    "InvalidPartitionsException": InvalidPartitionsError,
    "InvalidReplicationFactorException": InvalidReplicationFactorError,
    "AdminOperationException": IncompleteRackError,
    # Sums past 2^31: of the start, or of the partition ids.
    "IndexOutOfBoundsException": (InvalidStartIndexError, InvalidPartitionsError),
    "ArithmeticException": DuplicateBrokerError,
}
VECTORS = vectors("adminutils")
LAID_OUT = [v for v in VECTORS if "replicas" in v["out"] and v.get("name") != "dup ids only, unaware"]


def place(vector):
    given_in = vector["in"]
    return place_adminutils(
        brokers_of(given_in["brokers"]),
        given_in["n_partitions"],
        given_in["rf"],
        fixed_start_index=given_in["fixed_start_index"],
        start_partition_id=given_in["start_partition_id"],
        seed=given_in.get("rand_seed"),
    )


@pytest.mark.parametrize("vector", LAID_OUT, ids=lambda v: v["id"])
def test_lays_out_as_kafka_does(vector):
    layout = place(vector)
    assert layout.tolist() == vector["out"]["replicas"]
    assert layout.dtype == np.int32


@pytest.mark.parametrize("vector", [v for v in VECTORS if v not in LAID_OUT], ids=lambda v: v["id"])
def test_refuses_what_kafka_refuses_and_duplicates_besides(vector):
    kafka = vector["out"].get("err", {}).get("class", "ArithmeticException").rsplit(".", 1)[1:]
    with pytest.raises(ERRORS[kafka[0] if kafka else "ArithmeticException"]):
        place(vector)


@pytest.mark.parametrize("vector", LAID_OUT, ids=lambda v: v["id"])
def test_infers_the_start_of_every_recorded_layout(vector):
    given_in, brokers = vector["in"], brokers_of(vector["in"]["brokers"])
    first = given_in["start_partition_id"]
    start = infer_start(brokers, vector["out"]["replicas"], start_partition_id=first)
    again = place_adminutils(
        brokers,
        given_in["n_partitions"],
        given_in["rf"],
        fixed_start_index=start.fixed_start_index(len(brokers)),
        start_partition_id=first,
    )
    assert again.tolist() == vector["out"]["replicas"]
    if given_in["fixed_start_index"] >= 0:
        assert start.start_index == given_in["fixed_start_index"] % len(brokers)
        assert start.next_replica_shift <= given_in["fixed_start_index"] % max(1, len(brokers) - 1)


@pytest.mark.parametrize("example", examples("adminutils"), ids=lambda e: e["name"])
def test_worked_examples_of_the_literature(example):
    """Where the text is wrong, ``out`` is what Kafka gives, and ``seed_table`` what was printed."""
    layout = place(example).tolist()
    assert layout == example["out"]["replicas"]
    if "seed_table" in example:
        assert layout != example["seed_table"]
        assert infer_start(brokers_of(example["in"]["brokers"]), example["seed_table"]) == (3, 0)


def test_the_text_that_adds_one_to_the_shift_at_partition_0_is_wrong():
    brokers = [Broker(0), Broker(1), Broker(2)]
    printed_as_start_2_shift_1 = [[2, 0, 1], [0, 1, 2], [1, 2, 0], [2, 1, 0], [0, 2, 1], [1, 0, 2]]
    assert infer_start(brokers, printed_as_start_2_shift_1) == (2, 0)
    assert place_adminutils(brokers, 1, 3, fixed_start_index=Start(2, 1).fixed_start_index(3)).tolist() == [[2, 1, 0]]


def test_racks_by_choice_only():
    racked = [Broker(3, "b"), Broker(1, "a"), Broker(2, "a"), Broker(0, "b")]
    bare = [Broker(b.id) for b in racked]
    aware = place_adminutils(racked, 8, 2, fixed_start_index=0).tolist()
    unaware = place_adminutils(racked, 8, 2, fixed_start_index=0, rack_aware=False).tolist()
    assert aware == [[1, 0], [0, 2], [2, 3], [3, 1], [1, 3], [0, 1], [2, 0], [3, 2]]
    assert unaware == [[3, 1], [1, 2], [2, 0], [0, 3], [3, 2], [1, 0], [2, 3], [0, 1]]
    assert unaware == place_adminutils(bare, 8, 2, fixed_start_index=0).tolist()


def test_only_alive_brokers_take_replicas():
    brokers = [Broker(0), Broker(1, state="dead"), Broker(2, state="draining"), Broker(3)]
    assert place_adminutils(brokers, 2, 2, fixed_start_index=0).tolist() == [[0, 3], [3, 0]]
    with pytest.raises(InvalidReplicationFactorError) as caught:
        place_adminutils(brokers, 2, 3)
    assert (caught.value.replication_factor, caught.value.brokers) == (3, 2)


@pytest.mark.parametrize(
    ("brokers", "partitions", "replication_factor", "error"),
    [
        ([], 0, 0, InvalidPartitionsError),
        ([Broker(0), Broker(0)], 1, 0, InvalidReplicationFactorError),
        ([Broker(0, "a"), Broker(1)], 1, 3, InvalidReplicationFactorError),
        ([Broker(0, "a"), Broker(1), Broker(1)], 1, 2, DuplicateBrokerError),
        ([Broker(0, "a"), Broker(1)], 1, 2, IncompleteRackError),
        ([Broker(0)], 2**31 + 1, 1, InvalidPartitionsError),
        ([Broker(0)], 100_000_001, 1, InvalidPartitionsError),
    ],
)
def test_checks_come_in_kafkas_order(brokers, partitions, replication_factor, error):
    with pytest.raises(error):
        place_adminutils(brokers, partitions, replication_factor)


def test_errors_carry_what_they_are_about():
    with pytest.raises(IncompleteRackError) as caught:
        place_adminutils([Broker(7), Broker(1, "a"), Broker(5)], 1, 1)
    assert caught.value.without_rack == (5, 7)
    with pytest.raises(IncompleteRackError):
        place_adminutils([Broker(7), Broker(1)], 1, 1, rack_aware=True)
    with pytest.raises(InvalidStartIndexError) as overflow:
        place_adminutils([Broker(i) for i in range(5)], 4, 3, fixed_start_index=2**31 - 1)
    assert (overflow.value.start_index, overflow.value.partition) == (2**31 - 1, 1)
    with pytest.raises(InvalidStartIndexError):
        place_adminutils([Broker(0)], 1, 1, fixed_start_index=2**31)


@pytest.mark.parametrize(
    ("layout", "partition"),
    [
        ([[0, 1, 2], [1, 2, 0], [2, 1, 0]], 2),
        ([[0, 1, 2], [1, 0, 2]], 1),
        ([[0, 9, 2]], 0),
        ([[9, 0, 2]], 0),
    ],
)
def test_says_when_no_draw_gives_a_layout(layout, partition):
    with pytest.raises(InvalidAssignmentError) as caught:
        infer_start([Broker(0), Broker(1), Broker(2)], layout)
    assert caught.value.partition == partition
    assert caught.value.replicas == tuple(layout[partition])


@pytest.mark.parametrize("layout", [[0, 1], [[0.5, 1.0]], [["a", "b"]]])
def test_infers_nothing_from_what_is_no_layout(layout):
    with pytest.raises(InvalidAssignmentError):
        infer_start([Broker(0), Broker(1)], layout)


def test_seed_is_that_of_java_and_replays():
    assert draw_start(3, JavaRandom(42)) == (2, 0)
    brokers = [Broker(i) for i in range(7)]
    drawn = place_adminutils(brokers, 9, 3, seed=11)
    assert drawn.tolist() == place_adminutils(brokers, 9, 3, seed=11).tolist()
    start = draw_start(7, JavaRandom(11))
    assert infer_start(brokers, drawn) == (start.start_index, start.next_replica_shift % 6)
    assert len({place_adminutils(brokers, 9, 3, seed=s).tobytes() for s in range(60)}) > 20


@st.composite
def rings(draw):
    racks = draw(st.sampled_from([None, 1, 2, 3, 5]))
    count = draw(st.integers(1, 14))
    ids = draw(st.lists(st.integers(0, 99), min_size=count, max_size=count, unique=True))
    rack = (lambda: None) if racks is None else (lambda: f"r{draw(st.integers(0, racks - 1))}")
    return [Broker(i, rack()) for i in ids]


@given(rings(), st.integers(1, 300), st.data())
@settings(deadline=None, max_examples=150)
def test_whole_columns_equal_the_walk_partition_by_partition(brokers, partitions, data):
    replication_factor = data.draw(st.integers(1, len(brokers)))
    start = data.draw(st.integers(0, 500))
    first = data.draw(st.integers(0, 60))
    layout = place_adminutils(
        brokers, partitions, replication_factor, fixed_start_index=start, start_partition_id=first
    )
    walked = place_wrapping(ring_of(brokers, None), partitions, replication_factor, start, start, first)
    assert layout.tolist() == walked.tolist()
    assert all(len(set(row)) == replication_factor for row in layout.tolist())
    racks = {b.id: b.rack or b.id for b in brokers}
    spread = min(replication_factor, len(set(racks.values())))
    assert all(len({racks[b] for b in row}) == spread for row in layout.tolist())


@given(rings(), st.integers(1, 60), st.integers(0, 10_000))
@settings(deadline=None, max_examples=100)
def test_partitions_added_continue_the_layout(brokers, partitions, start):
    replication_factor = min(3, len(brokers))
    whole = place_adminutils(brokers, 100, replication_factor, fixed_start_index=start)
    grown = np.vstack([whole[:partitions], extend_adminutils(brokers, whole[:partitions], 40)])
    assert infer_start(brokers, grown) == infer_start(brokers, grown[:partitions])


def test_partitions_added_to_a_foreign_layout_start_as_kafka_starts_them():
    brokers = [Broker(5), Broker(1), Broker(3), Broker(9)]
    foreign = [[4, 1], [4, 3]]
    by_id = sorted(brokers, key=lambda b: b.id)
    added = extend_adminutils(brokers, foreign, 3)
    assert added.tolist() == [[1, 9], [3, 1], [5, 9]]
    assert added.tolist() == place_adminutils(by_id, 3, 2, fixed_start_index=2, start_partition_id=2).tolist()


@given(rings(), st.randoms())
@settings(deadline=None, max_examples=50)
def test_order_of_racked_brokers_does_not_matter(brokers, random):
    shuffled = random.sample(brokers, len(brokers))
    if brokers[0].rack is None:
        brokers, shuffled = ([Broker(b.id, "r") for b in group] for group in (brokers, shuffled))
    one, other = (
        place_adminutils(group, 40, min(2, len(brokers)), fixed_start_index=5) for group in (brokers, shuffled)
    )
    assert one.tobytes() == other.tobytes()
