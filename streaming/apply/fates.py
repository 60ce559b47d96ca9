"""What has become of a move that was begun; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streaming.apply.kafka.seen import Seen
from streaming.apply.steps import Move
from streaming.kafka.snapshot import Partition


@dataclass(frozen=True, slots=True)
class Fate:
    """What has become of a move.

    Attributes:
        kind: ``unclear`` where Kafka moves the partition no more and it is not yet seen where it belongs: a broker
            that was asked just afterwards may not know better; ``lost`` where waiting is of no use.
        reason: why it is lost or unclear.
        to_cancel: whether the reassignment has to be cancelled.
    """

    kind: Literal["moving", "done", "unclear", "lost"]
    reason: str = ""
    to_cancel: bool = False


def fate_of(move: Move, seen: Seen) -> Fate:
    """What has become of a move, from one look at the cluster."""
    there = seen.partitions.get(move.place)
    if there is None:
        return Fate("unclear", "the partition is no longer on the cluster")
    if not there.is_reassigned:
        if there.replicas == move.after:
            return Fate("done")
        return Fate("unclear", f"somebody cancelled it: it is on {list(there.replicas)}")
    return _under_way(move, there, seen)


def _under_way(move: Move, there: Partition, seen: Seen) -> Fate:
    if there.target != move.after:
        return Fate("lost", f"somebody else moves it to {list(there.target)}")
    dead = [broker for broker in there.adding if broker not in seen.alive]
    if dead:
        return Fate("lost", f"broker {dead[0]}, which was to get it, went down", to_cancel=True)
    if not seen.can_be_copied(there):
        return Fate("lost", "no replica that is in sync is alive any more", to_cancel=True)
    return Fate("moving")
