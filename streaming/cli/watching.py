"""What a running job says on the screen: a line for everything that it decides."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from streaming.batch import BatchResult
from streaming.version import EventRecord, PlanVersion

_console = Console(stderr=True, highlight=False, soft_wrap=True)
_STYLES = {"rejected": "yellow", "malformed": "red", "stale": "yellow"}


def say(text: str) -> None:
    """A line about the job itself."""
    _console.print(Text(text, style="dim"))


def report_batch(result: BatchResult) -> None:
    """The decisions of one committed batch."""
    for event in result.unplanned:
        _console.print(Text(event_line(event), style=_STYLES.get(event.outcome, "")))
    for version in result.versions:
        _console.print(Text(version_line(version)))


def event_line(event: EventRecord) -> str:
    """An event that no plan records."""
    what = " ".join(part for part in (event.type, event.entity.partition(":")[2]) if part) or "line"
    reason = f": {event.reason}" if event.reason else ""
    return f"{event.place}  {what} {event.outcome.replace('_', ' ')}{reason}"


def version_line(version: PlanVersion) -> str:
    """A plan version in one line."""
    n = version.numbers
    text = f"{version.cluster_id} v{version.plan_version}  {version.cause}"
    if n.moved_replicas:
        proof = "proved least" if n.optimal else f"at least {n.lower_bound}"
        text += f"; moves {n.moved_replicas} replicas ({proof})"
    if n.before != n.after:
        text += f"; replicas per broker {n.before.replicas_min}..{n.before.replicas_max}"
        text += f" → {n.after.replicas_min}..{n.after.replicas_max}"
    if version.approval == "proposed":
        text += f"; waits for approval, digest {version.digest[:12]}"
    return text
