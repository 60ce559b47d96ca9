"""Producer partitioning: Kafka's hashes on recorded keys, columns in every form, and the choice per record."""

import base64

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement import partition_for_key, partitions_for_keys
from placement.errors import InvalidKeyError, InvalidPartitionError, InvalidPartitionsError
from placement.kafka.keys import key_bytes, key_column
from placement.kafka.murmur2 import murmur2, positive_hashes, to_positive
from placement.kafka.partitioner import NO_PARTITION, DefaultPartitioner, partition_for_record
from tests.placement.golden import vectors

VECTORS = vectors("partitioner")


def key_of(vector):
    given_in = vector["in"]
    if "key_b64" in given_in:
        return base64.b64decode(given_in["key_b64"])
    if "key_str" in given_in:
        return given_in["key_str"]
    return bytes.fromhex(given_in["key_str_utf16be_hex"]).decode("utf-16-be", "surrogatepass")


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["id"])
def test_hashes_and_partitions_as_kafka_does(vector):
    key, partitions, out = key_of(vector), vector["in"]["n"], vector["out"]
    if "key_b64" in out:
        assert key_bytes(key) == base64.b64decode(out["key_b64"])
    assert murmur2(key_bytes(key)) == out["murmur2"]
    assert to_positive(out["murmur2"]) == out["positive"]
    if "err" in out:
        with pytest.raises(InvalidPartitionsError) as caught:
            partition_for_key(key, partitions)
        assert caught.value.partitions == partitions
    else:
        assert partition_for_key(key, partitions) == out["partition"] == out["partition_082"]
        assert partitions_for_keys([key], partitions).tolist() == [out["partition"]]


def test_dropping_the_sign_bit_is_not_the_absolute_value():
    negative = [v["out"] for v in VECTORS if v["out"]["murmur2"] < 0 and "partition" in v["out"]]
    assert any(out["partition_mathabs"] != out["partition"] for out in negative)


def test_a_whole_column_of_recorded_keys():
    hashes = positive_hashes(key_column([key_of(v) for v in VECTORS]))
    assert hashes.tolist() == [v["out"]["positive"] for v in VECTORS]


def test_surrogates_as_java_encodes_them():
    assert key_bytes("\ud83d\ude00") == "\U0001f600".encode()
    assert key_bytes("a\ud83d") == b"a?"
    assert key_bytes("\ude00\ud83d") == b"??"


WORDS = ["", "a", "user-1", "user-10", "éè", "x" * 37, "\U0001f600", "user-1"]
WANTED = [partition_for_key(word, 7) for word in WORDS]


@pytest.mark.parametrize(
    "keys",
    [
        WORDS,
        tuple(word.encode() for word in WORDS),
        (word for word in WORDS),
        np.array(WORDS),
        np.array(WORDS, dtype=object),
        np.array([word.encode() for word in WORDS]),
        pa.array(WORDS),
        pa.array(WORDS, pa.large_string()),
        pa.array([word.encode() for word in WORDS]),
        pa.array([word.encode() for word in WORDS], pa.large_binary()),
        pa.array(["skipped", *WORDS, "too"])[1:-1],
        pa.chunked_array([WORDS[:3], [], WORDS[3:]]),
    ],
    ids=lambda keys: f"{type(keys).__name__} {getattr(keys, 'dtype', getattr(keys, 'type', ''))}",
)
def test_a_column_in_any_form(keys):
    assert partitions_for_keys(keys, 7).tolist() == WANTED


def test_null_keys_have_no_partition_of_their_own():
    wanted = [WANTED[1], NO_PARTITION, WANTED[2]]
    for keys in (["a", None, "user-1"], pa.array(["a", None, "user-1"]), pa.chunked_array([["a"], [None, "user-1"]])):
        assert partitions_for_keys(keys, 7).tolist() == wanted
    assert partitions_for_keys(pa.nulls(2), 7).tolist() == [NO_PARTITION] * 2
    assert partitions_for_keys(pa.array(["x", None, "a", None, "user-1"])[2:], 7).tolist() == wanted


@pytest.mark.parametrize(
    "keys", [[], np.empty((0, 16), np.uint8), pa.array([], pa.string()), pa.chunked_array([], pa.binary())]
)
def test_no_keys(keys):
    assert partitions_for_keys(keys, 3).tolist() == []


@pytest.mark.parametrize("keys", [[1], ["a", 2.5], np.array([1, 2]), pa.array([1, 2]), np.zeros((2, 2))])
def test_refuses_what_no_producer_sends(keys):
    with pytest.raises(InvalidKeyError):
        partitions_for_keys(keys, 3)


@pytest.mark.parametrize("partitions", [0, -1, 2**31])
def test_refuses_partition_counts_that_no_topic_has(partitions):
    for call in (lambda: partition_for_key(b"a", partitions), lambda: partitions_for_keys([b"a"], partitions)):
        with pytest.raises(InvalidPartitionsError) as caught:
            call()
        assert caught.value.partitions == partitions


@given(st.lists(st.binary(max_size=40), max_size=60), st.integers(1, 2**31 - 1))
@settings(deadline=None, max_examples=150)
def test_columns_equal_the_key_by_key_answer(keys, partitions):
    assert partitions_for_keys(keys, partitions).tolist() == [partition_for_key(key, partitions) for key in keys]


@pytest.mark.parametrize("length", [0, 1, 3, 4, 15, 16, 21, 5000])
def test_blocks_of_equal_keys(length):
    rows = np.random.default_rng(length).integers(0, 256, (8200 if length < 30 else 70, length), np.uint8)
    picked = [0, 1, len(rows) // 2, -2, -1]
    partitions = partitions_for_keys(rows, 50)
    assert partitions[picked].tolist() == [partition_for_key(rows[i].tobytes(), 50) for i in picked]


@pytest.mark.parametrize(
    ("available", "turns"),
    [([4, 1], [4, 1, 4, 1, 4]), ([3], [3, 3, 3, 3, 3]), ([], [0, 1, 2, 3, 4])],
)
def test_records_without_a_key_go_in_turn(available, turns):
    partitioner = DefaultPartitioner()
    assert [partitioner.partition(None, 5, available) for _ in turns] == turns


def test_the_turn_goes_on_where_it_is_told_and_past_the_largest_int():
    partitioner = DefaultPartitioner(2**31 - 1)
    assert [partitioner.partition(None, 10, []) for _ in range(3)] == [7, 0, 1]


def test_a_record_may_name_its_partition():
    class Unused:
        def partition(self, key, partitions, available):
            raise AssertionError

    assert partition_for_record(Unused(), b"a", 6, partition=5) == 5
    for wrong in (6, -1):
        with pytest.raises(InvalidPartitionError, match=rf"{wrong} is not in the range \[0...5\]") as caught:
            partition_for_record(Unused(), b"a", 6, partition=wrong)
        assert (caught.value.partition, caught.value.partitions) == (wrong, 6)


def test_any_rule_can_be_plugged_in():
    class FirstByte:
        def partition(self, key, partitions, available):
            return key[0] if key else available[0]

    assert partition_for_record(FirstByte(), b"\x02x", 4) == 2
    assert partition_for_record(FirstByte(), None, 4, available=[3, 1]) == 3
    with pytest.raises(InvalidPartitionError):
        partition_for_record(FirstByte(), "z", 4)
    assert partition_for_record(DefaultPartitioner(), "a", 50) == 24
