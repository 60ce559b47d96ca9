"""Begins the moves of a wave and watches them until each is done or lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from streaming.apply.fates import fate_of
from streaming.apply.journal.tasks import Place
from streaming.apply.kafka.cluster import Cluster
from streaming.apply.kafka.seen import Seen
from streaming.apply.progress import Pace, Progress, measure
from streaming.apply.steps import Move, MoveWave

POLL: Final = 0.3
"""Seconds between two looks at the cluster."""

_MEASURED: Final = 1.0
"""Seconds between two looks at the logs, which cost a request to each broker."""

_UNCLEAR: Final = 10.0
"""Seconds for which a partition may be nowhere, because brokers learn of the end of a reassignment one by one."""

Settle = Callable[[Mapping[Place, str]], None]
"""Takes the partitions that are done, or lost and why, of one look."""


class StoppedError(Exception):
    """Somebody asked the run to end."""


def watch(cluster: Cluster, wave: MoveWave, stopped: threading.Event, settle: Settle) -> Iterator[Progress]:
    """Move partitions together; yields how far they are, and returns when none is left.

    Raises:
        StoppedError: the run is to end.
    """
    topics = {move.topic for move in wave.moves}
    still = _begin(cluster, wave, cluster.see(topics), settle)
    done: set[Place] = set()
    unclear: dict[Place, float] = {}
    pace, measured = Pace(), 0.0
    while still:
        if stopped.wait(POLL):
            raise StoppedError
        seen = cluster.see(topics)
        ended = _ended(cluster, still, seen, unclear)
        for place, reason in ended.items():
            del still[place]
            done.update(() if reason else (place,))
        settle(ended)
        now = time.monotonic()
        if now - measured >= _MEASURED or not still:
            measured = now
            progress = measure(cluster, wave, seen, done)
            yield replace(progress, seconds_left=pace.seconds_left(now, progress.bytes_left))


def _begin(cluster: Cluster, wave: MoveWave, seen: Seen, settle: Settle) -> dict[Place, Move]:
    """Begin what can be begun; those that are under way then."""
    lost: dict[Place, str] = {}
    for move in wave.moves:
        dead = [broker for broker in move.incoming if broker not in seen.alive]
        there = seen.partitions.get(move.place)
        if there and there.is_reassigned and set(there.target) not in (set(move.after), set(move.replaces)):
            lost[move.place] = f"somebody else moves it to {list(there.target)}"
        elif dead and not move.under_way:
            lost[move.place] = f"broker {dead[0]}, which is to get it, is not alive"
    still = {move.place: move for move in wave.moves if move.place not in lost}
    new = {place: move for place, move in still.items() if not move.under_way}
    refused = cluster.choose_log_dirs({(*p, broker): path for p, move in new.items() for broker, path in move.log_dirs})
    refused |= cluster.reassign({place: move.after for place, move in new.items() if place not in refused})
    settle(lost | refused)
    return {place: move for place, move in still.items() if place not in refused}


def _ended(cluster: Cluster, still: dict[Place, Move], seen: Seen, unclear: dict[Place, float]) -> dict[Place, str]:
    """The moves that are done (no reason) or lost; those that wait for what is gone are cancelled."""
    ended, taken_back = {}, {}
    for place, move in still.items():
        fate = fate_of(move, seen)
        if fate.kind == "unclear":
            since = unclear.setdefault(place, time.monotonic())
            if time.monotonic() - since > _UNCLEAR:
                ended[place] = fate.reason
        else:
            unclear.pop(place, None)
        if fate.kind in ("done", "lost"):
            ended[place] = fate.reason
        if fate.to_cancel:
            taken_back[place] = move.now
    cluster.reassign(taken_back)
    return ended
