"""Water-filling: against every possible distribution, and by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from placement.arrays import Int64Array
from placement.replanning import targets as targets_module
from placement.replanning.targets import Room, balance, targets


def _room(
    capacity: list[float], rack: list[int], total: int, racks: list[tuple[int, int]], low: int = 0, high: int = 99
) -> Room:
    n = len(capacity)
    bounds = np.array(racks, np.int64)
    return Room(
        np.array(capacity),
        np.full(n, low, np.int64),
        np.full(n, high, np.int64),
        np.array(rack, np.int32),
        bounds[:, 0],
        bounds[:, 1],
        total,
    )


def _best(room: Room, held: np.ndarray) -> tuple[float, int]:
    """The least cost and the fewest units to bring in, by looking at all distributions."""
    found = []
    for units in product(*(range(a, min(b, room.total) + 1) for a, b in zip(room.low, room.high, strict=True))):
        inside = np.bincount(room.rack, weights=units, minlength=room.rack_low.size)
        if sum(units) == room.total and (inside >= room.rack_low).all() and (inside <= room.rack_high).all():
            moves = int(np.maximum(np.array(units) - held, 0).sum())
            found.append((round(balance(np.array(units), room.capacity), 9), moves))
    return min(found)


def test_no_distribution_is_better_and_none_as_good_moves_less() -> None:
    checked = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n, racks = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        rack = rng.integers(0, racks, n)
        capacity = rng.choice([1.0, 1.0, 2.0, 1.5], n)
        low = rng.integers(0, 2, n)
        total = int(rng.integers(low.sum(), 9 + low.sum()))
        inside = np.bincount(rack, weights=low, minlength=racks).astype(int)
        # Bounds around some distribution, so that one exists.
        some = low + np.bincount(rng.integers(0, n, total - low.sum()), minlength=n)
        held_in = np.bincount(rack, weights=some, minlength=racks).astype(int)
        rack_low = np.maximum(inside, held_in - rng.integers(0, 3, racks))
        rack_high = held_in + rng.integers(0, 3, racks)
        room = Room(capacity, low, np.maximum(some, low) + 3, rack.astype(np.int32), rack_low, rack_high, total)
        held = rng.integers(0, 6, n)
        result = targets(room, held, np.arange(n))
        assert result.sum() == total, f"seed {seed}"
        inside = np.bincount(rack, weights=result, minlength=racks)
        assert (inside >= rack_low).all() and (inside <= rack_high).all(), f"seed {seed}"
        cost, moves = _best(room, held)
        assert round(balance(result, capacity), 9) == cost, f"seed {seed}"
        # A rack bound may force ties apart from what is held; without one they follow it exactly.
        if (rack_low <= inside - 1).all() and (rack_high >= inside + 1).all():
            checked += 1
            assert int(np.maximum(result - held, 0).sum()) == moves, f"seed {seed}"
    assert checked > 20


def test_uneven_racks_are_filled_to_their_window_and_no_further() -> None:
    # 4, 3 and 4 brokers, 1,000 partitions with one replica in each rack.
    rack = [0] * 4 + [1] * 3 + [2] * 4
    result = targets(
        _room([1.0] * 11, rack, 3000, [(1000, 1000)] * 3, high=1000), np.zeros(11, np.int64), np.arange(11)
    )
    assert result.tolist() == [250] * 4 + [334, 333, 333] + [250] * 4


def test_twice_the_capacity_gets_twice_the_replicas() -> None:
    result = targets(_room([2.0, 1.0, 1.0], [0, 0, 0], 40, [(40, 40)]), np.zeros(3, np.int64), np.arange(3))
    assert result.tolist() == [20, 10, 10]


def test_the_odd_unit_stays_where_it_is() -> None:
    result = targets(_room([1.0] * 3, [0, 0, 0], 7, [(7, 7)]), np.array([2, 2, 3]), np.arange(3))
    assert result.tolist() == [2, 2, 3]


def test_the_search_for_a_price_ends_early_with_what_all_its_steps_find(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers alike and very different, with bounds of their own and of racks that are stuck."""

    def found(room: Room, held: Int64Array, rank: Int64Array) -> list[list[int]]:
        fewest, most = targets_module.price_bracket(room)
        by_price = (fewest, most, targets_module.price_groups(room))
        return [column.tolist() for column in (*by_price, targets_module.targets(room, held, rank))]

    rng = np.random.default_rng(5)
    rooms = []
    for _ in range(150):
        n, racks = int(rng.integers(1, 13)), int(rng.integers(1, 5))
        rack = rng.integers(0, racks, n).astype(np.int32)
        low = rng.integers(0, 4, n)
        high = low + rng.integers(0, int(rng.choice([3, 10, 10**6])), n)
        sums = [np.bincount(rack, weights=each, minlength=racks).astype(np.int64) for each in (low, high)]
        cut = np.sort(rng.random((2, racks)), axis=0) if rng.random() < 0.6 else np.array([[0.0], [1.0]])
        rack_low, rack_high = (
            sums[0] + np.floor(cut[0] * (sums[1] - sums[0])).astype(np.int64),
            sums[0] + np.ceil(cut[1] * (sums[1] - sums[0])).astype(np.int64),
        )
        total = int(rng.integers(rack_low.sum(), rack_high.sum() + 1))
        capacity = rng.choice([1.0, 1 / 3, 2.0, 1.000001, 0.001], n) if rng.random() < 0.5 else np.ones(n)
        room = Room(capacity, low, high, rack, rack_low, rack_high, total)
        rooms.append((room, rng.integers(0, 20, n), rng.permutation(n)))
    early = [found(*room) for room in rooms]
    monkeypatch.setattr(targets_module, "_first_look", lambda room: 52)
    assert early == [found(*room) for room in rooms]
