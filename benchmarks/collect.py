"""``collect`` on a real cluster: how soon news is told, and what a look costs.

    python -m benchmarks.collect

Starts a cluster of its own, for which it needs Maven. Seconds are those on the clock, so they say something on a
machine that does nothing else; what a look costs is CPU time of this process.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from kafka import KafkaAdminClient

from examples.local_kafka import LocalKafka
from examples.local_kafka.cluster import SESSION_TIMEOUT
from streaming.collect.collector import Collector, watch
from streaming.collect.loads import observed
from streaming.collect.measuring import Look, look_at_loads
from streaming.config import Collect, Kafka, parse_config
from streaming.events import AnyEvent, encode
from streaming.kafka.connection import Connection
from streaming.kafka.snapshot import read_snapshot

RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}
TOPICS = 5
TOPICS_TO_LOOK_AT = ((85, 1), (900, 1), (1000, 1), (1000, 3))
"""Partitions and replication factor of topics that are created one after the other."""
LOOKS = 5


class Told:
    """The lines that the collector handed over, and when the first one with a text came."""

    def __init__(self) -> None:
        self._lines: list[tuple[float, str]] = []

    def take(self, lines: bytes) -> None:
        self._lines += [(time.monotonic(), line) for line in lines.decode().splitlines()]

    def seconds_to(self, *texts: str, since: float) -> float:
        while True:
            for at, line in list(self._lines):
                if at >= since and all(text in line for text in texts):
                    return at - since
            time.sleep(0.005)


def news(kafka: LocalKafka, admin: KafkaAdminClient, told: Told) -> None:
    print("| what happens | seconds until it is told |\n| --- | --- |")
    for n in range(TOPICS):
        began = time.monotonic()
        admin.create_topics({f"t{n}": {"num_partitions": 3, "replication_factor": 3}})
        print(f"| topic {n + 1} is created | {told.seconds_to('topic_created', f't{n}', since=began):.2f} |")
    for broker in RACKS:
        began = time.monotonic()
        kafka.kill_broker(broker)
        seconds = told.seconds_to("broker_left", f'"broker_id":{broker}', since=began)
        print(f"| broker {broker} is killed | {seconds:.2f} (the session timeout is {SESSION_TIMEOUT:g}) |")
        began = time.monotonic()
        kafka.start_broker(broker)
        told.seconds_to("broker_joined", f'"broker_id":{broker}', since=began)


def looks(admin: KafkaAdminClient) -> None:
    print("\n| partitions | replicas | CPU milliseconds of a look | of a look at loads | kilobytes told of loads |")
    print("| --- | --- | --- | --- | --- |")
    partitions, replicas = TOPICS * 3, TOPICS * 9
    for new, factor in TOPICS_TO_LOOK_AT:
        name = f"s{new}-{factor}"
        admin.create_topics({name: {"num_partitions": new, "replication_factor": factor}})
        admin.wait_for_topics([name], timeout_ms=60_000)
        while not all(p.size is not None for topic in look(admin).topics for p in topic.partitions):
            time.sleep(1)  # brokers lead partitions before they have made their logs
        partitions, replicas = partitions + new, replicas + new * factor
        plain, by_load = cpu(lambda: read_snapshot(admin)), cpu(lambda: told_of_loads(admin))
        size = sum(len(encode(event)) for event in told_of_loads(admin))
        print(f"| {partitions} | {replicas} | {plain:.0f} | {by_load - plain:.0f} | {size / 1000:.0f} |")


def cpu(work: Callable[[], object]) -> float:
    """CPU milliseconds of this process, the mean of some runs."""
    begin = time.process_time()
    for _ in range(LOOKS):
        work()
    return (time.process_time() - begin) / LOOKS * 1000


def told_of_loads(admin: KafkaAdminClient) -> list[AnyEvent]:
    """A look at the cluster and its loads, and the events of it."""
    now = look(admin)
    return observed(now.topics, now, 1.0, {}, Collect(), cluster_id="east", at=datetime.now(UTC))


def look(admin: KafkaAdminClient) -> Look:
    return look_at_loads(admin, read_snapshot(admin))


def main() -> None:
    interval = parse_config("", "built-in").collect.interval.seconds
    with tempfile.TemporaryDirectory() as folder, LocalKafka(Path(folder) / "kafka", RACKS) as kafka:
        connection, told, stop = Connection.to(kafka.bootstrap_servers(), Kafka()), Told(), threading.Event()
        with Collector(connection, "east", f"{folder}/state", told.take) as collector, connection.admin() as admin:
            watching = threading.Thread(target=watch, args=(collector, interval, stop, lambda _: None, print))
            watching.start()
            try:
                news(kafka, admin, told)
            finally:
                stop.set()
                watching.join()
        with connection.admin() as admin:
            looks(admin)


if __name__ == "__main__":
    main()
