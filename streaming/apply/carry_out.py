"""Does the steps of a task on the real cluster.

What is done is read from the cluster, never remembered: killed at any moment and started again, a run makes new steps
from what it finds. A run that is stopped, or fails, cancels what it has under way and removes its throttles.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, assert_never

from streaming.apply.explain import counted, headline, not_moved, places_text
from streaming.apply.fates import fate_of
from streaming.apply.journal.reports import Reports
from streaming.apply.journal.tasks import Place, Replicas, Task
from streaming.apply.kafka.cluster import Cluster
from streaming.apply.kafka.throttles import throttle, unthrottle
from streaming.apply.progress import Progress
from streaming.apply.steps import (
    AddPartitions,
    Cancel,
    CreateTopic,
    Elect,
    KeepTopic,
    LeaveOut,
    MoveWave,
    Refuse,
    Step,
    Throttle,
    Unthrottle,
)
from streaming.apply.watching import StoppedError, watch
from streaming.errors import ApplyError, ClusterError, IncompleteError, RefusedError, StreamingError

_POLL: Final = 0.1


class Screen(Protocol):
    """Where a run says what it does."""

    def say(self, text: str) -> None:
        """A line that stays."""

    def show(self, progress: Progress) -> None:
        """How far the present wave has come."""


@dataclass(slots=True)
class Run:
    """One task being carried out; ``stopped`` ends it in order."""

    cluster: Cluster
    task: Task
    reports: Reports
    screen: Screen
    stopped: threading.Event
    _failed: dict[Place, str] = field(default_factory=dict)
    _done: int = 0
    _seconds: float | None = None
    _keep: Callable[[], None] = lambda: None

    def carry_out(self, steps: Sequence[Step], keep: Callable[[], None] = lambda: None) -> None:
        """Do the steps; ``keep`` is called now and then meanwhile.

        Raises:
            RefusedError: the task does not fit the cluster.
            IncompleteError: some partitions could not be moved, or the run was stopped.
            ClusterError: the cluster cannot be asked any more.
        """
        began, self._keep = time.monotonic(), keep
        waves = [step for step in steps if isinstance(step, MoveWave)]
        self.reports.add("started", partitions=sum(len(wave.moves) for wave in waves), waves=len(waves))
        try:
            for step in steps:
                self._do(step)
                self._send_reports()
        except (StreamingError, StoppedError) as error:
            raise self._left(error, steps) from error
        if self._failed:
            raise self._incomplete()
        self._seconds = round(time.monotonic() - began, 1)
        if not self.task.left_to_later:
            self.note_done()

    def note_done(self) -> None:
        """Report that the cluster is as the task wants it, and as later ones do which took care of the rest."""
        begun = {"seconds": self._seconds} if self._seconds is not None else {"already": True}
        self.reports.add("completed", partitions=self._done, **begun)
        self._send_reports(last=True)

    def _do(self, step: Step) -> None:
        if self.stopped.is_set():
            raise StoppedError
        self.screen.say(headline(step))
        match step:
            case CreateTopic():
                self.cluster.create_topic(step.topic, step.replicas)
                self._await_created(step.topic, 0, step.replicas)
            case AddPartitions():
                self.cluster.add_partitions(step.topic, step.first, step.replicas)
                self._await_created(step.topic, step.first, step.replicas)
            case Cancel():
                self.cluster.reassign({move.place: move.now for move in step.moves})
            case Throttle():
                throttle(self.cluster, step)
            case MoveWave():
                self._move(step)
            case LeaveOut():
                self._failed |= dict.fromkeys(step.places, step.reason)
            case Elect():
                self._elect(place for place in step.places if place not in self._failed)
            case Unthrottle():
                self._unthrottle(step)
            case KeepTopic():
                pass
            case Refuse():
                raise RefusedError(f"{self.task.name} is not carried out: {step.reason}")
            case _:
                assert_never(step)

    def _await_created(self, topic: str, first: int, replicas: Sequence[Replicas]) -> None:
        """Return when the cluster shows the new partitions."""
        places = [(topic, p) for p in range(first, first + len(replicas))]
        until = time.monotonic() + self.cluster.patience
        while not self.cluster.see([topic]).partitions.keys() >= set(places):
            if self.stopped.wait(_POLL):
                raise StoppedError
            if time.monotonic() > until:
                raise ApplyError(
                    f"{self.task.name}: topic {topic} was created and does not appear; look at the brokers"
                )
        for place, row in zip(places, replicas, strict=True):
            self._is_done(place, row)

    def _move(self, wave: MoveWave) -> None:
        def settle(ended: Mapping[Place, str]) -> None:
            lost = {place: reason for place, reason in ended.items() if reason}
            self._failed |= lost
            for line in not_moved(lost):
                self.screen.say(line)
            for place in sorted(ended.keys() - lost.keys()):
                self._is_done(place, wanted[place])

        wanted = {move.place: move.after for move in wave.moves}
        for progress in watch(self.cluster, wave, self.stopped, settle):
            self._send_reports()
            self.screen.show(progress)

    def _is_done(self, place: Place, replicas: Replicas) -> None:
        self._done += 1
        self.reports.add("partition_done", topic=place[0], partition=place[1], replicas=list(replicas))

    def _elect(self, places: Iterable[Place]) -> None:
        wanted = list(places)
        refused = self.cluster.elect(wanted) if wanted else {}
        for place, reason in refused.items():
            self.screen.say(f"{places_text([place])} keeps its leader: {reason}")
        asked = {part.place for part in self.task.partitions if part.is_election}
        self._failed |= {place: reason for place, reason in refused.items() if place in asked}

    def _unthrottle(self, step: Unthrottle) -> None:
        for broker in unthrottle(self.cluster, step.brokers, step.topics):
            self.screen.say(f"broker {broker} is down and keeps its rate, which limits nothing; apply again removes it")

    def _left(self, error: StreamingError | StoppedError, steps: Sequence[Step]) -> StreamingError:
        """Leave the cluster in order, and say how it was left."""
        reason = "stopped" if isinstance(error, StoppedError) else str(error)
        cancelled, order = 0, "no throttle is left; apply again to go on"
        try:
            cancelled = self._take_back(steps)
            for step in steps:
                if isinstance(step, Unthrottle):
                    self._unthrottle(step)
        except ClusterError as failure:
            order = f"throttles and reassignments may be left, which the next apply goes on with: {failure}"
        self.reports.add("failed", reason=reason, partitions_done=self._done, cancelled=cancelled)
        self._send_reports(last=True)
        if isinstance(error, StoppedError):
            done = counted(self._done, "partition")
            return IncompleteError(f"{self.task.name}: stopped with {done} done and {cancelled} cancelled; {order}")
        return error

    def _take_back(self, steps: Sequence[Step]) -> int:
        """Take back what this task has under way, and return when that has ended; how many partitions that were."""
        moves = {move.place: move for step in steps if isinstance(step, MoveWave) for move in step.moves}
        topics = {topic for topic, _ in moves}
        taken: set[Place] = set()
        until = time.monotonic() + self.cluster.patience
        while time.monotonic() < until:
            seen = self.cluster.see(topics)
            fates = {place: fate_of(move, seen) for place, move in moves.items()}
            ours = {p: moves[p].now for p, fate in fates.items() if fate.kind == "moving" or fate.to_cancel}
            if not ours:
                break
            self.cluster.reassign(ours)
            taken.update(ours)
            time.sleep(_POLL)
        return len(taken)

    def _incomplete(self) -> IncompleteError:
        reason = next(iter(self._failed.values()))
        details = [{"topic": t, "partition": p, "reason": why} for (t, p), why in sorted(self._failed.items())]
        self.reports.add("failed", reason=reason, partitions_done=self._done, partitions=details)
        self._send_reports(last=True)
        return IncompleteError(
            f"{self.task.name} is carried out but for {places_text(sorted(self._failed))}: {reason}; "
            "no throttle is left; apply again, or the newer plan once there is one"
        )

    def _send_reports(self, *, last: bool = False) -> None:
        self._keep()
        if problem := self.reports.send(last=last):
            remedy = "apply again tells the planner once that is fixed" if last else "they wait"
            self.screen.say(f"reports are not delivered: {problem}; {remedy}")
