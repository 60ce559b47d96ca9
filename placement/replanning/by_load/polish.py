"""Polish: search again with some of the moves undone, and keep what copies fewer bytes.

Goal: fewer bytes for the same distance from the bands.
Method: the whole search runs at several prices of a copy; the best end is kept. Where clusters are small enough to
afford it, a few of the copied replicas are then sent home and held there while the search repairs the rest.
Which ones is drawn from a fixed sequence, so the answer is the same on every run.
Cost: a fixed number of searches, fewer the larger the layout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from placement.arrays import Int64Array
from placement.model import NO_BROKER
from placement.replanning.by_load.layout import Layout
from placement.replanning.by_load.search import settle
from placement.replanning.by_load.stages import Stage, run

_PRICES: Final = (0.1, 0.3, 1.0)
_SEVERAL: Final = 100_000
_EFFORT: Final = 20_000
_MOST: Final = 80
_IN_VAIN: Final = 16
_OUT_OF_REACH: Final = 4
_SMALL: Final = 1_000
_NEAR: Final = 1.03
_DIGITS: Final = 12


def search(layout: Layout, staged: list[Stage], bound: Callable[[], int]) -> None:
    """Bring the brokers into their bands, at the best of several prices, and polish the end.

    ``bound`` gives the certified lower bound for the layout as it is; close to it there is little to gain.
    """
    cells = layout.replicas.size
    near = 1.0 if cells <= _SMALL else _NEAR
    if cells > _SEVERAL:
        run(layout, staged, _PRICES[0])
        return
    start, best = layout.snapshot(), None
    for price in _PRICES:
        if best is not None:
            layout.restore(start)
        run(layout, staged, price)
        score = _score(layout)
        if score[0] == 0 and score[1] <= near * bound():
            return
        if best is None or score < best[0]:
            best = (score, layout.snapshot())
        if score[0] > 0:
            break
    if best is None:
        return
    score = best[0]
    layout.restore(best[1])
    in_vain = 0
    for attempt in range(min(_MOST, _EFFORT // cells)):
        before, score = score, _again(layout, staged[-1:], attempt, score)
        in_vain = 0 if score < before else in_vain + 1
        if in_vain == (_IN_VAIN if score[0] == 0 else _OUT_OF_REACH):
            return


def _score(layout: Layout) -> tuple[float, int]:
    """Distance from the bands, then bytes and what copies cost besides: less is better."""
    cost = round(float(np.cumsum(layout.field.cost)[-1]), _DIGITS)
    copied = _fresh(layout) // layout.replicas.shape[1]
    return cost, int(layout.size[copied].sum()) + layout.toll * copied.size


def _fresh(layout: Layout) -> Int64Array:
    """Cells that are copied."""
    cell = np.flatnonzero(layout.replicas.reshape(-1) != NO_BROKER)
    row, slot = layout.split(cell)
    return cell[layout.fresh(row, layout.replicas[row, slot])]


def _again(layout: Layout, staged: list[Stage], attempt: int, score: tuple[float, int]) -> tuple[float, int]:
    """Undo some copies, search without them, and go back where that is no better."""
    start, movable = layout.snapshot(), layout.movable.copy()
    price = _PRICES[attempt % len(_PRICES)]
    layout.strive(price)
    for cell in _drawn(_fresh(layout), attempt).tolist():
        row, slot = divmod(cell, layout.replicas.shape[1])
        if _sent_home(layout, row, slot):
            layout.movable[row, slot] = False
    settle(layout)
    layout.movable[:] = movable
    run(layout, staged, price)
    after = _score(layout)
    if after < score:
        return after
    layout.restore(start)
    return score


def _drawn(cell: Int64Array, attempt: int) -> Int64Array:
    """One to four of the cells, each alone first."""
    if attempt < cell.size:
        return cell[attempt : attempt + 1]
    draw = (np.arange(1, 2 + attempt % 3 + 1) * 2654435761 + attempt * 40503) >> 7
    return np.unique(cell[draw % cell.size]) if cell.size else cell


def _sent_home(layout: Layout, row: int, slot: int) -> bool:
    """Put a copied replica back where its partition was, if a place is free there."""
    usable = layout.state.problem.fleet.usable
    at = layout.open_rows(np.array([row]))
    for home in layout.origin[row].tolist():
        free = 0 <= home < usable and home not in layout.replicas[row].tolist()
        if free and layout.state.accepts(at, np.array([slot]), np.array([home]))[0]:
            layout.move(row, slot, home)
            return True
    return False
