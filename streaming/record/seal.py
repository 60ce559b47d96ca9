"""The seal of a plan version: a hash of its whole row and of the seal before it.

Whoever changes, drops or swaps a row of the journal breaks the chain from there on, also where the change would not
lead to another plan: a cause, a policy that did not matter, the outcome of an event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from hashlib import sha256
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streaming.record.load_columns import limit_row
from streaming.record.moves import TopicMoves
from streaming.record.version import Balance, BrokerRecord, EventRecord, Numbers, PlanVersion, TopicChange

# Copying every field deeply, as dataclasses.astuple does, costs ten times as much.
_EVENT, _BROKER, _TOPIC = (
    attrgetter(*(f.name for f in fields(kind))) for kind in (EventRecord, BrokerRecord, TopicChange)
)
_PLAIN = attrgetter(*(f.name for f in fields(Numbers) if f.name not in ("before", "after", "loads")))
_BALANCE = attrgetter(*(f.name for f in fields(Balance)))

_DETAILS: Final = ("waves", "leader", "isr", "end_offsets")

_ABSENT: Final = -1
"""Stands for no broker and no offset."""


def seal_of(version: PlanVersion, previous: str) -> str:
    """Hexadecimal sha256 of the version and the seal of the one before, empty for the first.

    The moves enter by the digest, which covers what changes, and by hashes of their reasons, waves and roles.
    """
    row = [
        previous,
        version.cluster_id,
        version.plan_version,
        version.base_version,
        version.created_at,
        version.kind,
        version.cause,
        version.approval,
        [_row(_EVENT(event)) for event in version.events],
        [_row(_BROKER(broker)) for broker in version.broker_changes],
        [_row(_TOPIC(topic)) for topic in version.topic_changes],
        _details(version.moves),
        [
            int(n)
            for n in (*_PLAIN(version.numbers), *_BALANCE(version.numbers.before), *_BALANCE(version.numbers.after))
        ],
        version.policy,
        version.software_version,
        version.digest,
        version.supersedes,
        *_of_loads(version),
        *([list(version.fold)] if version.fold.brokers else []),
    ]
    return sha256(msgspec.json.encode(_row(row))).hexdigest()


def _of_loads(version: PlanVersion) -> list[Any]:
    """What a version says of loads; nothing where it says nothing, so that older rows keep their seals."""
    dirs = [[block.topic, block.log_dirs] for block in version.moves if block.log_dirs is not None]
    said = [version.load_changes, version.limit_changes, version.load_deadline, version.numbers.loads, dirs]
    if not any(said):
        return []
    changes = sha256()
    for block in version.load_changes:
        changes.update(f"{block.topic} {block.partitions.size}\n".encode())
        changes.update(block.partitions.astype("<i8").tobytes() + block.values.astype("<i8").tobytes())
    limits = [limit_row(broker) for broker in version.limit_changes]
    numbers = None if version.numbers.loads is None else asdict(version.numbers.loads)
    return [changes.hexdigest(), limits, version.load_deadline, numbers, dirs]


def _details(moves: Sequence[TopicMoves]) -> list[str]:
    """Hashes of what the digest does not cover, the same however the moves are cut into blocks."""
    found = [sha256("\n".join(reason for block in moves for reason in block.reasons).encode()).hexdigest()]
    if all(block.waves is None and block.roles is None for block in moves):
        nothing = sha256(bytes(8 * sum(block.partitions.size for block in moves))).hexdigest()
        return found + [nothing, _hash_of([])] * len(_DETAILS)
    for name in _DETAILS:
        counts, values = [], []
        for block in moves:
            rows = _column(block, name)
            if rows is None:
                counts.append(np.zeros(block.partitions.size, np.int64))
                continue
            held = rows > _ABSENT
            counts.append(held.sum(axis=1))
            values.append(rows[held])
        found += [_hash_of(counts), _hash_of(values)]
    return found


def _hash_of(parts: Sequence[NDArray[np.int64]]) -> str:
    return sha256(np.concatenate(parts).astype("<i8").tobytes() if parts else b"").hexdigest()


def _column(block: TopicMoves, name: str) -> NDArray[np.int64] | None:
    """A detail of each partition as rows, ``_ABSENT`` where it has none; ``None`` where no partition has it."""
    n = block.partitions.size
    found = getattr(block if name == "waves" else block.roles, name, None)
    if found is None:
        return None
    rows: NDArray[np.int64] = found.astype(np.int64).reshape(n, -1 if n else 1)
    return rows - 1 if name == "waves" else rows  # waves count from 1


def _row(values: Iterable[Any]) -> list[Any]:
    """The values with every moment in UTC, however it was written."""
    return [
        value.astimezone(UTC).isoformat(timespec="microseconds") if isinstance(value, datetime) else value
        for value in values
    ]
