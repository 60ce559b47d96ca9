"""Writing behind: in order, nothing lost when a write fails, and nobody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from streaming.job.write_behind import Behind


def test_what_was_handed_over_is_written_in_order_and_at_the_end_for_sure() -> None:
    written: list[int] = []
    behind = Behind("numbers", 0.001, written.extend)
    for number in range(50):
        behind.add([number])
    behind.stop()
    assert written == list(range(50))


def test_who_hands_over_does_not_wait_and_what_gathers_is_written_at_once() -> None:
    busy, go_on = threading.Event(), threading.Event()
    writes: list[list[int]] = []

    def write(items: Sequence[int]) -> None:
        busy.set()
        go_on.wait()
        writes.append(list(items))

    behind = Behind("numbers", 0.001, write)
    behind.add([0])
    busy.wait()
    for number in (1, 2, 3):
        behind.add([number])
    go_on.set()
    behind.stop()
    assert writes == [[0], [1, 2, 3]]


def test_what_failed_is_tried_again_with_what_comes_next(caplog: pytest.LogCaptureFixture) -> None:
    failed = threading.Event()
    written: list[int] = []

    def write(items: Sequence[int]) -> None:
        if not failed.is_set():
            failed.set()
            raise OSError("No space left on device")
        written.extend(items)

    behind = Behind("numbers", 0.001, write)
    behind.add([1, 2])
    failed.wait()
    behind.add([3])
    behind.stop()
    assert written == [1, 2, 3]
    assert behind.failures == 1
    assert "numbers: writing 2 of them failed" in caplog.text


def test_only_the_newest_wait_where_a_limit_is_set() -> None:
    written: list[int] = []
    tries = threading.Semaphore(0)
    open_again = threading.Event()

    def write(items: Sequence[int]) -> None:
        tries.release()
        if not open_again.is_set():
            raise OSError("Read-only file system")
        written.extend(items)

    behind = Behind("numbers", 0.001, write, most=3)
    for number in range(6):
        behind.add([number])
        tries.acquire()
    open_again.set()
    behind.stop()
    assert written[-3:] == [3, 4, 5]
    assert set(written) <= {2, 3, 4, 5}
