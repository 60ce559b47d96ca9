"""The outcomes of submitted lines, polled from the tables until the job has recorded them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import click
import pyarrow as pa
import pyarrow.compute as pc

from streaming.cli.screens.render import print_line
from streaming.cli.screens.working import working
from streaming.events import Line
from streaming.guard import writer_of
from streaming.history.pruning import Span
from streaming.history.tables import History
from streaming.record.schemas import PLANS

_POLL: Final = 0.3
_TAKEN: Final = ("applied", "no_effect", "duplicate")
_SHOWN: Final = 10
"""Versions that are told in full; what a folder of events brings, `plans` shows."""


class Outcome(NamedTuple):
    """What became of a line, and which version of which cluster records it; quarantine does where ``version`` is 0."""

    text: str
    outcome: str
    reason: str
    cluster: str = ""
    version: int = 0


class Awaited:
    """Lines that are about to be handed over; what is on record of the same lines by now does not count."""

    def __init__(self, root: str, lines: Sequence[Line]) -> None:
        self._root = root
        self._lines = lines
        self._wanted = Counter(line.text for line in lines)
        named = {line.event.cluster_id if line.event else line.header.text("cluster_id") for line in lines}
        history = History(root)
        known = set(history.clusters()) if history.has(PLANS) else set()
        self._newest = {name: history.version_at(name) if name in known else 0 for name in named if name}
        self._before = self._recorded()

    def wait(self, seconds: float) -> bool:
        """Say what became of the lines; whether all of them were taken, in time."""
        if "://" not in self._root and writer_of(self._root) is None:
            click.echo("no job runs on these tables; start one: replica-planner run", err=True)
        until = time.monotonic() + seconds
        with working("waiting for the outcome"):
            while (missing := self._missing(found := self._recorded() - self._before)) and time.monotonic() < until:
                time.sleep(_POLL)
        outcomes = Counter(one.outcome for one in found.elements())
        versions = {name: [one.version for one in found if one.cluster == name] for name in sorted(self._newest)}
        click.echo(
            ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(outcomes.items()))
            or "no outcome yet"
        )
        for name, numbers in versions.items():
            _say_versions(self._root, name, numbers)
        places = {line.text: f"line {line.place} " if len(self._lines) > 1 else "" for line in self._lines}
        for one in found:
            if one.outcome not in _TAKEN:
                print_line(f"{places[one.text]}{one.outcome}: {one.reason}", err=True)
        if missing:
            click.echo(
                f"{missing} of {len(self._lines)} without an outcome after {seconds:g} s; they stay in the source: "
                "replica-planner health says whether the job runs",
                err=True,
            )
        return not missing and set(outcomes) <= set(_TAKEN)

    def _missing(self, found: Counter[Outcome]) -> int:
        return (self._wanted - Counter(one.text for one in found.elements())).total()

    def _recorded(self) -> Counter[Outcome]:
        """What the tables have of these lines: versions that are newer than at first, and quarantine."""
        history = History(self._root)
        if not history.has(PLANS):
            return Counter()
        refused = history.quarantine()
        refused = refused.filter(pc.is_in(refused["payload"], pa.array(list(self._wanted))))
        found = Counter(Outcome(row["payload"], row["outcome"], row["reason"]) for row in refused.to_pylist())
        columns = [f"events.{name}" for name in ("payload", "outcome", "reason")]
        for name, newest in self._newest.items():
            for row in history.plans(columns, Span(name, newest + 1)).to_pylist():
                number = row["plan_version"]
                found.update(Outcome(e["payload"], e["outcome"], e["reason"], name, number) for e in row["events"])
        return Counter({one: count for one, count in found.items() if one.text in self._wanted})


def _say_versions(root: str, cluster: str, numbers: Sequence[int]) -> None:
    """What the versions that record the lines decided, what was left and why, and where the cluster is with them."""
    if not numbers:
        return
    from streaming.cli.screens.watching import version_line

    for version in History(root).headlines(cluster):
        if version.plan_version in sorted(set(numbers))[-_SHOWN:]:
            print_line(version_line(version))
    print_line(f"{cluster} is at version {max(numbers)}")
