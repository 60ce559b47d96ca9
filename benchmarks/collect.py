"""``collect`` on a real cluster: how soon news is told, and what a look costs.

    python -m benchmarks.collect

Starts a cluster of its own, for which it needs Maven. Seconds are those on the clock, so they say something on a
machine that does nothing else; what a look costs is CPU time of this process.
"""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

from kafka import KafkaAdminClient

from examples.local_kafka import LocalKafka
from examples.local_kafka.cluster import SESSION_TIMEOUT
from streaming.collect.collector import Collector, watch
from streaming.config import Kafka, parse_config, parse_duration
from streaming.live.connection import Connection
from streaming.live.snapshot import read_snapshot

RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}
TOPICS = 5
SIZES = (100, 1000, 2000)
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
    print("\n| partitions | CPU milliseconds of a look |\n| --- | --- |")
    there = TOPICS * 3
    for size in SIZES:
        admin.create_topics({f"s{size}": {"num_partitions": size - there, "replication_factor": 1}})
        admin.wait_for_topics([f"s{size}"], timeout_ms=60_000)
        there = size
        begin = time.process_time()
        for _ in range(LOOKS):
            read_snapshot(admin)
        print(f"| {size} | {(time.process_time() - begin) / LOOKS * 1000:.0f} |")


def main() -> None:
    interval = parse_duration(parse_config("", "built-in").collect.interval).total_seconds()
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
