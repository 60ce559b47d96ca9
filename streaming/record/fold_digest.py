"""The digest of a fold: what a projection must have to be believed.

A mapping of what there is, such as topics to their replicas, is digested item by item: the XOR of the items' hashes. So
it does not depend on an order, and follows a change at the cost of that change. The journal keeps the digests that each
version leaves; a projection whose content has another one is no fold of this journal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, Generic, TypeVar

import msgspec
from numpy.typing import NDArray

from placement.model import NO_BROKER, Int32Array
from streaming.record.loads import BrokerLimits, TopicLoads
from streaming.record.moves import Roles
from streaming.record.version import BrokerRecord

Key = TypeVar("Key", str, int)
Value = TypeVar("Value")

_BYTES: Final = 16
"""Of each sha256; nobody is to be kept from forging them, a projection is no evidence."""


@dataclass(slots=True)
class FoldDigest(Generic[Key, Value]):
    """The digest of a mapping that changes; what changed is hashed when somebody asks."""

    hash_of: Callable[[Key, Value], bytes]
    _sum: int = 0
    _before: dict[Key, Value | None] = field(default_factory=dict)

    def changes(self, key: Key, items: Mapping[Key, Value]) -> None:
        """Must be told before an item of the mapping is put in, replaced or taken out."""
        if key not in self._before:
            self._before[key] = items.get(key)

    def of(self, items: Mapping[Key, Value]) -> str:
        """The digest of the mapping as it is."""
        for key, before in self._before.items():
            self._sum ^= self._number(key, before) ^ self._number(key, items.get(key))
        self._before.clear()
        return self._sum.to_bytes(_BYTES).hex()

    def settle(self, digest: str) -> None:
        """Believe that this is the digest of the mapping as it is."""
        self._sum = int(digest, 16)
        self._before.clear()

    def _number(self, key: Key, value: Value | None) -> int:
        return 0 if value is None else int.from_bytes(self.hash_of(key, value)[:_BYTES])


def hash_of_broker(_: int, broker: BrokerRecord) -> bytes:
    """Hash of all that is known of a broker."""
    return _hashed(astuple(broker))


def hash_of_limits(_: int, limits: BrokerLimits) -> bytes:
    """Hash of what a broker can take."""
    return _hashed(astuple(limits))


def hash_of_loads(_: str, block: TopicLoads) -> bytes:
    """Hash of the loads of a topic's partitions."""
    return sha256(_named(block.topic, block.partitions) + block.values.astype("<i8").tobytes()).digest()


def hash_of_topic(topic: str, partitions: Int32Array, replicas: Int32Array, roles: Roles | None) -> bytes:
    """Hash of a topic's partitions with their replicas, leaders, ISR and end offsets, however they are padded."""
    found = sha256(_named(topic, partitions))
    _add_rows(found, replicas)
    for name in ("leader", "isr", "end_offsets"):
        rows = getattr(roles, name, None)  # no roles at all are the same as roles of which nothing is known
        if rows is not None and (rows != NO_BROKER).any():
            found.update(name.encode())
            _add_rows(found, rows.reshape(partitions.size, -1))
    return found.digest()


def _named(topic: str, partitions: Int32Array) -> bytes:
    return f"{topic}\0{partitions.size}\0".encode() + partitions.astype("<i4").tobytes()


def _add_rows(found: Any, rows: NDArray[Any]) -> None:
    """What is there of each row, without its padding, which is -1 for brokers and offsets alike."""
    there = rows != NO_BROKER
    found.update(there.sum(axis=1).astype("<i4").tobytes() + rows[there].astype("<i8").tobytes())


def _hashed(values: tuple[Any, ...]) -> bytes:
    moments = [v.astimezone(UTC).isoformat() if isinstance(v, datetime) else v for v in values]
    return sha256(msgspec.json.encode(moments)).digest()
