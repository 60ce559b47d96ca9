"""Exact answers for small clusters by minimum-cost flow (OR-tools), written without the planner's code.

Each partition sends its replicas through its racks to brokers, and each broker to the sink through one arc per replica,
the k-th at the price (2k - 1) / capacity, so that a cheapest flow has the least sum of load^2 / capacity. Costs are
integers in steps, each worth more than all that the next can add up to: what must stay, rack windows, balance, moves.
"""

from __future__ import annotations

from dataclasses import dataclass

from ortools.graph.python.min_cost_flow import SimpleMinCostFlow
from ortools.sat.python import cp_model

from placement import Assignment, Broker

BALANCE = 1_000
WINDOW = 10**8
STAY = 10**11
SIXTHS = 6  # capacities of 1, 1.5 and 2 have integer prices in sixths


@dataclass(frozen=True)
class Best:
    """The least ``6 * sum of load^2 / capacity``, and the fewest moves with which it is reached."""

    balance: int
    moves: int


def window(factor: int, size: dict[str, int], stay: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Fewest and most replicas of a partition in each rack, from the definition."""
    k = next(k for k in range(1, factor + 1) if sum(max(stay[r], min(k, size[r])) for r in size) >= factor)
    return {r: (max(stay[r], min(k - 1, size[r])), max(stay[r], min(k, size[r]))) for r in size}


def best_plan(layout: Assignment, brokers: list[Broker], mode: str, factors: dict[str, int]) -> Best:
    """The optimum over all plans. Where healing drops replicas, only what is given up is free to choose."""
    alive = {b.id: b for b in brokers if b.state == "alive"}
    racks = {b.rack or "" for b in alive.values()}
    rows = [(factors.get(topic, len(replicas)), set(replicas)) for topic, _, replicas in layout.rows()]
    flow, node = SimpleMinCostFlow(), _Numbers()
    sink = node("sink")
    copies = []
    for p, (factor, replicas) in enumerate(rows):
        kept = {b for b in replicas if b in alive}
        pinned = kept if mode == "heal" and len(kept) <= factor else set()
        hosts = kept if mode == "heal" and len(kept) > factor else set(alive)
        if mode == "heal" and factor == len(replicas) and kept == replicas:
            pinned = hosts = kept
        size = {r: sum((alive[b].rack or "") == r for b in hosts) for r in racks}
        stay = {r: sum((alive[b].rack or "") == r for b in pinned) for r in racks}
        flow.set_node_supply(node(p), factor)
        for rack, (low, high) in window(factor, size, stay).items():
            flow.add_arc_with_capacity_and_unit_cost(node(p), node((p, rack)), low, -WINDOW)
            flow.add_arc_with_capacity_and_unit_cost(node(p), node((p, rack)), high - low, 0)
        for b in hosts:
            cost = (0 if b in replicas else 1) - (STAY if b in pinned else 0)
            arc = flow.add_arc_with_capacity_and_unit_cost(node((p, alive[b].rack or "")), node(("b", b)), 1, cost)
            copies.append((arc, b, b not in replicas))
    for b, broker in alive.items():
        for unit in range(1, len(rows) + 1):
            price = round(SIXTHS / broker.capacity * (2 * unit - 1)) * BALANCE
            flow.add_arc_with_capacity_and_unit_cost(node(("b", b)), sink, 1, price)
    flow.set_node_supply(sink, -sum(factor for factor, _ in rows))
    assert flow.solve() == flow.OPTIMAL
    used = [(b, new) for arc, b, new in copies if flow.flow(arc)]
    loads = [(sum(b == other for other, _ in used), broker.capacity) for b, broker in alive.items()]
    return Best(balance_of(loads), sum(new for _, new in used))


def best_within(layout: Assignment, brokers: list[Broker], budget: int) -> tuple[int, int]:
    """Under a budget, where all brokers are alive: the fewest broken rack windows, and with those the best balance.

    A window is broken by as many replicas as are above or below it, whichever are more, and by no more than before.
    Balance is ``6 * sum of load^2 / capacity``. A constraint program, as a budget makes no flow.
    """
    racks = sorted({b.rack or "" for b in brokers})
    size = {r: sum((b.rack or "") == r for b in brokers) for r in racks}
    model = cp_model.CpModel()
    copies, broken, units = [], [], {b.id: [] for b in brokers}  # type: ignore[var-annotated]
    for _, _, replicas in layout.rows():
        on = {b.id: model.new_bool_var("") for b in brokers}
        model.add(sum(on.values()) == len(replicas))
        copies += [on[b.id] for b in brokers if b.id not in replicas]
        outside = model.new_int_var(0, len(replicas), "")
        above, below = [], []
        for rack, (low, high) in window(len(replicas), size, dict.fromkeys(racks, 0)).items():
            count = sum(on[b.id] for b in brokers if (b.rack or "") == rack)
            before = sum(b.id in replicas for b in brokers if (b.rack or "") == rack)
            model.add(count <= max(high, before))
            model.add(count >= min(low, before))
            above.append(model.new_int_var(0, len(replicas), ""))
            below.append(model.new_int_var(0, len(replicas), ""))
            model.add(above[-1] >= count - high)
            model.add(below[-1] >= low - count)
        model.add(outside >= sum(above))
        model.add(outside >= sum(below))
        broken.append(outside)
        for b, there in on.items():
            units[b].append(there)
    model.add(sum(copies) <= budget)
    price = []
    for b in brokers:
        filled = [model.new_bool_var("") for _ in units[b.id]]
        model.add(sum(filled) == sum(units[b.id]))
        price += [round(SIXTHS / b.capacity) * (2 * k + 1) * unit for k, unit in enumerate(filled)]
    model.minimize(BALANCE * BALANCE * sum(broken) + sum(price))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return sum(int(solver.value(one)) for one in broken), int(solver.value(sum(price)))


def balance_of(loads: list[tuple[int, float]]) -> int:
    """``6 * sum of load^2 / capacity`` of (load, capacity) pairs."""
    return sum(round(SIXTHS / capacity) * load * load for load, capacity in loads)


def best_leaders(rows: list[dict[int, int]], base: dict[int, int], capacity: dict[int, float]) -> tuple[int, int]:
    """The least ``6 * sum of leaders^2 / capacity``, and the least cost of places with which it is reached.

    ``rows`` give the cost of each broker that can lead the partition, ``base`` the leaderships of other partitions.
    """
    flow, node = SimpleMinCostFlow(), _Numbers()
    sink = node("sink")
    places = []
    step = 1 + sum(max(row.values()) for row in rows)
    for p, row in enumerate(rows):
        flow.set_node_supply(node(p), 1)
        for b, cost in row.items():
            places.append((flow.add_arc_with_capacity_and_unit_cost(node(p), node(("b", b)), 1, cost), b, cost))
    for b, load in base.items():
        for unit in range(load + 1, load + len(rows) + 1):
            price = round(SIXTHS / capacity[b] * (2 * unit - 1)) * step
            flow.add_arc_with_capacity_and_unit_cost(node(("b", b)), sink, 1, price)
    flow.set_node_supply(sink, -len(rows))
    assert flow.solve() == flow.OPTIMAL
    used = [(b, cost) for arc, b, cost in places if flow.flow(arc)]
    loads = [(load + sum(b == other for other, _ in used), capacity[b]) for b, load in base.items()]
    return balance_of(loads), sum(cost for _, cost in used)


class _Numbers:
    """A number for every name, in the order of first use."""

    def __init__(self) -> None:
        self._known: dict[object, int] = {}

    def __call__(self, name: object) -> int:
        return self._known.setdefault(name, len(self._known))
