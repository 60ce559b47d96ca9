"""Java's generator and hash order, by values that Java's documentation and its runs give."""

from collections import Counter

import pytest

from placement.errors import PlacementError
from placement.kafka.java_random import JavaRandom, java_hash_order, java_string_hash, utf16_order


@pytest.mark.parametrize(
    ("seed", "bound", "draws"),
    [
        (42, 10, [0, 3, 8, 4, 0]),
        (42, 16, [11, 0, 10, 0, 4]),
        (-1, 3 << 29, [577549913, 943952225, 26349579, 1176895439, 1421815604]),
        (590585449725, 1 << 30, [885734097, 984775609, 917922354, 232014496, 315376530]),
    ],
)
def test_draws_as_java_does(seed, bound, draws):
    random = JavaRandom(seed)
    assert [random.next_int(bound) for _ in draws] == draws


def test_bounds_near_the_largest_int_are_drawn_evenly():
    """Above 2^30 some draws must be thrown away: a third of the range would come twice as often otherwise."""
    random = JavaRandom(7)
    bound = 3 << 29
    thirds = Counter(random.next_int(bound) * 3 // bound for _ in range(6000))
    assert set(thirds) == {0, 1, 2}
    assert max(thirds.values()) < 2200


@pytest.mark.parametrize("bound", [0, -3])
def test_refuses_bounds_that_nothing_is_below(bound):
    with pytest.raises(PlacementError):
        JavaRandom(1).next_int(bound)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("a", 97),
        ("AaAa", 2031744),
        ("BBBB", 2031744),
        ("hello world", 1794106052),
        ("polygenelubricants", 1 << 31),
    ],
)
def test_string_hash(text, code):
    assert java_string_hash(text) == code


def test_strings_are_ordered_by_utf_16_units():
    assert sorted(["9", "10", "\uff5e", "\U0001f600", "b", "B"], key=utf16_order) == [
        "10",
        "9",
        "B",
        "b",
        "\U0001f600",
        "\uff5e",
    ]


def test_hash_order_goes_by_bucket_then_by_insertion():
    assert java_hash_order(["q", "b", "a", "q"], java_string_hash) == ["q", "a", "b"]
    assert java_hash_order(["a", "b", "q"], java_string_hash) == ["a", "q", "b"]
    many = [str(i) for i in range(13)]
    assert java_hash_order(many, java_string_hash)[:3] == ["11", "12", "0"]
