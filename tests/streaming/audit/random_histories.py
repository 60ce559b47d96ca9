"""Random histories of one cluster, for tests that compare what is made of them."""

from __future__ import annotations

import random
from typing import Any

from tests.streaming.driving import Driver

CONF = '[policy]\napproval = ["rebalance"]\ndefault_replication_factor = 2\nsettle = "0s"\n'
BY_LOAD = '[policy.loads]\nplan = true\non_skew = "rebalance"\nevery = "5m"\nweight = 0.5\n'
KEPT_OFF = BY_LOAD + 'move_cost = "1KB"\nkeep_off = [{topics = "t[0-3]", brokers = [1, 4]}]\n'
Row = dict[str, Any]


def random_history(seed: int, batches: int, more: str = "") -> tuple[Driver, list[Any]]:
    """Everything that can happen, in batches of several events; times run ahead and back a little."""
    rng, driver, results = random.Random(seed), Driver(CONF + more), []
    results.append(driver.racks({"a": [1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9]}))
    minute = 1.0
    for number in range(batches):
        minute += rng.choice([0.5, 1, 5, 40])
        lines = [event(driver, rng, minute + rng.uniform(-2, 2), number) for _ in range(rng.randrange(4))]
        results.append(driver.batch(*lines, minute=minute + 1))
    return driver, results


def event(driver: Driver, rng: random.Random, minute: float, number: int) -> bytes:
    broker, topic = rng.randrange(1, 11), f"t{rng.randrange(8)}"
    state = driver.memory.clusters.get("c")
    version = rng.randrange(1, state.version + 2) if state else 1
    found = next((v for v in driver.journal if v.plan_version == version), None)
    named = {"plan_version": version, "digest": found.digest if found else "?"}
    proposal = state.proposal if state else None
    if proposal is not None:
        named = rng.choice([named, {"plan_version": proposal.plan_version, "digest": proposal.digest}])
    kinds: dict[str, Row] = {
        "topic_created": {
            "topic": topic,
            "partitions": rng.randrange(1, 9),
            "replication_factor": rng.choice([1, 2, 3]),
        },
        "topic_deleted": {"topic": topic},
        "partitions_added": {"topic": topic, "partitions": rng.randrange(1, 14)},
        "replication_factor_changed": {"topic": topic, "replication_factor": rng.choice([1, 2, 3])},
        "broker_joined": {"broker_id": broker, "rack": "abc"[(broker - 1) // 3 % 3]},
        "broker_left": {"broker_id": broker, "reason": rng.choice(["failed", "failed", "decommissioned"])},
        "broker_changed": {"broker_id": broker, "capacity": rng.choice([1.0, 2.0])},
        "rebalance_requested": {},
        "preferred_election_requested": {},
        "plan_approved": named,
        "plan_rejected": named,
        "plan_rolled_back": named,
        "plan_progress": {"plan_version": version, "state": "completed"},
        "load_observed": {
            "partitions": [
                {
                    "topic": f"t{t}",
                    "partition": p,
                    "size": rng.choice([None, rng.randrange(300, 1000)]),
                    "bytes_in": 10 * t,
                }
                for t in range(8)
                for p in range(rng.randrange(12))
            ],
            "brokers": [{"broker_id": broker, "disk": 10**9, "log_dirs": [{"path": "/d", "limit": 10**9}]}],
        },
    }
    kind = rng.choice([*kinds, "load_observed"])
    again = {"event_id": f"e{rng.randrange(1, 30)}"} if rng.random() < 0.1 else {}
    return driver.event(kind, minute=minute, **kinds[kind], **again)
