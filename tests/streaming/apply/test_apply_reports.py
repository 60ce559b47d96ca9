"""Reports to the planner outlive a source that cannot be written to."""

from __future__ import annotations

from pathlib import Path

from streaming.apply.journal.reports import Reports
from streaming.config import FilesSource
from streaming.events import PlanProgress, decode


def delivered(folder: Path) -> list[tuple[str, object]]:
    events = [decode(line).event for file in sorted(folder.glob("*.jsonl")) for line in file.read_bytes().splitlines()]
    return [(e.state, e.details) for e in events if isinstance(e, PlanProgress)]


def test_what_cannot_be_delivered_waits_and_keeps_its_order(tmp_path: Path) -> None:
    source = tmp_path / "events"
    source.write_text("no folder")
    reports = Reports(FilesSource(str(source)), "east", 4)
    reports.add("started", partitions=2, waves=1)
    assert reports.send().startswith(f"{source}: cannot be written to")
    reports.add("partition_done", topic="t", partition=0, replicas=[1, 2])
    assert reports.send() == "", "it is not tried again at once"
    source.unlink()
    assert reports.send() == "" and not source.exists()
    reports.add("completed", partitions=1, seconds=0.5)
    assert reports.send(last=True) == ""
    assert delivered(source) == [
        ("started", {"partitions": 2, "waves": 1}),
        ("partition_done", {"topic": "t", "partition": 0, "replicas": [1, 2]}),
        ("completed", {"partitions": 1, "seconds": 0.5}),
    ]
    assert reports.send(last=True) == "" and len(list(source.iterdir())) == 1
