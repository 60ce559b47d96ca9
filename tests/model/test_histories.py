"""Random histories of one cluster or two on the pure planner; ``python -m benchmarks.histories`` plays thousands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from streaming.config import Policy
from streaming.events import EVENT_TYPES, TopicCreated
from streaming.planning import planner
from streaming.planning.decisions import brokers
from streaming.planning.decisions.decision import Answer, Decision
from streaming.planning.decisions.topics import topic_created
from streaming.planning.state import ClusterState
from streaming.record.version import BrokerRecord, EventRecord
from tests.model.chance import WEIGHTS
from tests.model.history import play, replay, shrunk, told
from tests.model.machine import Step

CASES = Path(__file__).parents[1] / "cases" / "histories.jsonl"
"""Histories that broke something once, a conf and its steps a line."""


@pytest.mark.parametrize("seed", range(3))
def test_no_history_stops_a_cluster_or_breaks_what_must_hold(seed: int) -> None:
    """The shortest form found of a history that fails is in what is printed: keep it in the cases."""
    played = play(seed, events=120)
    assert not played.broken, told(shrunk(played.steps))


def test_what_broke_once_holds() -> None:
    lines = CASES.read_text(encoding="utf-8").splitlines() if CASES.exists() else []
    cases: list[list[Step]] = [json.loads(line) for line in lines]
    assert [replay(steps) for steps in cases] == [""] * len(cases)


def test_every_type_of_event_is_drawn() -> None:
    assert set(WEIGHTS) == set(EVENT_TYPES)


def _heals_nothing(state: ClusterState, policy: Policy, cause: str, brokers: Sequence[BrokerRecord]) -> Decision:
    return Decision("membership", cause, brokers=brokers)


def _forgets_what_was_seen(state: ClusterState, events: Iterable[EventRecord]) -> None:
    remember(state, [event for event in events if event.type != "topic_created"])


def _drops_what_is_left(state: ClusterState, event: TopicCreated, policy: Policy) -> Answer:
    answer = topic_created(state, event, policy)
    if isinstance(answer, Decision) and len(state.topics) > 1:
        state.topics.popitem()
    return answer


remember = ClusterState.remember

FAULTS: list[tuple[Any, str, Any, str]] = [
    (brokers, "heal", _heals_nothing, "leaves t"),
    (ClusterState, "remember", _forgets_what_was_seen, "memory has"),
    (planner, "topic_created", _drops_what_is_left, "topics are"),
]


@pytest.mark.parametrize(("where", "what", "instead", "sentence"), FAULTS)
def test_a_faulty_planner_is_found_and_told_in_a_few_lines(
    where: Any, what: str, instead: Any, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, what, instead)
    broken = next(played for seed in range(20) if (played := play(seed, events=60)).broken)
    assert sentence in broken.broken
    short = shrunk(broken.steps, most=150)
    assert replay(short)
    assert sum(len(step.get("lines", ())) for step in short) < 12
