"""The lower bound: moves that no plan with the best balance can do without.

Three counts, each valid for itself, and the largest is taken:

- every place that is empty, or that a rack window empties, is filled by a move;
- a broker whose target is above what it holds receives the difference;
- every lost replica is a move, and from each rack leave at least the replicas above its window, and at least those
  that its brokers hold above the most that any best balance gives them.
"""

from __future__ import annotations

import numpy as np

from placement.arrays import Int64Array
from placement.replanning.problem import Problem
from placement.replanning.replicas.lift import Lifted
from placement.replanning.targets import Room, price_bracket


def fewest_moves(problem: Problem, room: Room, stay: Int64Array, target: Int64Array, lifted: Lifted) -> int:
    """The bound.

    Args:
        problem: what may change.
        room: the bounds that targets were set in.
        stay: int64, shape ``(usable,)``: replicas on each broker before.
        target: int64, shape ``(usable,)``: of the best balances the one that keeps the most of them.
        lifted: what racks force.
    """
    received = int(np.maximum(target - stay, 0).sum())
    bound = max(lifted.forced, received)
    if not lifted.above.any() or problem.dropped().any():
        return bound
    surplus = np.maximum(stay - price_bracket(room)[1], 0)
    leaving = np.bincount(room.rack, weights=surplus, minlength=lifted.above.size).astype(np.int64)
    return max(bound, lifted.lost + int(np.maximum(leaving, lifted.above).sum()))
