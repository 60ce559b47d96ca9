"""What each kind of plan version means: the one table that says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal[
    "topics",
    "replication_factor",
    "membership",
    "heal",
    "rebalance",
    "election",
    "observation",
    "rollback",
    "rejection",
    "drift",
    "restore",
    "stop",
    "resume",
    "loads",
    "claim",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What versions of one kind do.

    Attributes:
        moves_replicas: it asks for replicas to be moved, and its moves must satisfy the independent check; topics may
            be placed as Kafka would, or by hand.
        asks: it asks for something on the cluster; the others only record what is.
        can_be_undone: it can be rolled back.
        is_planned: its moves were planned by the policy; they were not given, to be taken as they are.
        changes_factor: its partitions end with another replication factor.
        rebalances: it evens the cluster out.
        may_heal: it gives lost replicas a new place, or says why that is not possible.
        undoes: it undoes its base version.
        elects: its moves ask for leaders and say nothing of replicas.
        observes: it records where replicas, leaders and ISR were seen.
        tells_drift: it tells where partitions were seen that are planned elsewhere.
        restores: it plans the way back from there.
        observes_loads: it records loads.
        claims: it records who carries its base version out.
        stopped: whether the cluster is stopped from then on; ``None`` where that stays as it is.
        sets_load_deadline: its ``load_deadline`` is that of the cluster from then on, also where it has none.
        is_aside: it concerns no proposal.
        is_shared: several in a row share a version, because they move nothing that is there.
    """

    moves_replicas: bool = False
    asks: bool = False
    can_be_undone: bool = False
    is_planned: bool = False
    changes_factor: bool = False
    rebalances: bool = False
    may_heal: bool = False
    undoes: bool = False
    elects: bool = False
    observes: bool = False
    tells_drift: bool = False
    restores: bool = False
    observes_loads: bool = False
    claims: bool = False
    stopped: bool | None = None
    sets_load_deadline: bool = False
    is_aside: bool = False
    is_shared: bool = False


MEANINGS: Final[Mapping[str, Meaning]] = {
    "topics": Meaning(asks=True, is_shared=True),
    "replication_factor": Meaning(
        moves_replicas=True, asks=True, can_be_undone=True, is_planned=True, changes_factor=True
    ),
    "membership": Meaning(may_heal=True, is_shared=True),
    "heal": Meaning(moves_replicas=True, asks=True, can_be_undone=True, is_planned=True, may_heal=True),
    "rebalance": Meaning(
        moves_replicas=True,
        asks=True,
        can_be_undone=True,
        is_planned=True,
        rebalances=True,
        may_heal=True,
        sets_load_deadline=True,
    ),
    "election": Meaning(asks=True, elects=True),
    "observation": Meaning(can_be_undone=True, observes=True),
    "rollback": Meaning(moves_replicas=True, asks=True, can_be_undone=True, undoes=True),
    "rejection": Meaning(),
    "drift": Meaning(tells_drift=True),
    "restore": Meaning(moves_replicas=True, asks=True, tells_drift=True, restores=True),
    "stop": Meaning(stopped=True, sets_load_deadline=True),
    "resume": Meaning(stopped=False),
    "loads": Meaning(observes_loads=True, sets_load_deadline=True, is_aside=True, is_shared=True),
    "claim": Meaning(claims=True, is_aside=True),
}


_NOTHING: Final = Meaning()


def meaning_of(kind: str) -> Meaning:
    """What versions of a kind do; nothing, where a newer release wrote it, or somebody by hand."""
    return MEANINGS.get(kind, _NOTHING)


def kinds_where(holds: Callable[[Meaning], bool]) -> tuple[str, ...]:
    """The kinds of which something holds, for those who look at a whole column of them."""
    return tuple(kind for kind, meaning in MEANINGS.items() if holds(meaning))


MOVING: Final = kinds_where(lambda kind: kind.moves_replicas)
