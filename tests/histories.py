"""Histories of clusters, drawn from a seed: files of events as months of work bring them, faults included."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.events_for import EventsFor

RACKS = "abc"


@dataclass(slots=True)
class _Cluster:
    """Draws the next event of one cluster; most of them make sense, some are refused or repeated."""

    events: EventsFor
    draw: random.Random
    brokers: int = 0
    topics: list[str] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)

    def begin(self) -> list[bytes]:
        self.brokers = self.draw.randint(3, 9)
        self.sent = [self.events.joined(b, RACKS[b % 3]) for b in range(self.brokers)]
        return self.sent[:]

    def next(self, minute: float) -> bytes:
        kinds = [self._topic] * 6 + [self._broker] * 4 + [self._request] * 2 + [self._again, self._nonsense]
        line = self.draw.choice(kinds)(minute)
        self.sent.append(line)
        return line

    def _topic(self, minute: float) -> bytes:
        known = self.draw.choice(self.topics) if self.topics else "unknown"
        match self.draw.randrange(5):
            case 0 | 1 | 2:
                self.topics.append(f"t{len(self.topics)}")
                return self.events.created(self.topics[-1], self.draw.randint(1, 12), self.draw.randint(1, 3), minute)
            case 3:
                return self.events.grown(known, self.draw.randint(1, 20), minute)
            case _:
                return self.events.factor(known, self.draw.randint(1, 4), minute)

    def _broker(self, minute: float) -> bytes:
        broker = self.draw.randrange(self.brokers)
        match self.draw.randrange(4):
            case 0:
                self.brokers += 1
                return self.events.joined(self.brokers - 1, self.draw.choice(RACKS), minute)
            case 1:
                return self.events.joined(broker, RACKS[broker % 3], minute)
            case 2:
                return self.events.left(broker, "failed", minute)
            case _:
                return self.events.left(broker, self.draw.choice(["failed", "decommissioned", "unregistered"]), minute)

    def _request(self, minute: float) -> bytes:
        match self.draw.randrange(4):
            case 0:
                return self.events.election(minute)
            case 1:
                return self.events.progress(self.draw.randint(1, 4), "started", minute)
            case 2:
                return self.events.deleted(self.draw.choice(self.topics or ["unknown"]), minute)
            case _:
                return self.events.rebalance(minute, max_moves=self.draw.choice([None, 3]))

    def _again(self, _: float) -> bytes:
        return self.draw.choice(self.sent)

    def _nonsense(self, minute: float) -> bytes:
        return self.draw.choice([b"broken", b'{"type": 1}', self.events.created("..", 1, 1, minute), b"\xff\xfe"])


def random_history(seed: int, *, files: int = 5, events: int = 8) -> list[list[bytes]]:
    """The lines of each file, oldest first: one to three clusters, hours between the files."""
    draw = random.Random(seed)
    clusters = [_Cluster(EventsFor(name), draw) for name in ("east", "west", "north")[: draw.randint(1, 3)]]
    history = [[line for cluster in clusters for line in cluster.begin()]]
    for number in range(1, files):
        minutes = sorted(draw.uniform(number * 60, number * 60 + 59) for _ in range(draw.randint(2, events)))
        history.append([draw.choice(clusters).next(round(minute, 2)) for minute in minutes])
    return history
