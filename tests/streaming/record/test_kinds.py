"""What kinds of versions mean, and that no other module says so."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

from streaming.record.kinds import MEANINGS, Kind, Meaning

ALL = {
    "moves_replicas": "replication_factor heal rebalance rollback restore",
    "asks": "topics replication_factor heal rebalance election rollback restore",
    "can_be_undone": "replication_factor heal rebalance observation rollback",
    "is_planned": "replication_factor heal rebalance",
    "changes_factor": "replication_factor",
    "rebalances": "rebalance",
    "may_heal": "membership heal rebalance",
    "undoes": "rollback",
    "elects": "election",
    "observes": "observation",
    "tells_drift": "drift restore",
    "restores": "restore",
    "observes_loads": "loads",
    "claims": "claim",
    "stopped": "stop",
    "sets_load_deadline": "rebalance stop loads",
    "is_aside": "loads claim",
    "is_shared": "topics membership loads",
}


def test_every_kind_has_its_meaning() -> None:
    found = {
        field.name: " ".join(kind for kind, meaning in MEANINGS.items() if getattr(meaning, field.name))
        for field in fields(Meaning)
    }
    assert found == ALL
    assert tuple(MEANINGS) == get_args(Kind)
    assert [kind for kind, meaning in MEANINGS.items() if meaning.stopped is False] == ["resume"]


def test_nobody_else_knows_kinds_by_name() -> None:
    """A rule about some kinds is a property of them."""
    names = "|".join(get_args(Kind))
    rule = re.compile(rf"kinds?(\"\])? *(==|!=|in|not in) *\(?\"({names})\"")
    found = [
        f"{path}:{number}"
        for path in sorted((Path(__file__).parents[3] / "streaming").rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if rule.search(line)
    ]
    assert found == []
