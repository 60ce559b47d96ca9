"""Whether a recorded plan is sound: the independent check of its moves, and its digest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from placement import Change, Verification, Violation, verify_moves
from placement.model import NO_BROKER, Int32Array
from streaming.planning.in_sync import brokers_up
from streaming.record.moves import change_of, digest
from streaming.record.version import MEMBERS, BrokerRecord, PlanVersion


def check_moves(version: PlanVersion, brokers: Iterable[BrokerRecord]) -> Verification:
    """Check the moves of a version against the brokers as they are with the version's changes.

    Which replicas were in the ISR is not part of a version: those on brokers that were up count as in sync.
    """
    if not version.means.moves_replicas or version.approval in ("rejected", "reported"):
        return Verification((), 0)
    change = change_of(version.moves)
    members = [b for b in sorted(brokers, key=lambda b: b.broker_id) if b.state in MEMBERS]
    in_sync = np.where(np.isin(change.before, brokers_up(members)), change.before, NO_BROKER).astype(np.int32)
    if not version.means.is_planned:
        return check_as_said(change, members, in_sync)
    held = {b.broker_id for b in members if b.state == "failed"}
    factors = factors_after(change) if version.means.changes_factor else {}
    known = [b.to_core() for b in members]
    terms: dict[str, Any] = {"replication_factors": factors, "in_sync": in_sync, "partial": True}
    found = verify_moves(change, known, exclude_brokers=held, **terms)
    if found:
        return found
    # Brokers that are excluded, or that topics are kept off, leave racks of another size.
    policy = version.known_policy
    kept_off = {topic: policy.loads.closed_to(topic) for topic in change.topics}
    excluded = held.union(policy.exclude_brokers).intersection(b.id for b in known if b.state == "alive")
    again = verify_moves(change, known, exclude_brokers=excluded, keep_off=kept_off, **terms)
    return again or found


def check_as_said(change: Change, members: Iterable[BrokerRecord], in_sync: Int32Array) -> Verification:
    """Check moves that somebody says instead of planning them: replicas go only to brokers that are up."""
    up = [replace(b.to_core(), state="dead") if b.state == "failed" else b.to_core() for b in members]
    return verify_moves(change, up, replication_factors=factors_after(change), in_sync=in_sync, partial=True)


def check_version(version: PlanVersion, brokers: Iterable[BrokerRecord]) -> Verification:
    """The same, and whether the digest on record is that of the moves on record."""
    found = check_moves(version, brokers)
    actual = digest(version.moves)
    if actual == version.digest:
        return found
    other = Violation(f"the digest on record is {version.digest[:12]} and that of its moves is {actual[:12]}")
    return Verification((*found.violations, other), found.checked)


def factors_after(change: Change) -> dict[str, int]:
    """The replication factor that each topic ends with."""
    sizes = (change.after != NO_BROKER).sum(axis=1).tolist()
    return {change.topics[t]: n for t, n in zip(change.topic_index.tolist(), sizes, strict=True)}
