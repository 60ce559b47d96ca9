"""Search: bring the worst broker closer to its band, with leaderships first and with the fewest bytes after that.

Goal: cost zero, which is every broker within its band, for the fewest bytes.
Method: of the broker with the largest cost, leaderships go first, as they are free. If none gains, the copy that comes
nearest to the bands per byte: away from the broker where it is above its band, to it where it is below. It must lower
the cost, which is quadratic, so that the search ends; it is chosen by plain distance, as a quadratic gain would prefer
small replicas to those that do more per byte. If none gains, two replicas swap. A broker for which nothing gains waits
until another has changed.
Cost: O(candidates * targets) for each step, and a bounded number of looks for one: where a band is out of reach, each
step that gains a little could go on for long. Weakness: a step that must first lose to gain is never taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from placement.arrays import BoolArray, Float64Array, Int64Array
from placement.replanning.by_load.layout import Layout
from placement.replanning.by_load.leaderships import lead_better

_SMALLEST: Final = 1e-14
_ROUNDING: Final = 1e-12
_WORTH: Final = 1e-3
_CELLS: Final = 256
_TARGETS: Final = 16
_SOURCES: Final = 4
_HOTTEST: Final = 8
_TOGETHER: Final = 4
_NEARLY: Final = 0.9
_ASKED: Final = 32
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


def settle(layout: Layout, *, copies: bool = True) -> None:
    """Take steps until no broker outside its band has one that gains, or the layout's looks are used up.

    Only leaderships without ``copies``.
    """
    field, n = layout.field, layout.state.problem.fleet.usable
    waiting = np.zeros(n, np.bool_)
    changed = False
    passes = 0
    while layout.looks > 0:
        layout.looks -= 1
        cost = np.where(waiting, 0.0, field.cost[:n])
        worst = int(cost.argmax())
        # Gains below the rounding of the costs could go round in circles, and some bands are out of reach.
        layout.least = _SMALLEST + _ROUNDING * float(field.cost.max()) + _WORTH * float(cost[worst])
        if cost[worst] <= _SMALLEST:
            passes += 1
            if not changed or passes == _PASSES or not waiting.any():
                return
            waiting[:], changed = False, False
        elif lead_better(layout, worst) or (copies and _copy(layout, worst, swap=passes > 0 or not changed)):
            changed = True
        else:
            waiting[worst] = True


def _copy(layout: Layout, broker: int, *, swap: bool) -> bool:
    """Take the best copies for a broker; False where there is none."""
    steps = max(_push(layout, broker), _pull(layout, broker), key=lambda s: s[0].rate if s else 0.0)
    for turn, step in enumerate(steps):
        if not turn or _holds(layout, step):
            row, slot = divmod(step.cell, layout.replicas.shape[1])
            layout.move(row, slot, step.broker)
    return bool(steps) or (swap and _swap(layout, broker))


def _holds(layout: Layout, step: Step) -> bool:
    """Whether a step is nearly as good as it was when it was found, though others were taken since."""
    field = layout.field
    row, slot = divmod(step.cell, layout.replicas.shape[1])
    source = int(layout.replicas[row, slot])
    load = layout.leader[row] if layout.lead[row] == source else layout.follower[row]
    gain = nearer = 0.0
    for broker, change in ((source, -load), (step.broker, load)):
        (cost, far), (less, closer) = (
            field.alone(broker, (field.load[:, broker] + add).tolist()) for add in (0.0, change)
        )
        gain, nearer = gain + cost - less, nearer + far - closer
    one, place, target = np.array([row]), np.array([slot]), np.array([step.broker])
    copies = int(layout.fresh(one, target)[0]) - int(layout.fresh(one, np.array([source]))[0])
    return bool(
        gain > layout.least
        and nearer >= _NEARLY * step.rate * (max(copies, 0) * layout.size[row] + layout.effort)
        and layout.charge[row] * copies <= layout.spare
        and layout.roomy(one, target)[0]
        and layout.state.accepts(layout.open_rows(one), place, target)[0]
    )


def _movable(layout: Layout, broker: int) -> Int64Array:
    cell = layout.members(broker)
    row, slot = layout.split(cell)
    return cell[layout.movable[row, slot]]


def _first(
    layout: Layout, cell: Int64Array, row: Int64Array, value: Float64Array, fresh: BoolArray, count: int
) -> Int64Array:
    """Cells with the largest value per byte, at most ``count``."""
    rate = value / (np.where(fresh, 0.0, layout.size[row]) + layout.effort)
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


def _push(layout: Layout, broker: int) -> list[Step]:
    """The best copies from a broker that is above its band."""
    field, n = layout.field, layout.state.problem.fleet.usable
    slope = field.slope(broker)
    if n == 1 or not (slope > 0).any():
        return []
    cell = _movable(layout, broker)
    row, _ = layout.split(cell)
    value = _weighed(layout.carried(row, broker), slope)
    cell = _first(layout, cell, row, value, layout.fresh(row, np.full(row.size, broker)), _CELLS)
    if not cell.size:
        return []
    heat = field.heat((slope > 0).astype(np.float64))[:n]
    heat[broker] = np.inf
    target = np.argsort(heat, kind="stable")[: min(_TARGETS, n - 1)]
    return _best_push(layout, broker, cell, target)


def _best_push(layout: Layout, broker: int, cell: Int64Array, target: Int64Array) -> list[Step]:
    field = layout.field
    load = layout.carried(layout.split(cell)[0], broker)
    m, t = cell.size, target.size
    here, there = field.load[:, broker, None], field.load[:, target]
    sums = (load[:, :, None] + there[:, None, :]).reshape(load.shape[0], m * t)
    change = zip(
        field.near(broker, here),
        field.near(broker, here - load),
        field.near(target, there),
        field.near(np.tile(target, m), sums),
        strict=True,
    )
    gain, nearer = ((was - less)[:, None] + (cool - warm.reshape(m, t)) for was, less, cool, warm in change)
    return _chosen(layout, cell, target, gain, nearer)


def _accepted(layout: Layout, row: Int64Array, slot: Int64Array, target: Int64Array) -> BoolArray:
    """Which cells may go to which brokers, shape ``(m, t)``."""
    state, fleet = layout.state, layout.state.problem.fleet
    racks, inverse = np.unique(fleet.rack[target], return_inverse=True)
    at = layout.open_rows(row)
    pairs = np.repeat(at, racks.size), np.repeat(slot, racks.size), np.tile(racks, at.size)
    by_rack = state.rack_accepts(*pairs).reshape(at.size, racks.size)
    may = by_rack[:, inverse] & ~layout.hosts(row[:, None], target[None, :])
    return np.asarray(may & state.problem.open_to(at[:, None], target[None, :]))


def _chosen(
    layout: Layout, cell: Int64Array, target: Int64Array, gain: Float64Array, nearer: Float64Array
) -> list[Step]:
    """Of the pairs that gain and may be, those that come nearest to the bands per byte; each cell once."""
    row = layout.split(cell)[0]
    here = layout.fresh(row, layout.replicas.reshape(-1)[cell]).astype(np.int64)
    copies = layout.fresh(row[:, None], target[None, :]) - here[:, None]
    able = (gain > layout.least) & (nearer > 0) & (layout.charge[row][:, None] * copies <= layout.spare)
    able = able & layout.roomy(row[:, None], target[None, :])
    rate = np.where(able, nearer / (np.maximum(copies, 0) * layout.size[row][:, None] + layout.effort), 0.0)
    best = rate.max(axis=1)
    order = np.argsort(-best, kind="stable")[: int((best > 0).sum())]
    # Racks are asked last, as that takes longest; mostly the first cells do, and none of the others can be better.
    some, others = order[:_ASKED], order[_ASKED:]
    steps = _allowed(layout, cell[some], target, rate[some])
    if others.size and (not steps or steps[0].rate < best[others[0]]):
        steps = _allowed(layout, cell[order], target, rate[order])
    return steps


def _allowed(layout: Layout, cell: Int64Array, target: Int64Array, rate: Float64Array) -> list[Step]:
    """The best steps that the racks allow; ``rate`` has shape ``(cells, targets)``."""
    if not cell.size:
        return []
    row, slot = layout.split(cell)
    rate = np.where(_accepted(layout, row, slot, target), rate, 0.0)
    place = rate.argmax(axis=1)
    best = rate[np.arange(cell.size), place]
    order = np.argsort(-best, kind="stable")[:_TOGETHER]
    return [Step(int(cell[i]), int(target[place[i]]), float(best[i])) for i in order.tolist() if best[i] > 0]


def _pull(layout: Layout, broker: int) -> list[Step]:
    """The best copies to a broker that is below its band."""
    field, n = layout.field, layout.state.problem.fleet.usable
    slope = field.slope(broker)
    if n == 1 or not (slope < 0).any():
        return []
    heat = field.heat((slope < 0).astype(np.float64))[:n]
    heat[broker] = -np.inf
    hottest = np.sort(np.argsort(-heat, kind="stable")[: min(_SOURCES, n - 1)])
    cell = np.concatenate([_movable(layout, b) for b in hottest.tolist()])
    row, slot = layout.split(cell)
    source = layout.replicas[row, slot]
    able = ~layout.hosts(row, np.full(row.size, broker))
    cell, row, source = cell[able], row[able], source[able]
    load = layout.carried(row, source)
    value = _weighed(load, _slopes(layout, hottest, n)[:, source] - slope[:, None])
    cell = _first(layout, cell, row, value, layout.fresh(row, source), _PULLED)
    if not cell.size:
        return []
    row, slot = layout.split(cell)
    source = layout.replicas[row, slot]
    load = layout.carried(row, source)
    here, there = field.load[:, broker, None], field.load[:, source]
    change = zip(
        field.near(source, there),
        field.near(source, there - load),
        field.near(broker, here),
        field.near(broker, here + load),
        strict=True,
    )
    gain, nearer = (was - less + cool - warm for was, less, cool, warm in change)
    return _chosen(layout, cell, np.array([broker]), gain[:, None], nearer[:, None])


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
        layout.looks -= 1
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
    order = np.argsort(-value / (layout.size[row] + layout.effort), kind="stable")
    even = np.argsort(value, kind="stable")[:: -(-cell.size // _SWAPPED) or 1]
    return cell[np.union1d(order[:_SWAPPED], even)]


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
    rate = np.where((gain > layout.least) & (charge <= layout.spare), gain / (np.maximum(size, 0) + layout.effort), 0.0)
    i, j = divmod(int(rate.argmax()), theirs.size)
    return float(rate[i, j]), int(mine[i]), int(theirs[j])


def _copies(layout: Layout, row: Int64Array, source: int, target: int) -> Int64Array:
    """Replicas that are copied more when rows go from one broker to another: -1, 0 or 1."""
    after = layout.fresh(row, np.full(row.size, target)).astype(np.int64)
    return after - layout.fresh(row, np.full(row.size, source))
