"""Verify the bytes of a plan: loads, limits and disks, added up from the loads and the replica lists alone.

Nothing here is shared with the steps that plan by load.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from placement.loads.report import LoadReport
from placement.model import NO_BROKER, Int32Array
from placement.plan import Replan

_NAMES: Final = ("disk", "bytes_in", "bytes_out", "cpu", "replicas", "leaders")
_LIMITED: Final = _NAMES[:4]


def load_problems(plan: Replan) -> Iterator[str]:
    """What is wrong with the bytes of a plan, one sentence each; nothing where it was made without loads."""
    report = plan.loads
    if report is None:
        return
    yield from _sums(plan, report)
    yield from _log_dirs(plan, report)
    yield from limit_problems(plan)


def limit_problems(plan: Replan) -> Iterator[str]:
    """Where a plan puts more than a broker or a disk can take, one sentence each; nothing where it has no loads."""
    if plan.loads is not None:
        yield from _limits(plan, plan.loads)
        yield from _full_dirs(plan, plan.loads)


def _carried(report: LoadReport, replicas: Int32Array) -> NDArray[np.int64]:
    """Load of each of the report's brokers, shape ``(6, n)``."""
    size, taken, given = report.given.size, report.given.bytes_in, report.given.bytes_out
    one, none = np.ones_like(size), np.zeros_like(size)
    leading = (size, taken, given, 70 * taken + 15 * given, one, one)
    following = (size, taken, none, 15 * taken, one, none)
    ids = report.brokers
    result = np.zeros((len(_NAMES), ids.size), np.int64)
    for column in range(replicas.shape[1]):
        at = np.minimum(np.searchsorted(ids, replicas[:, column]), ids.size - 1)
        row = np.flatnonzero(ids[at] == replicas[:, column])
        for k, carried in enumerate(following if column else leading):
            np.add.at(result[k], at[row], carried[row])
    return result


def _sums(plan: Replan, report: LoadReport) -> Iterator[str]:
    copied = 0
    for at, row in enumerate(plan.moves.row.tolist()):
        new = set(plan.moves.after[at].tolist()) - set(plan.moves.before[at].tolist()) - {NO_BROKER}
        copied += len(new) * int(report.given.size[row])
    if copied != report.moved_bytes:
        yield f"the plan says {report.moved_bytes} bytes move and {copied} do"
    if copied < report.lower_bound_bytes:
        yield f"{copied} bytes move, fewer than the certified lower bound of {report.lower_bound_bytes}"
    if report.max_bytes is not None and copied > report.max_bytes:
        yield f"{copied} bytes move and {report.max_bytes} may"
    for when, layout, said in (("before", plan.before, report.before), ("after", plan.assignment, report.after)):
        if not np.array_equal(_carried(report, layout.replicas), said):
            yield f"the loads {when} are not those of the replicas"


def _limits(plan: Replan, report: LoadReport) -> Iterator[str]:
    """No broker ends above a limit, unless it was there before and did not get more."""
    before, after = (_carried(report, layout.replicas) for layout in (plan.before, plan.assignment))
    for at, broker in enumerate(report.brokers.tolist()):
        limits = report.given.limits.get(broker)
        for k, name in enumerate(_LIMITED):
            limit = getattr(limits, name, None)
            if limit is not None and after[k, at] > limit and after[k, at] > before[k, at]:
                yield f"broker {broker} ends with {name} {after[k, at]}, above its limit of {limit}"


def _log_dirs(plan: Replan, report: LoadReport) -> Iterator[str]:
    """Every new replica on a broker with known disks names one, and no other does."""
    if len(report.log_dirs) != len(plan.moves):
        yield f"the plan has {len(plan.moves)} moves and names disks for {len(report.log_dirs)}"
        return
    for move, paths in zip(plan.moves, report.log_dirs, strict=True):
        if len(paths) != len(move.after):
            yield f"partition {move.topic}-{move.partition} names {len(paths)} disks for {len(move.after)} replicas"
            continue
        for broker, path in zip(move.after, paths, strict=True):
            limits = report.given.limits.get(broker)
            known = {d.path for d in limits.log_dirs} if limits else set()
            expected = known if known and broker not in move.before else {"any"}
            if path not in expected:
                yield f"partition {move.topic}-{move.partition} names the disk {path!r} of broker {broker}"


def _full_dirs(plan: Replan, report: LoadReport) -> Iterator[str]:
    """No disk ends above its limit."""
    added: dict[tuple[int, str], int] = {}
    for move, row, paths in zip(plan.moves, plan.moves.row.tolist(), report.log_dirs, strict=False):
        for broker, path in zip(move.after, paths, strict=False):
            added[broker, path] = added.get((broker, path), 0) + int(report.given.size[row])
    for broker, limits in sorted(report.given.limits.items()):
        for one in limits.log_dirs:
            new = added.get((broker, one.path), 0)
            if new and one.used + new > one.limit:
                yield f"{one.path} of broker {broker} ends with {one.used + new} bytes, above its limit of {one.limit}"
