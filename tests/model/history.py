"""Histories: drawn step by step from a seed and played, played again from their steps, and made short."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from streaming.config import parse_config
from streaming.events import decode
from tests.model.chance import Chance, conf
from tests.model.machine import Machine, Step

_NAMES = ["c:999 z", "é", "..", "a/b *", "\u202e", "x" * 512]

LINES: Final = (0, 1, 1, 2, 3, 4, 8)


def new_machine(conf: str) -> Machine:
    """A job without tables, under a conf."""
    return Machine(parse_config(conf, "history.toml"))


@dataclass(slots=True)
class Played:
    """A history that was played; ``broken`` says what did not hold."""

    seed: int
    steps: list[Step]
    events: int
    broken: str = ""


@dataclass(slots=True)
class _Drawn:
    """Draws the steps of one history of one cluster, or of two at once."""

    draw: Random
    counts: Sequence[int]
    minute: float = 0.0
    chances: list[Chance] = field(init=False)
    sent: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Decide which clusters there are."""
        names = ["c"] if self.draw.random() < 0.7 else ["c", self.draw.choice(_NAMES)]
        self.chances = [Chance(self.draw, name) for name in names]

    def first(self) -> Step:
        """Brokers join."""
        return {"lines": [line for chance in self.chances for line in chance.first()], "minute": 0.0}

    def next(self, machine: Machine, most: int) -> Step:
        """A batch of at most so many lines, or something that happens to the job."""
        chance = self.draw.random()
        if chance < 0.03:
            return {"do": "restart"}
        if chance < 0.06:
            return {"do": "evict"}
        if chance < 0.065:
            return {"conf": conf(self.draw)}
        stopped = [one for one in self.chances if machine.state(one.cluster).stopped]
        if stopped and chance < 0.2:
            return {"do": "mend"}
        self.minute += self.draw.choice([0, 0, 0.01, 0.2, 1, 1, 5, 40])
        for one in self.chances:
            one.minute = self.minute
        lines = [line for one in stopped if self.draw.random() < 0.5 for line in self._resumed(machine, one)]
        lines += [self._line(machine) for _ in range(self.draw.choice(self.counts))]
        lines = lines[:most]
        self.sent = (self.sent + lines)[-30:]
        return {"lines": lines, "minute": round(self.minute, 3)} | self._faults(lines)

    def _line(self, machine: Machine) -> str:
        if self.sent and self.draw.random() < 0.02:
            return self.draw.choice(self.sent)
        one = self.draw.choice(self.chances)
        return one.line(machine.state(one.cluster))

    def _resumed(self, machine: Machine, one: Chance) -> list[str]:
        """Somebody resumes a cluster, and hands over once more what was held."""
        cluster = machine.clusters[one.cluster]
        held, cluster.held = list(dict.fromkeys(cluster.held)), []
        return [one.resumed(), *held]

    def _faults(self, lines: Sequence[str]) -> dict[str, Any]:
        faults: dict[str, Any] = {}
        if lines and self.draw.random() < 0.015:
            event = decode(self.draw.choice(lines).encode(errors="surrogatepass")).event
            if event is not None and event.type != "cluster_resumed":
                faults["poison"] = [event.event_id]
        if self.draw.random() < 0.01:
            faults["stuck"] = True
        return faults


def play(
    seed: int, events: int = 200, counts: Sequence[int] = LINES, new: Callable[[str], Machine] = new_machine
) -> Played:
    """Draw a history from a seed and play it until it ends or something breaks; ``counts`` are lines in a batch."""
    draw = Random(seed)
    steps: list[Step] = [{"conf": conf(draw)}]
    machine = new(steps[0]["conf"])
    drawn = _Drawn(draw, counts)
    try:
        step = drawn.first()
        while True:
            steps.append(step)
            machine.play(step)
            if machine.events >= events:
                break
            step = drawn.next(machine, events - machine.events)
        machine.finish()
    except Exception as error:
        return Played(seed, steps, machine.events, f"{type(error).__name__}: {error}")
    return Played(seed, steps, machine.events)


def replay(steps: Sequence[Step]) -> str:
    """Play recorded steps; what broke, or nothing."""
    machine = new_machine(steps[0]["conf"])
    try:
        for step in steps[1:]:
            machine.play(step)
        machine.finish()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def shrunk(steps: Sequence[Step], most: int = 400) -> list[Step]:
    """Fewer steps and lines that break something still, after at most so many replays.

    Ever smaller pieces are left out; what breaks then may be something else. Source: A. Zeller, R. Hildebrandt,
    Simplifying and Isolating Failure-Inducing Input (2002).
    """
    best, left = list(steps), most
    size = max(len(_places(best)) // 2, 1)
    while left > 0:
        smaller = None
        for fewer in _without(best, size):
            left -= 1
            if replay(fewer):
                smaller = fewer
                break
            if left <= 0:
                break
        if smaller is not None:
            best = smaller
        elif size == 1:
            break
        else:
            size //= 2
    return best


def _places(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """All that can be left out: lines, and steps without any."""
    return [(at, n) for at, step in enumerate(steps) if at for n in range(max(len(step.get("lines", ())), 1))]


def _without(steps: Sequence[Step], size: int) -> Iterator[list[Step]]:
    places = _places(steps)
    for first in range(len(places) - 1, -1, -size):
        gone = set(places[max(first - size + 1, 0) : first + 1])
        fewer: list[Step] = []
        for at, step in enumerate(steps):
            lines = [line for n, line in enumerate(step.get("lines", ())) if (at, n) not in gone]
            if "lines" in step and (lines or (at, 0) not in gone):
                fewer.append(step | {"lines": lines})
            elif "lines" not in step and (at, 0) not in gone:
                fewer.append(step)
        yield fewer


def told(steps: Sequence[Step]) -> str:
    """The steps as a line of the cases."""
    return json.dumps(steps)
