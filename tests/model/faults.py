"""Faults that the planner is given, and plans that are made once: the core plans the same from the same."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pytest

from placement import PlacementError, Replan
from streaming.events import AnyEvent
from streaming.planning import batch, planner
from streaming.planning.decisions import moving
from streaming.planning.planner import ClusterPlanner


@dataclass(slots=True)
class Faults:
    """What fails: some events, by their ids, and maybe whatever time brings."""

    events: set[str] = field(default_factory=set)
    time: bool = False

    def at(self, event: AnyEvent) -> bool:
        """Whether the planner fails at the event. Ids are each cluster's own: elsewhere the same may resume it."""
        return event.event_id in self.events and event.type != "cluster_resumed"

    def add(self, step: dict[str, Any]) -> None:
        """Take over what a step brings."""
        self.events |= set(step.get("poison", ()))
        self.time = bool(step.get("stuck", False))


@contextmanager
def faulty(faults: Faults) -> Iterator[None]:
    """Let the planner fail half way through, with its state in disorder."""

    class Faulty(ClusterPlanner):
        def _decide(self, event: AnyEvent) -> Any:
            if faults.at(event):
                self.state.topics.clear()
                raise ZeroDivisionError("half way through")
            return super()._decide(event)

    def stuck(*_: object) -> None:
        raise ZeroDivisionError("time is stuck")

    if not faults.events and not faults.time:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "ClusterPlanner", Faulty)
        if faults.time:
            patch.setattr(planner, "deadline_passed", stuck)
            patch.setattr(planner, "loads_settled", stuck)
        yield


Plans = dict[bytes, Replan | PlacementError]
"""What was planned, by all that it was planned from."""


@contextmanager
def planned_once(plans: Plans) -> Iterator[None]:
    """Take the plan that was made of exactly the same: the audit and the checks ask for most of them again."""
    replan = moving.replan

    def remembered(*args: Any, **terms: Any) -> Replan:
        key = _bytes((args, terms))
        if key not in plans:
            try:
                plans[key] = replan(*args, **terms)
            except PlacementError as error:
                plans[key] = error
        found = plans[key]
        if isinstance(found, PlacementError):
            raise found
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moving, "replan", remembered)
        yield


def _bytes(value: object) -> bytes:
    written = io.BytesIO()
    pickler = pickle.Pickler(written)
    pickler.fast = True  # the same values, whether they are the same objects or not
    pickler.dispatch_table = {MappingProxyType: lambda mapping: (dict, (dict(mapping),))}
    pickler.dump(value)
    return written.getvalue()
