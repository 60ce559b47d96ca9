"""Balanced placement of a small topic, one replica at a time, in plain numbers.

Goal, constraints and answer are those of :mod:`placement.balanced.place`; only the way there differs.
Method: the next replica goes to the broker where it costs least: unit k of broker b costs (2k - 1) / capacity_b. Racks
that are short of their window choose first. Costs grow with k and the bounds are nested (cluster, rack, broker), so
taking the cheapest unit each time is exact. A leader is the place that leads least for its capacity; that is proved to
be best where no broker's last leadership costs more than another one's next.
Example: brokers 0, 1, 2 hold 3, 1, 1 replicas, and 3 partitions with 1 replica come: 1 and 2 get one each, then the
first in turn of all three gets the last.
Cost: O(replicas * log brokers) steps of Python: a few dozen replicas are placed before NumPy's calls have begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace

Entry = tuple[float, float, int]
"""What the next replica costs on a broker, its turn among equals, and the broker."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """The brokers to place on, sorted by rack, and what they hold.

    Attributes:
        capacity: of each broker.
        racks: first broker and end of each rack.
        windows: the fewest and the most replicas of one partition that each rack holds.
        base: replicas that each broker has.
    """

    capacity: Sequence[float]
    racks: Sequence[tuple[int, int]]
    windows: Sequence[tuple[int, int]]
    base: Sequence[int]


def deal(shelf: Shelf, partitions: int, factor: int, rotation: int) -> list[int]:
    """How many replicas of the new partitions each broker gets.

    Args:
        shelf: the brokers.
        partitions, factor: how many come, and the replicas of each.
        rotation: turns the choice among equally loaded brokers.
    """
    units = list(shelf.base)
    left = partitions * factor
    waiting: list[list[Entry]] = []
    fixed = all(low == high for low, high in shelf.windows)
    for (first, end), (low, _) in zip(shelf.racks, shelf.windows, strict=True):
        turns = in_turn(first, end, rotation)
        if not (fixed and _level(shelf, units, turns, low * partitions, partitions)):
            heap = [
                ((2 * units[b] + 1) / shelf.capacity[b], (turn + 0.5) / len(turns), b) for turn, b in enumerate(turns)
            ]
            heapify(heap)
            for _ in range(low * partitions):
                _take(shelf, units, heap, partitions)
            waiting.append(heap)
        left -= low * partitions
    if left:
        _deal_rest(shelf, units, [entry for heap in waiting for entry in heap], partitions, left)
    return [now - before for now, before in zip(units, shelf.base, strict=True)]


def rows_of(shelf: Shelf, share: Sequence[int], partitions: int, rotation: int) -> list[list[int]]:
    """Deal the chosen brokers out, rack by rack: position q of their list goes to partition ``q mod partitions``."""
    dealt: list[int] = []
    for first, end in shelf.racks:
        for b in in_turn(first, end, rotation):
            dealt += [b] * share[b]
    return [dealt[p::partitions] for p in range(partitions)]


def lead(rows: list[list[int]], base: Sequence[int], capacity: Sequence[float]) -> bool:
    """Put the leader of each row first, in place.

    Args:
        rows: the replicas of each partition.
        base: leaderships that each broker has.
        capacity: of each broker.

    Returns:
        Whether no other choice could be better.
    """
    leaders = list(base)
    cost = [(2 * n + 1) / c for n, c in zip(base, capacity, strict=True)]
    for row in rows:
        leader = min(row, key=cost.__getitem__)
        row.remove(leader)
        row.insert(0, leader)
        leaders[leader] += 1
        cost[leader] = (2 * leaders[leader] + 1) / capacity[leader]
    last = max((2 * leaders[row[0]] - 1) / capacity[row[0]] for row in rows)
    return len(rows) == 1 or last <= min(cost)


def in_turn(first: int, end: int, rotation: int) -> list[int]:
    """The brokers of a rack; the rotation decides who is first."""
    start = first + -rotation % (end - first)
    return [*range(start, end), *range(first, start)]


def _level(shelf: Shelf, units: list[int], turns: Sequence[int], count: int, most: int) -> bool:
    """Fill a rack of equal brokers to one level, if none is above it and none below it by more than ``most``."""
    held = [units[b] for b in turns]
    level, extra = divmod(sum(held) + count, len(turns))
    even = max(held) <= level and level + (extra > 0) - min(held) <= most
    if even and len({shelf.capacity[b] for b in turns}) == 1:
        for turn, b in enumerate(turns):
            units[b] = level + (turn < extra)
        return True
    return False


def _deal_rest(shelf: Shelf, units: list[int], heap: list[Entry], most: int, left: int) -> None:
    """Hand out what no rack must have, to racks whose window has room."""
    rack_of = {b: rack for rack, (first, end) in enumerate(shelf.racks) for b in range(first, end)}
    room = [(high - low) * most for low, high in shelf.windows]
    heapify(heap)
    while left:
        rack = rack_of[heap[0][2]]
        if room[rack]:
            _take(shelf, units, heap, most)
            room[rack] -= 1
            left -= 1
        else:
            heappop(heap)


def _take(shelf: Shelf, units: list[int], heap: list[Entry], most: int) -> None:
    """Give the cheapest broker one replica; a broker that has one of every partition waits no longer."""
    _, turn, b = heap[0]
    units[b] += 1
    if units[b] - shelf.base[b] == most:
        heappop(heap)
    else:
        heapreplace(heap, ((2 * units[b] + 1) / shelf.capacity[b], turn, b))
