"""Write-behind: rows are written on a separate thread, so that they never delay a batch."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")

_log: Final = logging.getLogger(__name__)


class Behind(Generic[Item]):
    """Hands what has gathered to ``write``, at most every so often; what failed is tried again with what comes next.

    Args:
        name: of the thread, and of what is written, for messages.
        interval: seconds between two writes, at least.
        write: writes some items, oldest first; whatever it raises is logged.
        most: items that wait at most while nothing can be written, the newest ones; without it all of them wait.
    """

    def __init__(
        self, name: str, interval: float, write: Callable[[Sequence[Item]], None], most: int | None = None
    ) -> None:
        self._name = name
        self._interval = interval
        self._write = write
        self._most = most
        self._waiting: list[Item] = []
        self._wake = threading.Condition()
        self._stopping = False
        self.failures = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def stopping(self) -> bool:
        """Whether what is being written is the last."""
        return self._stopping

    def add(self, items: Sequence[Item]) -> None:
        """Hand over items."""
        with self._wake:
            self._waiting += items
            self._wake.notify()

    def stop(self) -> None:
        """Write what waits, once, and end the thread."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        stopping = False
        while not stopping:
            with self._wake:
                self._wake.wait_for(lambda: self._waiting or self._stopping)
                items, self._waiting = self._waiting, []
                stopping = self._stopping
            if items:
                self._try(items)
            with self._wake:
                self._wake.wait_for(lambda: self._stopping, timeout=self._interval)

    def _try(self, items: list[Item]) -> None:
        try:
            self._write(items)
        except Exception:
            self.failures += 1
            _log.exception("%s: writing %s of them failed; it is retried", self._name, len(items))
            with self._wake:
                waiting = [*items, *self._waiting]
                self._waiting = waiting if self._most is None else waiting[-self._most :]
