"""What a running job says on the screen: a line for everything that it decides."""

from __future__ import annotations

import logging
from typing import Final

from streaming.amounts import bytes_text
from streaming.planning.batch import BatchResult
from streaming.record.version import EventRecord, Numbers, PlanVersion

_log: Final = logging.getLogger(__name__)


def say(text: str) -> None:
    """A line about the job itself."""
    _log.info("%s", text)


def report_batch(result: BatchResult) -> None:
    """The decisions of one committed batch."""
    batch: dict[str, object] = {"batch_id": result.batch_id}
    for event in result.unplanned:
        about: dict[str, object] = {
            "cluster_id": event.cluster_id,
            "event_id": event.event_id,
            "outcome": event.outcome,
        }
        _log.info("%s", event_line(event), extra=batch | about | {"place": event.place})
    for version in result.versions:
        level = logging.ERROR if version.means.stopped else logging.INFO
        about = {"cluster_id": version.cluster_id, "plan_version": version.plan_version, "kind": version.kind}
        _log.log(level, "%s", version_line(version), extra=batch | about)


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
        text += f"; moves {n.moved_replicas} replicas{_cost(n)}"
    if n.before != n.after:
        text += f"; replicas per broker {n.before.replicas_min}..{n.before.replicas_max}"
        text += f" → {n.after.replicas_min}..{n.after.replicas_max}"
    if version.waits_for_approval:
        text += f"; waits for approval, digest {version.digest[:12]}"
    return text


def _cost(n: Numbers) -> str:
    """What the moves cost beside the least that was proved: replicas, or bytes where the plan was made by load."""
    if n.loads is not None:
        return f", {bytes_text(n.loads.moved_bytes)} (at least {bytes_text(n.loads.lower_bound_bytes)})"
    return " (proved least)" if n.optimal else f" (at least {n.lower_bound})"
