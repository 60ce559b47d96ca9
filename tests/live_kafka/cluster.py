"""What live tests know of the cluster that they run on, and how they wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from kafka import KafkaAdminClient
from kafka.errors import KafkaConnectionError

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b"}
USER, PASSWORD = "planner", "only-a-test-knows-this-0451"
PATIENCE = 30.0

Found = TypeVar("Found")


def wait_until(found: Callable[[], Found], what: str, patience: float = PATIENCE) -> Found:
    """The first answer that is true, asked for every 50 ms; a broker that has just died gives none."""
    until = time.monotonic() + patience
    while True:
        with suppress(KafkaConnectionError):
            if answer := found():
                return answer
        assert time.monotonic() < until, f"{what}: not within {patience:g} s"
        time.sleep(0.05)


def alive(admin: KafkaAdminClient) -> set[int]:
    return {broker["broker_id"] for broker in admin.describe_cluster()["brokers"] if not broker["is_fenced"]}


def own_topics(admin: KafkaAdminClient) -> list[str]:
    """The topics that Kafka did not make for itself."""
    return [topic["name"] for topic in admin.describe_topics() if not topic["is_internal"]]
