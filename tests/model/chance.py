"""Draws what may happen to one cluster next: policies, sensible events, events from the edges."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

from streaming.planning.state import ClusterState
from tests.model.machine import T0

_INTEGERS = [-(2**63), -(2**31), -1, 0, 1, 2, 10**6 + 1, 10**8, 2**31 - 1, 2**31, 2**50, 2**62,
             2**63 - 1, 2**63, 2**64, 10**30]  # fmt: skip
_REALS = [0, 5e-324, 1e-9, 1e-3, 0.5, 1, 3, 1e9, 999_999_999_999.0, 1e12, 1e308, -1]
_TEXTS = [
    "",
    ".",
    "..",
    "a b",
    "\u0000",
    "é",
    "\u202e",
    "x" * 249,
    "x" * 250,
    "x" * 512,
    "x" * 513,
    "c:999 z",
    "*",
    "t[0]",
]
_TIMES = ["1970-01-01T00:00:00Z", "2199-12-31T23:59:59.999999Z", "1969-12-31T23:59:59Z", "2200-01-01T00:00:00Z",
          "2026-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]  # fmt: skip
_IDS = [2**31 - 1, 2**31 - 2, 100]


def conf(draw: Random) -> str:
    """A conf file with a policy."""
    pick = draw.choice

    def some(values: list[str]) -> str:
        return json.dumps(sorted(draw.sample(values, draw.randint(0, 2))))

    lines = [
        "[policy]",
        f'strategy = "{pick(["balanced"] * 4 + ["adminutils", "striped"])}"',
        f"default_partitions = {pick([1, 3])}",
        f"default_replication_factor = {pick([1, 2, 3])}",
        *(f'{name} = "{pick(["heal"] * 4 + ["nothing"])}"' for name in ("on_failed", "on_decommissioned")),
        f'on_unregistered = "{pick(["heal"] * 4 + ["nothing"])}"',
        f'on_joined = "{pick(["nothing", "nothing", "rebalance"])}"',
        f'on_drift = "{pick(["adopt", "report", "restore"])}"',
        f'grace = "{pick(["0s", "1m", "30m", "30m", "3650d"])}"',
        f'settle = "{pick(["0s", "30s", "10m"])}"',
        f"wave_moves = {pick([1, 5])}",
        f"approval = {some(['rebalance', 'heal', 'replication_factor', 'restore'])}",
    ]
    if draw.random() < 0.3:
        lines.append(f"max_moves = {pick([1, 2, 5])}")
    if draw.random() < 0.3:
        lines.append(f"exclude_topics = {some(['__*', 't0', 't[12]'])}")
    if draw.random() < 0.3:
        lines.append(f"exclude_brokers = {pick([[], [1], [0, 2]])}")
    if draw.random() < 0.1:
        lines += ["[policy.loads]", "plan = true", f'every = "{pick(["0s", "5m"])}"', f"weight = {pick([0.2, 1])}",
                  f'on_skew = "{pick(["nothing", "rebalance"])}"']  # fmt: skip
        if draw.random() < 0.3:
            lines.append('keep_off = [{topics = "t[0-2]", brokers = [1, 3]}]')
        if draw.random() < 0.3:
            lines.append(f'max_bytes = "{pick(["1KB", "1KB", "1GB"])}"')
        if draw.random() < 0.3:
            lines.append(f'bytes_in_limit = "{pick(["1KB", "1MB"])}"')
    return "\n".join(lines) + "\n"


@dataclass(slots=True)
class Chance:
    """Draws the events of one cluster. ``racks`` is what most brokers have, by id."""

    draw: Random
    cluster: str = "c"
    minute: float = 0.0
    number: int = 0
    racks: str = ""
    brokers: int = 6

    def __post_init__(self) -> None:
        """Decide what kind of cluster it is."""
        self.racks = self.draw.choice(["", "ab", "abc", "abc", "aabc"])
        self.brokers = self.draw.choice([2, 3, 4, 6, 6, 9])

    def first(self) -> list[str]:
        """Brokers join."""
        return [self._joined(b) for b in range(self.brokers)]

    def resumed(self) -> str:
        """Somebody asks for the cluster to be planned again."""
        return self._event("cluster_resumed")

    def line(self, state: ClusterState) -> str:
        """Something happens to the cluster."""
        kind = self.draw.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        fields = getattr(self, f"_{kind}")(state)
        if self.draw.random() < 0.04:
            self._spoil(fields)
        return self._event(kind, **fields)

    def _event(self, kind: str, **fields: Any) -> str:
        self.number += 1
        moment = T0 + timedelta(minutes=self.minute + self.draw.choice([0, 0, 0, -0.1, -1, 2, -30]))
        event = {
            "event_id": f"e{self.number}",
            "cluster_id": self.cluster,
            "type": kind,
            "occurred_at": moment.isoformat(),
        }
        event |= {name: value for name, value in fields.items() if value is not None}
        chance = self.draw.random()
        if chance < 0.03 and self.number > 1:
            event["event_id"] = f"e{self.draw.randrange(1, self.number)}"
        elif chance < 0.033:
            event["occurred_at"] = self.draw.choice(_TIMES)
        elif chance < 0.036:
            event["event_id"] = self.draw.choice(_TEXTS)
        return json.dumps(event)

    def _spoil(self, fields: dict[str, Any]) -> None:
        """Put a value from the edges somewhere into the event."""
        at: Any = fields
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                return
            key = self.draw.choice(keys)
            if isinstance(at[key], dict | list) and self.draw.random() < 0.8:
                at = at[key]
                continue
            values: list[Any] = {int: _INTEGERS, float: _REALS, str: _TEXTS}.get(type(at[key]), [None, [], {}, "x", 1])
            at[key] = self.draw.choice(values)
            return

    def _broker(self) -> int:
        return self.draw.randrange(self.brokers + 2) if self.draw.random() < 0.97 else self.draw.choice(_IDS)

    def _rack(self, broker: int) -> str | None:
        if self.draw.random() < 0.01:
            return self.draw.choice([None, "z", *_TEXTS])
        return self.racks[broker % len(self.racks)] if self.racks else None

    def _topic(self, state: ClusterState) -> str:
        if state.topics and self.draw.random() < 0.8:
            return self.draw.choice(sorted(state.topics))
        return self.draw.choice(["t0", "t1", "t2", "t3", "t4", "t5", "__x", "__y"])

    def _joined(self, broker: int) -> str:
        return self._event("broker_joined", broker_id=broker, rack=self._rack(broker))

    def _capacity(self, often: float) -> float | None:
        return self.draw.choice([1.0, 2.0, 0.5, *_REALS]) if self.draw.random() < often else None

    def _broker_joined(self, _: ClusterState) -> dict[str, Any]:
        broker = self._broker()
        return {"broker_id": broker, "rack": self._rack(broker), "capacity": self._capacity(0.05)}

    def _broker_left(self, _: ClusterState) -> dict[str, Any]:
        reason = self.draw.choice(["failed"] * 4 + ["decommissioned", "unregistered"])
        return {"broker_id": self._broker(), "reason": reason}

    def _broker_changed(self, _: ClusterState) -> dict[str, Any]:
        broker = self._broker()
        return {"broker_id": broker, "rack": self._rack(broker), "capacity": self._capacity(0.7)}

    def _replicas(self, state: ClusterState, size: int) -> list[int]:
        known = sorted(b.broker_id for b in state.members()) or [0]
        found = self.draw.sample(known, min(size, len(known)))
        return [*found[:-1], self._broker()] if self.draw.random() < 0.1 else found

    def _topic_created(self, state: ClusterState) -> dict[str, Any]:
        topic = self.draw.choice(["t0", "t1", "t2", "t3", "t4", "t5", "__x", "__y"])
        chance = self.draw.random()
        if chance < 0.2:
            size = self.draw.choice([1, 2, 3])
            ids = self.draw.sample([0, 1, 2, 3, 7, 2**31 - 1], self.draw.randint(1, 3))
            return {"topic": topic, "replica_assignment": {str(p): self._replicas(state, size) for p in ids}}
        fields: dict[str, Any] = {"topic": topic, "partitions": self.draw.randint(1, 7),
                                  "replication_factor": self.draw.choice([1, 2, 2, 3, 3, 4])}  # fmt: skip
        if chance < 0.3:
            fields |= {"strategy": self.draw.choice(["adminutils", "striped", "balanced"])}
        if chance < 0.24:
            fields |= {"fixed_start_index": self.draw.choice([0, 3, 2**31 - 1]), "disable_rack_aware": chance < 0.22}
        return fields

    def _topic_deleted(self, state: ClusterState) -> dict[str, Any]:
        return {"topic": self._topic(state)}

    def _partitions_added(self, state: ClusterState) -> dict[str, Any]:
        topic = self._topic(state)
        known = state.topics.get(topic)
        present = known.partitions.size if known else 0
        total = present + self.draw.choice([-1, 0, 1, 2, 3])
        if known is not None and self.draw.random() < 0.15:
            last = int(known.partitions[-1])
            ids = range(last + 1, last + 1 + max(1, total - present))
            return {"topic": topic, "partitions": total,
                    "replica_assignment": {str(p): self._replicas(state, 2) for p in ids}}  # fmt: skip
        return {"topic": topic, "partitions": total}

    def _replication_factor_changed(self, state: ClusterState) -> dict[str, Any]:
        return {"topic": self._topic(state), "replication_factor": self.draw.choice([1, 1, 2, 3, 4, 6])}

    def _assignment_observed(self, state: ClusterState) -> dict[str, Any]:
        rows = []
        for topic in sorted({self._topic(state) for _ in range(self.draw.choice([1, 1, 3]))}):
            known = state.topics.get(topic)
            pairs = list(zip(known.partitions.tolist(), known.replicas.tolist(), strict=True)) if known else []
            held: dict[int, list[int]] = {p: [b for b in row if b >= 0] for p, row in pairs}
            for partition in held or range(3):
                replicas = held.get(partition, [])
                if not replicas or self.draw.random() < 0.2:
                    replicas = self._replicas(state, len(replicas) or 2)
                row: dict[str, Any] = {"topic": topic, "partition": partition, "replicas": replicas}
                if self.draw.random() < 0.7:
                    row["leader"] = self.draw.choice([*replicas, -1])
                    row["isr"] = self.draw.sample(replicas, self.draw.randint(0, len(replicas)))
                if self.draw.random() < 0.1:
                    row["end_offsets"] = {str(b): self.draw.choice([5, 2**63 - 1]) for b in replicas}
                rows.append(row)
        return {"partitions": rows}

    def _load_observed(self, state: ClusterState) -> dict[str, Any]:
        amounts = [None, 0, 1, 1000, 5000, 10**9, 2**50]
        weights = [0.1, 1, 5, 20, 20, 2, 0.2]
        rows = [
            {"topic": topic, "partition": p}
            | {name: self.draw.choices(amounts, weights)[0] for name in ("size", "bytes_in", "bytes_out")}
            for topic, layout in sorted(state.topics.items())
            if self.draw.random() < 0.7
            for p in layout.partitions.tolist()
        ]
        fields: dict[str, Any] = {"partitions": rows}
        if self.draw.random() < 0.3:
            dirs = [
                {"path": "/d", "limit": self.draw.choice([0, 10**6, 2**50]), "used": self.draw.choice([None, 0, 5])}
            ]
            one = {"broker_id": self._broker(), "disk": self.draw.choice([None, 0, 10**7, 2**50])}
            fields["brokers"] = [one | ({"log_dirs": dirs} if self.draw.random() < 0.5 else {})]
        if self.draw.random() < 0.2:
            fields["bytes_out_per_byte_in"] = self.draw.choice([0, 1.5, 1000])
        return fields

    def _rebalance_requested(self, state: ClusterState) -> dict[str, Any]:
        topics = [self._topic(state)] if self.draw.random() < 0.2 else None
        return {"topics": topics, "max_moves": self.draw.choice([None, None, None, 0, 1, 3, 2**31])}

    def _preferred_election_requested(self, state: ClusterState) -> dict[str, Any]:
        return {"topics": [self._topic(state)] if self.draw.random() < 0.3 else None}

    def _decided(self, state: ClusterState) -> dict[str, Any]:
        proposal = state.proposal
        if proposal is None or self.draw.random() < 0.1:
            return {"plan_version": self.draw.randint(0, state.version + 2), "digest": "0" * 64}
        return {"plan_version": proposal.plan_version, "digest": proposal.digest}

    _plan_approved = _decided
    _plan_rejected = _decided

    def _plan_rolled_back(self, state: ClusterState) -> dict[str, Any]:
        version = self.draw.choice([*state.moving, self.draw.randint(1, state.version + 1)])
        return {"plan_version": version, "digest": f"digest of {version}"}

    def _plan_progress(self, state: ClusterState) -> dict[str, Any]:
        details: Any = self.draw.choice([None, {"partition": "t0-1"}, [], "x", {"a": [1, None, 1e308]}])
        version = self.draw.randint(0, state.version + 2)
        return {"plan_version": version, "details": details,
                "state": self.draw.choice(["started", "partition_done", "completed", "failed"])}  # fmt: skip

    def _plan_claimed(self, state: ClusterState) -> dict[str, Any]:
        return {"plan_version": self.draw.randint(0, state.version + 1), "claimant": self.draw.choice(["a", "b"]),
                "lease_seconds": self.draw.choice([1, 60, 3600])}  # fmt: skip

    def _cluster_identified(self, _: ClusterState) -> dict[str, Any]:
        return {"kafka_cluster_id": self.draw.choice(["one", "one", "two"])}

    def _cluster_resumed(self, _: ClusterState) -> dict[str, Any]:
        return {}


WEIGHTS = {
    "broker_joined": 16, "broker_left": 16, "broker_changed": 3, "topic_created": 14, "topic_deleted": 3,
    "partitions_added": 5, "replication_factor_changed": 6, "assignment_observed": 7, "load_observed": 5,
    "rebalance_requested": 6, "preferred_election_requested": 2, "plan_approved": 9, "plan_rejected": 1,
    "plan_rolled_back": 3, "plan_progress": 3, "plan_claimed": 3, "cluster_resumed": 1, "cluster_identified": 1,
}  # fmt: skip
