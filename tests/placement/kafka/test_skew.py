"""The skew of a column of keys: numbers and chart."""

import pytest

from placement import key_skew, partitions_for_keys
from placement.errors import InvalidPartitionsError
from placement.kafka.key_skew import Skew, skew_chart, skew_table

KEYS = [f"user-{i}" for i in range(1000)] + ["hot"] * 500 + [None] * 7


def test_counts_the_records_of_each_partition():
    five, many = key_skew(KEYS, [5, 2000])
    partitions = partitions_for_keys(KEYS, 5).tolist()
    assert five.records == tuple(partitions.count(p) for p in range(5))
    assert (five.without_key, five.heaviest_key, five.keyed) == (7, 500, 1500)
    assert five.largest == max(five.records) > 500
    assert many.empty == many.records.count(0) > 500
    assert many.smallest == 0
    assert (many.partitions, many.largest, many.mean) == (2000, 500, 0.75)


def test_no_keys_are_even():
    (skew,) = key_skew([None, None], [3])
    assert (skew.records, skew.without_key, skew.heaviest_key, skew.factor) == ((0, 0, 0), 2, 0, 1.0)
    assert skew_chart(skew, width=4) == "0      0\n1      0\n2      0"


@pytest.mark.parametrize("partitions", [0, 10_000_001])
def test_refuses_counts_out_of_range(partitions):
    with pytest.raises(InvalidPartitionsError) as caught:
        key_skew(["a"], [3, partitions])
    assert caught.value.partitions == partitions


def test_table_and_chart():
    skew = Skew((4, 2, 0, 6), 0, 4)
    assert skew_table([skew]).splitlines() == [
        "partitions        mean     fullest    emptiest   fullest/mean",
        "         4         3.0           6           0           2.00",
    ]
    assert skew_chart(skew, width=6).splitlines() == [
        "0 ████   4 +33%",
        "1 ██     2 -33%",
        "2        0 -100%",
        "3 ██████ 6 +100%",
    ]
    assert skew_chart(skew, width=6, rows=2).splitlines() == [
        "3 ██████ 6 +100%",
        "... 2 partitions between them",
        "2        0 -100%",
    ]
