"""What a run makes of one look at the cluster while replicas move."""

from __future__ import annotations

import pytest

from streaming.apply.explain import not_moved
from streaming.apply.fates import Fate, fate_of
from streaming.apply.kafka.seen import Seen
from streaming.apply.progress import Pace, Progress
from streaming.apply.steps import Move
from streaming.kafka.snapshot import Partition

MOVE = Move("t", 0, now=(1, 2), after=(3, 2))


def partition(
    *replicas: int, isr: tuple[int, ...], adding: tuple[int, ...] = (), removing: tuple[int, ...] = ()
) -> Partition:
    return Partition(0, replicas, isr[0], 0, isr, adding, removing)


UNDER_WAY = partition(3, 2, 1, isr=(1, 2), adding=(3,), removing=(1,))


@pytest.mark.parametrize(
    ("there", "alive", "expected"),
    [
        (UNDER_WAY, {1, 2, 3}, Fate("moving")),
        (partition(3, 2, isr=(2, 3)), {1, 2, 3}, Fate("done")),
        (partition(3, 2, isr=(2,)), {2}, Fate("done")),
        (partition(3, 2, 1, isr=(1, 2)), {1, 2, 3}, Fate("unclear", "somebody cancelled it: it is on [3, 2, 1]")),
        (partition(1, 2, isr=(1, 2)), {1, 2, 3}, Fate("unclear", "somebody cancelled it: it is on [1, 2]")),
        (None, {1, 2, 3}, Fate("unclear", "the partition is no longer on the cluster")),
        (UNDER_WAY, {1, 2}, Fate("lost", "broker 3, which was to get it, went down", to_cancel=True)),
        (UNDER_WAY, {2, 3}, Fate("moving")),
        (UNDER_WAY, {3, 4}, Fate("lost", "no replica that is in sync is alive any more", to_cancel=True)),
        (
            partition(4, 2, 1, isr=(1, 2), adding=(4,), removing=(1,)),
            {1, 2, 3, 4},
            Fate("lost", "somebody else moves it to [4, 2]"),
        ),
    ],
)
def test_what_has_become_of_a_move(there: Partition | None, alive: set[int], expected: Fate) -> None:
    partitions = {} if there is None else {MOVE.place: there}
    assert fate_of(MOVE, Seen(frozenset(alive), partitions)) == expected


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress(1, 0, 1, 0, 0), "wave 1: 0 of 1 replica in sync"),
        (Progress(2, 3, 10, 12_900_000, 0), "wave 2: 3 of 10 replicas in sync, 12.3 MiB to copy"),
        (
            Progress(2, 3, 10, 12_900_000, 40, 8.6),
            "wave 2: 3 of 10 replicas in sync, 12.3 MiB to copy, 40 records behind, about 9 s left",
        ),
    ],
)
def test_progress_in_words(progress: Progress, text: str) -> None:
    assert progress.text == text


def test_time_left_goes_by_the_pace_so_far() -> None:
    pace = Pace()
    assert [pace.seconds_left(now, left) for now, left in [(10, 100), (11, 100), (12, 80), (15, 50)]] == [
        None,
        None,
        8.0,
        5.0,
    ]


def test_a_deleted_topic_takes_one_line_however_many_partitions_it_had() -> None:
    gone, moved = "the partition is no longer on the cluster", "somebody else moves it to [3, 4]"
    assert not_moved({("t", p): gone for p in range(3)} | {("u", 0): moved}) == [
        f"t-0, t-1, t-2 are not moved: {gone}",
        f"u-0 is not moved: {moved}",
    ]
    assert not_moved({("t", p): gone for p in range(400)}) == [f"400 partitions are not moved: {gone}"]
    assert not_moved({}) == []
