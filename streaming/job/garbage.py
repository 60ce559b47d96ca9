"""How often Python looks for cycles among its objects.

Rows, events and plans hold no cycles, and there are many of them: looking every 700 objects takes up to a third of the
time in which they are made.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SELDOM: Final = (50_000, 10, 10)
"""Thresholds for ``gc.set_threshold``."""


@contextmanager
def few_collections() -> Iterator[None]:
    """Look seldom while the block runs."""
    before = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
