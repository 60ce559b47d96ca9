"""The rack window against its definition, and the cases it has to cover."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from placement.replanning.window import highest, levels, lowest

CASES = {
    "enough racks: one each at most": (3, [4, 4, 4, 4], [0, 0, 0, 0], [(0, 1)] * 4),
    "as many racks as replicas: exactly one each": (3, [4, 3, 4], [0, 0, 0], [(0, 1)] * 3),
    "two racks for three": (3, [5, 5], [0, 0], [(1, 2)] * 2),
    "a tiny rack": (5, [1, 5, 5], [0, 0, 0], [(1, 1), (1, 2), (1, 2)]),
    "no racks": (3, [9], [0], [(2, 3)]),
    "a violation that has to stay": (3, [4, 4, 4], [2, 0, 0], [(2, 2), (0, 1), (0, 1)]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_window(name: str) -> None:
    factor, size, stay, expected = CASES[name]
    sizes, stays = np.array([size]), np.array([stay])
    level = levels(np.array([factor]), sizes, stays)[:, None]
    windows = list(zip(lowest(level, sizes, stays)[0], highest(level, sizes, stays)[0], strict=True))
    assert windows == expected


def test_the_window_admits_exactly_the_most_even_spreads() -> None:
    # Without replicas that must stay: a spread is in the window exactly if no move between racks would make it evener.
    for size in product(range(1, 5), repeat=3):
        for factor in range(1, min(6, sum(size)) + 1):
            sizes, none = np.array([size]), np.zeros((1, 3), np.int64)
            level = levels(np.array([factor]), sizes, none)[:, None]
            low, high = lowest(level, sizes, none)[0], highest(level, sizes, none)[0]
            for spread in product(*(range(n + 1) for n in size)):
                if sum(spread) != factor:
                    continue
                inside = all(a <= s <= b for a, s, b in zip(low, spread, high, strict=True))
                pairs = [(i, j) for i, j in product(range(3), repeat=2) if i != j]
                even = not any(spread[i] - spread[j] > 1 and spread[j] < size[j] for i, j in pairs)
                assert inside == even, (size, factor, spread)
