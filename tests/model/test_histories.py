"""Random histories of one cluster on the pure planner; ``python -m benchmarks.histories`` plays thousands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streaming.events import EVENT_TYPES
from tests.model.chance import WEIGHTS
from tests.model.machine import Step, play, replay

CASES = Path(__file__).parents[1] / "cases" / "histories.jsonl"
"""Histories that broke something once, a conf and its steps a line."""


@pytest.mark.parametrize("seed", range(3))
def test_no_history_stops_a_cluster_or_breaks_what_must_hold(seed: int) -> None:
    """A history that fails is in what is printed: keep its steps in the cases."""
    played = play(seed, events=120)
    assert not played.broken, json.dumps(played.steps)


def test_what_broke_once_holds() -> None:
    lines = CASES.read_text(encoding="utf-8").splitlines() if CASES.exists() else []
    cases: list[list[Step]] = [json.loads(line) for line in lines]
    assert [replay(steps) for steps in cases] == [""] * len(cases)


def test_every_type_of_event_is_drawn() -> None:
    assert set(WEIGHTS) == set(EVENT_TYPES)
