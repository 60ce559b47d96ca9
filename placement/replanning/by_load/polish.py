"""Polish: search again with some of the moves undone, and keep what copies fewer bytes.

Goal: fewer bytes for the same distance from the bands.
Method: the whole search runs at several prices of a copy; the best end is kept. Where clusters are small enough to
afford it, a few of the copied replicas are then sent home and held there while the search repairs the rest.
Which ones is drawn from a fixed sequence, so the answer is the same on every run.
Cost: a fixed number of searches, fewer the larger the layout, and of looks for a step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from placement.arrays import Float64Array, Int64Array
from placement.model import NO_BROKER
from placement.replanning.by_load.layout import Layout, Snapshot
from placement.replanning.by_load.search import settle
from placement.replanning.by_load.stages import Stage, Stages, lead, run

_PRICES: Final = (0.1, 0.3, 1.0)
_SEVERAL: Final = 100_000
_EFFORT: Final = 20_000
_MOST: Final = 80
_IN_VAIN: Final = 16
_OUT_OF_REACH: Final = 4
_SMALL: Final = 1_000
_NEAR: Final = 1.03
_LOOKS: Final = 1_000


def search(
    layout: Layout, staged: Stages, bound: Callable[[], int], pays: Callable[[Float64Array, Float64Array], bool]
) -> None:
    """Bring the brokers into their bands, at the best of several prices, and polish the end.

    ``bound`` gives the certified lower bound for the layout as it is; close to it there is little to gain. ``pays``
    says whether bringing brokers from some loads to others is worth copies: for what leaders carry they are only made
    then.
    """
    near = 1.0 if layout.replicas.size <= _SMALL else _NEAR
    start = layout.snapshot()
    free: list[tuple[tuple[float, int], Float64Array, Snapshot]] = []
    ends: list[tuple[tuple[float, int], Snapshot]] = []
    for price in _PRICES if layout.replicas.size <= _SEVERAL else _PRICES[:1]:
        if ends:
            layout.restore(start)
        run(layout, staged.copied, price)
        score = _score(layout)
        lead(layout, staged.rest[-1])
        free.append((score, layout.field.load.copy(), layout.snapshot()))
        run(layout, staged.rest, price)
        ends.append((_score(layout), layout.snapshot()))
        if ends[-1][0][0] > 0 or ends[-1][0][1] <= near * bound():
            break
    score, end = min(ends, key=lambda e: e[0])
    layout.restore(end)
    if score[0] > 0 or score[1] > near * bound():
        score = _polished(layout, staged, score)
    (_, least), load, cheapest = min(free, key=lambda f: f[0])
    if near * least < score[1] and not pays(load, layout.field.load):
        layout.restore(cheapest)


def _polished(layout: Layout, staged: Stages, score: tuple[float, int]) -> tuple[float, int]:
    """Undo some copies and search again, time after time; the score of the end."""
    in_vain, enough = 0, layout.looks - _LOOKS
    for attempt in range(min(_MOST, _EFFORT // layout.replicas.size)):
        if layout.looks <= enough or not _fresh(layout).size:
            break
        before, score = score, _again(layout, staged.rest[-1:], attempt, score)
        in_vain = 0 if score < before else in_vain + 1
        if in_vain == (_IN_VAIN if score[0] == 0 else _OUT_OF_REACH):
            break
    return score


def _score(layout: Layout) -> tuple[float, int]:
    """Distance from the bands, then bytes and what copies cost besides: less is better."""
    copied = _fresh(layout) // layout.replicas.shape[1]
    return layout.field.total(), int(layout.size[copied].sum()) + layout.toll * copied.size


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
