"""Whether a recorded plan is sound: the independent check of its moves, and its digest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from placement import Change, Verification, Violation, verify_moves
from placement.model import NO_BROKER
from streaming.config import Policy
from streaming.record.moves import change_of, digest
from streaming.record.version import MEMBERS, BrokerRecord, PlanVersion

CHECKED_KINDS: Final = ("heal", "rebalance", "replication_factor", "rollback", "restore")
"""Kinds whose moves must satisfy the independent check; topics may be placed as Kafka would, or by hand."""


def check_moves(version: PlanVersion, brokers: Iterable[BrokerRecord]) -> Verification:
    """Check the moves of a version against the brokers as they are with the version's changes."""
    if version.kind not in CHECKED_KINDS or version.approval in ("rejected", "reported"):
        return Verification((), 0)
    change = change_of(version.moves)
    factors = {} if version.kind in ("heal", "rebalance") else factors_after(change)
    members = [b.to_core() for b in sorted(brokers, key=lambda b: b.broker_id) if b.state in MEMBERS]
    found = verify_moves(change, members, replication_factors=factors, partial=True)
    if found or version.kind not in ("heal", "rebalance"):
        return found
    # Topics that are kept off brokers have racks of another size.
    policy = msgspec.json.decode(version.policy, type=Policy)
    kept_off = {topic: policy.loads.closed_to(topic) for topic in change.topics}
    return verify_moves(change, members, keep_off=kept_off, partial=True) if any(kept_off.values()) else found


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
