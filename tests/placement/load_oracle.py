"""The fewest bytes that reach a band, exactly: a mixed integer program, for small clusters."""

from __future__ import annotations

import numpy as np
from ortools.linear_solver import pywraplp

from placement import Replan


def fewest_bytes(plan: Replan) -> int:
    """Bytes of the best plan that leaves every broker within the plan's band, or as far outside as the plan does.

    All brokers are alive, each has a rack, and there are as many racks as replicas of a partition, so that every rack
    holds one of each.
    """
    report = plan.loads
    assert report is not None
    solver = pywraplp.Solver.CreateSolver("HIGHS")
    ids, rack = report.brokers.tolist(), {b.id: b.rack for b in plan.terms.brokers}
    racks = sorted(set(rack.values()), key=str)
    size, weights = report.given.size.tolist(), (report.given.leader(), report.given.follower())
    rows = [set(r) for _, _, r in plan.before.rows()]
    holds = [[solver.BoolVar("") for _ in ids] for _ in rows]
    leads = [[solver.BoolVar("") for _ in ids] for _ in rows]
    for held, led in zip(holds, leads, strict=True):
        solver.Add(sum(led) == 1)
        for one, other in zip(led, held, strict=True):
            solver.Add(one <= other)
        for name in racks:
            solver.Add(sum(x for x, b in zip(held, ids, strict=True) if rack[b] == name) == 1)
    low, high = np.minimum(report.low, report.after), np.maximum(report.high, report.after)
    for k in range(low.shape[0]):
        for at in range(len(ids)):
            follower, extra = weights[1][k].tolist(), (weights[0] - weights[1])[k].tolist()
            load = sum(follower[p] * holds[p][at] + extra[p] * leads[p][at] for p in range(len(rows)))
            solver.Add(load >= float(low[k, at]))
            solver.Add(load <= float(high[k, at]))
    fresh = [(p, at) for p, r in enumerate(rows) for at, b in enumerate(ids) if b not in r]
    solver.Minimize(sum(size[p] * holds[p][at] for p, at in fresh))
    solver.SetTimeLimit(60_000)
    assert solver.Solve() == pywraplp.Solver.OPTIMAL
    return round(solver.Objective().Value())
