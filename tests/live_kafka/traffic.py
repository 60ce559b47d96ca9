"""A producer and a consumer that work on while brokers die and replicas move."""

from __future__ import annotations

import threading
import time
from collections import Counter

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

AT_LEAST = 100_000
_EASY = 2_000
"""Records a second while the story goes on; afterwards as fast as it gets."""


class Traffic:
    """Numbered records, written with ``acks=all`` and read at the same time; use it in a ``with`` statement."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self._servers = servers
        self._places = [TopicPartition(topic, p) for p in range(partitions)]
        self._enough = threading.Event()
        self._threads = [threading.Thread(target=self._write), threading.Thread(target=self._read)]
        self.sent = 0
        self.acknowledged = 0
        self.failures: list[BaseException] = []
        self.received: Counter[int] = Counter()

    def finish(self, patience: float = 120.0) -> None:
        """Write up to :data:`AT_LEAST` records and read what was written."""
        self._enough.set()
        for thread in self._threads:
            thread.join(patience)
            assert not thread.is_alive(), f"{self.sent} sent, {len(self.received)} received"

    def _write(self) -> None:
        began = time.monotonic()
        producer = KafkaProducer(
            bootstrap_servers=self._servers, acks="all", enable_idempotence=True, linger_ms=5, max_block_ms=60_000
        )
        while not (self._enough.is_set() and self.sent >= AT_LEAST):
            place = self._places[self.sent % len(self._places)]
            sent = producer.send(place.topic, b"%d" % self.sent, partition=place.partition)
            sent.add_callback(self._count)
            sent.add_errback(self.failures.append)
            self.sent += 1
            if self.sent % 100 == 0 and not self._enough.is_set():
                time.sleep(max(0.0, self.sent / _EASY - (time.monotonic() - began)))
        producer.flush()
        producer.close()

    def _count(self, _: object) -> None:
        self.acknowledged += 1

    def _read(self) -> None:
        consumer = KafkaConsumer(bootstrap_servers=self._servers, auto_offset_reset="earliest")
        consumer.assign(self._places)
        while not (self._enough.is_set() and self.sent >= AT_LEAST and len(self.received) >= self.sent):
            for records in consumer.poll(timeout_ms=500).values():
                self.received.update(int(record.value) for record in records)
        consumer.close()

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
