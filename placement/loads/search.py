"""Search: bring the worst broker closer to its band, with leaderships first and with the fewest bytes after that.

Goal: cost zero, which is every broker within its band, for the fewest bytes.
Method: of the broker with the largest cost, leaderships go first, as they are free. If none gains, the copy that comes
nearest to the bands per byte: away from the broker where it is above its band, to it where it is below. It must lower
the cost, which is quadratic, so that the search ends; it is chosen by plain distance, as a quadratic gain would prefer
small replicas to those that do more per byte. If none gains, two replicas swap. A broker for which nothing gains waits
until another has changed.
Cost: O(candidates * targets) for each step. Weakness: a step that must first lose to gain is never taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from placement.arrays import BoolArray, Float64Array, Int64Array
from placement.loads.layout import Layout
from placement.loads.leaderships import lead_better
from placement.model import Int32Array

_SMALLEST: Final = 1e-14
_ROUNDING: Final = 1e-12
_CELLS: Final = 64
_TARGETS: Final = 64
_HOTTEST: Final = 8
_SWAPPED: Final = 32
_ENOUGH: Final = 3
_PULLED: Final = 128
_PASSES: Final = 8


@dataclass(frozen=True, slots=True)
class Step:
    """A copy of a cell to a broker, and what it gains per byte."""

    cell: int
    broker: int
    rate: float


def settle(layout: Layout) -> None:
    """Take steps until no broker outside its band has one that gains."""
    field, n = layout.field, layout.state.problem.fleet.usable
    waiting = np.zeros(n, np.bool_)
    changed = False
    passes = 0
    while True:
        cost = np.where(waiting, 0.0, field.cost[:n])
        worst = int(cost.argmax())
        # Gains below the rounding of the costs could go round in circles.
        layout.least = _SMALLEST + _ROUNDING * float(field.cost.max())
        if cost[worst] <= _SMALLEST:
            passes += 1
            if not changed or passes == _PASSES or not waiting.any():
                return
            waiting[:], changed = False, False
        elif _better(layout, worst, swap=passes > 0 or not changed):
            changed = True
        else:
            waiting[worst] = True


def _better(layout: Layout, broker: int, *, swap: bool) -> bool:
    """Take the best step for a broker; False where there is none."""
    if lead_better(layout, broker):
        return True
    away, pull = _push(layout, broker), _pull(layout, broker)
    step = max((s for s in (away, pull) if s is not None), key=lambda s: s.rate, default=None)
    if step is not None:
        width = layout.replicas.shape[1]
        layout.move(step.cell // width, step.cell % width, step.broker)
        return True
    return swap and _swap(layout, broker)


def _movable(layout: Layout, broker: int) -> Int64Array:
    cell = layout.members(broker)
    row, slot = layout.split(cell)
    return cell[layout.movable[row, slot]]


def _typical(layout: Layout) -> float:
    """What a copy costs besides its bytes, so that tiny partitions are not moved by the thousand."""
    return layout.patience * max(float(np.sum(layout.size)) / layout.size.size, 1.0)


def _first(
    layout: Layout, cell: Int64Array, row: Int64Array, value: Float64Array, fresh: BoolArray, count: int
) -> Int64Array:
    """Cells with the largest value per byte, at most ``count``."""
    rate = value / (np.where(fresh, 0.0, layout.size[row]) + _typical(layout))
    best = np.flatnonzero(rate > 0)
    if best.size > count:
        # All that tie with the last one stay in, so that the order of cells decides, not the selection's.
        best = best[rate[best] >= np.partition(rate[best], best.size - count)[best.size - count]]
    return cell[best[np.argsort(-rate[best], kind="stable")[:count]]]


def _weighed(load: Float64Array, slope: Float64Array) -> Float64Array:
    """The sum over weights of load times slope; ``slope`` has shape ``(weights,)`` or that of ``load``."""
    result = load[0] * slope[0]
    for k in range(1, load.shape[0]):
        result = result + load[k] * slope[k]
    return np.asarray(result)


def _push(layout: Layout, broker: int) -> Step | None:
    """The best copy from a broker that is above its band."""
    field, n = layout.field, layout.state.problem.fleet.usable
    slope = field.slope(broker)
    if not (slope > 0).any():
        return None
    cell = _movable(layout, broker)
    row, _ = layout.split(cell)
    value = _weighed(layout.carried(row, broker), slope)
    cell = _first(layout, cell, row, value, layout.fresh(row, np.full(row.size, broker)), _CELLS)
    if not cell.size:
        return None
    heat = field.heat((slope > 0).astype(np.float64))[:n]
    heat[broker] = np.inf
    target = np.argsort(heat, kind="stable")[: min(_TARGETS, n - 1)]
    return _best_push(layout, broker, cell, np.sort(target))


def _best_push(layout: Layout, broker: int, cell: Int64Array, target: Int64Array) -> Step | None:
    field = layout.field
    row, slot = layout.split(cell)
    load = layout.carried(row, broker)
    m, t = cell.size, target.size
    given = _nearer(layout, broker, field.load[:, broker, None], field.load[:, broker, None] - load)
    sums = (load[:, :, None] + field.load[:, target][:, None, :]).reshape(load.shape[0], m * t)
    taken = _nearer(layout, np.tile(target, m), np.tile(field.load[:, target], m), sums)
    gain, nearer = (one[:, None] + other.reshape(m, t) for one, other in zip(given, taken, strict=True))
    return _chosen(layout, cell, target, gain, nearer, _accepted(layout, row, slot, target))


def _nearer(
    layout: Layout, broker: Int64Array | Int32Array | int, before: Float64Array, after: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """What brokers gain when their loads change: in cost, and in distance."""
    (cost, distance), (less, closer) = (layout.field.near(broker, load) for load in (before, after))
    return cost - less, distance - closer


def _accepted(layout: Layout, row: Int64Array, slot: Int64Array, target: Int64Array) -> BoolArray:
    """Which cells may go to which brokers, shape ``(m, t)``."""
    state, fleet = layout.state, layout.state.problem.fleet
    racks, inverse = np.unique(fleet.rack[target], return_inverse=True)
    at = layout.open_rows(row)
    pairs = np.repeat(at, racks.size), np.repeat(slot, racks.size), np.tile(racks, at.size)
    by_rack = state.rack_accepts(*pairs).reshape(at.size, racks.size)
    return np.asarray(by_rack[:, inverse] & ~layout.hosts(row[:, None], target[None, :]))


def _chosen(
    layout: Layout, cell: Int64Array, target: Int64Array, gain: Float64Array, nearer: Float64Array, able: BoolArray
) -> Step | None:
    """The able pair that gains, and comes nearest to the bands per byte, within the budget."""
    row, slot = layout.split(cell)
    here = layout.fresh(row, layout.replicas[row, slot]).astype(np.int64)
    copies = layout.fresh(row[:, None], target[None, :]) - here[:, None]
    able = able & (gain > layout.least) & (layout.charge[row][:, None] * copies <= layout.spare)
    able = able & layout.roomy(row[:, None], target[None, :])
    rate = np.where(
        able & (nearer > 0), nearer / (np.maximum(copies, 0) * layout.size[row][:, None] + _typical(layout)), 0.0
    )
    best = int(rate.argmax())
    i, j = divmod(best, target.size)
    return Step(int(cell[i]), int(target[j]), float(rate[i, j])) if rate[i, j] > 0 else None


def _pull(layout: Layout, broker: int) -> Step | None:
    """The best copy to a broker that is below its band."""
    field, n = layout.field, layout.state.problem.fleet.usable
    slope = field.slope(broker)
    if not (slope < 0).any():
        return None
    heat = field.heat((slope < 0).astype(np.float64))[:n]
    heat[broker] = -np.inf
    hottest = np.sort(np.argsort(-heat, kind="stable")[: min(_HOTTEST, n - 1)])
    cell = np.concatenate([_movable(layout, b) for b in hottest.tolist()])
    row, slot = layout.split(cell)
    source = layout.replicas[row, slot]
    able = ~layout.hosts(row, np.full(row.size, broker))
    cell, row, source = cell[able], row[able], source[able]
    load = layout.carried(row, source)
    value = _weighed(load, _slopes(layout, hottest, n)[:, source] - slope[:, None])
    cell = _first(layout, cell, row, value, layout.fresh(row, source), _PULLED)
    if not cell.size:
        return None
    row, slot = layout.split(cell)
    source = layout.replicas[row, slot]
    load = layout.carried(row, source)
    given = _nearer(layout, source, field.load[:, source], field.load[:, source] - load)
    here = field.load[:, broker, None]
    taken = _nearer(layout, broker, here, here + load)
    gain, nearer = (one + other for one, other in zip(given, taken, strict=True))
    at = layout.open_rows(row)
    target = np.array([broker])
    able = layout.state.accepts(at, slot, np.full(row.size, broker))
    return _chosen(layout, cell, target, gain[:, None], nearer[:, None], able[:, None])


def _slopes(layout: Layout, brokers: Int64Array, n: int) -> Float64Array:
    result = np.zeros((layout.field.load.shape[0], n))
    for broker in brokers.tolist():
        result[:, broker] = layout.field.slope(broker)
    return result


def _swap(layout: Layout, broker: int) -> bool:
    """Exchange a replica with another broker's, the pair that gains most per byte; False where none gains."""
    field, n = layout.field, layout.state.problem.fleet.usable
    slope = field.slope(broker)
    mine = _weightiest(layout, broker, slope)
    heat = field.heat(slope)[:n]
    heat[broker] = np.inf
    best: tuple[float, int, int] = (0.0, -1, -1)
    for tried, other in enumerate(np.argsort(heat, kind="stable")[: min(_HOTTEST, n - 1)].tolist()):
        if tried >= _ENOUGH and best[0] > 0:
            break
        best = max(best, _best_swap(layout, broker, mine, other), key=lambda b: b[0])
    if best[0] <= 0:
        return False
    width = layout.replicas.shape[1]
    source = int(layout.replicas[best[2] // width, best[2] % width])
    layout.move(best[1] // width, best[1] % width, source)
    layout.move(best[2] // width, best[2] % width, broker)
    return True


def _weightiest(layout: Layout, broker: int, slope: Float64Array) -> Int64Array:
    """Cells of a broker whose loads count most per byte, up or down, where costs rise as ``slope`` says."""
    cell = _movable(layout, broker)
    row, _ = layout.split(cell)
    value = np.abs(_weighed(layout.carried(row, broker), slope))
    return cell[np.argsort(-value / (layout.size[row] + _typical(layout)), kind="stable")[:_SWAPPED]]


def _best_swap(layout: Layout, broker: int, mine: Int64Array, other: int) -> tuple[float, int, int]:
    """Rate and cells of the best exchange with one broker."""
    field = layout.field
    theirs = _weightiest(layout, other, field.slope(broker))
    (row_m, slot_m), (row_t, slot_t) = layout.split(mine), layout.split(theirs)
    ok_m = _accepted(layout, row_m, slot_m, np.array([other]))[:, 0] & layout.roomy(row_m, np.array([other]))
    ok_t = _accepted(layout, row_t, slot_t, np.array([broker]))[:, 0] & layout.roomy(row_t, np.array([broker]))
    mine, row_m, theirs, row_t = mine[ok_m], row_m[ok_m], theirs[ok_t], row_t[ok_t]
    if not mine.size or not theirs.size:
        return 0.0, -1, -1
    given, taken = layout.carried(row_m, broker), layout.carried(row_t, other)
    change = (taken[:, None, :] - given[:, :, None]).reshape(given.shape[0], -1)
    gain = field.cost[broker] - field.at(broker, field.load[:, broker, None] + change)
    gain += field.cost[other] - field.at(other, field.load[:, other, None] - change)
    copies_m = _copies(layout, row_m, broker, other)[:, None]
    copies_t = _copies(layout, row_t, other, broker)[None, :]
    size = copies_m * layout.size[row_m][:, None] + copies_t * layout.size[row_t][None, :]
    charge = copies_m * layout.charge[row_m][:, None] + copies_t * layout.charge[row_t][None, :]
    gain = gain.reshape(mine.size, theirs.size)
    rate = np.where(
        (gain > layout.least) & (charge <= layout.spare), gain / (np.maximum(size, 0) + _typical(layout)), 0.0
    )
    i, j = divmod(int(rate.argmax()), theirs.size)
    return float(rate[i, j]), int(mine[i]), int(theirs[j])


def _copies(layout: Layout, row: Int64Array, source: int, target: int) -> Int64Array:
    """Replicas that are copied more when rows go from one broker to another: -1, 0 or 1."""
    after = layout.fresh(row, np.full(row.size, target)).astype(np.int64)
    return after - layout.fresh(row, np.full(row.size, source))
