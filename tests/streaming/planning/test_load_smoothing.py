"""How observations become recorded values: worked examples, and properties against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from streaming.planning.smoothing import leading_bits, rounded, smoothed
from streaming.record.loads import UNKNOWN


def one(known: int, observed: int, weight: float = 0.2, step: float = 0.0001) -> int:
    return int(smoothed(np.array([known]), np.array([observed]), weight, step)[0])


@pytest.mark.parametrize(("step", "bits"), [(0.5, 2), (0.25, 3), (0.1, 5), (0.01, 8), (0.0001, 15)])
def test_so_many_bits_are_kept(step: float, bits: int) -> None:
    assert leading_bits(step) == bits


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (1, 1),
        (255, 255),
        (256, 256),
        (257, 258),
        (1003, 1004),
        (1001, 1000),
        (2**50, 2**50),
        (2**50 - 1, 2**50),
    ],
)
def test_values_are_rounded_to_their_leading_eight_bits(value: int, expected: int) -> None:
    assert rounded(np.array([value]), 0.01).tolist() == [expected]


@pytest.mark.parametrize("step", [0.5, 0.1, 0.01, 0.001])
def test_rounding_is_near_ordered_and_done_once(step: float) -> None:
    rng = np.random.default_rng(3)
    values = np.sort(np.exp(rng.uniform(0, np.log(2.0**50), 20_000)).astype(np.int64))
    found = rounded(values, step)
    off = [abs(Fraction(int(f), int(v)) - 1) for f, v in zip(found, values, strict=True)]
    assert max(off) <= Fraction(step) / 2
    assert (np.diff(found) >= 0).all()
    assert (rounded(found, step) == found).all()


@pytest.mark.parametrize(
    ("known", "observed", "weight", "expected"),
    [
        (UNKNOWN, 777, 0.2, 777),
        (777, UNKNOWN, 0.2, 777),
        (UNKNOWN, UNKNOWN, 0.2, UNKNOWN),
        (1000, 2000, 0.2, 1200),
        (2000, 1000, 0.2, 1800),
        (1000, 2000, 1.0, 2000),
        (1000, 0, 0.5, 500),
        (0, 1000, 0.001, 1),
        (10, 0, 0.2, 8),
    ],
)
def test_an_observation_pulls_the_recorded_value(known: int, observed: int, weight: float, expected: int) -> None:
    assert one(known, observed, weight) == expected


def test_what_stays_the_same_is_reached_but_for_the_step() -> None:
    """The docstring's weakness: half a step over the weight."""
    for start, goal in ((1_000, 1_000_000), (1_000_000, 1_000), (5_000, 5_100)):
        value = start
        for _ in range(200):
            value = one(value, goal, step=0.01)
        assert abs(value - goal) <= goal * 0.01 / 2 / 0.2 + 1


def test_nothing_overflows() -> None:
    top = 2**50
    assert abs(one(0, top) - top // 5) <= top // 10_000
    assert abs(one(top, 0) - 4 * top // 5) <= top // 10_000
    assert one(top, top, 1.0) == top
